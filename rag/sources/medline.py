"""MEDLINE tagged text: what PubMed saves as .nbib or "PubMed format", and Ovid as Medlars."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TextIO

from rag.sources import fields
from rag.sources.entry import Bad, Entry
from rag.sources.tagged import Grammar, Tagged, records

_START = re.compile(r"^\ufeff?(?:PMID- ?\d|UI {2}- ?\S)", re.MULTILINE)
_TAG = re.compile(r"([A-Z][A-Z0-9]{0,3}) *-(?: (.*)|)", re.DOTALL)
_TAG_WIDTH = 4


def matches(head: str, suffix: str) -> bool:
    """Whether a line opens a MEDLINE record."""
    return bool(_START.search(head))


def read(stream: TextIO) -> Iterator[Entry | Bad]:
    """The entries of a MEDLINE file, one at a time."""
    for number, record in enumerate(records(stream, _GRAMMAR), start=1):
        yield _entry(record, f"entry {number}")


def _tag_of(line: str) -> tuple[str, str] | None:
    found = _TAG.fullmatch(line)
    if not found or line.find("-") != _TAG_WIDTH:
        return None
    return found.group(1), found.group(2) or ""


_GRAMMAR = Grammar(_tag_of, opens=frozenset({"PMID", "UI"}))


def _entry(record: Tagged, where: str) -> Entry:
    ids = [value for value in record.all("LID", "AID") if value.endswith("[doi]")]
    doi = fields.doi(*ids, *record.all("DO", "SO"))
    pmid = record.first("PMID")
    return Entry(
        where,
        abstract="\n".join(fields.distinct(record.best("AB", "OAB"))),
        title=fields.one_line(record.first("TI", "BTI", "CTI", "TT")),
        authors=fields.names([*record.best("FAU", "AU"), *record.all("CN")]),
        year=fields.year(*record.all("DP", "DEP", "YR", "EDAT", "CRDT")),
        venue=fields.one_line(record.first("JT", "TA", "BTI", "SO")),
        doi=doi,
        url=f"https://pubmed.ncbi.nlm.nih.gov/{pmid}/" if pmid.isascii() and pmid.isdigit() else "",
        # MeSH marks the main topics of a paper by asterisks.
        keywords=fields.keywords(word.replace("*", "") for word in record.all("OT", "MH")),
        arxiv_id=fields.arxiv_id(doi, *ids),
    )
