"""The line grammar behind RIS, MEDLINE, EndNote and Web of Science exports.

A record is a run of lines. A tagged line starts a value; an untagged line continues the
value before it. The formats differ in how a tag is written, which tags open and close a
record, and how continued lines are joined.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

# Tag and first part of the value of a line, or None when the line continues a value.
TagOf = Callable[[str], tuple[str, str] | None]
# A wrapped line is indented; a new paragraph or list item is not.
_WRAPPED = re.compile(r"[ \t]{2,}")


@dataclass(frozen=True, slots=True)
class Grammar:
    """One format: how to read a line, and which tags open and close a record.

    A record also ends where the next one opens or the file ends, so a lost closing tag
    loses nothing. With `parts_at_blank`, a blank line ends a record that has no opening tag.
    Under the tags in `lists`, each continuing line is a value of its own.
    """

    tag_of: TagOf
    opens: frozenset[str]
    closes: frozenset[str] = frozenset()
    parts_at_blank: bool = False
    lists: frozenset[str] = frozenset()


def by_pattern(pattern: re.Pattern[str]) -> TagOf:
    """Reads a line that a pattern matches whole: its first group is the tag, its second, if
    any, the value."""

    def tag_of(line: str) -> tuple[str, str] | None:
        found = pattern.fullmatch(line)
        return (found.group(1), found.group(2) or "") if found else None

    return tag_of


@dataclass(slots=True)
class Tagged:
    """The values of one record: by tag, in file order within a tag."""

    values: dict[str, list[str]] = field(default_factory=dict)

    def all(self, *tags: str) -> list[str]:
        """Every value of these tags that is not blank, tag by tag."""
        return [value for tag in tags for value in self.values.get(tag, ()) if value.strip()]

    def first(self, *tags: str) -> str:
        """The first value that is not blank, looking at the tags in this order."""
        return next(iter(self.all(*tags)), "").strip()

    def best(self, *tags: str) -> list[str]:
        """The values of the first of these tags that has any."""
        return next((found for tag in tags if (found := self.all(tag))), [])


def records(lines: Iterable[str], grammar: Grammar) -> Iterator[Tagged]:
    """The records of a file, one at a time. What stands outside of records is left out."""
    current: dict[str, list[list[str]]] = {}
    value: list[str] | None = None
    blank = False
    for line in lines:
        line = line.rstrip("\r\n").lstrip("\ufeff")
        tagged = grammar.tag_of(line)
        if tagged is None:
            blank = not line.strip()
            if value is not None:
                value.append(line)
            continue
        tag, start = tagged
        parted = grammar.parts_at_blank and blank and not grammar.opens & current.keys()
        blank = False
        if current and (tag in grammar.opens or tag in grammar.closes or parted):
            yield _finished(current, grammar)
            current, value = {}, None
        if tag not in grammar.closes:
            value = [start]
            current.setdefault(tag, []).append(value)
    if current:
        yield _finished(current, grammar)


def _finished(current: dict[str, list[list[str]]], grammar: Grammar) -> Tagged:
    return Tagged(
        {
            tag: [line.strip() for lines in values for line in lines]
            if tag in grammar.lists
            else [_joined(lines) for lines in values]
            for tag, values in current.items()
        }
    )


def _joined(lines: list[str]) -> str:
    """A value: wrapped lines joined by a space, unindented ones kept as lines."""
    if len(lines) == 1:
        return lines[0].strip()
    parts = [lines[0]]
    for line in lines[1:]:
        if _WRAPPED.match(line) and line.strip():
            parts[-1] = f"{parts[-1].rstrip()} {line.strip()}"
        else:
            parts.append(line)
    return "\n".join(parts).strip()
