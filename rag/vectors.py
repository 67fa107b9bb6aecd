"""The vectors of passages and of sentences, in one Chroma collection each.

Chroma is used directly rather than through LlamaIndex's ChromaVectorStore, whose `add`
silently keeps the old text of an id that exists. A row holds the place of its chunk rather
than its text, which the catalogue has: Chroma would index every text a second time, which
takes three times as long and most of the disk. Nor does it hold what a record can be
filtered by: the catalogue answers that, in a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from chromadb.api.collection_configuration import CreateHNSWConfiguration

from rag.chunking import Chunk, Level, chunk_id

T = TypeVar("T")
# Calls a function of Chroma; its errors come out as those of rag.errors.
Guard = Callable[[Callable[[], T]], T]

COLLECTIONS: dict[Level, str] = {"passage": "passages", "sentence": "sentences"}
# The graph of the approximate search. ef_search is above the number of neighbours asked for,
# so that nearly all of them are the true ones; benchmarks/scale.py measures it.
HNSW: CreateHNSWConfiguration = {
    "space": "cosine",
    "ef_construction": 200,
    "max_neighbors": 16,
    "ef_search": 250,
}


@dataclass(frozen=True, slots=True)
class StoredSentence:
    """A sentence of a record with its vector, float32 of length 1."""

    start: int
    end: int
    vector: np.ndarray


class VectorStore:
    """Vectors of chunks, nearest first by cosine. Each belongs to an owner: a text of a record.

    collections:  by level; a level without one has no vectors
    most:         how many rows one call may write
    guard:        what calls Chroma
    """

    def __init__(
        self, collections: Mapping[Level, Any], most: int = 1, guard: Guard[Any] | None = None
    ) -> None:
        self._collections = collections
        self._most = most
        self._call: Guard[Any] = guard or (lambda function: function())

    def count(self, level: Level) -> int:
        collection = self._collections.get(level)
        return int(self._call(collection.count)) if collection else 0

    def put(self, chunks: Sequence[Chunk], vectors: np.ndarray, owners: Mapping[str, str]) -> None:
        """Write chunks with their vectors, in place of those with the same ids. `owners` are
        the owners of the chunks by record id."""
        for level, collection in self._collections.items():
            rows = [i for i, chunk in enumerate(chunks) if chunk.level == level]
            for batch in _batches(rows, self._most):
                picked = [chunks[i] for i in batch]
                ids = [chunk_id(owners[c.record_id], c.level, c.ordinal) for c in picked]
                places = [{"start": chunk.start, "end": chunk.end} for chunk in picked]
                self._call(
                    lambda c=collection, i=ids, v=vectors[batch], m=places: c.upsert(  # type: ignore[misc]
                        ids=i, embeddings=v, metadatas=m
                    )
                )

    def remove(self, level: Level, ids: Sequence[str]) -> None:
        collection = self._collections[level]
        for batch in _batches(list(ids), self._most):
            self._call(lambda b=batch: collection.delete(ids=b))  # type: ignore[misc]

    def ids(self, level: Level) -> list[str]:
        collection = self._collections.get(level)
        return list(self._call(lambda: collection.get(include=[]))["ids"]) if collection else []

    def nearest(self, level: Level, vector: np.ndarray, k: int) -> list[tuple[str, float]]:
        """The k nearest chunks, as (owner, cosine), best first."""
        collection = self._collections.get(level)
        if k < 1 or not collection:
            return []
        found = self._call(
            lambda: collection.query(query_embeddings=[vector], n_results=k, include=["distances"])
        )
        return [
            (owner_of(chunk), 1.0 - distance)
            for chunk, distance in zip(found["ids"][0], found["distances"][0], strict=True)
        ]

    def cosines(
        self, level: Level, ids: Sequence[str], vector: np.ndarray
    ) -> list[tuple[str, float]]:
        """The cosine of each of these chunks, exactly, as (owner, cosine), best first."""
        collection = self._collections.get(level)
        if not ids or not collection:
            return []
        found = self._call(lambda: collection.get(ids=list(ids), include=["embeddings"]))
        if not found["ids"]:
            return []
        scores = np.asarray(found["embeddings"], np.float32) @ vector
        order = np.argsort(-scores, kind="stable")
        return [(owner_of(found["ids"][row]), float(scores[row])) for row in order]

    def sentences(self, owner: str, count: int) -> list[StoredSentence]:
        """The `count` sentences of a text, in its order."""
        collection = self._collections.get("sentence")
        ids = [chunk_id(owner, "sentence", ordinal) for ordinal in range(count)]
        if not ids or not collection:
            return []
        found = self._call(lambda: collection.get(ids=ids, include=["embeddings", "metadatas"]))
        rows = [
            StoredSentence(int(meta["start"]), int(meta["end"]), np.asarray(vector, np.float32))
            for meta, vector in zip(found["metadatas"], found["embeddings"], strict=True)
        ]
        return sorted(rows, key=lambda row: row.start)


def owner_of(chunk: str) -> str:
    """The owner in the id of a chunk."""
    return chunk.rpartition(":")[0]


def orphans(chunks: Sequence[str], owners: set[str]) -> list[str]:
    """Those of these ids of chunks that belong to none of these owners."""
    return sorted(chunk for chunk in chunks if owner_of(chunk) not in owners)


def _batches(rows: list[Any], size: int) -> list[list[Any]]:
    return [rows[i : i + size] for i in range(0, len(rows), size)]
