"""Chunks: exact slices of an abstract that fit the embedding model's window.

Each abstract is cut twice. Passages, a few sentences each, say what the abstract is about,
which a paraphrase needs; single sentences keep a detail from being averaged away, and are
what evidence is picked from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from rag.records import Record
from rag.sentences import Span, split_sentences

Level = Literal["passage", "sentence"]
LEVELS: tuple[Level, ...] = ("passage", "sentence")
CountTokens = Callable[[Sequence[str]], list[int]]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A slice `abstract[start:end]` of an abstract; `ordinal` counts from 0 in its level.

    `heading` is what a passage is read under by the embedding model: the title, or its start.
    """

    record_id: str
    level: Level
    ordinal: int
    start: int
    end: int
    text: str
    heading: str = ""

    @property
    def embedded(self) -> str:
        """The text that the embedding model reads."""
        return f"{self.heading}\n{self.text}" if self.heading else self.text


def chunk_id(owner: str, level: Level, ordinal: int) -> str:
    """The id of a chunk of a text, which `owner` names."""
    return f"{owner}:{level[0]}{ordinal}"


def chunk_record(record: Record, count_tokens: CountTokens, window: int) -> tuple[Chunk, ...]:
    """The passages, then the sentences, of one record; none is longer than `window` tokens.

    Passages are of about equal length and break between sentences; a sentence that is too
    long by itself is cut between words. Every character but white space lies in exactly
    one passage and one sentence. A passage and the title above it fit the window together.
    """
    text = record.abstract
    heading, budget = _heading(record, count_tokens, window)
    spans = [
        piece
        for span in split_sentences(text)
        for piece in _fitting(text, span, count_tokens, budget)
    ]
    counts = count_tokens([text[start:end] for start, end in spans])
    return (
        *_chunks(record, "passage", _passages(spans, counts, budget), heading),
        *_chunks(record, "sentence", spans),
    )


def _chunks(record: Record, level: Level, spans: Sequence[Span], heading: str = "") -> list[Chunk]:
    return [
        Chunk(record.id, level, ordinal, start, end, record.abstract[start:end], heading)
        for ordinal, (start, end) in enumerate(spans)
    ]


def _heading(record: Record, count_tokens: CountTokens, window: int) -> tuple[str, int]:
    """The title, cut at a word to a third of the window, and the tokens left for a passage."""
    title = " ".join(record.title.split())
    if not title or title == " ".join(record.abstract.split()):
        return "", window
    start, end = _fitting(title, (0, len(title)), count_tokens, window // 3)[0]
    heading = title[start:end]
    return heading, window - count_tokens([f"{heading}\n"])[0]


def _passages(spans: Sequence[Span], counts: Sequence[int], window: int) -> list[Span]:
    if not spans:
        return []
    total = sum(counts)
    target = total / -(-total // window)
    passages, start, length = [], spans[0][0], 0
    end = start
    for span, count in zip(spans, counts, strict=True):
        if length and (length + count > window or length + count / 2 > target):
            passages.append((start, end))
            start, length = span[0], 0
        end, length = span[1], length + count
    return [*passages, (start, end)]


def _fitting(text: str, span: Span, count_tokens: CountTokens, window: int) -> list[Span]:
    """The span, halved at white space (or anywhere, where there is none) until it fits."""
    start, end = span
    if count_tokens([text[start:end]])[0] <= window or end - start < 2:
        return [span]
    middle = (start + end) // 2
    gap = max(text.rfind(" ", start + 1, middle), text.rfind("\n", start + 1, middle))
    cut = gap if gap > start else middle
    right = cut + (len(text[cut:end]) - len(text[cut:end].lstrip()))
    return [
        *_fitting(text, (start, cut), count_tokens, window),
        *_fitting(text, (right, end), count_tokens, window),
    ]
