"""Filters of a search: by year, venue, author, keyword and source, the same in both stores.

A record is described by a few short values a field (`facets`), a filter asks for values
(`Filters.conditions`). Each store keeps the values beside what it searches, so a filter is
part of its query and nothing that matches is lost to a cut made before.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path, PurePath
from typing import Self, TypedDict

from rag.errors import UsageError
from rag.records import Record

FIELDS = ("venue", "author", "keyword", "source")

# Chroma cannot store lists of more than about 5,000 values. A paper with hundreds of
# authors is found by the first of them.
_MOST_VALUES = 1000
_YEARS = re.compile(r"(\d{4})?\s*(?:([-–—]|\.\.)\s*(\d{4})?)?")
_SEPARATE_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i", "þ": "th", "ð": "d"}
)

# A field, and values of which a record must have at least one.
Condition = tuple[str, tuple[str, ...]]


class Criteria(TypedDict, total=False):
    """Filters as a user gives them, by keyword; see Filters."""

    year: int | str | None
    venue: str | None
    author: str | None
    keyword: str | None
    source: str | Path | None


@dataclass(frozen=True, slots=True)
class Filters:
    """What a record must fulfil to be searched; the empty default admits every record.

    years:    first and last, both included; None leaves that end open
    venue, keyword: words that follow each other there, whatever their case and accents
    author:   a family name, or given and family name or initial in any order
    source:   a file or a folder by its path, or a file by its name
    """

    years: tuple[int | None, int | None] = (None, None)
    venue: str = ""
    author: str = ""
    keyword: str = ""
    source: str = ""

    @classmethod
    def of(
        cls,
        *,
        year: int | str | None = None,
        venue: str | None = None,
        author: str | None = None,
        keyword: str | None = None,
        source: str | Path | None = None,
    ) -> Self:
        """From what a user gave: `year` is 2021, "2021", "2019-2021", "2019-" or "-2021".

        Raises UsageError for a filter that asks for nothing.
        """
        for name, value in (("venue", venue), ("author", author), ("keyword", keyword)):
            if value is not None and not folded_words(value):
                raise UsageError(f"the filter {name} {value!r} has no word; give one or leave it")
        if source is not None and not str(source).strip():
            raise UsageError("the filter source is empty; give a file, a folder or a file name")
        years = (None, None) if year is None else _years(str(year))
        return cls(years, venue or "", author or "", keyword or "", str(source or ""))

    def __bool__(self) -> bool:
        return self != NO_FILTERS

    def conditions(self) -> tuple[Condition, ...]:
        """All must hold, beside the years."""
        return (
            *(("venue", (run,)) for run in _asked_runs(self.venue)),
            *(("keyword", (run,)) for run in _asked_runs(self.keyword)),
            *(("author", names) for names in _asked_names(self.author) if names),
            *([("source", _asked_places(self.source))] if self.source else []),
        )


NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True)
class Facets:
    """What a record can be filtered by: its year, and the values that conditions ask for,
    by field; a field without any is left out."""

    year: int | None
    values: Mapping[str, tuple[str, ...]]


def facets(record: Record) -> Facets:
    """What a record can be filtered by."""
    places = (record.source, *record.sources)
    values: dict[str, Iterable[str]] = {
        "venue": _runs(record.venue),
        "author": (value for name in record.authors for value in _names(name)),
        "keyword": (run for keyword in record.keywords for run in _runs(keyword)),
        "source": (value for place in places for value in _places(place.path)),
    }
    distinct = {field: tuple(dict.fromkeys(found)) for field, found in values.items()}
    kept = {field: found[:_MOST_VALUES] for field, found in distinct.items() if found}
    return Facets(record.year, kept)


def folded_words(text: str) -> list[str]:
    """The words of a text in lower case, without accents."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(char for char in decomposed if not unicodedata.combining(char))
    return re.findall(r"[^\W_]+", plain.translate(_SEPARATE_LETTERS))


def _years(text: str) -> tuple[int | None, int | None]:
    found = _YEARS.fullmatch(text.strip())
    first, dash, last = found.groups() if found else (None, None, None)
    if not first and not last:
        raise UsageError(
            f"the filter year {text!r} is no year or range: write 2021, 2019-2021, 2019- or -2021"
        )
    start = int(first) if first else None
    end = int(last) if last else None if dash else start
    if start and end and start > end:
        raise UsageError(f"the filter year {text!r} ends before it starts")
    return start, end


# --- venues and keywords: single words, and pairs of words that follow each other ------------


def _runs(text: str) -> list[str]:
    words = folded_words(text)
    return [*words, *(" ".join(pair) for pair in pairwise(words))]


def _asked_runs(text: str) -> list[str]:
    words = folded_words(text)
    return [" ".join(pair) for pair in pairwise(words)] or words


# --- authors: single words, and pairs of words in either order -------------------------------
# A full given name also stands for its initial, "li w.", so that "W Li" finds Wei Li; "Wei
# Li" finds what was written "W Li" as well, but not Wu Li. Up to three capitals may be
# initials, "Wilson LN", or a name, "Wei LI": both readings are kept and asked for.


def _names(name: str) -> Iterator[str]:
    for words in (_words(name), _words(name, initials_apart=True)):
        yield from (word for word in words if not _is_initial(word))
        for one, other in combinations(words, 2):
            if _is_initial(one) and _is_initial(other):
                continue
            yield _pair(one, other)
            if not (_is_initial(one) or _is_initial(other)):
                yield f"{one} {other[0]}."
                yield f"{other} {one[0]}."


def _asked_names(name: str) -> Iterator[tuple[str, ...]]:
    words = _words(name, initials_apart=True)
    long = [word for word in words if not _is_initial(word)]
    if len(long) == 1 and len(words) > 1:
        together = [_pair(long[0], word) for word in _words(name) if word not in words]
        for letter in words:
            if _is_initial(letter):
                yield f"{long[0]} {letter}", f"{long[0]} {letter}.", *together
    elif len(long) < 2:
        yield tuple(words[:1])
    # A middle initial between two names is not asked for: many sources leave it out.
    for one, other in pairwise(long):
        yield _pair(one, other), f"{one} {other[0]}", f"{other} {one[0]}"


def _words(name: str, initials_apart: bool = False) -> list[str]:
    """The folded words of a name; with `initials_apart`, "Wilson LN" has three."""
    raw = re.findall(r"[^\W_]+", name)
    joined = [word.isascii() and word.isupper() and 1 < len(word) <= 3 for word in raw]
    named = any(len(word) > 1 and not capitals for word, capitals in zip(raw, joined, strict=True))
    apart = initials_apart and named
    return [
        folded
        for word, together in zip(raw, joined, strict=True)
        for part in (word if together and apart else [word])
        for folded in folded_words(part)
    ]


def _is_initial(word: str) -> bool:
    return len(word) == 1 and word.isascii()


def _pair(one: str, other: str) -> str:
    first, second = sorted((one, other), key=lambda word: (_is_initial(word), word))
    return f"{first} {second}"


# --- sources: the path, every folder above it, and the name --------------------------------


def _places(path: str) -> Sequence[str]:
    pure = PurePath(path)
    return [path, *(str(folder) for folder in pure.parents if folder.name), pure.name]


def _asked_places(source: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((source, str(Path(source).expanduser().resolve()))))
