"""What a question ends in: hits, evidence, citations and the answer. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rag.records import Record, Source

# From this score on an abstract is surely about the question.
_NEAR = 0.8

Stage = Literal["understanding", "reading", "writing", "done"]


@dataclass(frozen=True, slots=True)
class Hit:
    """One retrieved abstract. `score` orders hits of one search, best first, about 0 to 1.5."""

    record: Record
    score: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """One sentence of a retrieved abstract that may hold the answer.

    `start` and `end` are character offsets in `record.abstract`; `score` orders the
    evidence of one question.
    """

    record: Record
    start: int
    end: int
    score: float

    @property
    def quote(self) -> str:
        """The sentence, an exact slice of the abstract."""
        return self.record.abstract[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Citation:
    """What stands behind a marker `[n]` of an answer.

    `record.abstract[start:end] == quote`. `support`, in [0, 1], says how far the quote
    covers the words and numbers of the sentences that cite it.
    """

    marker: int
    record: Record
    quote: str
    start: int
    end: int
    support: float


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence of an answer, as a reader sees it, and what stands behind it.

    markers:    the citations it carries, none when it is not backed
    support:    how far the quotes it cites bear it out, in [0, 1]
    supported:  False for a sentence that is shown, by choice, although nothing backs it
    """

    text: str
    markers: tuple[int, ...]
    support: float
    supported: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, or one snapshot of an answer that is still being written.

    text:        what a reader sees, with markers [1]..[n] in order of appearance
    citations:   one for each marker, in order; empty when `answerable` is False
    claims:      the sentences of `text`, in order, each with its support
    pending:     the sentence being written, not checked yet and no part of `text`
    answerable:  False when the abstracts do not answer the question
    retrieved:   the abstracts that were found, best first
    evidence:    the sentences that were read, best first
    warnings:    what a reader should know, one line each
    timings:     seconds: retrieve_s, first_token_s, total_s
    llm:         who wrote it: "extractive", "local" or the model's name
    question, standalone_question: as asked, and as searched
    stage:       "understanding" (an LLM rewrites or translates the question), "reading"
                 (evidence is there, no word yet), "writing", or "done"
    """

    question: str
    standalone_question: str
    text: str = ""
    citations: tuple[Citation, ...] = ()
    claims: tuple[Claim, ...] = ()
    pending: str = ""
    answerable: bool = True
    retrieved: tuple[Hit, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    warnings: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    llm: str = "extractive"
    stage: Stage = "done"

    def __str__(self) -> str:
        return self.text

    @property
    def support(self) -> float:
        """How far to rely on the answer, in [0, 1].

        Its least supported claim, less when even the best cited abstract is not near the
        question: then its sentences may be true, and about something else.
        """
        cited = {citation.record.id for citation in self.citations}
        near = max((hit.score for hit in self.retrieved if hit.record.id in cited), default=0.0)
        least = min((claim.support for claim in self.claims), default=0.0)
        return round(least * min(1.0, max(0.0, near) / _NEAR), 3)

    def as_dict(self) -> dict[str, Any]:
        """The answer as plain JSON data, in the layout of `rag ask --json`."""
        return {
            "question": self.question,
            "standalone_question": self.standalone_question,
            "answer": self.text,
            "answerable": self.answerable,
            "support": self.support,
            "claims": [_claim_dict(claim) for claim in self.claims],
            "citations": [_citation_dict(c) for c in self.citations],
            "retrieved": [
                {"id": h.record.id, "score": h.score, "source": _source_dict(h.record.source)}
                for h in self.retrieved
            ],
            "warnings": list(self.warnings),
            "llm": self.llm,
            "timings": dict(self.timings),
        }


def hit_dict(hit: Hit) -> dict[str, Any]:
    """A hit as plain JSON data, in the layout of `rag search --json`."""
    record = hit.record
    return {
        "id": record.id,
        "score": hit.score,
        "title": record.title,
        "label": record.label,
        "text": record.abstract,
        "source": _source_dict(record.source),
        "authors": list(record.authors),
        "year": record.year,
        "venue": record.venue,
        "doi": record.doi,
        "url": record.url,
    }


def _claim_dict(claim: Claim) -> dict[str, Any]:
    return {
        "text": claim.text,
        "markers": list(claim.markers),
        "support": claim.support,
        "supported": claim.supported,
    }


def _citation_dict(citation: Citation) -> dict[str, Any]:
    return {
        "marker": citation.marker,
        "id": citation.record.id,
        "quote": citation.quote,
        "start": citation.start,
        "end": citation.end,
        "support": citation.support,
        "source": _source_dict(citation.record.source),
        "title": citation.record.title,
        "label": citation.record.label,
    }


def _source_dict(source: Source) -> dict[str, Any]:
    return {"path": source.path, "ordinal": source.ordinal}
