"""XLSX workbooks: every sheet with a column of abstracts, row by row."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from datetime import date
from itertools import islice
from typing import BinaryIO

import openpyxl

from rag.errors import SourceError
from rag.sources import tables
from rag.sources.entry import Bad, Entry

_BATCH = 256
_UNREADABLE = "cannot be read as an XLSX workbook ({}); save it as XLSX or CSV again"


def read(stream: BinaryIO, titles_suffice: bool = False) -> Iterator[Entry | Bad]:
    """The entries of all sheets. Sheets without a column of abstracts are left out.

    Raises SourceError when no sheet has one, or the workbook is damaged.
    """
    reasons = []
    found = False
    for name, rows in _sheets(stream):
        try:
            for entry in tables.entries(rows, titles_suffice, f"{name} row"):
                found = True
                yield entry
        except SourceError as error:
            reasons.append(f"{name}: {error}")
    if reasons and not found:
        raise SourceError(reasons[0])


def _sheets(stream: BinaryIO) -> Iterator[tuple[str, Iterator[tuple[int, list[object]]]]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
        sheets = [sheet for sheet in book.worksheets if hasattr(sheet, "reset_dimensions")]
    except Exception as error:  # openpyxl lets through whatever its parsers raise
        raise SourceError(_UNREADABLE.format(_short(error))) from error
    for sheet in sheets:
        # What a sheet says of its own size is often wrong.
        sheet.reset_dimensions()
        yield str(sheet.title), _rows(sheet.iter_rows(values_only=True))


def _rows(rows: Iterator[tuple[object, ...]]) -> Iterator[tuple[int, list[object]]]:
    number = 0
    while True:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                batch = list(islice(rows, _BATCH))
        except Exception as error:  # as above
            raise SourceError(_UNREADABLE.format(_short(error))) from error
        if not batch:
            return
        for row in batch:
            number += 1
            yield number, [_value(cell) for cell in row]


def _value(cell: object) -> object:
    if isinstance(cell, date):
        return cell.isoformat()
    return cell.replace("_x000D_", "") if isinstance(cell, str) else cell


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:100] or type(error).__name__
