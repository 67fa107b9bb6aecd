"""JSON and JSON Lines: arXiv's snapshot, OpenReview's notes, lists of papers, and the like.

A record is an object with an abstract or a title under one of their names (columns.py),
wherever it stands: a line, an element of a list, below "papers", "notes" or "data".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TextIO

import ijson

from rag.errors import SourceError
from rag.sources import columns, fields
from rag.sources.entry import Bad, Entry

_STARTS = re.compile(r"\s*(?:\[\s*(?:[{\[\"\]]|$)|\{\s*(?:[\"}]|$))")
_LINES_SUFFIXES = ("jsonl", "ndjson", "jsonlines")
_SUFFIXES = (*_LINES_SUFFIXES, "json")
_HEAD_LINES = 20
_HEAD = 1 << 20
# A document up to this many characters is read at once, a larger one element by element.
_SMALL = 16 << 20
_MAX_DEPTH = 8
_ARXIV_KEYS = frozenset({"submitter", "authors_parsed", "journal-ref", "report-no", "update_date"})
_ARXIV_MONTH = re.compile(r"(?:[a-z.-]+/)?(\d\d)(?:0[1-9]|1[0-2])", re.IGNORECASE)
_OPENREVIEW = "https://openreview.net/forum?id="
# Conference lists give a paper's year only in the BibTeX entry that they hold as a text.
_BIBTEX_KEYS = ("bibtex", "_bibtex")
_BIBTEX_YEAR = re.compile(r"\byear\s*=\s*[{\"]?\s*(\d{4})", re.IGNORECASE)

Object = Mapping[str, object]


def matches(head: str, suffix: str) -> bool:
    """Whether the text starts as JSON does, or is called so."""
    return bool(_STARTS.match(head)) or suffix in _SUFFIXES


def read(stream: TextIO) -> Iterator[Entry | Bad]:
    """The entries of a JSON document or of JSON Lines, which are told apart by their lines.

    Lines, and the elements of large lists, are read one at a time. Where a document breaks
    off, what was read before stays and the break is a Bad.
    """
    head = stream.read(_HEAD)
    stream.seek(0)
    whole = len(head) < _HEAD and _parsed(head) is not None
    yield from _lines(stream) if not whole and _is_lines(head) else _document(stream)


def _is_lines(head: str) -> bool:
    """Whether a line of the head is an object of its own, and the text is no list."""
    if head.lstrip().startswith("["):
        return False
    lines = head.splitlines()[:_HEAD_LINES]
    whole = [line for line in lines if line.startswith("{") and _parsed(line) is not None]
    return len(whole) > 1 or (bool(whole) and len([line for line in lines if line.strip()]) > 1)


def _parsed(line: str) -> object | None:
    try:
        parsed: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return parsed


def _lines(stream: TextIO) -> Iterator[Entry | Bad]:
    for number, line in enumerate(stream, start=1):
        if not line.strip():
            continue
        where = f"line {number}"
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield Bad(where, f"not valid JSON ({error})")
            continue
        yield from _entries(value, where)


def _document(stream: TextIO) -> Iterator[Entry | Bad]:
    content = stream.read(_SMALL + 1)
    values: Iterable[object]
    if len(content) <= _SMALL and (document := _parsed(content)) is not None:
        values = document if isinstance(document, list) else _records(document)
    else:
        stream.seek(0)
        values = _elements(stream)
    number = 0
    try:
        for value in values:
            for entry in _entries(value, f"entry {number + 1}"):
                number += 1
                yield replace(entry, where=f"entry {number}")
    except (ijson.JSONError, UnicodeError) as error:
        reason = " ".join(str(error).split())[:80]
        if not number:
            raise SourceError(
                f"not valid JSON ({reason}); export it again, or one object a line (JSON Lines)"
            ) from error
        yield Bad(f"after entry {number}", f"the JSON breaks off ({reason})")


class _Bytes:
    """A text stream as ijson wants it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        return self._stream.read(size).encode("utf-8", "surrogatepass")


def _elements(stream: TextIO) -> Iterator[object]:
    """The elements of the outermost lists of a document, and the records that stand under
    keys of their own ({"id1": {…}, "id2": {…}}), each built when it is complete."""
    lists = maps = depth = 0
    builder: ijson.ObjectBuilder | None = None
    for event, value in ijson.basic_parse(_Bytes(stream), use_float=True):
        if builder is None:
            if event != "start_map" or not (lists or maps):
                lists += (event == "start_array") - (event == "end_array")
                maps += (event == "start_map") - (event == "end_map")
                continue
            builder = ijson.ObjectBuilder()
        builder.event(event, value)
        depth += event in ("start_map", "start_array")
        depth -= event in ("end_map", "end_array")
        if depth == 0:
            yield from [builder.value] if lists else _records(builder.value)
            builder = None


def _entries(value: object, where: str) -> Iterator[Entry | Bad]:
    """The entries in one line or list element; at least one, so that none is lost silently."""
    if not isinstance(value, (dict, list)):
        yield Bad(where, f"not an object but {json.dumps(value)[:40]}")
        return
    records = list(_records(value))
    for record in records:
        yield _entry(record, where)
    if isinstance(value, dict) and not records:
        yield _entry(value, where)
    elif not records:
        yield Bad(where, "a list without records")


def _records(value: object, depth: int = 0) -> Iterator[Object]:
    """The outermost objects in a value that are records."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _records(item, depth + 1)
        return
    if not isinstance(value, dict):
        return
    found = {field[0] for name in _flat(value) if (field := columns.field_of(name))}
    if "abstract" in found or _INVERTED in value:
        yield value
        return
    inner = [record for part in value.values() for record in _records(part, depth + 1)]
    if "title" not in found:
        yield from inner
    elif with_abstract := [record for record in inner if _has_abstract(record)]:
        yield from with_abstract  # a titled list of papers
    else:
        yield value


_INVERTED = "abstract_inverted_index"


def _has_abstract(record: Object) -> bool:
    return any((columns.field_of(name) or ("",))[0] == "abstract" for name in _flat(record))


def _flat(record: Object) -> Object:
    """The record with OpenReview's "content", and no other part, beside its own keys."""
    content = record.get("content")
    return {**record, **content} if isinstance(content, dict) else record


def _entry(record: Object, where: str) -> Entry:
    flat = _flat(record)
    values = columns.by_field(flat.items())
    if isinstance(inverted := flat.get(_INVERTED), dict):
        values.setdefault("abstract", []).append(_from_inverted(inverted))
    entry = columns.entry(values, where)
    if flat.keys() & _ARXIV_KEYS and (
        arxiv_id := fields.bare_arxiv_id(columns.text(flat.get("id")))
    ):
        entry = _from_arxiv(entry, flat, arxiv_id)
    elif (forum := flat.get("forum")) and isinstance(record.get("content"), dict):
        entry = replace(entry, url=entry.url or f"{_OPENREVIEW}{columns.text(forum)}")
    if "year" not in flat and (year := _bibtex_year(flat)):
        entry = replace(entry, year=year)
    return entry


def _bibtex_year(record: Object) -> int | None:
    texts = (columns.text(record[key]) for key in _BIBTEX_KEYS if key in record)
    return next((int(found[1]) for text in texts if (found := _BIBTEX_YEAR.search(text))), None)


def _from_inverted(inverted: Object) -> str:
    """OpenAlex's index of an abstract, {"We": [0, 7], "show": [1]}, as the text it was."""
    places = [
        (place, word)
        for word, where in inverted.items()
        if isinstance(where, list)
        for place in where
        if isinstance(place, int)
    ]
    return " ".join(word for _, word in sorted(places))


def _from_arxiv(entry: Entry, record: Object, arxiv_id: str) -> Entry:
    """An entry of arXiv's snapshot: dated by its first version, not by its last update."""
    versions = record.get("versions")
    first = versions[0] if isinstance(versions, list) and versions else None
    created = columns.year(first.get("created")) if isinstance(first, dict) else None
    month = _ARXIV_MONTH.match(arxiv_id)
    submitted = int(month[1]) + (1900 if int(month[1]) > 90 else 2000) if month else None
    parsed = record.get("authors_parsed")
    return replace(
        entry,
        arxiv_id=arxiv_id,
        authors=columns.people(parsed) if parsed else entry.authors,
        year=created or submitted or entry.year,
        url=entry.url or f"https://arxiv.org/abs/{arxiv_id}",
        keywords=tuple(columns.text(record.get("categories")).split()) or entry.keywords,
    )
