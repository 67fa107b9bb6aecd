"""What agrees with the labels of a question: abstracts, facts, quotes and evidence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from rag.answers import Citation
from rag.records import Record

Span = tuple[int, int]

_PLACE = re.compile(r"(\d{3})-(\d{2,})")
_DOI_ADDRESS = re.compile(r"https?://(?:dx\.)?doi\.org/", re.IGNORECASE)
# A quote and a sentence are about the same when they share this much of the shorter one.
_SHARED = 0.5


def is_gold(gold_id: str, record: Record) -> bool:
    """Whether a gold id names this record.

    `000-04` is the fourth abstract of a file whose name starts with 000, in any of the
    record's sources; any other id is a record id or a DOI.
    """
    return _normal(gold_id) in _names(record)


def gold_found(gold: Sequence[str], records: Sequence[Record]) -> int:
    """How many of the gold ids name one of the records."""
    names = {name for record in records for name in _names(record)}
    return sum(_normal(gold_id) in names for gold_id in gold)


def unknown_gold(gold: Iterable[str], records: Iterable[Record]) -> list[str]:
    """The gold ids that name none of the records, in order, each once."""
    names = {name for record in records for name in _names(record)}
    return [gold_id for gold_id in dict.fromkeys(gold) if _normal(gold_id) not in names]


def holds_fact(text: str, fact: str) -> bool:
    """Whether a text holds one of the variants of a key fact, joined by |."""
    variants = (variant.strip().casefold() for variant in fact.split("|"))
    return any(variant and variant in text.casefold() for variant in variants)


def is_exact(citation: Citation) -> bool:
    """Whether the quote is the very slice of the abstract that it claims to be."""
    slice_ = citation.record.abstract[citation.start : citation.end]
    return bool(citation.quote) and slice_ == citation.quote


def shows(citation: Citation, sentence: str) -> bool:
    """Whether the quote shows a sentence of its abstract, half of the shorter one at least."""
    wanted = located(sentence, citation.record.abstract)
    quoted = (
        (citation.start, citation.end)
        if is_exact(citation)
        else located(citation.quote, citation.record.abstract)
    )
    if wanted is None or quoted is None:
        return False
    shared = min(wanted[1], quoted[1]) - max(wanted[0], quoted[0])
    return shared >= _SHARED * min(wanted[1] - wanted[0], quoted[1] - quoted[0])


def located(passage: str, text: str) -> Span | None:
    """Where a passage stands in a text, by its letters and digits alone; None when nowhere."""
    wanted = "".join(letter for _, letter in _letters(passage))
    letters = _letters(text)
    start = "".join(letter for _, letter in letters).find(wanted)
    if not wanted or start < 0:
        return None
    return letters[start][0], letters[start + len(wanted) - 1][0] + 1


def _letters(text: str) -> list[tuple[int, str]]:
    """The letters and digits in lower case, each with its place."""
    return [
        (place, letter)
        for place, character in enumerate(text)
        for letter in character.lower()
        if letter.isalnum()
    ]


def _names(record: Record) -> set[str]:
    """Every gold id that names the record, as `_normal` gives it."""
    places = {
        f"{Path(source.path).name[:3]}-{source.ordinal:02}"
        for source in (record.source, *record.sources)
    }
    return places | {name.casefold() for name in (record.id, record.doi) if name}


def _normal(gold_id: str) -> str:
    if place := _PLACE.fullmatch(gold_id):
        return f"{place[1]}-{int(place[2]):02}"
    return _DOI_ADDRESS.sub("", gold_id).casefold()
