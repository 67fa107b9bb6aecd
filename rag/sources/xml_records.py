"""Streaming XML: the elements of given names, one at a time, and their text without markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TextIO
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from rag.errors import SourceError
from rag.sources.entry import Bad

_PIECE = 1 << 16
_BLANKS = re.compile(r"[ \t\r\n]+")


def elements(stream: TextIO, names: frozenset[str]) -> Iterator[Element | Bad]:
    """The outermost elements of these names. Nothing else of the document is kept in memory.

    Where the document breaks off or is not XML, a Bad ends what was read. Raises SourceError
    for a document that defines entities: those can blow up memory or read other files.
    """
    collector = _Collector(names)
    # The text is decoded already; what encoding the document declares counts no more.
    parser = DefusedXMLParser(target=collector, encoding="utf-8")
    ended = False
    while not ended:
        piece = stream.read(_PIECE)
        ended = not piece
        broken: Exception | None = None
        try:
            if piece:
                parser.feed(piece.lstrip("\ufeff"))
            else:
                parser.close()
        except DefusedXmlException as error:
            raise SourceError(
                "this XML defines entities of its own, which is not safe to read; export it "
                "again without them"
            ) from error
        except (ParseError, UnicodeEncodeError) as error:
            broken = error
        yield from collector.taken()
        if broken:
            yield _bad(broken)
            return


def text(element: Element | None) -> str:
    """The text of an element, markup within it dropped: "H<sub>2</sub>O" is "H2O".

    Only "10<sup>5</sup>" stays as it is, for cleaning to write as 10⁵; it is not 105.
    """
    if element is None:
        return ""
    return "".join(_texts(element)).strip()


def line(element: Element | None) -> str:
    """The text of an element on one line."""
    return _BLANKS.sub(" ", text(element))


def _texts(element: Element) -> Iterator[str]:
    depth: list[tuple[Element, int]] = [(element, 0)]
    yield element.text or ""
    while depth:
        parent, at = depth.pop()
        if at:
            yield parent[at - 1].tail or ""
        if at < len(parent):
            depth.append((parent, at + 1))
            child = parent[at]
            if child.tag == "sup" and child.text and not len(child):
                yield f"<sup>{child.text}</sup>"
            else:
                yield child.text or ""
                depth.append((child, 0))


def _bad(error: Exception) -> Bad:
    if isinstance(error, ParseError):
        return Bad(
            f"line {error.position[0]}", "the XML is broken or cut off here; export it again"
        )
    return Bad("", "the XML holds characters that are none")


class _Collector:
    """A parser target that builds the wanted elements only."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._builder: TreeBuilder | None = None
        self._depth = 0
        self._taken: list[Element] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if self._builder is None:
            if tag not in self._names:
                return
            self._builder = TreeBuilder()
        self._depth += 1
        self._builder.start(tag, attributes)

    def data(self, data: str) -> None:
        if self._builder is not None:
            self._builder.data(data)

    def end(self, tag: str) -> None:
        if self._builder is None:
            return
        element = self._builder.end(tag)
        self._depth -= 1
        if not self._depth:
            self._taken.append(element)
            self._builder = None

    def close(self) -> None:
        self._builder = None

    def taken(self) -> list[Element]:
        """The elements that were completed since the last call."""
        taken, self._taken = self._taken, []
        return taken
