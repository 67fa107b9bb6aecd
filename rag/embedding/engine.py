"""Engine: what runs an embedding model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from rag.embedding.prompts import Prompts


class Engine(Protocol):
    """A loaded model. Safe for several threads."""

    @property
    def name(self) -> str:
        """The library that runs the model."""

    @property
    def dimension(self) -> int:
        """The length of a vector."""

    @property
    def window(self) -> int:
        """The number of tokens that it reads of a text with its prompt, special ones left out."""

    @property
    def prompts(self) -> Prompts:
        """What is put before a text; `encode` takes texts that have it."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text, special tokens left out."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of at least one text, float32 of shape (len(texts), dimension), of length 1."""
