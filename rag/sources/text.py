"""Plain text: an optional header line, then abstracts separated by blank lines."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TextIO

from rag.sources.entry import Bad, Entry

# A header is a short first line that is no sentence: "ICLR 2025 Papers", "ICLR 2025 论文列表".
_HEADER_LENGTH = 120
_SENTENCE_END = (".", "!", "?", "。", "！", "？")


def matches(head: str, suffix: str) -> bool:
    """Any text can be plain text."""
    return True


def read(stream: TextIO) -> Iterator[Entry | Bad]:
    """The abstracts of a text file, in order and as written, without its header line."""
    blocks = _blocks(stream)
    first_two = list(itertools.islice(blocks, 2))
    if first_two and _is_header(first_two[0]):
        del first_two[0]
    for number, block in enumerate(itertools.chain(first_two, blocks), start=1):
        yield Entry(f"entry {number}", abstract=block)


def _blocks(stream: TextIO) -> Iterator[str]:
    block: list[str] = []
    for line in stream:
        if not line.isspace():
            block.append(line)
        elif block:
            yield "".join(block).strip()
            block = []
    if block:
        yield "".join(block).strip()


def _is_header(block: str) -> bool:
    return "\n" not in block and len(block) <= _HEADER_LENGTH and not block.endswith(_SENTENCE_END)
