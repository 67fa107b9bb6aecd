"""The engine that runs every model: sentence-transformers, on the GPU where there is one."""

from __future__ import annotations

import importlib.metadata
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rag.embedding.folders import local_folder
from rag.embedding.prompts import Prompts, prompts_of
from rag.errors import EmbeddingError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# On a CPU larger batches only pad more; a GPU is idle with fewer.
_BATCH, _GPU_BATCH = 16, 128
_GPU_DEVICES = ("/dev/nvidia0", "/dev/kfd", "/dev/dxg")


class TorchEngine:
    """A sentence-transformers model in this process."""

    name = "sentence-transformers"

    def __init__(self, model: SentenceTransformer, prompts: Prompts) -> None:
        self.model = model
        self.prompts = prompts

    @property
    def dimension(self) -> int:
        # A truncated vector is shorter than what the last layer gives.
        dimension = self.model.truncate_dim or self.model.get_embedding_dimension()
        assert dimension is not None  # every model that ends in a pooling layer states it
        return dimension

    @property
    def window(self) -> int:
        tokenizer = self.model.tokenizer
        longest = self.model.max_seq_length or tokenizer.model_max_length
        return int(longest) - int(tokenizer.num_special_tokens_to_add())

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        if not texts:
            return []
        encoded = self.model.tokenizer(
            list(texts), add_special_tokens=False, truncation=False, verbose=False
        )
        return [len(ids) for ids in encoded["input_ids"]]

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        vectors: np.ndarray = self.model.encode(
            list(texts),
            prompt="",  # the texts have theirs
            batch_size=_BATCH if self.model.device.type == "cpu" else _GPU_BATCH,
            normalize_embeddings=True,
            show_progress_bar=False,
        )
        return vectors.astype(np.float32, copy=False)


def load(name: str, device: str | None = None) -> TorchEngine:
    """Load a model; on the GPU if there is one and no `device` is given.

    Raises EmbeddingError.
    """
    folder = local_folder(name)
    # Loading from a folder asks no hub; the switch only spares the retries, a minute long,
    # of a machine that is offline.
    if folder is not None:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    # Imported here: torch and transformers take seconds that opening an index need not wait for.
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.getLogger("sentence_transformers").setLevel(logging.WARNING)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        model = SentenceTransformer(str(folder or name), device=device)
    except Exception as error:  # each backend raises its own kinds
        raise EmbeddingError(
            f"embedding model {name}: cannot be loaded ({_first_line(error)}); set RAG_EMBED_MODEL "
            "to an installed package, the folder of a sentence-transformers model, or a hub name"
        ) from error
    return TorchEngine(model, prompts_of(model.prompts, Path(name).name))


def has_gpu() -> bool:
    """Whether torch is likely to find a GPU, going by its version and the devices there are.

    Torch itself would have to be imported to know. A CPU build says so in its version.
    """
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return False
    return not version.endswith("+cpu") and any(map(os.path.exists, _GPU_DEVICES))


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
