"""An embedding model that costs nothing, for tests of what is around it."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from rag.embedding import SentenceEmbedding
from rag.words import terms


class WordVectors(SentenceEmbedding):
    """Counts the words of a text in 256 buckets, and keeps every text it was given."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.texts: list[str] = []

    @property
    def dimension(self) -> int:
        return 256

    @property
    def window(self) -> int:
        return 40

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.texts.extend(texts)
        vectors = np.full((len(texts), 256), 1e-3, np.float32)
        for row, text in enumerate(texts):
            for word in terms(text):
                vectors[row, zlib.crc32(word.encode()) % 256] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def embed_query(self, query: str) -> np.ndarray:
        vector: np.ndarray = self.embed([query])[0]
        return vector
