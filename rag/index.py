"""The index of one collection: a Chroma store and the catalogue, kept in step with files.

    <index>/manifest.json   schema, embedding model, dimension, corpus digest, counts
    <index>/chroma/         vectors of passages and sentences
    <index>/catalogue/      records, and their words for BM25
    <index>/uploads/        files that were given to the chat window
    <index>/.lock           held by the process that has the index open

A record counts as present once the catalogue holds it. Its vectors are written before that
and removed after it leaves, so an interruption at any point leaves a usable index, and the
next ingest finishes the work.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from rag.chunking import LEVELS, Chunk, Level, chunk_id, chunk_record
from rag.embedding import SentenceEmbedding
from rag.errors import IndexMismatchError, IndexMissingError
from rag.filters import facets
from rag.lexical import Catalogue, Entry
from rag.lock import IndexLock
from rag.papers import Version, merged
from rag.reading import Progress, Reading
from rag.records import Record
from rag.sources import Skip
from rag.syncing import Plan, plan_removal, plan_sync
from rag.vectors import StoredSentence, VectorStore

SCHEMA = 2
_MANIFEST = "manifest.json"
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


class Index:
    """An open index. Close it, or use it as a context manager, to let others have it."""

    def __init__(self, folder: Path, embedding: SentenceEmbedding, lock: IndexLock) -> None:
        self.folder = folder
        self.embedding = embedding
        self.catalogue = Catalogue(folder / "catalogue")
        self.vectors = VectorStore(folder / "chroma")
        self.lock = lock
        self._sources: Counter[str] | None = None

    @classmethod
    def open(
        cls, folder: Path, embedding: SentenceEmbedding, *, what: str, create: bool = False
    ) -> Index:
        """Open the index in `folder` for `what` ("rag ask"), making one if `create` is set.

        Raises IndexMissingError when there is none, IndexBusyError when another process
        has it, IndexMismatchError when it was built otherwise or is damaged.
        """
        if not create and not exists(folder):
            raise IndexMissingError(
                f"no index at {folder}: ingest abstracts first, as in "
                f"'rag --index {folder} ingest FILE_OR_FOLDER'"
            )
        lock = IndexLock(folder)
        lock.acquire(what)
        with ExitStack() as undo:
            undo.callback(lock.release)
            _check_manifest(folder, embedding)
            index = cls(folder, embedding, lock)
            undo.callback(index.vectors.close)
            index._check_counts()
            undo.pop_all()
            return index

    def close(self) -> None:
        self.vectors.close()
        self.lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.catalogue)

    def sentences(self, record: Record) -> list[StoredSentence]:
        """The sentences of a record with their vectors, in the order of its abstract."""
        entry = self.catalogue.get([record.id]).get(record.id)
        return self.vectors.sentences(record.id, entry.sentences) if entry else []

    def refuse_empty(self) -> None:
        """Raise IndexMissingError when the index holds no abstract."""
        if not len(self):
            raise IndexMissingError(
                f"the index at {self.folder} is empty: ingest abstracts first, as in "
                f"'rag --index {self.folder} ingest FILE_OR_FOLDER'"
            )

    def manifest(self) -> dict[str, Any]:
        return _read_manifest(self.folder) or {}

    def sync(
        self,
        paths: Sequence[Path],
        progress: Progress | None = None,
        *,
        dry_run: bool = False,
        keep_missing: bool = False,
        titles_suffice: bool = False,
    ) -> IngestReport:
        """Bring the index in step with files and folders.

        New abstracts are embedded and added; those gone from these files, and those of files
        gone from these folders, are removed unless `keep_missing`; the rest is left alone. An
        edited entry of a file counts as updated. A file that cannot be read keeps the records
        it had, and is reported in `skipped`. `dry_run` reports what would be done, and does
        nothing. `titles_suffice` takes entries without an abstract as well.
        `progress(stage, done, total)` is called along the way.
        Raises SourceError when nothing could be read.
        """
        with closing(Reading(paths, self.folder, titles_suffice)) as reading:
            reading.run(progress)
            plan = plan_sync(reading, self.catalogue.entries(), keep_missing)
            if not plan.gone:  # a folder that was emptied says that its records are gone
                reading.refuse_nothing()
            return self._carry_out(plan, reading, progress, dry_run)

    def sources(self) -> Counter[str]:
        """The number of records read from each file. Counted anew after each change."""
        if self._sources is None:
            self._sources = Counter(
                path
                for entry in self.catalogue.entries()
                for path in {place.path for place in (entry.record.source, *entry.record.sources)}
            )
        return self._sources

    def forget(self, sources: Sequence[str]) -> IngestReport:
        """Remove what was read from files, or from the files below folders, and nowhere else.

        Raises UsageError, naming the near ones, when nothing was read from one of them.
        """
        plan = plan_removal(sources, self.catalogue.entries())
        return self._carry_out(plan, None, None, dry_run=False)

    def _carry_out(
        self, plan: Plan, reading: Reading | None, progress: Progress | None, dry_run: bool
    ) -> IngestReport:
        versions = _Versions(plan, self.catalogue, reading)
        if not dry_run:
            self._sources = None
            self._add(plan, versions, progress)
        updated = self._change(plan, versions, progress, dry_run)
        if not dry_run:
            self._remove(plan)
            self._drop_orphans(plan.held)
            self._write_manifest(plan.held)
            self._sources = None
        return IngestReport(
            read=reading.read if reading else 0,
            added=len(plan.new) - len(plan.edited),
            updated=len(plan.edited) + len(updated),
            unchanged=len(plan.read.difference(plan.new, updated)),
            removed=len(plan.gone) - len(plan.edited),
            skipped=plan.skips,
            records=len(plan.wanted),
        )

    def _add(self, plan: Plan, versions: _Versions, progress: Progress | None) -> None:
        for start, batch in _batches(plan.new, _BATCH):
            if progress:
                progress("embedding", start, len(plan.new))
            self._embed_and_put([versions.entry(id_) for id_ in batch], plan.held)
        if progress and plan.new:
            progress("embedding", len(plan.new), len(plan.new))

    def _change(
        self, plan: Plan, versions: _Versions, progress: Progress | None, dry_run: bool
    ) -> set[str]:
        """Bring the touched papers up to date; the ids of those of which more than a place
        changed. Only a changed text is embedded again."""
        updated: set[str] = set()
        for start, batch in _batches(plan.touched, _BATCH):
            if progress:
                progress("updating", start, len(plan.touched))
            old = self.catalogue.get(batch)
            pairs = [(old[id_], versions.entry(id_)) for id_ in batch]
            updated |= {new.record.id for before, new in pairs if _placeless(before, new)}
            if dry_run:
                continue
            rewritten = [new for before, new in pairs if _text(before) != _text(new)]
            refiled = [new for before, new in pairs if _text(before) == _text(new)]
            self._replace(rewritten, plan.held)
            self._refile(
                [new for new in refiled if facets(old[new.record.id].record) != facets(new.record)]
            )
            if refiled:
                self.catalogue.put(refiled)
        return updated

    def _replace(self, entries: Sequence[Entry], held: dict[str, tuple[int, int]]) -> None:
        if not entries:
            return
        # Not found while its old offsets could meet its new text.
        self.catalogue.remove(entry.record.id for entry in entries)
        before = {entry.record.id: held.pop(entry.record.id) for entry in entries}
        self._embed_and_put(entries, held)
        for place, level in enumerate(LEVELS):
            surplus = [
                chunk_id(id_, level, ordinal)
                for id_, counts in before.items()
                for ordinal in range(held[id_][place], counts[place])
            ]
            self.vectors.remove(level, surplus)

    def _refile(self, entries: Sequence[Entry]) -> None:
        for level in LEVELS:
            rows = [
                (chunk_id(entry.record.id, level, ordinal), facets(entry.record))
                for entry in entries
                for ordinal in range(entry.passages if level == "passage" else entry.sentences)
            ]
            self.vectors.refile(level, rows)

    def _embed_and_put(self, entries: Sequence[Entry], held: dict[str, tuple[int, int]]) -> None:
        chunks = [self._chunk(entry.record) for entry in entries]
        every = [chunk for group in chunks for chunk in group]
        filed = {entry.record.id: facets(entry.record) for entry in entries}
        self.vectors.put(every, self._embed(every), filed)
        counted = [
            replace(entry, passages=counts[0], sentences=counts[1])
            for entry, counts in zip(entries, map(_level_counts, chunks), strict=True)
        ]
        self.catalogue.put(counted)
        held |= {entry.record.id: (entry.passages, entry.sentences) for entry in counted}

    def _chunk(self, record: Record) -> tuple[Chunk, ...]:
        return chunk_record(record, self.embedding.count_tokens, self.embedding.window)

    def _embed(self, chunks: Sequence[Chunk]) -> np.ndarray:
        # A short abstract is its own only sentence: the same text is embedded once.
        texts = list(dict.fromkeys(chunk.embedded for chunk in chunks))
        rows = {text: row for row, text in enumerate(texts)}
        return self.embedding.embed(texts)[[rows[chunk.embedded] for chunk in chunks]]

    def _remove(self, plan: Plan) -> None:
        for _, batch in _batches(plan.gone, _REMOVED_TOGETHER):
            self.catalogue.remove(batch)
            counts = {id_: plan.held.pop(id_) for id_ in batch}
            for level in LEVELS:
                self.vectors.remove(level, list(_chunk_ids(counts, level)))

    def _drop_orphans(self, held: Mapping[str, tuple[int, int]]) -> None:
        """Remove vectors of records that the catalogue lacks, left by an interruption."""
        for place, level in enumerate(LEVELS):
            if self.vectors.count(level) != sum(counts[place] for counts in held.values()):
                orphans = set(self.vectors.ids(level)).difference(_chunk_ids(held, level))
                self.vectors.remove(level, sorted(orphans))

    def _write_manifest(self, held: Mapping[str, tuple[int, int]]) -> None:
        manifest = {
            "schema": SCHEMA,
            "embed_model": self.embedding.model_name,
            "dimension": self.embedding.dimension if held else 0,
            "corpus": hashlib.sha256("\n".join(sorted(held)).encode()).hexdigest(),
            "records": len(held),
            "passages": self.vectors.count("passage"),
            "sentences": self.vectors.count("sentence"),
        }
        if manifest == self.manifest():
            return
        temporary = self.folder / (_MANIFEST + ".new")
        temporary.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        os.replace(temporary, self.folder / _MANIFEST)

    def _check_counts(self) -> None:
        """Refuse a store that lost its rows: an emptied Chroma folder opens without an error."""
        manifest = self.manifest()
        lost = manifest.get("records", 0) and not self.vectors.count("passage")
        if lost or (manifest.get("records", 0) and not len(self)):
            raise IndexMismatchError(
                f"the index at {self.folder} is damaged (its stores are empty, its manifest counts "
                f"{manifest['records']} records); rebuild it: rag ingest --rebuild PATH..."
            )


def exists(folder: Path) -> bool:
    """Whether there is an index in a folder."""
    return (folder / _MANIFEST).exists()


def discard(folder: Path) -> None:
    """Delete what an index consists of, nothing else in the folder. Raises IndexBusyError."""
    if not folder.is_dir():
        return
    lock = IndexLock(folder)
    lock.acquire("rag ingest --rebuild")
    try:
        (folder / _MANIFEST).unlink(missing_ok=True)
        for part in ("chroma", "catalogue"):
            shutil.rmtree(folder / part, ignore_errors=True)
    finally:
        lock.release()


def preview(
    paths: Sequence[Path], *, titles_suffice: bool = False, progress: Progress | None = None
) -> IngestReport:
    """What an ingest into an index that is yet to be made would do; makes nothing."""
    with closing(Reading(paths, None, titles_suffice)) as reading:
        reading.run(progress)
        reading.refuse_nothing()
        plan = plan_sync(reading, (), keep_missing=False)
    return IngestReport(
        read=reading.read, added=len(plan.new), skipped=plan.skips, records=len(plan.wanted)
    )


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


def _text(entry: Entry) -> tuple[str, str]:
    """What is embedded of a record."""
    return entry.record.title, entry.record.abstract


def _batches(ids: Sequence[str], size: int) -> Iterator[tuple[int, Sequence[str]]]:
    return ((start, ids[start : start + size]) for start in range(0, len(ids), size))


def _level_counts(chunks: Sequence[Chunk]) -> tuple[int, int]:
    passages = sum(chunk.level == "passage" for chunk in chunks)
    return passages, len(chunks) - passages


def _chunk_ids(held: Mapping[str, tuple[int, int]], level: Level) -> Iterator[str]:
    place = LEVELS.index(level)
    for record_id, counts in held.items():
        for ordinal in range(counts[place]):
            yield chunk_id(record_id, level, ordinal)


def _read_manifest(folder: Path) -> dict[str, Any] | None:
    try:
        data = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise IndexMismatchError(
            f"the manifest of the index at {folder} cannot be read; rebuild the index: "
            "rag ingest --rebuild PATH..."
        ) from error
    return dict(data)


def _check_manifest(folder: Path, embedding: SentenceEmbedding) -> None:
    manifest = _read_manifest(folder)
    if manifest is None:
        return
    for key, here in (("schema", SCHEMA), ("embed_model", embedding.model_name)):
        if manifest.get(key) != here:
            raise IndexMismatchError(
                f"the index at {folder} was built with {key} {manifest.get(key)!r}, this is "
                f"{here!r}: rebuild it with 'rag ingest --rebuild PATH...' or set it back"
            )
