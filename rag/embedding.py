"""The embedding model: sentence-transformers, from an installed package, a path or a hub name."""

from __future__ import annotations

import importlib.util
import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import PrivateAttr

from rag.errors import EmbeddingError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_BATCH = 16


class SentenceEmbedding(BaseEmbedding):
    """A sentence-transformers model as a LlamaIndex embedding. Vectors have length 1.

    The model is loaded at first use, once, whichever thread comes first. `window` is the
    number of tokens of text it reads; it cuts what is longer, so nothing longer may be
    given to it.
    """

    _model: Any = PrivateAttr(default=None)
    _loading: Any = PrivateAttr(default_factory=threading.Lock)

    def __init__(self, name: str) -> None:
        super().__init__(model_name=name, embed_batch_size=_BATCH)

    @property
    def dimension(self) -> int:
        dimension = self._loaded().get_embedding_dimension()
        assert dimension is not None  # every model that ends in a pooling layer states it
        return dimension

    @property
    def window(self) -> int:
        model = self._loaded()
        longest = model.max_seq_length or model.tokenizer.model_max_length
        return int(longest) - int(model.tokenizer.num_special_tokens_to_add())

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text, special tokens left out."""
        if not texts:
            return []
        encoded = self._loaded().tokenizer(
            list(texts), add_special_tokens=False, truncation=False, verbose=False
        )
        return [len(ids) for ids in encoded["input_ids"]]

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of `texts`, float32 of shape (len(texts), dimension), each of length 1."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        vectors: np.ndarray = self._loaded().encode(
            list(texts), batch_size=_BATCH, normalize_embeddings=True, show_progress_bar=False
        )
        return vectors.astype(np.float32, copy=False)

    def _get_text_embedding(self, text: str) -> list[float]:
        return [float(x) for x in self.embed([text])[0]]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return [[float(x) for x in vector] for vector in self.embed(texts)]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _loaded(self) -> SentenceTransformer:
        with self._loading:
            if self._model is None:
                self._model = _load(self.model_name)
            model: SentenceTransformer = self._model
            return model


def _load(name: str) -> SentenceTransformer:
    folder = _local_folder(name)
    # Loading from a folder asks no hub; the switch only spares the retries, a minute long,
    # of a machine that is offline.
    if folder is not None:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    # Imported here: torch and transformers take seconds that opening an index need not wait for.
    from sentence_transformers import SentenceTransformer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.getLogger("sentence_transformers").setLevel(logging.WARNING)
    try:
        return SentenceTransformer(str(folder or name), device="cpu")
    except Exception as error:  # each backend raises its own kinds
        raise EmbeddingError(
            f"embedding model {name}: cannot be loaded ({_first_line(error)}); set RAG_EMBED_MODEL "
            "to an installed package, the folder of a sentence-transformers model, or a hub name"
        ) from error


def _local_folder(name: str) -> Path | None:
    """The folder of a model given as a path or as the name of an installed package."""
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    try:
        spec = importlib.util.find_spec(name.replace("-", "_"))
    except (ImportError, ValueError):
        return None
    for root in (spec.submodule_search_locations or ()) if spec else ():
        for modules in sorted(Path(root).rglob("modules.json")):
            return modules.parent
    return None


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
