"""The Chroma store: one collection of passage vectors and one of sentence vectors.

Chroma is used directly rather than through LlamaIndex's ChromaVectorStore, whose `add`
silently keeps the old text of an id that exists. A row holds the place of its chunk rather than
its text, which the catalogue has: Chroma would index every text a second time, which takes
three times as long and most of the disk. Callers hold the index's lock: two
processes that write one path destroy it without an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
from chromadb.api.collection_configuration import CreateHNSWConfiguration
from chromadb.config import Settings as ChromaSettings
from chromadb.errors import ChromaError

from rag.chunking import Chunk, Level, chunk_id
from rag.errors import IndexMismatchError
from rag.filters import FIELDS, NO_FILTERS, Facets, Filters

_COLLECTIONS: dict[Level, str] = {"passage": "passages", "sentence": "sentences"}
# Wide enough that the first hundreds of neighbours are the true ones.
_HNSW: CreateHNSWConfiguration = {"space": "cosine", "ef_construction": 200, "ef_search": 250}


@dataclass(frozen=True, slots=True)
class StoredSentence:
    """A sentence of a record with its vector, float32 of length 1."""

    start: int
    end: int
    vector: np.ndarray


class VectorStore:
    """Vectors of chunks on disk, nearest first by cosine."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            self._client = chromadb.PersistentClient(
                str(folder), settings=ChromaSettings(anonymized_telemetry=False)
            )
            self._collections = {level: self._collection(level) for level in _COLLECTIONS}
        except (ChromaError, ValueError, OSError, RuntimeError) as error:
            raise _damaged(folder, error) from error
        self._folder = folder

    def count(self, level: Level) -> int:
        return int(self._collections[level].count())

    def put(
        self, chunks: Sequence[Chunk], vectors: np.ndarray, facets: Mapping[str, Facets]
    ) -> None:
        """Write chunks with their vectors, in place of those with the same ids.

        `facets` are what each record can be filtered by, by record id.
        """
        for level, collection in self._collections.items():
            rows = [i for i, chunk in enumerate(chunks) if chunk.level == level]
            for batch in _batches(rows, self._client.get_max_batch_size()):
                collection.upsert(
                    ids=[chunks[i].id for i in batch],
                    embeddings=vectors[batch],
                    metadatas=[_metadata(chunks[i], facets[chunks[i].record_id]) for i in batch],
                )

    def refile(self, level: Level, rows: Sequence[tuple[str, Facets]]) -> None:
        """Change what chunks, given by id, can be filtered by."""
        for batch in _batches(list(rows), self._client.get_max_batch_size()):
            self._collections[level].update(
                ids=[id_ for id_, _ in batch], metadatas=[_filed(found) for _, found in batch]
            )

    def remove(self, level: Level, ids: Sequence[str]) -> None:
        for batch in _batches(list(ids), self._client.get_max_batch_size()):
            self._collections[level].delete(ids=batch)

    def ids(self, level: Level) -> list[str]:
        return list(self._collections[level].get(include=[])["ids"])

    def nearest(
        self, level: Level, vector: np.ndarray, k: int, filters: Filters = NO_FILTERS
    ) -> list[tuple[str, float]]:
        """The k nearest chunks of those admitted, as (record id, cosine), best first."""
        collection = self._collections[level]
        if k < 1 or not collection.count():
            return []
        try:
            found = collection.query(
                query_embeddings=[vector],
                n_results=k,
                include=["distances"],
                where=_where(filters),
            )
        except ChromaError as error:
            raise _damaged(self._folder, error) from error
        return [
            (chunk.rsplit(":", 1)[0], 1.0 - distance)
            for chunk, distance in zip(found["ids"][0], found["distances"][0], strict=True)
        ]

    def sentences(self, record_id: str, count: int) -> list[StoredSentence]:
        """The `count` sentences of a record, in the order of its abstract."""
        ids = [chunk_id(record_id, "sentence", ordinal) for ordinal in range(count)]
        if not ids:
            return []
        found = self._collections["sentence"].get(ids=ids, include=["embeddings", "metadatas"])
        rows = [
            StoredSentence(int(meta["start"]), int(meta["end"]), np.asarray(vector, np.float32))
            for meta, vector in zip(found["metadatas"], found["embeddings"], strict=True)
        ]
        return sorted(rows, key=lambda row: row.start)

    def close(self) -> None:
        self._client.close()  # type: ignore[attr-defined]

    def _collection(self, level: Level) -> Any:
        return self._client.get_or_create_collection(
            _COLLECTIONS[level], configuration={"hnsw": _HNSW}, embedding_function=None
        )


def _metadata(chunk: Chunk, facets: Facets) -> dict[str, Any]:
    return {
        "record_id": chunk.record_id,
        "ordinal": chunk.ordinal,
        "start": chunk.start,
        "end": chunk.end,
        **_filed(facets),
    }


def _filed(facets: Facets) -> dict[str, Any]:
    # Chroma merges metadata into what is there; None takes an old value away.
    return {"year": facets.year} | {
        field: list(facets.values[field]) if field in facets.values else None for field in FIELDS
    }


def _where(filters: Filters) -> Any:
    """Filters as Chroma's `where`: one operator at each level, and no list of one."""
    first, last = filters.years
    wanted: list[dict[str, Any]] = [
        *([{"year": {"$gte": first}}] if first is not None else []),
        *([{"year": {"$lte": last}}] if last is not None else []),
    ]
    for field, values in filters.conditions():
        either = [{field: {"$contains": value}} for value in values]
        wanted.append(either[0] if len(either) == 1 else {"$or": either})
    return {"$and": wanted} if len(wanted) > 1 else next(iter(wanted), None)


def _batches(rows: list[Any], size: int) -> list[list[Any]]:
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def _damaged(folder: Path, error: Exception) -> IndexMismatchError:
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return IndexMismatchError(
        f"the index at {folder.parent} is damaged ({line}); rebuild it: "
        "rag ingest --rebuild PATH..."
    )
