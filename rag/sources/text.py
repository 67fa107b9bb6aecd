"""Plain text: an optional header line, then abstracts separated by blank lines."""

from __future__ import annotations

import re

from rag.records import Record, Source, content_id

_BLANK_LINES = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")
# A header is a short first line that is no sentence: "ICLR 2025 Papers", "ICLR 2025 论文列表".
_HEADER_LENGTH = 120
_SENTENCE_END = (".", "!", "?", "。", "！", "？")


def abstracts(content: str) -> list[str]:
    """The abstracts of a text file, in order and as written, without its header line."""
    content = content.replace("\r\n", "\n").replace("\r", "\n").strip()
    blocks = [block for block in _BLANK_LINES.split(content) if block.strip()]
    if len(blocks) > 1 and _is_header(blocks[0]):
        return blocks[1:]
    return blocks


def record(abstract: str, path: str, ordinal: int) -> Record | None:
    """The record of one abstract, or None when it holds no word."""
    abstract = abstract.strip()
    if not re.search(r"\w", abstract):
        return None
    return Record(id=content_id(abstract), abstract=abstract, source=Source(path, ordinal))


def _is_header(block: str) -> bool:
    line = block.strip()
    return "\n" not in line and len(line) <= _HEADER_LENGTH and not line.endswith(_SENTENCE_END)
