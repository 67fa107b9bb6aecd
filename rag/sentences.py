"""Sentences of an abstract, as exact spans: the unit of evidence and of citation."""

from __future__ import annotations

import re
from collections.abc import Sequence

Span = tuple[int, int]

# TeX maths is one unit: the full stops inside it end no sentence.
_MATHS = re.compile(
    r"\$\$.+?\$\$|(?<!\\)\$[^$\n]{1,200}?(?<!\\)\$|\\\(.+?\\\)|\\\[.+?\\\]", re.DOTALL
)

_CLOSERS = "\"'”’»)]}*_"
_STOP = re.compile(
    rf"[.!?]+[{re.escape(_CLOSERS)}]*(?=\s)|[。！？]+[”’」』）]*|\n(?=\s*(?:[-*•]|\d+[.)])\s)"
)

_ABBREVIATIONS = frozenset(
    "e.g i.e cf vs al etc fig figs eq eqs sec secs ref refs no nos vol resp approx w.r.t wrt dr "
    "prof mr mrs ms st ca a.k.a i.i.d viz incl dept univ".split()
)
# These end a sentence as often as not; what follows decides.
_MAY_END = frozenset({"etc", "al", "i.i.d", "resp"})
_LAST_WORD = re.compile(r"([^\s(\[{]+)$")
_STARTS_LOWER = re.compile(r"\s*[a-z]")


def split_sentences(text: str, maths: Sequence[Span] | None = None) -> tuple[Span, ...]:
    """Spans `(start, end)` of the sentences of `text`, in order.

    `text[start:end]` is a sentence without the white space around it; together the spans
    cover every character that is not white space. A full stop ends no sentence inside TeX
    maths, after an abbreviation or an initial, or before a word in lower case; Chinese and
    Japanese stops need no space after them. `maths` are the spans of TeX maths, if known.
    """
    maths = maths_spans(text) if maths is None else maths
    spans, start = [], 0
    for stop in _STOP.finditer(text):
        if any(a < stop.start() < b - 1 for a, b in maths) or not _ends_sentence(text, start, stop):
            continue
        spans.append((start, stop.end()))
        start = stop.end()
    spans.append((start, len(text)))
    return tuple(span for span in (_stripped(text, *s) for s in spans) if span)


def maths_spans(text: str) -> list[Span]:
    """Spans of the TeX maths in `text`, delimiters included."""
    return [match.span() for match in _MATHS.finditer(text)]


def _ends_sentence(text: str, start: int, stop: re.Match[str]) -> bool:
    mark = stop.group()
    if not mark.startswith("."):
        return not (mark[0] in "!?" and _STARTS_LOWER.match(text, stop.end()))
    if _STARTS_LOWER.match(text, stop.end()) and mark != "...":
        # "vs. weak", "i.i.d. setting"; but a lower-case product name may open a sentence.
        return bool(re.match(r"\s*[a-z]+[A-Z0-9]", text[stop.end() : stop.end() + 30]))
    word = _LAST_WORD.search(text, start, stop.start())
    if not word:
        return True
    last = word.group(1).casefold().strip("*_\"'“‘")
    if last in _ABBREVIATIONS:
        return last in _MAY_END
    return not re.fullmatch(r"[A-Z]", word.group(1))  # an initial, as in "J. Smith"


def _stripped(text: str, start: int, end: int) -> Span | None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else None
