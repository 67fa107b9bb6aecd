"""Reading files of abstracts: `read_records(path)` chooses the reader by content.

    file ─ archives ─▶ blobs ─ decoding ─▶ text ─ one reader ─▶ Entry ─ cleaning ─▶ Record

A file as a whole that cannot be read raises SourceError; an entry of a file that is no
usable abstract is a value, a Skip, so that the good entries around it are kept. A record's
abstract is cleaned of what its export added; `read_entries` gives the values as they stand
in the file, a record's at the place that its source names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Protocol, TextIO

from rag.errors import SourceError
from rag.records import Record, Source, content_id
from rag.sources import (
    archives,
    bibtex,
    cleaning,
    csl,
    decoding,
    endnote_xml,
    enw,
    json_records,
    medline,
    pubmed_xml,
    ris,
    tables,
    text,
    web_of_science,
    workbooks,
)
from rag.sources.archives import Blob
from rag.sources.entry import Bad, Entry

_HEAD = 1 << 16
_PACKED_SUFFIX = ".gz"
_TITLE_START = 60


# Any text reads as plain text, program code too: so only these names are taken for it.
_TEXT_SUFFIXES = ("", ".txt", ".text", ".md")


@dataclass(frozen=True, slots=True)
class Skip:
    """What was not read, where in the file, and why. `where` is empty for a whole file."""

    path: str
    where: str
    reason: str


class Reader(Protocol):
    """One family of formats: knows its texts by their start, and parses them entry by entry."""

    def matches(self, head: str, suffix: str) -> bool: ...

    def read(self, stream: TextIO) -> Iterator[Entry | Bad]: ...


# In the order in which they are asked: those that know a file by how it starts come before
# those that look for a telling line anywhere in it. What none of them knows is plain text.
_READERS: tuple[Reader, ...] = (
    pubmed_xml,
    endnote_xml,
    csl,
    json_records,
    web_of_science,
    enw,
    tables,
    ris,
    medline,
    bibtex,
)


@dataclass(frozen=True, slots=True)
class Located:
    """An entry or a broken one with its place: the file, and its number there from 1.

    `verbatim` says that the entry is plain text, which is no export and is not cleaned.
    """

    source: Source
    value: Entry | Bad
    verbatim: bool = False


def read_records(path: Path, *, titles_suffice: bool = False) -> Iterator[Record | Skip]:
    """The records of one file, in file order, and a Skip for each entry that is none.

    The files in an archive are named below it: "papers.zip/sub/a.ris". With
    `titles_suffice`, an entry without an abstract becomes a record of its title.
    Raises SourceError, naming the file and what to do, when it cannot be read at all.
    """
    for entry in read_entries(path, titles_suffice=titles_suffice):
        yield entry if isinstance(entry, Skip) else _record(entry, titles_suffice)


def read_entries(path: Path, *, titles_suffice: bool = False) -> Iterator[Located | Skip]:
    """The entries of one file as they stand in it, not cleaned; a Skip for a file in an
    archive, or a file's end, that cannot be read. Raises SourceError as `read_records`."""
    try:
        for blob in archives.blobs(path):
            if isinstance(blob, Bad):
                yield Skip(blob.where, "", blob.reason)
            else:
                yield from _entries(blob, titles_suffice, packed=blob.name != str(path))
    except SourceError as error:
        raise SourceError(f"{path}: {error}") from error


def _entries(blob: Blob, titles_suffice: bool, packed: bool) -> Iterator[Located | Skip]:
    """The entries of one blob. Where it breaks off, those before stay; where its archive is
    damaged, the last one may be cut short and is left out."""
    last: Located | None = None
    ordinal = 0
    reason = ""
    try:
        verbatim, values = _parsed(blob, titles_suffice)
        for ordinal, value in enumerate(values, start=1):
            if last:
                yield last
            last = Located(Source(blob.name, ordinal), value, verbatim)
    except SourceError as error:
        reason = str(error)
    if blob.damage and last:
        last, ordinal = None, ordinal - 1
    if last:
        yield last
    reason = blob.damage or reason
    if reason and not (packed or ordinal):
        raise SourceError(reason)
    if reason:
        yield Skip(blob.name, f"after entry {ordinal}" if ordinal else "", reason)


def _parsed(blob: Blob, titles_suffice: bool) -> tuple[bool, Iterator[Entry | Bad]]:
    """Whether the blob is plain text, and its entries."""
    if blob.is_workbook:
        return False, _from_workbook(blob, titles_suffice)
    name = blob.name.removesuffix(_PACKED_SUFFIX)
    with decoding.open_text(blob.open) as stream:
        head = stream.read(_HEAD)
    reader = _reader(head, PurePath(name).suffix.lower().removeprefix("."))
    if reader is text and head.lstrip().startswith("<?xml"):
        raise SourceError("XML of an unknown kind; export it as RIS, BibTeX, CSV or PubMed XML")
    if reader is text and PurePath(name).suffix.lower() not in _TEXT_SUFFIXES:
        raise SourceError("no known format; if it is plain text, give it a name that ends in .txt")
    return reader is text, _from_text(blob, reader, titles_suffice)


def _reader(head: str, suffix: str) -> Reader:
    """The reader that knows the content; only where none does, the one that knows the suffix."""
    asked = ((reader, hint) for hint in ("", suffix) for reader in _READERS)
    return next((reader for reader, hint in asked if reader.matches(head, hint)), text)


def _from_text(blob: Blob, reader: Reader, titles_suffice: bool) -> Iterator[Entry | Bad]:
    with decoding.open_text(blob.open) as stream:
        if reader is tables:
            yield from tables.read(stream, titles_suffice)
        else:
            yield from reader.read(stream)


def _from_workbook(blob: Blob, titles_suffice: bool) -> Iterator[Entry | Bad]:
    with blob.open() as stream:
        yield from workbooks.read(stream, titles_suffice)


def _record(located: Located, titles_suffice: bool) -> Record | Skip:
    source, entry = located.source, located.value
    if isinstance(entry, Bad):
        return Skip(source.path, entry.where, entry.reason)
    title = cleaning.line(entry.title)
    abstract = entry.abstract if located.verbatim else cleaning.abstract(entry.abstract)
    if not abstract and titles_suffice:
        abstract = title
    if not re.search(r"\w", abstract):
        return Skip(source.path, f"entry {source.ordinal}", _no_abstract(title, abstract))
    authors = tuple(filter(None, map(cleaning.line, entry.authors)))
    arxiv_id = entry.arxiv_id
    return Record(
        id=content_id(abstract, entry.doi, arxiv_id=arxiv_id, title=title, authors=authors),
        abstract=abstract,
        source=source,
        title=title,
        authors=authors,
        year=entry.year,
        venue=cleaning.line(entry.venue),
        doi=entry.doi,
        url=entry.url or (f"https://arxiv.org/abs/{arxiv_id}" if arxiv_id else ""),
        keywords=tuple(filter(None, map(cleaning.line, entry.keywords))),
    )


def _no_abstract(title: str, abstract: str) -> str:
    if abstract:
        return "no words in it"
    start = title[:_TITLE_START] + ("…" if len(title) > _TITLE_START else "")
    return f'no abstract: "{start}"' if title else "no abstract, and no title"


def find_files(
    paths: Sequence[Path], leave_out: Path | None = None
) -> tuple[list[Path], list[Skip]]:
    """The files to read: each path that is a file, and every file below a folder.

    Hidden files and folders, and what is below the folder `leave_out`, are left out. Links
    are followed, each folder once. What cannot be a source becomes a Skip: a path that does
    not exist, a folder that cannot be opened, a link that leads nowhere or in a circle.
    Sorted, absolute and without repeats.
    """
    found: list[Path] = []
    skips: list[Skip] = []
    for path in paths:
        if path.is_dir():
            _walk(path.resolve(), found, skips)
        else:
            _take(path, found, skips)
    files = set(found)
    if leave_out:
        inside = leave_out.resolve()
        files = {path for path in files if not path.is_relative_to(inside)}
    return sorted(files), skips


def _walk(folder: Path, found: list[Path], skips: list[Skip]) -> None:
    """Take every visible file below `folder`. A folder linked to from within is walked once."""

    def cannot_open(error: OSError) -> None:
        skips.append(Skip(str(error.filename), "", f"cannot be opened ({error.strerror})"))

    walked: set[Path] = set()
    for parent, folders, names in os.walk(folder, onerror=cannot_open, followlinks=True):
        here = Path(parent)
        if (real := here.resolve()) in walked:
            folders.clear()
            continue
        walked.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                _take(here / name, found, skips)


def _take(path: Path, found: list[Path], skips: list[Skip]) -> None:
    reason = _unfit(path)
    if reason:
        skips.append(Skip(os.fsencode(path).decode("utf-8", "replace"), "", reason))
    else:
        found.append(path.resolve())


def _unfit(path: Path) -> str:
    """Why a path cannot be a source; empty when it can."""
    if path.is_symlink() and not path.exists():
        return "a link that leads nowhere, or in a circle"
    if not path.exists():
        return "no such file or folder"
    if not path.is_file():
        return "not a file: a pipe, socket or device"
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        return "a name that is not UTF-8; rename the file"
    return ""
