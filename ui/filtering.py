"""The filters of the window: the boxes to fill in, and what they restrict a question to."""

from __future__ import annotations

from typing import NamedTuple, cast

from rag.filters import Criteria


class Box(NamedTuple):
    """A text box for one filter of `rag.filters.Criteria`."""

    field: str
    label: str
    example: str


BOXES = (
    Box("year", "Year or range", "2019-2021"),
    Box("venue", "Venue", "NeurIPS"),
    Box("author", "Author", "Smith"),
    Box("keyword", "Keyword", "graphs"),
    Box("source", "Source file", "papers.ris"),
)


def criteria(values: tuple[str | None, ...]) -> Criteria:
    """The filters that were filled in, from one text a box in the order of BOXES; a box that was
    never shown gives None.

    What makes no sense is passed on: the assistant says what is wrong with it.
    """
    given = {box.field: (value or "").strip() for box, value in zip(BOXES, values, strict=True)}
    return cast(Criteria, {field: value for field, value in given.items() if value})


def in_words(only: Criteria) -> str:
    """Filters as a reader sees them, "year 2019-2021, author Smith"; empty without any."""
    return ", ".join(f"{field} {value}" for field, value in only.items())
