"""What a reader yields: one bibliographic entry as parsed, before cleaning."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry's raw values. Those that the source lacks are empty; a missing year is None.

    `where` names the entry in its file for people: "entry 12", "line 40".
    """

    where: str
    abstract: str = ""
    title: str = ""
    authors: tuple[str, ...] = ()
    year: int | None = None
    venue: str = ""
    doi: str = ""
    url: str = ""
    keywords: tuple[str, ...] = ()
    arxiv_id: str = ""


@dataclass(frozen=True, slots=True)
class Bad:
    """An entry that cannot be parsed: where it is and why."""

    where: str
    reason: str
