"""The embedding model: texts to vectors, by onnxruntime or by sentence-transformers.

    folders       where a model's files are, and what they are known by
    prompts       the words that a model wants before a query and before a passage
    engine        the port: what both engines do
    onnx_engine   runs the export of a model: starts in a fraction of a second, and is light
    torch_engine  runs the model itself: every kind of model, and a GPU
    export        the exports in the cache: found, made once, made anew when something changed
    exporting     the making of one, in a process of its own that alone imports torch

Both engines give the same vectors, to 1e-6, so an index does not know which one made it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from rag.embedding import export, torch_engine
from rag.embedding.engine import Engine
from rag.embedding.onnx_engine import OnnxEngine, UnusableExport
from rag.errors import UsageError

Progress = Callable[[str, int, int], None]
"""Called with (stage, number done, number of all)."""

_log = logging.getLogger(__name__)


class SentenceEmbedding:
    """A sentence-transformers model. Vectors are float32 of length 1; safe for several threads.

    The model is loaded at first use, once, whichever thread comes first. `window` is the
    number of tokens of a passage it reads; it cuts what is longer, so nothing longer may be
    given to it.
    """

    def __init__(self, name: str, cache: Path | None = None) -> None:
        """`name`: an installed package, a folder or a hub name; `cache`: where exports live."""
        self.model_name = name
        self._cache = cache
        self._loading = threading.Lock()
        self._engine: Engine | None = None
        self._bulk: Engine | None = None

    @property
    def dimension(self) -> int:
        return self._loaded().dimension

    @property
    def window(self) -> int:
        engine = self._loaded()
        return engine.window - engine.count_tokens([engine.prompts.passage])[0]

    @property
    def engine(self) -> str:
        """What runs, or will run, the model: "onnxruntime" or "sentence-transformers"."""
        if self._engine is not None:
            return self._engine.name
        found = export.find(self.model_name, self._cache)
        return OnnxEngine.name if found else torch_engine.TorchEngine.name

    def prepare(self, progress: Progress | None = None) -> None:
        """Export the model, unless that was done or cannot be; later loads then need no torch."""
        if self._engine is not None and self._engine.name == OnnxEngine.name:
            return
        try:
            export.make(self.model_name, self._cache, progress)
        except export.NoExportError as error:
            _log.warning("%s", error)
            return
        with self._loading:
            self._engine = self._bulk = None

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text, special tokens and prompts left out."""
        return self._loaded().count_tokens(texts)

    def fits(self, query: str) -> bool:
        """Whether the model reads the whole of a query; it cuts what is beyond its window."""
        engine = self._loaded()
        return engine.count_tokens([engine.prompts.query + query])[0] <= engine.window

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of passages, of shape (len(texts), dimension). Raises UsageError for a blank."""
        engine = self._loaded_bulk()
        if not texts:
            return np.zeros((0, engine.dimension), dtype=np.float32)
        return engine.encode(_prompted(engine.prompts.passage, texts))

    def embed_query(self, query: str) -> np.ndarray:
        """The vector of a query, of shape (dimension,). Raises UsageError when it is blank."""
        engine = self._loaded()
        vector: np.ndarray = engine.encode(_prompted(engine.prompts.query, [query]))[0]
        return vector

    def _loaded(self) -> Engine:
        with self._loading:
            if self._engine is None:
                self._engine = self._load()
            return self._engine

    def _loaded_bulk(self) -> Engine:
        """The engine for many texts: a GPU where there is one."""
        engine = self._loaded()
        with self._loading:
            if self._bulk is None:
                on_gpu = engine.name == OnnxEngine.name and torch_engine.has_gpu()
                self._bulk = torch_engine.load(self.model_name) if on_gpu else engine
            return self._bulk

    def _load(self) -> Engine:
        found = export.find(self.model_name, self._cache)
        if found is not None:
            try:
                return OnnxEngine(found)
            except UnusableExport as error:
                _log.warning("%s", error)
                export.discard(found)
        return torch_engine.load(self.model_name)


def _prompted(prompt: str, texts: Sequence[str]) -> list[str]:
    if not all(text.strip() for text in texts):
        raise UsageError("a blank text has no meaning to embed; leave it out")
    return [prompt + text for text in texts]
