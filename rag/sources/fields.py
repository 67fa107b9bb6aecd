"""Values that every bibliographic format spells its own way: years, DOIs, arXiv ids, lists."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

_YEAR = re.compile(r"(?<!\d)(1[5-9]\d\d|20\d\d)(?!\d)", re.ASCII)
_DOI = re.compile(r"\b10\.\d{1,9}(?:\.\d+)*/[^\s\"<>]+", re.ASCII)
_DOI_LABEL = re.compile(
    r"^\s*(?:(?:https?://)?(?:dx\.)?doi\.org/|(?:doi|info:doi/)\s*[:/]?\s*)+", re.IGNORECASE
)
# "arXiv:2101.00001v2", "arxiv.org/abs/hep-th/9901001", the DOI "10.48550/arXiv.2101.00001".
_ARXIV = re.compile(
    r"arxiv(?:\.org/(?:abs|pdf|html)/|[.:]\s*|\s+)"
    r"(\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(?!\d)",
    re.IGNORECASE | re.ASCII,
)
_BARE_ARXIV = re.compile(
    r"(?:arxiv:)?(\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(?:v\d+)?",
    re.IGNORECASE | re.ASCII,
)
# "dinosaurs; birds", "dinosaurs -- Jurassic --": the second is how subject headings are joined.
_KEYWORD_END = re.compile(r";|--(?=\s|$)|\n")


def year(*values: str) -> int | None:
    """The first four-digit year from 1500 on in the first value that has one."""
    for value in values:
        if found := _YEAR.search(value):
            return int(found.group())
    return None


def doi(*values: str) -> str:
    """The first value that is a DOI, without "https://doi.org/" or "doi:" before it."""
    for value in values:
        bare = _DOI_LABEL.sub("", value).strip()
        if found := _DOI.match(bare):
            return found.group().rstrip(".,;")
    return ""


def arxiv_id(*values: str) -> str:
    """The first arXiv id that a value names as one, without its version: "2101.00001"."""
    for value in values:
        if found := _ARXIV.search(value):
            return found.group(1)
    return ""


def bare_arxiv_id(value: str) -> str:
    """The arXiv id in a field that holds nothing else ("2101.00001v2"), or an empty string."""
    found = _BARE_ARXIV.fullmatch(value.strip())
    return found.group(1) if found else ""


def keywords(values: Iterable[str], commas: bool = False) -> tuple[str, ...]:
    """The keywords of values that hold one or several each, without repeats, in order.

    Semicolons, line ends and "--" part keywords; commas only when asked for, and only in a
    value without semicolons, because keywords hold commas themselves ("Health, general").
    """
    found: dict[str, None] = {}
    for value in values:
        value = html.unescape(value)
        parts = _KEYWORD_END.split(value)
        if commas and len(parts) == 1:
            parts = value.split(",")
        found.update((" ".join(part.split()), None) for part in parts)
    return tuple(keyword for keyword in found if keyword)


def names(values: Iterable[str]) -> tuple[str, ...]:
    """Authors as written, without repeats; a value may hold several, parted by semicolons."""
    parts = (part for value in values for part in html.unescape(value).split(";"))
    parts = (" ".join(part.split()).strip(" ,") for part in parts)
    return tuple(dict.fromkeys(part for part in parts if part))


def one_line(value: str) -> str:
    """The value with every run of white space as one space."""
    return " ".join(value.split())


def distinct(values: Iterable[str]) -> list[str]:
    """The values that say something of their own: none empty, none part of another."""
    kept: list[str] = []
    for value in (value.strip() for value in values):
        if any(value in other for other in kept):
            continue
        kept = [other for other in kept if other not in value]
        kept.append(value)
    return kept
