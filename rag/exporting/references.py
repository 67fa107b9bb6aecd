"""Reference: a record with what every bibliographic format asks for beside its fields."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Literal

from rag.records import Record, family_name, plain_words
from rag.sources import fields

Kind = Literal["article", "paper", "other"]

_CONTROLS = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_LINE_ENDS = re.compile("\r\n|[\r\x85\u2028\u2029]")
# A venue that is an event: "Proceedings of …", "ICLR 2025". Any other is a journal.
_EVENT = re.compile(
    r"\b(?i:proceedings|proc\.|conference|conf\.|workshop|symposium|congress|meeting)(?!\w)|"
    r"\b[A-Z]\w*[A-Z]\w*\W{1,3}(?:19|20)\d\d\b"
)
_SMALL_WORDS = frozenset("a an the on of in for to and from with at by as is are do does".split())
_KEY_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Reference:
    """A record as one entry of a bibliography.

    record:  without characters that no text file should hold
    key:     what it is cited by: letters, digits and "-"; the same whatever else is exported,
             but for records whose ids begin alike
    kind:    "article" of a journal, "paper" of a conference, "other" when the venue is unknown
    note:    where the record was read, when it has no title that would say what it is
    """

    record: Record
    key: str
    kind: Kind
    note: str

    @property
    def arxiv_id(self) -> str:
        """The arXiv id that the address or the DOI names, or an empty string."""
        return fields.arxiv_id(self.record.doi, self.record.url)

    @property
    def keywords(self) -> str:
        """The keywords in one text, parted by semicolons. A single one with a comma in it
        ends in a semicolon, or it would read as two."""
        joined = "; ".join(self.record.keywords)
        return joined + ";" if "," in joined and ";" not in joined else joined


def references(records: Iterable[Record]) -> list[Reference]:
    """The records as references, each id once, in order."""
    distinct = [_scrubbed(r) for r in {record.id: record for record in records}.values()]
    return [
        Reference(record, key, _kind(record.venue), _note(record))
        for record, key in zip(distinct, _keys(distinct), strict=True)
    ]


def _keys(records: Sequence[Record]) -> list[str]:
    short = [_key(record, _KEY_DIGITS) for record in records]
    count = Counter(short)
    return [
        key if count[key] == 1 else _key(record, len(record.id))
        for record, key in zip(records, short, strict=True)
    ]


def _key(record: Record, digits: int) -> str:
    """ "muller2021things-3f9a01": family name, year and title say what it is, the id tells it
    apart for good, whatever is exported beside it."""
    words = (w for w in plain_words(record.title).split() if w not in _SMALL_WORDS)
    year = str(record.year or "")
    named = _ascii(family_name(record.authors)) + year + next(filter(None, map(_ascii, words)), "")
    return f"{named or 'abstract'}-{record.id[:digits]}"


def _ascii(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word)


def _kind(venue: str) -> Kind:
    if not venue:
        return "other"
    return "paper" if _EVENT.search(venue) else "article"


def _note(record: Record) -> str:
    if record.title:
        return ""
    place = f"abstract {record.source.ordinal} of "
    name = PurePath(record.source.path.replace("\\", "/")).name
    note = f"No title in the source, {place}{name}"
    # Readers look for arXiv ids in notes, and one in the name of the file is not this paper's.
    return note if name and not fields.arxiv_id(note) else f"No title in the source, {place}a file"


def _scrubbed(record: Record) -> Record:
    return replace(
        record,
        abstract=_text(record.abstract).strip(),
        title=_line(record.title),
        authors=tuple(filter(None, map(_line, record.authors))),
        venue=_line(record.venue),
        doi=_line(record.doi),
        url=_line(record.url),
        keywords=tuple(filter(None, map(_line, record.keywords))),
        source=replace(record.source, path=_line(record.source.path)),
    )


def _text(text: str) -> str:
    return _SURROGATES.sub("\ufffd", _CONTROLS.sub("", _LINE_ENDS.sub("\n", text)))


def _line(text: str) -> str:
    return " ".join(_text(text).split())
