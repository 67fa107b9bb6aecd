"""CSL-JSON: lists of items as Zotero, Pandoc, Mendeley and Crossref write them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TextIO

import ijson

from rag.errors import SourceError
from rag.sources import columns, fields
from rag.sources.entry import Bad, Entry

# The document is a list of objects, or holds one under a known name.
_LIST = re.compile(
    r"\ufeff?\s*(?:\[\s*\{|\{.{0,2000}?\"(?:items|references)\"\s*:\s*\[)", re.DOTALL
)
_MARKS = re.compile(
    r"\"(?:container-title|date-parts|citation-key|title-short)\"\s*:|"
    r"\"author\"\s*:\s*\[\s*\{\s*\"(?:family|given|literal)\"\s*:"
)
_LISTS = ("items", "references", "message.items")
_PIECE = 1 << 16

Item = Mapping[str, object]


def matches(head: str, suffix: str) -> bool:
    """Whether this is a JSON list of objects with CSL's own names."""
    return bool(_LIST.match(head)) and bool(_MARKS.search(head))


def read(stream: TextIO) -> Iterator[Entry | Bad]:
    """The entries of a CSL-JSON list, one at a time.

    Where the JSON breaks off, what was read before stays and the break is a Bad. Raises
    SourceError when it breaks before the first item.
    """
    number = 0
    try:
        for number, item in enumerate(_items(stream), start=1):
            where = f"entry {number}"
            yield _entry(item, where) if isinstance(item, Mapping) else Bad(where, "not an object")
    except (ijson.JSONError, UnicodeError) as error:
        if not number:
            raise SourceError("not valid JSON; export it again as CSL-JSON") from error
        yield Bad(f"after entry {number}", "the JSON is broken or cut off here; export it again")


class _Bytes:
    """A text stream as ijson wants it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._started = False

    def read(self, size: int = -1) -> bytes:
        text = self._stream.read(size)
        if not self._started and size:
            self._started = True
            text = text.removeprefix("\ufeff")
        return text.encode("utf-8")


def _items(stream: TextIO) -> Iterator[object]:
    """The elements of the list that is the document, or that it holds in a known place."""
    events = ijson.parse(_Bytes(stream), use_float=True, buf_size=_PIECE)
    for prefix, event, value in events:
        if event == "start_array" and (not prefix or prefix in _LISTS):
            path = f"{prefix}.item" if prefix else "item"
            yield from ijson.items(chain([(prefix, event, value)], events), path)


def _entry(item: Item, where: str) -> Entry:
    def text(name: str) -> str:
        # Crossref has lists of titles; the first is the title.
        value = item.get(name)
        return columns.text(value[0] if isinstance(value, list) and value else value)

    doi = fields.doi(text("DOI"))
    words = item.get("subject")
    return Entry(
        where,
        abstract=text("abstract"),
        title=fields.one_line(text("title")),
        authors=_people(_as_written(item) or item.get("author")),
        year=next(filter(None, (_year(item.get(name)) for name in ("issued", "published"))), None),
        venue=fields.one_line(text("container-title") or text("event-title")),
        doi=doi,
        url=text("URL"),
        keywords=fields.keywords([text("keyword")], commas=True)
        or fields.keywords(map(columns.text, words) if isinstance(words, list) else ()),
        arxiv_id=fields.arxiv_id(doi, text("URL"), text("number"), text("note")),
    )


def _as_written(item: Item) -> object:
    """The spelling of the authors before they were put into parts, as `rag export` notes it."""
    custom = item.get("custom")
    return custom.get("authors") if isinstance(custom, Mapping) else None


def _people(authors: object) -> tuple[str, ...]:
    found = map(_name, authors) if isinstance(authors, list) else iter(())
    return tuple(dict.fromkeys(name for name in found if name))


def _name(author: object) -> str:
    if not isinstance(author, Mapping):
        return fields.one_line(columns.text(author))

    def part(*names: str) -> str:
        return " ".join(filter(None, (columns.text(author.get(name)) for name in names)))

    family = part("non-dropping-particle", "family")
    given = part("given", "dropping-particle")
    return (
        ", ".join(filter(None, (family, given, part("suffix")))) or part("literal") or part("name")
    )


def _year(date: object) -> int | None:
    if not isinstance(date, Mapping):
        return columns.year(date)
    written = map(columns.text, (date.get("raw"), date.get("literal")))
    return columns.year(date) or fields.year(*written)
