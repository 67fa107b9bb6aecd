"""ServedStore: an index on a Chroma server, for any number of machines without a shared disk.

    PREFIX-passages, PREFIX-sentences  vectors, as in a folder
    PREFIX-records                     the records, by generation (rag.record_rows)
    PREFIX-state                       the manifest, and who writes (rag.lease)

    <folder>/generations/N/catalogue/  this machine's copy of the records, to search their words

A writer adds the rows of the next generation beside those of the one that is served, and then
publishes it by replacing the manifest, one row. A reader asks for the manifest at each search.
When it has changed, it fetches the records that came since, so its catalogue is always that of
one generation; of the vectors found, those count whose text is in that catalogue. Rows that a
generation no longer needs stay for a minute at least, and go when someone writes again.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import filelock

from rag.chunking import Level
from rag.embedded import linked_catalogue
from rag.embedding import SentenceEmbedding
from rag.errors import IndexMismatchError, ServerError
from rag.generations import Generations, Held, Manifest, Mark, check_model, checked_manifest
from rag.lease import NO_VECTOR, Lease
from rag.lexical import Catalogue, Entry
from rag.record_rows import UNSEARCHED, RecordRows
from rag.server import ChromaServer
from rag.snapshot import Snapshot
from rag.store import SCHEMA, Counts
from rag.vectors import COLLECTIONS, HNSW, VectorStore, orphans

_STATE = "state"
_MANIFEST = "manifest"
_CATALOGUE = "catalogue"
# How long rows stay that only readers of the generation before still need.
_GRACE_NS = 60_000_000_000
# A reader that starts while one generation follows another tries again.
_ATTEMPTS, _PAUSE_S = 20, 0.1


class ServedStore:
    """An index on a Chroma server; see rag.store.Store."""

    def __init__(self, server: ChromaServer, folder: Path) -> None:
        self.folder = folder
        self.name = f"{server.url} ({server.prefix})"
        self._server = server
        self._state = _State(server)
        self._copies = _Copies(folder, server)
        self._lease: Lease | None = None

    def exists(self) -> bool:
        return self._state.published() is not None

    def stamp(self) -> object:
        published = self._state.published()
        return published and _origin(published)

    def snapshot(self, embedding: SentenceEmbedding) -> Snapshot:
        for _ in range(_ATTEMPTS):
            published = self._state.published()
            if published is None:
                return Snapshot(Catalogue(), VectorStore({}), embedding, place=self.name)
            check_model(published, embedding.model_name, f"the index at {self.name}")
            held = self._copies.hold(published)
            if held:
                return Snapshot(
                    Catalogue(held.path / _CATALOGUE),
                    _vector_store(self._server),
                    embedding,
                    place=self.name,
                    manifest=published,
                    stamp=_origin(published),
                    exact=False,
                    close=held.release,
                )
            time.sleep(_PAUSE_S)
        raise IndexMismatchError(
            f"the records of the index at {self.name} are not those that its manifest counts; "
            "rebuild it: rag ingest --rebuild PATH..."
        )

    @contextmanager
    def writing(self, what: str) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lease = Lease(self._server, self._state.rows(create=True), what)
        try:
            yield
        finally:
            lease, self._lease = self._lease, None
            lease.release()

    def draft(self, embedding: SentenceEmbedding) -> ServedDraft:
        assert self._lease, "a draft needs the right to write"
        published = self._state.published()
        return ServedDraft(
            self._server, self._state, self._copies, self._lease, published, embedding
        )

    def tidy(self) -> None:
        self._copies.clear()

    def discard(self) -> None:
        self._state.withdraw()
        _drop(self._server)

    def facts(self) -> dict[str, object]:
        published = self._state.published()
        return {
            "server": {
                "url": self._server.url,
                "collection": self._server.prefix,
                "version": self._server.version,
                "generation": published.generation if published else 0,
            }
        }


class ServedDraft:
    """A generation whose rows are on the server, not served yet; see rag.store.Draft."""

    def __init__(
        self,
        server: ChromaServer,
        state: _State,
        copies: _Copies,
        lease: Lease,
        published: Manifest | None,
        embedding: SentenceEmbedding,
    ) -> None:
        self._server = server
        self._state = state
        self._copies = copies
        self._lease = lease
        self._published = published
        self._embedding = embedding
        self._number = published.generation + 1 if published else 1
        self._prepare()
        rows = RecordRows(server)
        base = copies.hold(published) if published else None
        try:
            self._path, self._mark = copies.begin(base)
            self.catalogue = _StagedCatalogue(
                self._path / _CATALOGUE, rows, self._number, lease.check
            )
            self.continued = self.catalogue.fetch(self._number - 1, self._number)
            self._sweep(rows, base)
        finally:
            if base:
                base.release()

    @property
    def vectors(self) -> VectorStore:
        return _vector_store(self._server, self._lease.check)

    def drop(self, level: Level, ids: Sequence[str]) -> None:
        """Readers of what is served now need these chunks: the next writer sweeps them away."""

    def publish(self, held: Counts, corpus: str) -> None:
        manifest = Manifest(
            SCHEMA,
            self._number,
            self._embedding.model_name,
            self._embedding.dimension if held else 0,
            corpus,
            len(held),
            sum(passages for passages, _ in held.values()),
            sum(sentences for _, sentences in held.values()),
            origin=self._published.origin if self._published else uuid.uuid4().hex,
        )
        self._lease.check()
        self._state.publish(manifest)
        self._copies.publish(self._path, manifest)

    def close(self) -> None:
        self._mark.release()

    def _prepare(self) -> None:
        """Make the collections. Those of a first ingest that was interrupted, with another
        embedding model, are of no use."""
        model = {"embed_model": self._embedding.model_name}
        made = {"configuration": {"hnsw": HNSW}, "metadata": model}
        if self._published is None:
            found = [self._server.collection(name) for name in COLLECTIONS.values()]
            if any(c is not None and c.metadata != model for c in found):
                _drop(self._server)
        for name in COLLECTIONS.values():
            self._server.collection(name, **made)

    def _sweep(self, rows: RecordRows, base: Held | None) -> None:
        """Delete what neither the served generation nor this one needs, once nobody reads the
        generation before any more."""
        if self._published is None or base is None or self._state.age() < _GRACE_NS:
            return
        rows.sweep(self._published.generation)
        vectors = self.vectors
        expected = (self._published.passages, self._published.sentences)
        if tuple(vectors.count(level) for level in COLLECTIONS) == expected:
            return
        served = Catalogue(base.path / _CATALOGUE)
        owners = {e.owner for part in (served, self.catalogue) for e in part.entries()}
        for level in COLLECTIONS:
            vectors.remove(level, orphans(vectors.ids(level), owners))


class _State:
    """The row that says what is served."""

    def __init__(self, server: ChromaServer) -> None:
        self._server = server
        self._rows: Any = None

    def rows(self, create: bool = False) -> Any:
        """The collection of this row and of the leases; None when nobody ever wrote."""
        if self._rows is None:
            made = {"configuration": {"hnsw": UNSEARCHED}} if create else {}
            self._rows = self._server.collection(_STATE, **made)
        return self._rows

    def published(self) -> Manifest | None:
        """What is served. Raises IndexMismatchError when it was laid out otherwise."""
        facts = self._row()
        facts.pop("published", None)
        where = f"the index at {self._server.url} ({self._server.prefix})"
        return checked_manifest(facts, where, SCHEMA) if facts else None

    def age(self) -> int:
        """How long what is served has been, in nanoseconds."""
        return self._server.now() - int(self._row().get("published", 0))

    def publish(self, manifest: Manifest) -> None:
        facts = asdict(manifest) | {"published": self._server.now()}
        self._server.call(
            lambda: self._rows.upsert(ids=[_MANIFEST], embeddings=[NO_VECTOR], metadatas=[facts])
        )

    def withdraw(self) -> None:
        self._server.call(lambda: self._rows.delete(ids=[_MANIFEST]))

    def _row(self) -> dict[str, Any]:
        rows = self.rows()
        if rows is None:
            return {}
        found = self._server.call(lambda: rows.get(ids=[_MANIFEST], include=["metadatas"]))
        return dict(found["metadatas"][0]) if found["ids"] else {}


class _Copies:
    """This machine's copies of the catalogue, one a generation, shared by its processes."""

    def __init__(self, folder: Path, server: ChromaServer) -> None:
        self._folder = folder
        self._server = server
        self._generations = Generations(folder, SCHEMA)

    def hold(self, published: Manifest) -> Held | None:
        """The copy of what is served, brought up to date and held; None when the server has
        gone on meanwhile."""
        if held := self._held(published):
            return held
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._changing():
            if held := self._held(published):  # another process has fetched it
                return held
            self._fetch(published)
            self._generations.clear()
            return self._held(published)

    def begin(self, base: Held | None) -> tuple[Path, Mark]:
        """A copy to change, kept from being cleared away."""
        with self._changing():
            path = self._generations.begin(_copier(base))
            return path, Mark(path)

    def publish(self, path: Path, manifest: Manifest) -> None:
        """Let this machine's readers use a copy for what is served now."""
        number = int(path.name)
        with self._changing():
            self._generations.publish(
                replace(manifest, generation=number, origin=_origin(manifest))
            )

    def clear(self) -> None:
        with self._changing():
            self._generations.clear()

    def _fetch(self, published: Manifest) -> None:
        base = self._generations.hold()
        try:
            lineage, _, number = base.manifest.origin.partition(":") if base else ("", "", "0")
            known = lineage == published.origin
            path = self._generations.begin(_copier(base if known else None))
            catalogue = _FetchedCatalogue(path / _CATALOGUE, RecordRows(self._server))
            catalogue.fetch(int(number) if known else 0, published.generation)
        finally:
            if base:
                base.release()
        if len(catalogue) == published.records:
            self._generations.publish(
                replace(published, generation=int(path.name), origin=_origin(published))
            )

    def _held(self, published: Manifest) -> Held | None:
        held = self._generations.hold()
        if held and held.manifest.origin == _origin(published):
            return held
        if held:
            held.release()
        return None

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with filelock.FileLock(self._folder / ".copies.lock"):
            yield


class _FetchedCatalogue(Catalogue):
    """A catalogue that is brought up to date from the server."""

    def __init__(self, folder: Path, rows: RecordRows) -> None:
        super().__init__(folder)
        self._rows = rows

    def fetch(self, after: int, upto: int) -> bool:
        """Take in what generations changed; whether there was anything."""
        changed = False
        for page in self._rows.changes(after, upto):
            changed = True
            Catalogue.remove(self, [id_ for id_, entry in page.items() if entry is None])
            Catalogue.put(self, [entry for entry in page.values() if entry is not None])
        return changed


class _StagedCatalogue(_FetchedCatalogue):
    """A catalogue whose changes are on the server before they are here."""

    def __init__(
        self, folder: Path, rows: RecordRows, generation: int, check: Callable[[], None]
    ) -> None:
        super().__init__(folder, rows)
        self._generation = generation
        self._check = check

    def put(self, entries: Sequence[Entry]) -> None:
        self._check()
        self._rows.put(self._generation, entries)
        super().put(entries)

    def remove(self, ids: Sequence[str]) -> None:
        self._check()
        self._rows.remove(self._generation, ids)
        super().remove(ids)


def _vector_store(server: ChromaServer, check: Callable[[], None] = lambda: None) -> VectorStore:
    """The vectors on the server; `check` comes before each call."""
    collections = {level: server.collection(name) for level, name in COLLECTIONS.items()}
    if None in collections.values():
        raise ServerError(
            f"the Chroma server at {server.url} lacks the vectors of {server.prefix}; "
            "rebuild the index: rag ingest --rebuild PATH..."
        )

    def guarded(function: Callable[[], Any]) -> Any:
        check()
        return server.call(function)

    return VectorStore(collections, server.most, guarded)


def _drop(server: ChromaServer) -> None:
    for name in COLLECTIONS.values():
        server.drop(name)
    RecordRows.drop(server)


def _origin(published: Manifest) -> str:
    """Names a generation of an index on a server, of all that were ever there."""
    return f"{published.origin}:{published.generation}"


def _copier(base: Held | None) -> Callable[[Path], None]:
    def copy(target: Path) -> None:
        if base:
            linked_catalogue(base.path / _CATALOGUE, target / _CATALOGUE)

    return copy
