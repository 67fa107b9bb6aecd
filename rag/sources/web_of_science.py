"""Web of Science tagged text (ISI, CIW): `FN`, `VR`, then records from `PT` to `ER`, `EF`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TextIO

from rag.sources import fields
from rag.sources.entry import Bad, Entry
from rag.sources.tagged import Grammar, Tagged, by_pattern, records

_START = re.compile(r"\A\ufeff?\s*(?:FN \S|VR \d|PT [A-Z]\s*$)", re.MULTILINE)
_TAG = re.compile(r"([A-Z][A-Z0-9])(?: (.*)|\s*)", re.DOTALL)


def matches(head: str, suffix: str) -> bool:
    """Whether the file starts as these exports do."""
    return bool(_START.match(head)) and bool(re.search(r"^PT [A-Z]\s*$", head, re.MULTILINE))


def read(stream: TextIO) -> Iterator[Entry | Bad]:
    """The entries of a Web of Science file, one at a time."""
    for number, record in enumerate(records(stream, _GRAMMAR), start=1):
        yield _entry(record, f"entry {number}")


# FN, VR and EF belong to the file; closing at them keeps them out of the records.
_GRAMMAR = Grammar(
    by_pattern(_TAG),
    opens=frozenset({"PT"}),
    closes=frozenset({"ER", "EF", "FN", "VR"}),
    lists=frozenset({"AF", "AU", "BA", "BF", "CA", "GP"}),
)


def _entry(record: Tagged, where: str) -> Entry:
    doi = fields.doi(*record.all("DI", "D2"))
    return Entry(
        where,
        abstract="\n".join(fields.distinct(record.all("AB"))),
        title=fields.one_line(record.first("TI")),
        authors=fields.names(record.best("AF", "AU", "BF", "BA", "CA", "GP")),
        year=fields.year(*record.all("PY", "EY", "EA", "PD")),
        venue=fields.one_line(record.first("SO", "JI", "J9")),
        doi=doi,
        url=record.first("UR"),
        keywords=fields.keywords(fields.one_line(value) for value in record.all("DE", "ID")),
        arxiv_id=fields.arxiv_id(doi, record.first("UR"), record.first("AR")),
    )
