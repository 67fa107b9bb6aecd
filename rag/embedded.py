"""EmbeddedStore: an index in a folder, its vectors in Chroma's embedded store.

    <generation>/chroma/     vectors of passages and sentences
    <generation>/catalogue/  records, and their words for BM25

Chroma's embedded store cannot be read while another process writes it: searches fail, and a
second writer destroys it without an error. Each generation is therefore written by one
process before anyone reads it, and by nobody after.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import chromadb
from chromadb.config import Settings as ChromaSettings
from chromadb.errors import ChromaError
from tenacity import (
    Retrying,
    retry_if_exception_message,
    stop_after_delay,
    wait_random_exponential,
)

from rag.chunking import Level
from rag.embedding import SentenceEmbedding
from rag.errors import IndexMismatchError
from rag.generations import Generations, Held, Manifest, check_model
from rag.lexical import Catalogue
from rag.lock import IndexLock
from rag.snapshot import Snapshot
from rag.store import SCHEMA, Counts
from rag.vectors import COLLECTIONS, HNSW, VectorStore, orphans

_CHROMA, _CATALOGUE = "chroma", "catalogue"
_SQLITE = "chroma.sqlite3"
# Chroma puts vectors into its graph on disk by the thousand; a reader has to add the rest to
# the graph, in its own memory, each time that it opens. At rest there is no such rest.
_WRITTEN = {"sync_threshold": 1000, "batch_size": 100}
_AT_REST = {"sync_threshold": 2, "batch_size": 2}
# Chroma shares what it has open among the clients of a process, without a lock.
_opening = threading.Lock()


class EmbeddedStore:
    """An index in a folder of this machine; see rag.store.Store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = str(folder)
        self._generations = Generations(folder, SCHEMA)

    def exists(self) -> bool:
        return self._generations.stamp() is not None

    def stamp(self) -> object:
        return self._generations.stamp()

    def snapshot(self, embedding: SentenceEmbedding) -> Snapshot:
        stamp = self._generations.stamp()
        held = self._generations.hold()
        if held is None:
            return Snapshot(Catalogue(), VectorStore({}), embedding, place=self.name)
        try:
            return self._opened(held, embedding, stamp)
        except BaseException:
            held.release()
            raise

    @contextmanager
    def writing(self, what: str) -> Iterator[None]:
        lock = IndexLock(self.folder)
        lock.acquire(what)
        try:
            yield
        finally:
            lock.release()

    def draft(self, embedding: SentenceEmbedding) -> EmbeddedDraft:
        path, continued = self._generations.draft(embedding.model_name, _copied)
        return EmbeddedDraft(self._generations, path, continued, embedding)

    def tidy(self) -> None:
        self._generations.clear()

    def discard(self) -> None:
        self._generations.discard()
        for part in (_CHROMA, _CATALOGUE):  # where earlier versions had them
            shutil.rmtree(self.folder / part, ignore_errors=True)

    def facts(self) -> dict[str, object]:
        return {}

    def _opened(self, held: Held, embedding: SentenceEmbedding, stamp: object) -> Snapshot:
        check_model(held.manifest, embedding.model_name, f"the index at {self.folder}")
        chroma = _Chroma(held.path, self.folder)
        try:
            catalogue = Catalogue(held.path / _CATALOGUE)
            self._check_counts(held.manifest, catalogue, chroma.vectors)
        except BaseException:
            chroma.close()
            raise

        def close() -> None:
            chroma.close()
            held.release()

        return Snapshot(
            catalogue,
            chroma.vectors,
            embedding,
            place=self.name,
            manifest=held.manifest,
            stamp=stamp,
            close=close,
        )

    def _check_counts(self, manifest: Manifest, catalogue: Catalogue, vectors: VectorStore) -> None:
        """Refuse a store that lost its rows: an emptied Chroma folder opens without an error."""
        lost = manifest.records and not vectors.count("passage")
        if lost or (manifest.records and not len(catalogue)):
            raise IndexMismatchError(
                f"the index at {self.folder} is damaged (its stores are empty, its manifest counts "
                f"{manifest.records} records); rebuild it: rag ingest --rebuild PATH..."
            )


class EmbeddedDraft:
    """A generation that is being written; see rag.store.Draft."""

    def __init__(
        self,
        generations: Generations,
        path: Path,
        continued: bool,
        embedding: SentenceEmbedding,
    ) -> None:
        self.continued = continued
        self._generations = generations
        self._path = path
        self._embedding = embedding
        self.catalogue = Catalogue(path / _CATALOGUE)
        copied = (path / _CHROMA).exists()
        self._chroma = _Chroma(path, generations.folder, create=True)
        if copied:
            self._chroma.reopen(_WRITTEN)

    @property
    def vectors(self) -> VectorStore:
        return self._chroma.vectors

    def drop(self, level: Level, ids: Sequence[str]) -> None:
        self.vectors.remove(level, ids)

    def publish(self, held: Counts, corpus: str) -> None:
        self._drop_orphans(held)
        self._chroma.reopen(_AT_REST)
        self._chroma.settle()
        self._chroma.close()
        self._generations.publish(
            Manifest(
                SCHEMA,
                int(self._path.name),
                self._embedding.model_name,
                self._embedding.dimension if held else 0,
                corpus,
                len(held),
                sum(passages for passages, _ in held.values()),
                sum(sentences for _, sentences in held.values()),
            )
        )

    def close(self) -> None:
        self._chroma.close()

    def _drop_orphans(self, held: Counts) -> None:
        """Remove vectors of texts that the catalogue lacks, left by an interruption."""
        for place, level in enumerate(COLLECTIONS):
            if self.vectors.count(level) != sum(counts[place] for counts in held.values()):
                expected = {entry.owner for entry in self.catalogue.entries()}
                self.vectors.remove(level, orphans(self.vectors.ids(level), expected))


# Chroma writes to its database when it opens it, and the next call may meet that write.
_unhurried = Retrying(
    retry=retry_if_exception_message(match="(?s).*database is locked"),
    stop=stop_after_delay(30),
    wait=wait_random_exponential(multiplier=0.02, max=1),
    reraise=True,
)


class _Chroma:
    """An open Chroma folder. Closing it twice does nothing."""

    def __init__(self, generation: Path, index: Path, create: bool = False) -> None:
        self._folder = generation / _CHROMA
        self._index = index
        self._create = create
        self._client: Any = None
        self._collections: dict[Level, Any] = {}
        self._open()

    def reopen(self, configuration: dict[str, int]) -> None:
        """Change what Chroma heeds only when it opens."""
        for collection in self._collections.values():
            self._guarded(lambda c=collection: c.modify(configuration={"hnsw": configuration}))
        self.close()
        self._open()

    def settle(self) -> None:
        """Put every vector into the graph on disk: a query does that first."""
        for collection in self._collections.values():
            some = self._guarded(lambda c=collection: c.get(limit=1, include=["embeddings"]))
            if some["ids"]:
                vector = some["embeddings"][0]
                self._guarded(
                    lambda c=collection, v=vector: c.query(query_embeddings=[v], n_results=1)
                )

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with _opening:
                client.close()

    def _open(self) -> None:
        if self._create:
            self._folder.mkdir(parents=True, exist_ok=True)
        elif not (self._folder / _SQLITE).is_file():
            raise self._damaged("its vectors are missing")
        settings = ChromaSettings(anonymized_telemetry=False)
        with _opening:
            self._client = self._guarded(
                lambda: chromadb.PersistentClient(str(self._folder), settings=settings)
            )
        try:
            self._collections = {
                level: self._guarded(lambda n=name: self._collection(n))
                for level, name in COLLECTIONS.items()
            }
            most = self._client.get_max_batch_size()
        except BaseException:
            self.close()
            raise
        self.vectors = VectorStore(self._collections, most, self._guarded)

    def _collection(self, name: str) -> Any:
        if self._create:
            return self._client.get_or_create_collection(
                name, configuration={"hnsw": {**HNSW, **_WRITTEN}}, embedding_function=None
            )
        return self._client.get_collection(name, embedding_function=None)

    def _guarded(self, function: Any) -> Any:
        try:
            return _unhurried(function)
        except (ChromaError, ValueError, OSError, RuntimeError) as error:
            line = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise self._damaged(line) from error

    def _damaged(self, reason: str) -> IndexMismatchError:
        return IndexMismatchError(
            f"the index at {self._index} is damaged ({reason}); rebuild it: "
            "rag ingest --rebuild PATH..."
        )


def _copied(source: Path, target: Path) -> None:
    """Copy a generation into a folder."""
    _copied_chroma(source / _CHROMA, target / _CHROMA)
    linked_catalogue(source / _CATALOGUE, target / _CATALOGUE)


def _copied_chroma(source: Path, target: Path) -> None:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(_SQLITE + "*"))
    # A reader that opens the database just now may be writing to it.
    with (
        closing(sqlite3.connect(source / _SQLITE)) as old,
        closing(sqlite3.connect(target / _SQLITE)) as new,
    ):
        old.backup(new)


def linked_catalogue(source: Path, target: Path) -> None:
    """Copy a catalogue. Tantivy never changes a segment, so segments are shared."""
    target.mkdir()
    for file in source.iterdir():
        if file.suffix == ".json" or not _linked(file, target / file.name):
            shutil.copy2(file, target / file.name)


def _linked(source: Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except OSError:  # a file system without links
        return False
    return True
