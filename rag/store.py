"""The ports between an index and where it is kept: a folder, or a Chroma server.

A Store serves snapshots to any number of readers and lends a Draft to one writer at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from rag.chunking import Level
from rag.embedding import SentenceEmbedding
from rag.lexical import Catalogue
from rag.snapshot import Snapshot
from rag.vectors import VectorStore

# Layout of what is stored; an index of another one is to be rebuilt.
SCHEMA = 3

# The number of passages and of sentences of each record, by id.
Counts = Mapping[str, tuple[int, int]]


class Draft(Protocol):
    """The next generation while it is being written. Nobody else sees it.

    catalogue:  what the base holds, and the changes made so far
    continued:  whether an interrupted writer left it
    """

    @property
    def catalogue(self) -> Catalogue: ...

    @property
    def vectors(self) -> VectorStore: ...

    @property
    def continued(self) -> bool: ...

    def drop(self, level: Level, ids: Sequence[str]) -> None:
        """Chunks that the next generation lacks."""
        ...

    def publish(self, held: Counts, corpus: str) -> None:
        """Serve this from now on, in one step."""
        ...

    def close(self) -> None:
        """Put it aside; it is continued by the next writer unless it was published."""
        ...


class Store(Protocol):
    """Where an index is kept.

    name:    for messages
    folder:  of this machine: for uploads, locks and what is put aside
    """

    name: str
    folder: Path

    def exists(self) -> bool:
        """Whether anything was ever published here."""
        ...

    def stamp(self) -> object:
        """Another value whenever another generation is served. Cheap: asked by each search."""
        ...

    def snapshot(self, embedding: SentenceEmbedding) -> Snapshot:
        """What is served now. Raises IndexMismatchError when it was built otherwise."""
        ...

    def writing(self, what: str) -> AbstractContextManager[None]:
        """The right to write. Raises IndexBusyError, naming who has it, at once."""
        ...

    def draft(self, embedding: SentenceEmbedding) -> Draft:
        """The next generation, for whoever has the right to write."""
        ...

    def tidy(self) -> None:
        """Delete what is not served and what nobody reads; for whoever may write."""
        ...

    def discard(self) -> None:
        """Serve nothing from now on; for whoever may write."""
        ...

    def facts(self) -> dict[str, object]:
        """What `rag status` says of the place beside its name."""
        ...
