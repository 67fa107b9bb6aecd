"""From a draft to an answer: markers parsed, checked against the evidence, and renumbered.

A draft cites by the number that its evidence had in the prompt. A reader sees markers 1..n in
order of appearance, each standing for one sentence of one abstract, quoted verbatim. A marker
that stands for nothing is never shown, and a sentence that nothing supports is dropped, with
a warning.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag.answers import Citation, Evidence
from rag.sentences import maths_spans, split_sentences
from rag.words import numbers, terms

# [1]  [1,2]  [1-3]  【1】 and runs of them; at the end of an unfinished draft, "[1, " too.
_MARKER = re.compile(r"\s*[\[【]\s*(\d+(?:\s*[,;–-]\s*\d+)*)\s*[\]】]")
_UNFINISHED = re.compile(r"\s*[\[【][\d\s,;–-]*$")
_RANGE = re.compile(r"(\d+)\s*[–-]\s*(\d+)")
_LONGEST_RANGE = 20

# A sentence without a marker is given the evidence that covers at least this much of it.
ENOUGH_SUPPORT = 0.6
# A marker is moved when its evidence covers less than this, and other evidence is enough.
LITTLE_SUPPORT = 0.3


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of a draft and the evidence it cites, numbered from 1; none when it cites none."""

    text: str
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cited:
    """What a reader may see of a draft."""

    text: str
    citations: tuple[Citation, ...]
    warnings: tuple[str, ...]


def parse_draft(draft: str) -> tuple[Statement, ...]:
    """The sentences of a draft, each with the numbers of the markers in it or right after it."""
    draft = _UNFINISHED.sub("", draft)
    bare, marks = _without_markers(draft)
    statements, previous_end = [], 0
    spans = split_sentences(bare)
    for position, (start, end) in enumerate(spans):
        # A marker after the full stop stands where the next sentence begins.
        last = position + 1 == len(spans)
        until = len(bare) if last else spans[position + 1][0]
        cited = [
            n for at, ns in marks if previous_end < at <= until or at == 0 == start for n in ns
        ]
        statements.append(Statement(bare[start:end], tuple(dict.fromkeys(cited))))
        previous_end = until
    return tuple(statements)


def support(statement: str, quotes: Sequence[str]) -> float:
    """How far quotes bear a statement out, in [0, 1].

    The share of the statement's meaning-carrying words, stemmed, that the quotes hold; halved
    when the statement has a number that the quotes lack.
    """
    words = terms(statement)
    if not words or not quotes:
        return 0.0
    together = " ".join(quotes)
    held = set(terms(together))
    share = sum(word in held for word in words) / len(words)
    return share if numbers(statement) <= numbers(together) else share / 2


def cite(
    statements: Sequence[Statement], evidence: Sequence[Evidence], final: bool = True
) -> Cited:
    """Check statements against the evidence they were written from, and number the citations.

    Unless `final`, the last statement is still being written and needs no citation yet.
    """
    shown: list[tuple[str, tuple[int, ...]]] = []
    unknown, dropped = 0, 0
    for position, statement in enumerate(statements):
        growing = not final and position + 1 == len(statements)
        known = tuple(n for n in statement.numbers if 1 <= n <= len(evidence))
        unknown += len(statement.numbers) - len(known)
        chosen = known if growing else _checked(statement.text, known, evidence)
        if chosen or growing:
            shown.append((statement.text, chosen))
        else:
            dropped += 1
    return _numbered(shown, evidence, _warnings(unknown, dropped))


def _without_markers(draft: str) -> tuple[str, list[tuple[int, list[int]]]]:
    """The draft without its markers, and for each marker its place there and its numbers."""
    bare, marks, last = "", [], 0
    maths = maths_spans(draft)
    for match in _MARKER.finditer(draft):
        if any(start < match.start(1) < end for start, end in maths):
            continue  # an interval, as in $[0,1]$
        bare += draft[last : match.start()]
        marks.append((len(bare), _expanded(match.group(1))))
        last = match.end()
    return bare + draft[last:], marks


def _expanded(listed: str) -> list[int]:
    found: list[int] = []
    for part in re.split(r"[,;]", listed):
        bounds = _RANGE.fullmatch(part.strip())
        if bounds:
            first, last = int(bounds[1]), int(bounds[2])
            found.extend(range(first, min(last, first + _LONGEST_RANGE) + 1))
        else:
            found.extend(int(number) for number in re.findall(r"\d+", part))
    return found


def _checked(text: str, known: tuple[int, ...], evidence: Sequence[Evidence]) -> tuple[int, ...]:
    """The evidence a sentence may cite: what it cites, else what covers its words."""
    if known and support(text, [evidence[n - 1].quote for n in known]) >= LITTLE_SUPPORT:
        return _needed(text, known, evidence)
    scores = [support(text, [item.quote]) for item in evidence]
    best = max(range(len(scores)), key=lambda i: (scores[i], -i), default=None)
    if best is not None and scores[best] >= ENOUGH_SUPPORT:
        return (best + 1,)
    return known


def _needed(text: str, known: tuple[int, ...], evidence: Sequence[Evidence]) -> tuple[int, ...]:
    """The evidence that adds support; a model that cites [1][2] often means the first alone."""
    needed: tuple[int, ...] = ()
    best = 0.0
    for number in known:
        more = support(text, [evidence[n - 1].quote for n in (*needed, number)])
        if more > best:
            needed, best = (*needed, number), more
    return needed


def _numbered(
    shown: Sequence[tuple[str, tuple[int, ...]]],
    evidence: Sequence[Evidence],
    warnings: tuple[str, ...],
) -> Cited:
    order = list(dict.fromkeys(n for _, cited in shown for n in cited))
    marker = {n: position for position, n in enumerate(order, start=1)}
    text = " ".join(_marked(text, [marker[n] for n in cited]) for text, cited in shown)
    citations = tuple(
        Citation(
            marker=marker[n],
            record=evidence[n - 1].record,
            quote=evidence[n - 1].quote,
            start=evidence[n - 1].start,
            end=evidence[n - 1].end,
            support=round(max(support(t, [evidence[n - 1].quote]) for t, c in shown if n in c), 3),
        )
        for n in order
    )
    return Cited(text, citations, warnings)


def _marked(text: str, markers: Sequence[int]) -> str:
    """The sentence with its markers before its final stop."""
    if not markers:
        return text
    signs = "".join(f"[{n}]" for n in markers)
    body = text.rstrip(" .!?。！？")
    stop = text[len(body) :].strip()[:1] or "."
    return f"{body} {signs}{stop}"


def _warnings(unknown: int, dropped: int) -> tuple[str, ...]:
    warnings = []
    if unknown:
        warnings.append(f"removed {unknown} citation marker(s) that stand for no evidence")
    if dropped:
        warnings.append(f"left out {dropped} sentence(s) that no retrieved sentence supports")
    return tuple(warnings)
