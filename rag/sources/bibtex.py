"""BibTeX and BibLaTeX. bibtexparser splits the blocks; values are read here.

The file is cut where a line opens a block and parsed a block at a time, so memory stays flat
and an unbalanced entry harms no other. An entry with a `crossref` waits for its parent, which
BibTeX wants later in the file; what is read meanwhile waits with it, to keep the order.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import TextIO

from bibtexparser.model import (
    DuplicateBlockKeyBlock,
    DuplicateFieldKeyBlock,
    ImplicitComment,
    ParsingFailedBlock,
    String,
)
from bibtexparser.model import Entry as Block
from bibtexparser.splitter import Splitter

from rag.sources import fields
from rag.sources.entry import Bad, Entry
from rag.sources.latex import decoded

# Entries that cannot be parsed are values here (Bad), not log lines.
logging.getLogger("bibtexparser.splitter").setLevel(logging.CRITICAL)

_BLOCK_START = re.compile(r"\s*@\w*[ \t]*[{(]")
_ENTRY = re.compile(
    r"^\ufeff?[ \t]*@\w+[ \t]*[{(]\s*[^,={}\"\n]*,[ \t]*(?:\n|[\w-]+[ \t]*=|$)", re.MULTILINE
)
_KEY = re.compile(r"@\s*\w+\s*[{(]\s*([^\s,={}]*)")
_BRACES = re.compile(r"(?<!\\)[{}]")
_BRACES_AND_QUOTE = re.compile(r"(?<!\\)[{}\"]")
_WORD = re.compile(r"[^\s\"#{}]+")
_JOIN = re.compile(r"\s*#\s*")
_LOST_COMMA = re.compile(r"\s*([A-Za-z][\w-]*)\s*=\s*(.*)", re.DOTALL)
_AND = re.compile(r"\s+and\s+", re.IGNORECASE)
_INDENT = re.compile(r"\n[ \t]+")
# Entry types that others name in their `crossref`.
_PARENTS = frozenset(
    "book collection conference mvbook mvcollection mvproceedings mvreference periodical "
    "proceedings reference".split()
)
_INHERITED = ("author", "year", "date", "journal", "journaltitle", "booktitle")

Fields = dict[str, str]


def matches(head: str, suffix: str) -> bool:
    """Whether a line opens a BibTeX entry."""
    return bool(_ENTRY.search(head))


def read(stream: TextIO) -> Iterator[Entry | Bad]:
    """The entries of a BibTeX file in order; one that cannot be parsed is a Bad."""
    family = _Family()
    queue: deque[_Block | Bad] = deque()
    for block in _blocks(stream):
        if isinstance(block, _Block):
            family.add(block)
        queue.append(block)
        while queue and not family.awaited_by(queue[0]):
            yield _read(queue.popleft())
    yield from map(_read, queue)


def _read(block: _Block | Bad) -> Entry | Bad:
    return block if isinstance(block, Bad) else _entry(block.values, block.where)


class _Family:
    """Who inherits from whom by `crossref`, whichever of the two comes first."""

    def __init__(self) -> None:
        self._parents: dict[str, Fields] = {}
        self._children: dict[str, list[_Block]] = {}

    def add(self, block: _Block) -> None:
        """Give to the block what its parent has, and to those that wait what it has."""
        key = block.key.casefold()
        if block.type in _PARENTS or key in self._children:
            inheritance = self._parents[key] = _inheritance(block.values)
            for child in self._children.pop(key, ()):
                child.inherit(inheritance)
        if block.parent and block.parent in self._parents:
            block.inherit(self._parents[block.parent])
        elif block.parent:
            self._children.setdefault(block.parent, []).append(block)

    def awaited_by(self, block: _Block | Bad) -> bool:
        """Whether the block waits for a parent that was not read yet."""
        return isinstance(block, _Block) and block.parent in self._children


def _inheritance(parent: Fields) -> Fields:
    inherited = {name: parent[name] for name in _INHERITED if name in parent}
    if title := parent.get("title"):
        inherited.setdefault("booktitle", title)
    return inherited


@dataclass(slots=True)
class _Block:
    """One entry as BibTeX has it: its values still LaTeX, its @string macros put in."""

    where: str
    type: str
    key: str
    values: Fields

    @property
    def parent(self) -> str:
        """The key of the entry that this one names in `crossref`, or an empty string."""
        return self.values.get("crossref", "").strip().casefold()

    def inherit(self, inheritance: Fields) -> None:
        """Take what this entry has no value of its own for."""
        self.values = inheritance | self.values


def _blocks(stream: TextIO) -> Iterator[_Block | Bad]:
    macros: dict[str, str] = {}
    number = 0
    for line, text in _cut(stream):
        broken = False
        for block in _parsed(text):
            if isinstance(block, String):
                macros[block.key.lower()] = _value(block.value, macros)[0]
            elif isinstance(block, ParsingFailedBlock):
                # What follows the first failure of a cut are its pieces.
                if not broken and _BLOCK_START.match(text):
                    number += 1
                    yield _bad(line + (block.start_line or 0), text)
                broken = True
            elif isinstance(block, Block) and not broken:
                number += 1
                values = _values(block, macros)
                yield _Block(f"entry {number}", block.entry_type.lower(), block.key, values)


def _cut(stream: TextIO) -> Iterator[tuple[int, str]]:
    """The file in pieces that each open a block at their start: first line's number, text."""
    piece: list[str] = []
    start = 1
    for number, line in enumerate(stream, start=1):
        line = line.lstrip("\ufeff").replace("\r", "")
        if piece and "@" in line and _BLOCK_START.match(line):
            yield start, "".join(piece)
            piece, start = [], number
        piece.append(line)
    if piece:
        yield start, "".join(piece)


def _parsed(text: str) -> Iterator[object]:
    """The blocks of a piece. An entry is a failure too when closing braces are left over.

    bibtexparser ends an entry at a brace too many within a value, and takes the rest of the
    entry for a comment.
    """
    blocks = Splitter(text).split().blocks
    for block, following in zip_longest(blocks, blocks[1:]):
        while isinstance(block, DuplicateFieldKeyBlock | DuplicateBlockKeyBlock):
            block = block.ignore_error_block
        rest = following.comment if isinstance(following, ImplicitComment) else ""
        if rest.count("}") > rest.count("{") and rest.strip("}), \t\n"):
            yield ParsingFailedBlock(ValueError("braces"), block.start_line, block.raw)
        else:
            yield block


def _bad(line: int, text: str) -> Bad:
    key = _KEY.search(text)
    name = f' "{key.group(1)}"' if key and key.group(1) else ""
    return Bad(f"line {line}", f"the BibTeX entry{name} has unmatched braces, quotes or commas")


def _values(block: Block, macros: Mapping[str, str]) -> Fields:
    """The fields by lower-case name; of a repeated field the first that is not blank."""
    values: Fields = {}
    for field in block.fields:
        name, raw = field.key, field.value
        while True:
            value, rest = _value(raw, macros)
            lost = _LOST_COMMA.fullmatch(rest) if rest else None
            if not lost:
                value += rest
            if not values.get(name.lower(), "").strip():
                values[name.lower()] = value
            if not lost:
                break
            name, raw = lost.groups()
    return values


def _value(raw: str, macros: Mapping[str, str]) -> tuple[str, str]:
    """The value of `{braces} # "quotes" # macro`, and what follows it without a `#`."""
    if raw.startswith("{") and raw.find("}") == len(raw) - 1:
        return raw[1:-1], ""
    parts: list[str] = []
    at = 0
    while at < len(raw):
        if raw[at] in '{"':
            end = _closed(raw, at)
            parts.append(raw[at + 1 : end - 1])
        elif word := _WORD.match(raw, at):
            end = word.end()
            parts.append(macros.get(word.group().lower(), word.group()))
        else:
            break
        join = _JOIN.match(raw, end)
        if not join:
            return "".join(parts), raw[end:]
        at = join.end()
    return "".join(parts), raw[at:]


def _closed(raw: str, at: int) -> int:
    """Where the group or quotation that opens at a place is over."""
    depth = 0
    marks = (_BRACES if raw[at] == "{" else _BRACES_AND_QUOTE).finditer(raw, at + 1)
    for mark in marks:
        if depth == 0 and mark.group() == ("}" if raw[at] == "{" else '"'):
            return mark.end()
        depth += {"{": 1, "}": -1}.get(mark.group(), 0)
    return len(raw) + 1


def _entry(values: Fields, where: str) -> Entry:
    def text(*names: str) -> str:
        raw = next((values[name] for name in names if values.get(name, "").strip()), "")
        return fields.one_line(decoded(raw))

    doi = fields.doi(text("doi"), text("url"), text("note"))
    eprint = text("eprint")
    from_arxiv = "arxiv" in text("eprinttype", "archiveprefix").lower()
    return Entry(
        where,
        abstract=_INDENT.sub("\n", decoded(values.get("abstract", ""))).strip(),
        title=": ".join(filter(None, (text("title"), text("subtitle")))),
        authors=_authors(values.get("author", "")),
        year=fields.year(text("year"), text("date")),
        venue=text("journal", "journaltitle", "booktitle", "maintitle", "series"),
        doi=doi,
        url=text("url") or text("howpublished") * ("://" in text("howpublished")),
        keywords=fields.keywords(
            [text("author_keywords"), text("keywords", "keyword")], commas=True
        ),
        arxiv_id=(fields.bare_arxiv_id(eprint) if from_arxiv else "")
        or fields.arxiv_id(doi, eprint, text("url"), text("journal"), text("note")),
    )


def _authors(raw: str) -> tuple[str, ...]:
    """The names between the "and"s that stand outside of braces; "others" is no name."""
    parts: list[str] = []
    start = 0
    for joint in _AND.finditer(raw):
        part = raw[start : joint.start()]
        if part.count("{") == part.count("}"):
            parts.append(part)
            start = joint.end()
    parts.append(raw[start:])
    # A tie in a name is a space.
    known = (decoded(part.strip()).replace("~", " ") for part in parts)
    return fields.names(name for name in known if name != "others")
