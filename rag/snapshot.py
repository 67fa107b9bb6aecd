"""Snapshot: one generation of an index, open for reading. It never changes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Self

import numpy as np

from rag.chunking import LEVELS, Level, chunk_id, chunk_record
from rag.embedding import SentenceEmbedding
from rag.errors import IndexMissingError
from rag.filters import NO_FILTERS, Filters
from rag.generations import Manifest
from rag.lexical import Catalogue, Entry
from rag.records import Record
from rag.vectors import StoredSentence, VectorStore

# As many records are scored one by one, exactly, faster than the graph is searched for them.
_FEW = 500
# How many times more neighbours are asked for when too few of those found are admitted.
_WIDER = 4


class Snapshot:
    """What searches read. Whoever pins it keeps it open until the end of the block.

    stamp:  equal to that of the store for as long as this is what is served
    exact:  whether the vectors are those of the catalogue's records and no others
    """

    def __init__(
        self,
        catalogue: Catalogue,
        vectors: VectorStore,
        embedding: SentenceEmbedding,
        *,
        place: str,
        manifest: Manifest | None = None,
        stamp: object = None,
        exact: bool = True,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self.catalogue = catalogue
        self.vectors = vectors
        self.embedding = embedding
        self.manifest = manifest
        self.stamp = stamp
        self._place = place
        self._exact = exact
        self._close = close
        self._users = 1
        self._counting = threading.Lock()

    @contextmanager
    def pinned(self) -> Iterator[Self]:
        """This snapshot, open until the end of the block."""
        self.retain()
        try:
            yield self
        finally:
            self.release()

    def retain(self) -> None:
        """Keep it open until as many calls of `release`."""
        with self._counting:
            self._users += 1

    def release(self) -> None:
        """Close it, unless someone else keeps it open."""
        with self._counting:
            self._users -= 1
            last = self._users == 0
        if last:
            self._close()

    def __len__(self) -> int:
        return len(self.catalogue)

    def refuse_empty(self) -> None:
        """Raise IndexMissingError when the index holds no abstract."""
        if not len(self):
            raise IndexMissingError(
                f"the index at {self._place} is empty: ingest abstracts first, as in "
                "'rag ingest FILE_OR_FOLDER'"
            )

    @cached_property
    def sources(self) -> Counter[str]:
        """The number of records read from each file."""
        return Counter(
            path
            for entry in self.catalogue.entries()
            for path in {place.path for place in (entry.record.source, *entry.record.sources)}
        )

    def nearest(
        self, level: Level, vector: np.ndarray, k: int, filters: Filters = NO_FILTERS
    ) -> list[tuple[str, float]]:
        """The k nearest chunks of those admitted, as (record id, cosine), best first.

        Chroma's own filters take most of a second where they admit most of 100,000 rows. So
        the catalogue says which of the nearest are admitted, and when these are too few, more
        are asked for; where a filter admits few records at all, these are scored one by one.
        """
        if self._exact and not filters:
            found = self.vectors.nearest(level, vector, k)
        else:
            found = self._admitted(level, vector, k, filters)
        return [(owner.partition(".")[0], cosine) for owner, cosine in found]

    def sentences(self, record: Record) -> list[StoredSentence]:
        """The sentences of a record with their vectors, in the order of its abstract."""
        entry = self.catalogue.get([record.id]).get(record.id)
        if entry is None:
            return []
        found = self.vectors.sentences(entry.owner, entry.sentences)
        return found if len(found) == entry.sentences else self._embedded(entry.record)

    def _admitted(
        self, level: Level, vector: np.ndarray, k: int, filters: Filters
    ) -> list[tuple[str, float]]:
        total = len(self)
        if filters:
            count, few = self.catalogue.matching(filters, _FEW)
            if count <= _FEW:
                return self.vectors.cosines(level, _chunks(few, level), vector)[:k]
        else:
            count = total
        wanted = k * total // max(count, 1) + k // 2
        while True:
            found = self.vectors.nearest(level, vector, wanted)
            owners = self.catalogue.admitted({owner for owner, _ in found}, filters)
            kept = [pair for pair in found if pair[0] in owners]
            if len(kept) >= k or len(found) < wanted:
                return kept[:k]
            wanted *= _WIDER

    def _embedded(self, record: Record) -> list[StoredSentence]:
        """The sentences of a record whose rows a later ingest has taken away already."""
        chunks = chunk_record(record, self.embedding.count_tokens, self.embedding.window)
        sentences = [chunk for chunk in chunks if chunk.level == "sentence"]
        vectors = self.embedding.embed([chunk.embedded for chunk in sentences])
        return [
            StoredSentence(chunk.start, chunk.end, vector)
            for chunk, vector in zip(sentences, vectors, strict=True)
        ]


def _chunks(entries: list[Entry], level: Level) -> list[str]:
    place = LEVELS.index(level)
    return [
        chunk_id(entry.owner, level, ordinal)
        for entry in entries
        for ordinal in range((entry.passages, entry.sentences)[place])
    ]
