"""EndNote XML: `<xml><records><record>`, whose values are cut into `<style>` pieces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TextIO
from xml.etree.ElementTree import Element

from rag.sources import fields, xml_records
from rag.sources.entry import Bad, Entry
from rag.sources.xml_records import line, text

_RECORD = frozenset({"record"})
_START = re.compile(r"<records>\s*<record\b|<source-app\b[^>]*EndNote|<ref-type\b")
_LINE_ENDS = re.compile(r"\r\n?")


def matches(head: str, suffix: str) -> bool:
    """Whether this is XML with EndNote's elements."""
    return head.lstrip("\ufeff \t\r\n").startswith("<") and bool(_START.search(head))


def read(stream: TextIO) -> Iterator[Entry | Bad]:
    """The entries of an EndNote XML file, one at a time."""
    for number, record in enumerate(xml_records.elements(stream, _RECORD), start=1):
        yield record if isinstance(record, Bad) else _entry(record, f"entry {number}")


def _entry(record: Element, where: str) -> Entry:
    def lines(*paths: str) -> list[str]:
        found = (line(element) for path in paths for element in record.iterfind(path))
        return [value for value in found if value]

    def first(*paths: str) -> str:
        return next(iter(lines(*paths)), "")

    links = lines("urls/related-urls/url", "urls/web-urls/url", "urls/text-urls/url", "urls/url")
    doi = fields.doi(*lines("electronic-resource-num"), *links)
    return Entry(
        where,
        # EndNote ends paragraphs by a carriage return.
        abstract=_LINE_ENDS.sub("\n", text(record.find("abstract"))),
        title=first("titles/title", "titles/short-title"),
        authors=fields.names(lines("contributors/authors/author")),
        year=fields.year(*lines("dates/year", "dates/pub-dates/date")),
        venue=first(
            "periodical/full-title",
            "titles/secondary-title",
            "alt-periodical/full-title",
            "titles/alt-title",
            "periodical/abbr-1",
        ),
        doi=doi,
        url=first("urls/related-urls/url", "urls/web-urls/url", "urls/text-urls/url", "urls/url"),
        keywords=fields.keywords(text(word) for word in record.iterfind("keywords/keyword")),
        arxiv_id=fields.arxiv_id(doi, *links),
    )
