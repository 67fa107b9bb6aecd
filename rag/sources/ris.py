"""RIS, as Zotero, Mendeley, EndNote, Scopus, Web of Science, PubMed and Ovid write it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TextIO

from rag.sources import fields
from rag.sources.entry import Bad, Entry
from rag.sources.tagged import Grammar, Tagged, records

_START = re.compile(r"^\ufeff?TY {1,3}- ?\S", re.MULTILINE)
_STANDARD = re.compile(r"([A-Z][A-Z0-9])  -(?: (.*)|)", re.DOTALL)
# Some programs write one space, three, or none after the dash. Only tags that exist are
# believed then, for a line of an abstract may start with "II - ".
_LOOSE = re.compile(r"([A-Z][A-Z0-9]) {1,3}- ?(.*)", re.DOTALL)
_KNOWN = frozenset(
    "A1 A2 A3 A4 AB AD AN AU AV BT CA CN CP CT CY DA DB DI DO DP ED EP ER ET ID IS J1 J2 JA JF JO "
    "KW L1 L2 L3 L4 LA LB LK M1 M2 M3 N1 N2 NV OP PB PP PY RI RN RP SE SN SP ST T1 T2 T3 TA TI TT "
    "TY U1 U2 U3 U4 U5 UR VL VO Y1 Y2 YR".split()
)


def matches(head: str, suffix: str) -> bool:
    """Whether a line opens a RIS record; programs write notes of their own before the first."""
    return bool(_START.search(head))


def read(stream: TextIO) -> Iterator[Entry | Bad]:
    """The entries of a RIS file, one at a time. A lost `ER` loses nothing."""
    for number, record in enumerate(records(stream, _GRAMMAR), start=1):
        yield _entry(record, f"entry {number}")


def _tag_of(line: str) -> tuple[str, str] | None:
    if found := _STANDARD.fullmatch(line):
        return found.group(1), found.group(2) or ""
    found = _LOOSE.fullmatch(line)
    if found and found.group(1) in _KNOWN:
        return found.group(1), found.group(2)
    return ("ER", "") if line.rstrip() == "ER" else None


_GRAMMAR = Grammar(_tag_of, opens=frozenset({"TY"}), closes=frozenset({"ER"}))


def _entry(record: Tagged, where: str) -> Entry:
    links = record.all("UR", "LK", "L1", "L2", "L3", "L4")
    doi = fields.doi(*record.all("DO", "DI", "M3"), *links)
    title = fields.one_line(record.first("TI", "T1", "CT", "BT", "ST", "TT"))
    venues = map(fields.one_line, record.all("JF", "T2", "JO", "BT", "JA", "J1", "J2", "T3"))
    return Entry(
        where,
        # N2 is the older name of AB; some programs fill both, with the same text.
        abstract="\n".join(fields.distinct(record.all("AB", "N2"))),
        title=title,
        authors=fields.names(record.all("AU", "A1")),
        year=fields.year(*record.all("PY", "Y1", "DA", "YR")),
        venue=next((venue for venue in venues if venue != title), ""),
        doi=doi,
        url=_first_link(links),
        keywords=fields.keywords(record.all("KW")),
        arxiv_id=fields.arxiv_id(doi, *links, *record.all("JO", "JF", "T2", "AN", "M1", "ID")),
    )


def _first_link(values: list[str]) -> str:
    links = [part for value in values for part in value.split() if "://" in part]
    return (links or values or [""])[0].rstrip(";")
