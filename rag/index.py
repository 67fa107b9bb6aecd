"""The index of one collection, kept in step with files: one writer, any number of readers.

Readers pin a snapshot, which never changes. A writer, in this process or another, works on a
draft and publishes it in one step; readers notice at their next search. Where generations and
drafts are is the business of the store: a folder (rag.embedded) or a Chroma server
(rag.served).
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from rag.changes import IngestReport, carry_out, report
from rag.embedded import EmbeddedStore
from rag.embedding import SentenceEmbedding
from rag.errors import IndexMissingError
from rag.lexical import Catalogue, Entry
from rag.reading import Progress, Reading
from rag.records import Record
from rag.snapshot import Snapshot
from rag.store import Counts, Draft, Store
from rag.syncing import Plan, plan_removal, plan_sync
from rag.vectors import StoredSentence, VectorStore

# Makes a plan for what a catalogue holds.
_Planned = Callable[[Iterable[Entry]], Plan]


class Index:
    """An open index. Close it, or use it as a context manager."""

    def __init__(self, store: Store, embedding: SentenceEmbedding, what: str) -> None:
        """Raises IndexMismatchError when it was built otherwise or is damaged."""
        self.store = store
        self.embedding = embedding
        self._what = what
        self._switching = threading.Lock()
        self._snapshot = store.snapshot(embedding)

    @classmethod
    def open(
        cls,
        place: Path | Store,
        embedding: SentenceEmbedding,
        *,
        what: str,
        create: bool = False,
    ) -> Self:
        """Open the index in a folder, or in another store; an empty one if `create` is set.

        `what`, such as "rag ingest", is what others are told who want to write meanwhile.
        Raises IndexMissingError when there is none, IndexMismatchError when it was built
        otherwise or is damaged.
        """
        store = EmbeddedStore(place) if isinstance(place, Path) else place
        if not create and not store.exists():
            option = f"--index {store.folder} " if store.name == str(store.folder) else ""
            raise IndexMissingError(
                f"no index at {store.name}: ingest abstracts first, as in "
                f"'rag {option}ingest FILE_OR_FOLDER'"
            )
        return cls(store, embedding, what)

    def close(self) -> None:
        self._snapshot.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        with self.pinned() as snapshot:
            return len(snapshot)

    @property
    def folder(self) -> Path:
        """Where this machine keeps what belongs to the index."""
        return self.store.folder

    @contextmanager
    def pinned(self) -> Iterator[Snapshot]:
        """What the index holds now. It stays so until the end of the block, whatever is
        ingested meanwhile."""
        with self._switching:
            if self._snapshot.stamp != self.store.stamp():
                newer = self.store.snapshot(self.embedding)
                self._snapshot.release()
                self._snapshot = newer
            snapshot = self._snapshot
            snapshot.retain()
        try:
            yield snapshot
        finally:
            snapshot.release()

    @property
    def catalogue(self) -> Catalogue:
        """The records that are served now."""
        with self.pinned() as snapshot:
            return snapshot.catalogue

    @property
    def vectors(self) -> VectorStore:
        """The vectors that are served now."""
        with self.pinned() as snapshot:
            return snapshot.vectors

    def sentences(self, record: Record) -> list[StoredSentence]:
        """The sentences of a record with their vectors, in the order of its abstract."""
        with self.pinned() as snapshot:
            return snapshot.sentences(record)

    def sources(self) -> Counter[str]:
        """The number of records read from each file."""
        with self.pinned() as snapshot:
            return snapshot.sources

    def refuse_empty(self) -> None:
        """Raise IndexMissingError when the index holds no abstract."""
        with self.pinned() as snapshot:
            snapshot.refuse_empty()

    def manifest(self) -> dict[str, Any]:
        """What the index holds and what it was built with; empty before the first ingest."""
        with self.pinned() as snapshot:
            return asdict(snapshot.manifest) if snapshot.manifest else {}

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
        Raises SourceError when nothing could be read, IndexBusyError when another one writes.
        """

        def planned(entries: Iterable[Entry]) -> Plan:
            plan = plan_sync(reading, entries, keep_missing)
            if not plan.gone:  # a folder that was emptied says that its records are gone
                reading.refuse_nothing()
            return plan

        if dry_run:
            aside = self.folder if self.folder.is_dir() else None
            with closing(Reading(paths, aside, titles_suffice)) as reading:
                reading.run(progress)
                with self.pinned() as base:
                    return report(planned(base.catalogue.entries()), base.catalogue, reading)
        with (
            self.store.writing(self._what),
            closing(Reading(paths, self.folder, titles_suffice)) as reading,
        ):
            reading.run(progress)
            return self._write(planned, reading, progress)

    def forget(self, sources: Sequence[str]) -> IngestReport:
        """Remove what was read from files, or from the files below folders, and nowhere else.

        Raises UsageError, naming the near ones, when nothing was read from one of them, and
        IndexBusyError when another one writes.
        """
        with self.store.writing(self._what):
            return self._write(lambda entries: plan_removal(sources, entries), None, None)

    def _write(
        self, planned: _Planned, reading: Reading | None, progress: Progress | None
    ) -> IngestReport:
        with self.pinned() as base:
            plan = planned(base.catalogue.entries())
            told = report(plan, base.catalogue, reading)
            if base.manifest is None or plan.new or plan.touched or plan.gone:
                with closing(self.store.draft(self.embedding)) as draft:
                    if draft.continued:
                        plan = planned(draft.catalogue.entries())
                    self._finish(draft, plan, reading, progress, first=not len(base))
        with self.pinned():  # lets go of what was served before
            self.store.tidy()
        return told

    def _finish(
        self,
        draft: Draft,
        plan: Plan,
        reading: Reading | None,
        progress: Progress | None,
        first: bool,
    ) -> None:
        try:
            carry_out(plan, draft, reading, self.embedding, progress)
        except BaseException:
            # Where there was nothing, a part is better; it is a part of the new corpus alone.
            if first and len(draft.catalogue):
                _publish(draft, _held(draft.catalogue))
            raise
        _publish(draft, plan.held)


# What can be searched: a snapshot, or what an index holds at each step.
Searched = Index | Snapshot


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


def discard(store: Store) -> None:
    """Delete what an index consists of, nothing else in its place. Raises IndexBusyError."""
    if store.exists():
        with store.writing("rag ingest --rebuild"):
            store.discard()


def _publish(draft: Draft, held: Counts) -> None:
    corpus = hashlib.sha256("\n".join(sorted(held)).encode()).hexdigest()
    draft.publish(held, corpus)


def _held(catalogue: Catalogue) -> Counts:
    return {e.record.id: (e.passages, e.sentences) for e in catalogue.entries()}
