"""RecordRows: the records of an index as rows of a collection on a Chroma server.

    RECORD@7  {"generation": 7, "entry"}   entry: compressed JSON; empty when the record went

A row is written once. The newest row of a record, up to the generation that is served, is the
record; the others are swept away when no reader needs them.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rag.lexical import Entry, entry_from_json, entry_json
from rag.server import ChromaServer

_NAME = "records"
# Rows a request: a record is some kilobytes.
_PAGE = 1000
# These rows are never searched by their vectors.
UNSEARCHED = {"space": "l2", "ef_construction": 8, "max_neighbors": 4, "ef_search": 8}


class RecordRows:
    """Records on a server, by generation."""

    def __init__(self, server: ChromaServer) -> None:
        self._server = server
        self._rows = server.collection(_NAME, configuration={"hnsw": UNSEARCHED})

    @staticmethod
    def drop(server: ChromaServer) -> None:
        server.drop(_NAME)

    def put(self, generation: int, entries: Iterable[Entry]) -> None:
        """Write entries for a generation."""
        self._write(generation, [(entry.record.id, _packed(entry)) for entry in entries])

    def remove(self, generation: int, ids: Iterable[str]) -> None:
        """Write that a generation lacks these records."""
        self._write(generation, [(id_, "") for id_ in ids])

    def changes(self, after: int, upto: int) -> Iterator[dict[str, Entry | None]]:
        """What the generations after one, up to another, changed: the record's entry, or None
        when it went, by id; in pages."""
        newest = self._newest(self._ids(after, upto))
        for page in _pages([f"{id_}@{number}" for id_, number in newest.items()]):
            found = self._server.call(
                lambda p=page: self._rows.get(ids=p, include=["metadatas"])  # type: ignore[misc]
            )
            yield {
                row.partition("@")[0]: _unpacked(meta["entry"])
                for row, meta in zip(found["ids"], found["metadatas"], strict=True)
            }

    def sweep(self, generation: int) -> None:
        """Delete rows that are not the newest of their record up to a generation."""
        rows = self._ids(0, generation)
        newest = {f"{id_}@{number}" for id_, number in self._newest(rows).items()}
        for page in _pages(sorted(set(rows) - newest)):
            self._server.call(lambda p=page: self._rows.delete(ids=p))  # type: ignore[misc]

    def _ids(self, after: int, upto: int) -> list[str]:
        bounds = [{"generation": {"$gt": after}}, {"generation": {"$lte": upto}}]
        found = self._server.call(lambda: self._rows.get(where={"$and": bounds}, include=[]))
        return list(found["ids"])

    def _newest(self, rows: Iterable[str]) -> dict[str, int]:
        newest: dict[str, int] = {}
        for row in rows:
            id_, _, number = row.partition("@")
            newest[id_] = max(int(number), newest.get(id_, 0))
        return newest

    def _write(self, generation: int, rows: Sequence[tuple[str, str]]) -> None:
        for page in _pages(rows):
            ids = [f"{id_}@{generation}" for id_, _ in page]
            facts = [{"generation": generation, "entry": packed} for _, packed in page]
            vectors = [_somewhere(id_) for id_ in ids]
            self._server.call(
                lambda i=ids, v=vectors, f=facts: self._rows.upsert(  # type: ignore[misc]
                    ids=i, embeddings=v, metadatas=f
                )
            )


def _packed(entry: Entry) -> str:
    # The server indexes every text it holds; a compressed one is less than half as long.
    return base64.b85encode(zlib.compress(entry_json(entry).encode())).decode()


def _unpacked(packed: str) -> Entry | None:
    return entry_from_json(zlib.decompress(base64.b85decode(packed)).decode()) if packed else None


def _somewhere(row: str) -> list[float]:
    """A point of its own: a graph of equal points would be slow to build."""
    angle = zlib.crc32(row.encode()) / 2**32 * 2 * math.pi
    return [math.cos(angle), math.sin(angle)]


def _pages(rows: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (rows[start : start + _PAGE] for start in range(0, len(rows), _PAGE))
