"""EndNote's tagged export (ENW, from refer): `%0` type, `%A` author, `%X` abstract."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TextIO

from rag.sources import fields
from rag.sources.entry import Bad, Entry
from rag.sources.tagged import Grammar, Tagged, by_pattern, records

_TAG = re.compile(r"%([0-9A-Za-z!@$#&*+()\[\]?<>=~^|:])(?: (.*)|\s*)", re.DOTALL)
_START = re.compile(r"\A\ufeff?\s*%[0ABDEJT] \S")
_AND = re.compile(r"\s+and\s+")
_SECOND_LINE = re.compile(r"^%[A-Z] \S", re.MULTILINE)


def matches(head: str, suffix: str) -> bool:
    """Whether the file starts with a tagged line and has further ones."""
    return bool(_START.match(head)) and bool(_SECOND_LINE.search(head))


def read(stream: TextIO) -> Iterator[Entry | Bad]:
    """The entries of an ENW or refer file, one at a time."""
    for number, record in enumerate(records(stream, _GRAMMAR), start=1):
        yield _entry(record, f"entry {number}")


# refer knows no %0; there, a blank line parts the records.
_GRAMMAR = Grammar(by_pattern(_TAG), opens=frozenset({"0"}), parts_at_blank=True)


def _entry(record: Tagged, where: str) -> Entry:
    links = record.all("U", ">")
    doi = fields.doi(*record.all("R"), *links)
    return Entry(
        where,
        abstract="\n".join(fields.distinct(record.all("X"))),
        title=fields.one_line(record.first("T")),
        authors=fields.names(_apart(record.all("A"))),
        year=fields.year(*record.all("D", "8")),
        venue=fields.one_line(record.first("J", "B", "S")),
        doi=doi,
        url=next((part for link in links for part in link.split()), ""),
        keywords=fields.keywords(record.all("K")),
        arxiv_id=fields.arxiv_id(doi, *links, *record.all("J", "R")),
    )


def _apart(values: list[str]) -> Iterator[str]:
    """The names in lines that hold several: "Lee, Ann and Roy, Bo", not "Arts and Sciences"."""
    for value in values:
        parts = _AND.split(value)
        yield from parts if all("," in part for part in parts) else [value]
