"""Generations: many processes read an index while one writes it.

What is served is never changed. A writer works on a copy, the draft, and the manifest, which
is replaced in one step, then names the draft as what is served.

    <folder>/manifest.json           what is served: the generation's number, and its facts
    <folder>/generations/7/          the generation that is served
    <folder>/generations/7/readers/  a locked file for each reader; a dead process holds no lock
    <folder>/generations/8/          a draft; base.json in it says of what, once it is complete

A generation that is no longer served goes when nobody reads it. The draft of an interrupted
writer is continued as long as what it is a copy of is served.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import filelock

from rag.errors import IndexError_, IndexMismatchError

_MANIFEST = "manifest.json"
_GENERATIONS = "generations"
_READERS = "readers"
_BASE = "base.json"
# A generation can be replaced between reading its name and holding it, but not every time.
_ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an index holds, and what it was built with.

    generation:  counts up with each change
    corpus:      a digest of the ids of its records
    origin:      of a copy of what a server has: what it is a copy of
    """

    schema: int
    generation: int
    embed_model: str
    dimension: int
    corpus: str
    records: int
    passages: int
    sentences: int
    origin: str = ""


class Mark:
    """Keeps a folder of a generation from being cleared away until it is released."""

    def __init__(self, path: Path) -> None:
        readers = path / _READERS
        readers.mkdir(exist_ok=True)
        # Not thread-local: the last of several threads that read it releases it.
        self._file = readers / uuid.uuid4().hex
        self._lock = filelock.FileLock(self._file, timeout=0, thread_local=False)
        self._lock.acquire()

    def release(self) -> None:
        self._lock.release()
        self._file.unlink(missing_ok=True)


class Held(Mark):
    """A generation that is served, marked as read."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        super().__init__(path)
        self.path = path
        self.manifest = manifest


class Generations:
    """The generations in a folder. Whoever drafts, publishes or clears is its only writer."""

    def __init__(self, folder: Path, schema: int) -> None:
        self.folder = folder
        self._schema = schema

    def stamp(self) -> tuple[int, ...] | None:
        """Another value whenever something else is served; None when nothing is."""
        try:
            facts = (self.folder / _MANIFEST).stat()
        except FileNotFoundError:
            return None
        return facts.st_ino, facts.st_mtime_ns, facts.st_size

    def manifest(self) -> Manifest | None:
        """What is served. Raises IndexMismatchError when it was laid out otherwise."""
        try:
            data = json.loads((self.folder / _MANIFEST).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise IndexMismatchError(
                f"the manifest of the index at {self.folder} cannot be read; rebuild the index: "
                "rag ingest --rebuild PATH..."
            ) from error
        return checked_manifest(data, f"the index at {self.folder}", self._schema)

    def hold(self) -> Held | None:
        """What is served, kept from being cleared away until it is released."""
        for _ in range(_ATTEMPTS):
            manifest = self.manifest()
            if manifest is None:
                return None
            held = self._held(manifest)
            if self.manifest() == manifest:
                if held is None:
                    break  # it was not replaced: it is not there
                return held
            if held:
                held.release()
        raise IndexMismatchError(
            f"the index at {self.folder} is damaged (what it serves is missing); "
            "rebuild it: rag ingest --rebuild PATH..."
        )

    def draft(self, model: str, copy: Callable[[Path, Path], None]) -> tuple[Path, bool]:
        """A folder to change, called by its number, and whether an interrupted writer had begun.

        `copy(source, target)` copies a generation into a folder that is there. A draft for
        another embedding model is not continued.
        """
        manifest = self.manifest()
        served = manifest.generation if manifest else 0
        base = {"base": served, "model": model}
        for number in self._numbers():
            if number > served:
                if _read_base(self._path(number)) == base:
                    return self._path(number), True
                self._delete(number)

        def filled(target: Path) -> None:
            if manifest:
                copy(self._path(served), target)
            (target / _BASE).write_text(json.dumps(base), encoding="utf-8")

        return self.begin(filled), False

    def begin(self, copy: Callable[[Path], None]) -> Path:
        """A new folder, called by its number, that `copy` fills."""
        path = self._path(max(self._numbers(), default=0) + 1)
        path.mkdir(parents=True)
        copy(path)
        return path

    def publish(self, manifest: Manifest) -> None:
        """Serve a draft from now on, in one step."""
        temporary = self.folder / (_MANIFEST + ".new")
        with temporary.open("w", encoding="utf-8") as file:
            file.write(json.dumps(asdict(manifest), indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.folder / _MANIFEST)

    def clear(self) -> None:
        """Delete every generation that is not served and that nobody reads, drafts as well."""
        manifest = self.manifest()
        for number in self._numbers():
            if manifest is None or number != manifest.generation:
                self._delete(number)

    def discard(self) -> None:
        """Serve nothing from now on."""
        (self.folder / _MANIFEST).unlink(missing_ok=True)
        for number in self._numbers():
            # One that is still read stays, and must not be taken for a draft.
            (self._path(number) / _BASE).unlink(missing_ok=True)
            self._delete(number)

    def _held(self, manifest: Manifest) -> Held | None:
        try:
            return Held(self._path(manifest.generation), manifest)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise IndexError_(
                f"cannot read the index at {self.folder}: {error.strerror or error}; "
                "readers leave a mark there, so make it writable"
            ) from error

    def _delete(self, number: int) -> None:
        if not _is_read(self._path(number)):
            shutil.rmtree(self._path(number), ignore_errors=True)

    def _path(self, number: int) -> Path:
        return self.folder / _GENERATIONS / str(number)

    def _numbers(self) -> list[int]:
        folder = self.folder / _GENERATIONS
        return sorted(int(path.name) for path in folder.glob("*") if path.name.isdecimal())


def checked_manifest(data: Any, where: str, schema: int) -> Manifest:
    """A manifest from its JSON data. Raises IndexMismatchError when it was laid out otherwise."""
    found = data.get("schema") if isinstance(data, dict) else None
    if found != schema:
        raise IndexMismatchError(
            f"{where} was built with schema {found!r}, this is {schema!r}: "
            "rebuild it with 'rag ingest --rebuild PATH...' or set it back"
        )
    try:
        return Manifest(**data)
    except TypeError as error:
        raise IndexMismatchError(
            f"the manifest of {where} is damaged; rebuild it: rag ingest --rebuild PATH..."
        ) from error


def check_model(manifest: Manifest, model: str, where: str) -> None:
    """Raise IndexMismatchError unless the vectors were made with this embedding model."""
    if manifest.embed_model != model:
        raise IndexMismatchError(
            f"{where} was built with embed_model {manifest.embed_model!r}, this is {model!r}: "
            "rebuild it with 'rag ingest --rebuild PATH...' or set it back"
        )


def _read_base(path: Path) -> Any:
    try:
        return json.loads((path / _BASE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # not complete


def _is_read(path: Path) -> bool:
    return any(_is_locked(file) for file in (path / _READERS).glob("*"))


def _is_locked(file: Path) -> bool:
    lock = filelock.FileLock(file, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except filelock.Timeout:
        return True
    lock.release()
    return False
