"""Carrying out a plan on a draft, and saying what it comes to.

A record counts as present once the catalogue holds it. Its vectors are written before that,
so a draft that was interrupted at any point can be continued.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from rag.chunking import LEVELS, Chunk, chunk_id, chunk_record
from rag.embedding import SentenceEmbedding
from rag.lexical import Catalogue, Entry
from rag.papers import Version, merged
from rag.reading import Progress, Reading
from rag.records import Record
from rag.sources import Skip
from rag.store import Draft
from rag.syncing import Plan

# Records embedded and committed together: an interruption loses at most this much work.
_BATCH = 64
_REMOVED_TOGETHER = 1000


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What an ingest did. `read` counts entries read, `records` those in the index after it."""

    read: int = 0
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    skipped: tuple[Skip, ...] = ()
    records: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON data, in the layout of `rag ingest --json`."""
        return {**asdict(self), "skipped": [asdict(skip) for skip in self.skipped]}


def report(plan: Plan, catalogue: Catalogue, reading: Reading | None) -> IngestReport:
    """What carrying out a plan comes to, seen from the catalogue that it was made for."""
    versions = _Versions(plan, catalogue, reading)
    updated = {
        new.record.id
        for _, batch in _batches(plan.touched, _BATCH)
        for before, new in versions.pairs(batch)
        if _placeless(before, new)
    }
    return IngestReport(
        read=reading.read if reading else 0,
        added=len(plan.new) - len(plan.edited),
        updated=len(plan.edited) + len(updated),
        unchanged=len(plan.read.difference(plan.new, updated)),
        removed=len(plan.gone) - len(plan.edited),
        skipped=plan.skips,
        records=len(plan.wanted),
    )


def carry_out(
    plan: Plan,
    draft: Draft,
    reading: Reading | None,
    embedding: SentenceEmbedding,
    progress: Progress | None,
) -> None:
    """Bring a draft to what a plan, made for its catalogue, wants; plan.held goes along."""
    versions = _Versions(plan, draft.catalogue, reading)
    work = _Work(draft, embedding, plan.held)
    for start, batch in _batches(plan.new, _BATCH):
        if progress:
            progress("embedding", start, len(plan.new))
        work.add([versions.entry(id_) for id_ in batch])
    if progress and plan.new:
        progress("embedding", len(plan.new), len(plan.new))
    for start, batch in _batches(plan.touched, _BATCH):
        if progress:
            progress("updating", start, len(plan.touched))
        work.change(versions.pairs(batch))
    for _, batch in _batches(plan.gone, _REMOVED_TOGETHER):
        work.remove(batch)


class _Work:
    """The steps of carrying out a plan."""

    def __init__(
        self, draft: Draft, embedding: SentenceEmbedding, held: dict[str, tuple[int, int]]
    ) -> None:
        self._draft = draft
        self._embedding = embedding
        self._held = held

    def add(self, entries: Sequence[Entry]) -> None:
        """Embed new texts. A text that was edited is a new one, beside the old."""
        if not entries:
            return
        chunks = [self._chunk(entry.record) for entry in entries]
        every = [chunk for group in chunks for chunk in group]
        owners = {entry.record.id: entry.owner for entry in entries}
        self._draft.vectors.put(every, self._embed(every), owners)
        self._put(
            replace(entry, passages=counts[0], sentences=counts[1])
            for entry, counts in zip(entries, map(_level_counts, chunks), strict=True)
        )

    def change(self, pairs: Sequence[tuple[Entry, Entry]]) -> None:
        """Replace entries. Only a text that changed is embedded again."""
        self.add([new for old, new in pairs if old.owner != new.owner])
        self._put(new for old, new in pairs if old.owner == new.owner)
        self._drop([old for old, new in pairs if old.owner != new.owner])

    def remove(self, ids: Sequence[str]) -> None:
        entries = list(self._draft.catalogue.get(ids).values())
        self._draft.catalogue.remove(ids)
        for id_ in ids:
            self._held.pop(id_)
        self._drop(entries)

    def _put(self, entries: Iterator[Entry]) -> None:
        put = list(entries)
        if put:
            self._draft.catalogue.put(put)
            self._held |= {entry.record.id: (entry.passages, entry.sentences) for entry in put}

    def _drop(self, entries: Sequence[Entry]) -> None:
        for place, level in enumerate(LEVELS):
            chunks = [
                chunk_id(entry.owner, level, ordinal)
                for entry in entries
                for ordinal in range((entry.passages, entry.sentences)[place])
            ]
            self._draft.drop(level, chunks)

    def _chunk(self, record: Record) -> tuple[Chunk, ...]:
        return chunk_record(record, self._embedding.count_tokens, self._embedding.window)

    def _embed(self, chunks: Sequence[Chunk]) -> np.ndarray:
        # A short abstract is its own only sentence: the same text is embedded once.
        texts = list(dict.fromkeys(chunk.embedded for chunk in chunks))
        rows = {text: row for row, text in enumerate(texts)}
        return self._embedding.embed(texts)[[rows[chunk.embedded] for chunk in chunks]]


class _Versions:
    """The whole records of planned papers: as read now, else as the catalogue holds them."""

    def __init__(self, plan: Plan, catalogue: Catalogue, reading: Reading | None) -> None:
        self._plan = plan
        self._catalogue = catalogue
        self._reading = reading
        # Those that leave one paper for another are fetched before either is written.
        self._moved = {
            (version.id, version.source): self._fetched(version)
            for id_ in (*plan.new, *plan.touched)
            for version in plan.wanted[id_]
            if version.home not in ("", id_)
        }

    def entry(self, id_: str) -> Entry:
        """A paper as the catalogue should hold it; a new one's chunks are yet to be counted."""
        versions = tuple(self._record(version) for version in self._plan.wanted[id_])
        passages, sentences = self._plan.held.get(id_, (0, 0))
        if len(versions) == 1:
            return Entry(versions[0], passages, sentences)
        return Entry(merged(id_, versions), passages, sentences, versions)

    def pairs(self, ids: Sequence[str]) -> list[tuple[Entry, Entry]]:
        """Papers as the catalogue holds them, each with what it should hold."""
        old = self._catalogue.get(ids)
        return [(old[id_], self.entry(id_)) for id_ in ids]

    def _record(self, version: Version) -> Record:
        if not version.home and self._reading:
            return self._reading.record(version)
        return self._moved.get((version.id, version.source)) or self._fetched(version)

    def _fetched(self, version: Version) -> Record:
        entry = self._catalogue.get([version.home])[version.home]
        held = entry.versions or (entry.record,)
        return next(r for r in held if (r.id, r.source) == (version.id, version.source))


def _placeless(before: Entry, now: Entry) -> bool:
    """Whether more than the places of a record changed."""
    old, new = before.record, now.record
    return replace(old, source=new.source, sources=new.sources) != new


def _batches(ids: Sequence[str], size: int) -> Iterator[tuple[int, Sequence[str]]]:
    return ((start, ids[start : start + size]) for start in range(0, len(ids), size))


def _level_counts(chunks: Sequence[Chunk]) -> tuple[int, int]:
    passages = sum(chunk.level == "passage" for chunk in chunks)
    return passages, len(chunks) - passages
