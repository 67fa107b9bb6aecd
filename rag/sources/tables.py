"""Tables: CSV with commas, semicolons or tabs, as reference managers and Excel write them.

The first row that names columns is the header; what stands above it is left out.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from rag.errors import SourceError
from rag.sources import columns
from rag.sources.entry import Bad, Entry

_DELIMITERS = (",", ";", "\t")
_SUFFIXES = ("csv", "tsv", "tab")
_HEADER_ROWS = 20
_HEAD = 1 << 16
# The longest cell. Python's own limit, 131,072 characters, is too short for the references
# that Scopus lists in one cell; without a limit a lost quote would swallow the file.
_LONGEST_CELL = 1 << 20
_SENTENCE_END = (".", "!", "?", "。", "！", "？", ")", '"', "”")
_NAMED_COLUMNS = 8

# A row's number in the file, from 1, and its cells, or what is broken about it.
Row = tuple[int, Sequence[object] | str]


def matches(head: str, suffix: str) -> bool:
    """Whether one of the first rows names a title or an abstract and more, or the file is
    called a table."""
    if suffix in _SUFFIXES:
        return True
    return any(
        _telling(row) >= (3 if above else 2)
        for delimiter in _DELIMITERS
        for above, row in enumerate(_head_rows(head, delimiter))
    )


def read(stream: TextIO, titles_suffice: bool = False) -> Iterator[Entry | Bad]:
    """The entries of a table, one a row, one at a time; a row of another width is a Bad.

    Raises SourceError, naming the columns, when none holds abstracts, nor titles when those
    suffice.
    """
    delimiter = _delimiter(stream.read(_HEAD))
    stream.seek(0)
    yield from entries(_rows(stream, delimiter), titles_suffice)


def entries(rows: Iterable[Row], titles_suffice: bool, place: str = "row") -> Iterator[Entry | Bad]:
    """The entries of numbered rows of cells; a row that is a text is broken, and says how.

    `place` is what to call a row: "row", "Sheet1 row".
    """
    numbered = iter(rows)
    head = list(itertools.islice(numbered, _HEADER_ROWS))
    above, header = _header(head, titles_suffice)
    for number, cells in itertools.chain(head[above + 1 :], numbered):
        where = f"{place} {number}"
        if isinstance(cells, str):
            yield Bad(where, cells)
        elif any(_is_filled(cell) for cell in cells):
            yield _entry(cells, header, where)


def _entry(cells: Sequence[object], header: Sequence[str], where: str) -> Entry | Bad:
    width = len(cells)
    while width > len(header) and not _is_filled(cells[width - 1]):
        width -= 1
    if width > len(header) or (width < len(header) and not _is_whole(cells[:width], header)):
        return Bad(where, f"has {width} cells where the header has {len(header)}")
    return columns.entry(columns.by_field(zip(header, cells, strict=False)), where)


def _is_whole(cells: Sequence[object], header: Sequence[str]) -> bool:
    """Whether a short row has its abstract whole: some programs leave out empty cells at a
    row's end, and then the last one is a finished sentence; elsewhere a short row is broken."""
    places = [place for place, name in enumerate(header) if _field(name) == "abstract"]
    if not places or len(cells) <= places[-1]:
        return False
    ends_there = len(cells) == places[-1] + 1
    return not ends_there or str(cells[-1]).rstrip().endswith(_SENTENCE_END)


def _header(rows: Sequence[Row], titles_suffice: bool) -> tuple[int, list[str]]:
    """The most telling of the first rows: how many rows stand above it, and its cells."""
    named = [
        (above, [" ".join(str(cell or "").split()) for cell in cells])
        for above, (_, cells) in enumerate(rows)
        if not isinstance(cells, str)
    ]
    if not named:
        raise SourceError(_no_abstracts([]))
    above, names = max(named, key=lambda row: _telling(row[1]))
    found = {_field(name) for name in names}
    if "abstract" not in found and not (titles_suffice and "title" in found):
        raise SourceError(_no_abstracts([name for name in names if name]))
    while not names[-1]:
        names.pop()
    return above, names


def _no_abstracts(names: list[str]) -> str:
    if not names:
        return "an empty table; give one with a column of abstracts"
    listed = ", ".join(name[:40] for name in names[:_NAMED_COLUMNS])
    more = f" and {len(names) - _NAMED_COLUMNS} more" if len(names) > _NAMED_COLUMNS else ""
    hint = "call the one that holds them 'abstract'"
    if {"PMID", "Create Date"} <= set(names):
        hint = "PubMed's CSV has none: save the search in the format 'PubMed' instead"
    return f"no column of abstracts among {listed}{more}; {hint}"


def _field(name: str) -> str:
    found = columns.field_of(name)
    return found[0] if found else ""


def _is_filled(cell: object) -> bool:
    return bool(cell.strip()) if isinstance(cell, str) else cell is not None


def _telling(names: Sequence[str]) -> int:
    """How many fields these column names fill; 0 unless one is the title or the abstract."""
    found = {_field(name) for name in names} - {""}
    return len(found) if found & {"title", "abstract"} else 0


def _delimiter(head: str) -> str:
    """The delimiter that makes the most telling header of one of the first rows."""
    scores = {
        delimiter: max(
            ((_telling(row), len(row)) for row in _head_rows(head, delimiter)),
            default=(0, 0),
        )
        for delimiter in _DELIMITERS
    }
    return max(_DELIMITERS, key=lambda delimiter: scores[delimiter])


def _head_rows(head: str, delimiter: str) -> Iterator[list[str]]:
    rows = csv.reader(io.StringIO(head), delimiter=delimiter)
    for _ in range(_HEADER_ROWS):
        try:
            yield next(rows)
        except (StopIteration, csv.Error):
            return


class _Lines:
    """The lines of a stream, of which those taken last can be given back."""

    def __init__(self, stream: Iterable[str]) -> None:
        self._stream = iter(stream)
        self._returned: list[str] = []
        self.taken: list[str] = []

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._returned.pop() if self._returned else next(self._stream)
        self.taken.append(line)
        return line

    def give_back(self, count: int) -> None:
        """Read the last `count` lines again."""
        for _ in range(count):
            self._returned.append(self.taken.pop())


def _rows(stream: TextIO, delimiter: str) -> Iterator[Row]:
    """The rows with their numbers. A row that swallows lines because of a lost quote is
    broken, and the lines after its first are read again as rows of their own."""
    csv.field_size_limit(_LONGEST_CELL)
    lines = _Lines(stream)
    rows = csv.reader(lines, delimiter=delimiter)
    width = 0
    for number in itertools.count(1):
        lines.taken.clear()
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            broken = str(error)
        else:
            plain = len(lines.taken) == 1 and lines.taken[0].endswith("\n")
            broken = "" if plain else _lost_quote(lines.taken, delimiter, width)
        if broken:
            lines.give_back(len(lines.taken) - 1)
            yield number, f"a quotation mark is missing or too many ({broken})"
        else:
            width = max(width, len(cells))
            yield number, cells


def _lost_quote(lines: Sequence[str], delimiter: str, width: int) -> str:
    """Why a row of several lines, or the last one, is no single and whole row; empty when it is.

    Programs that do not double the quotes inside of a cell are forgiven, unless a line of
    it is a row of full width.
    """
    try:
        list(csv.reader(lines, delimiter=delimiter, strict=True))
    except csv.Error as error:
        full = any(
            len(next(csv.reader([line], delimiter=delimiter), [])) == width for line in lines
        )
        return str(error) if full or "end of data" in str(error) else ""
    return ""
