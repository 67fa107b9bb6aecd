"""The index of one collection: a Chroma store and the catalogue, kept in step with files.

    <index>/manifest.json   schema, embedding model, dimension, corpus digest, counts
    <index>/chroma/         vectors of passages and sentences
    <index>/catalogue/      records, and their words for BM25
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
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from rag.chunking import Chunk, chunk_id, chunk_record
from rag.embedding import SentenceEmbedding
from rag.errors import IndexMismatchError, IndexMissingError, SourceError
from rag.lexical import Catalogue, Entry
from rag.lock import IndexLock
from rag.records import Record, Source
from rag.sources import Skip, find_files, read_records
from rag.vectors import StoredSentence, VectorStore

SCHEMA = 1
_MANIFEST = "manifest.json"
# Records embedded and committed together: an interruption loses at most this much work.
_BATCH = 64

Progress = Callable[[str, int, int], None]


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

    @classmethod
    def open(
        cls, folder: Path, embedding: SentenceEmbedding, *, what: str, create: bool = False
    ) -> Index:
        """Open the index in `folder` for `what` ("rag ask"), making one if `create` is set.

        Raises IndexMissingError when there is none, IndexBusyError when another process
        has it, IndexMismatchError when it was built otherwise or is damaged.
        """
        if not create and not (folder / _MANIFEST).exists():
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

    def sync(self, paths: Sequence[Path], progress: Progress | None = None) -> IngestReport:
        """Bring the index in step with files and folders.

        New abstracts are embedded and added; those gone from these files, and those of files
        gone from these folders, are removed; the rest is left alone. An edited entry of
        a file counts as updated. A file that cannot be read keeps the records it had, and is
        reported in `skipped`. `progress(stage, done, total)` is called along the way.
        Raises SourceError when nothing could be read.
        """
        reading = _Reading.of(paths, self.folder, progress)
        stored = {entry.record.id: entry for entry in self.catalogue.entries()}
        wanted = reading.merged_with(stored)
        new = [record for id_, record in wanted.items() if id_ not in stored]
        gone = [entry for id_, entry in stored.items() if id_ not in wanted]
        moved = [
            replace(stored[id_], record=record)
            for id_, record in wanted.items()
            if id_ in stored and stored[id_].record != record
        ]
        self._add(new, progress)
        if moved:
            self.catalogue.put(moved)
        self._remove(gone)
        self._drop_orphans()
        self._write_manifest()
        edited = len(_places(new) & _places(entry.record for entry in gone))
        return IngestReport(
            read=reading.read,
            added=len(new) - edited,
            updated=edited,
            unchanged=len(reading.found) - len(new),
            removed=len(gone) - edited,
            skipped=tuple(reading.skips),
            records=len(self),
        )

    def _add(self, records: Sequence[Record], progress: Progress | None) -> None:
        for start in range(0, len(records), _BATCH):
            batch = records[start : start + _BATCH]
            if progress:
                progress("embedding", start, len(records))
            chunks = [self._chunk(record) for record in batch]
            every = [chunk for group in chunks for chunk in group]
            self.vectors.put(every, self._embed(every))
            self.catalogue.put(
                Entry(record, *_level_counts(group))
                for record, group in zip(batch, chunks, strict=True)
            )
        if progress and records:
            progress("embedding", len(records), len(records))

    def _chunk(self, record: Record) -> tuple[Chunk, ...]:
        return chunk_record(record, self.embedding.count_tokens, self.embedding.window)

    def _embed(self, chunks: Sequence[Chunk]) -> np.ndarray:
        # A short abstract is its own only sentence: the same text is embedded once.
        texts = list(dict.fromkeys(chunk.text for chunk in chunks))
        rows = {text: row for row, text in enumerate(texts)}
        return self.embedding.embed(texts)[[rows[chunk.text] for chunk in chunks]]

    def _remove(self, entries: Sequence[Entry]) -> None:
        if not entries:
            return
        self.catalogue.remove(entry.record.id for entry in entries)
        self.vectors.remove("passage", _chunk_ids(entries, "passage"))
        self.vectors.remove("sentence", _chunk_ids(entries, "sentence"))

    def _drop_orphans(self) -> None:
        """Remove vectors of records that the catalogue lacks, left by an interruption."""
        entries = list(self.catalogue.entries())
        for level in ("passage", "sentence"):
            known = _chunk_ids(entries, level)
            if self.vectors.count(level) != len(known):
                orphans = set(self.vectors.ids(level)) - set(known)
                self.vectors.remove(level, sorted(orphans))

    def _write_manifest(self) -> None:
        ids = sorted(entry.record.id for entry in self.catalogue.entries())
        manifest = {
            "schema": SCHEMA,
            "embed_model": self.embedding.model_name,
            "dimension": self.embedding.dimension if ids else 0,
            "corpus": hashlib.sha256("\n".join(ids).encode()).hexdigest(),
            "records": len(ids),
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


@dataclass(slots=True)
class _Reading:
    """What a set of paths holds: records by id, their entries counted, and what was skipped."""

    found: dict[str, Record]
    files: set[str]
    folders: tuple[Path, ...]
    skips: list[Skip]
    read: int

    @classmethod
    def of(cls, paths: Sequence[Path], index_folder: Path, progress: Progress | None) -> _Reading:
        files, skips = find_files(paths, leave_out=index_folder)
        folders = tuple(path.resolve() for path in paths if path.is_dir())
        reading = cls({}, set(), folders, skips, 0)
        for done, path in enumerate(files):
            if progress:
                progress("reading", done, len(files))
            try:
                reading._take(path)
            except SourceError as error:
                skips.append(Skip(str(path), "", str(error).removeprefix(f"{path}: ")))
        if not reading.read and not reading.files:
            reasons = "; ".join(f"{skip.path}: {skip.reason}" for skip in skips[:3])
            raise SourceError(f"nothing could be read: {reasons or 'no files there'}")
        return reading

    def _take(self, path: Path) -> None:
        entries = list(read_records(path))
        self.files.add(str(path))
        if not entries:
            self.skips.append(Skip(str(path), "", "no abstracts in it"))
        for entry in entries:
            if isinstance(entry, Skip):
                self.skips.append(entry)
                continue
            self.read += 1
            first = self.found.get(entry.id)
            if first is None:
                self.found[entry.id] = entry
                continue
            self.found[entry.id] = replace(first, sources=(*first.sources, entry.source))
            place = f"{first.source.path} entry {first.source.ordinal}"
            reason = f"the same abstract as {place}; kept once, with both places"
            self.skips.append(Skip(str(path), f"entry {entry.source.ordinal}", reason))

    def merged_with(self, stored: dict[str, Entry]) -> dict[str, Record]:
        """What the index should hold now: id to record, each with every place it is at."""
        wanted = dict(self.found)
        for id_, entry in stored.items():
            elsewhere = [
                source
                for source in (entry.record.source, *entry.record.sources)
                if not self._covers(source.path)
            ]
            if not elsewhere:
                continue
            here = self.found.get(id_)
            places = [*elsewhere, *((here.source, *here.sources) if here else ())]
            base = here or entry.record
            wanted[id_] = replace(base, source=places[0], sources=tuple(places[1:]))
        return wanted

    def _covers(self, path: str) -> bool:
        """Whether this reading says what is now at `path`: read, or gone from a folder."""
        if path in self.files:
            return True
        below = any(Path(path).is_relative_to(folder) for folder in self.folders)
        return below and not Path(path).exists()


def _places(records: Iterable[Record]) -> set[Source]:
    return {record.source for record in records}


def _level_counts(chunks: Sequence[Chunk]) -> tuple[int, int]:
    passages = sum(chunk.level == "passage" for chunk in chunks)
    return passages, len(chunks) - passages


def _chunk_ids(entries: Iterable[Entry], level: Any) -> list[str]:
    return [
        chunk_id(entry.record.id, level, ordinal)
        for entry in entries
        for ordinal in range(entry.passages if level == "passage" else entry.sentences)
    ]


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
