"""Reading files of abstracts: `read_records(path)` chooses the reader by content.

A file as a whole that cannot be read raises SourceError; an entry of a file that is no
usable abstract is a value, a Skip, so that the good entries around it are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rag.errors import SourceError
from rag.records import Record
from rag.sources import text


@dataclass(frozen=True, slots=True)
class Skip:
    """What was not read, where in the file, and why. `where` is empty for a whole file."""

    path: str
    where: str
    reason: str


def read_records(path: Path) -> Iterator[Record | Skip]:
    """The records of one file, in file order, and a Skip for each entry that is none.

    Raises SourceError, naming the file and what to do, when it cannot be read at all.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror or error})") from error
    for ordinal, entry in enumerate(text.abstracts(_decoded(path, data)), start=1):
        record = text.record(entry, path=str(path), ordinal=ordinal)
        yield record or Skip(str(path), f"entry {ordinal}", "no words in it")


def find_files(
    paths: Sequence[Path], leave_out: Path | None = None
) -> tuple[list[Path], list[Skip]]:
    """The files to read: each path that is a file, and every file below a folder.

    Hidden files and folders, and what is below the folder `leave_out`, are left out. A path
    that does not exist becomes a Skip. Sorted, absolute and without repeats.
    """
    files: set[Path] = set()
    skips: list[Skip] = []
    for path in paths:
        if path.is_dir():
            files.update(_files_below(path.resolve()))
        elif path.exists():
            files.add(path.resolve())
        else:
            skips.append(Skip(str(path), "", "no such file or folder"))
    if leave_out:
        inside = leave_out.resolve()
        files = {path for path in files if not path.is_relative_to(inside)}
    return sorted(files), skips


def _files_below(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not hidden and path.is_file():
            yield path.resolve()


def _decoded(path: Path, data: bytes) -> str:
    if b"\x00" in data[:8192]:
        raise SourceError(f"{path}: a binary file, not text; give a UTF-8 text file of abstracts")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(
            f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8 and ingest again"
        ) from error
