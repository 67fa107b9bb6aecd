"""Evidence: the few sentences that may hold the answer, within a token budget.

A small model on a CPU reads some twenty to ninety tokens a second, so it is given sentences
rather than abstracts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

from rag.answers import Evidence, Hit
from rag.index import Searched
from rag.injection import addresses_model
from rag.questions import names_in
from rag.records import Record
from rag.retrieval import Retrieved
from rag.vectors import StoredSentence
from rag.words import terms

ABSTRACTS = 5
SENTENCES = 8
TOKENS = 210

# Abstracts state what they contribute in sentences that open like this. Such a sentence
# answers "is there work on …", and names the system that the other sentences call "it".
_CLAIM = re.compile(
    r"\b(?:we|this (?:paper|work|study|article)|our (?:method|approach|work|results?))\b.{0,60}?\b"
    r"(?:propos|introduc|present|develop|show|prov|demonstrat|find|found|leverag|stud|investigat|"
    r"design|contribut|establish|formulat|explor|deriv|devis|analy[sz]|identif|creat|releas|"
    r"collect|unveil|report|compar|evaluat|address)",
    re.IGNORECASE | re.DOTALL,
)
_CLAIM_BONUS = 0.25
_COVERAGE_WEIGHT = 0.5
# Each further sentence of an abstract must beat this much more, so that one abstract does
# not take the whole budget when several fit.
_REPEAT_PENALTY = 0.03


# Keywords, and a question in other words than any abstract, look for papers rather than for one
# detail, and the first hit may be the wrong one: so several abstracts are laid side by side.
_SHARED_WORDS = 0.24
_SURVEYED, _SURVEYED_SENTENCES = 4, 4
_ASKS = re.compile(
    r"[?？؟]|^\W*(?:what|which|who|whom|whose|when|where|why|how|is|are|was|were|does|do|did|can|"
    r"could|should|would|will|has|have|had|in (?:what|which)|by how|to (?:what|which)|name|list)\b",
    re.IGNORECASE,
)
_LOOKS_FOR = re.compile(
    r"^\W*(?:(?:is|are) there|any|do (?:you|we) (?:have|know)|has any\w*|have there been)\b"
    r".{0,30}?\b(?:ways?|methods?|approach(?:es)?|works?|papers?|stud(?:y|ies)|research|techniques?|tools?|"
    r"tricks?|theor(?:y|ies)|maths?|mathematics|ideas?)\b|"
    r"^\W*how (?:can|could|might|would|do|should) (?:i|we|you|one|someone)\b",
    re.IGNORECASE,
)
# An abstract whose score is this share of the best one's is no side of a comparison.
_NO_SIDE = 0.45

Way = Literal["detail", "find", "compare"]


@dataclass(frozen=True, slots=True)
class Selected:
    """Evidence and how it is to be read.

    evidence:  best first; abstract by abstract when several are compared
    way:       "detail": some sentences hold the answer; "find": one of the abstracts is what
               is looked for; "compare": each of the abstracts is a part of the answer
    ignored:   sentences left out because they give orders to a model
    scores:    of the abstracts, by record id, as retrieved
    """

    evidence: tuple[Evidence, ...]
    way: Way = "detail"
    ignored: int = 0
    scores: Mapping[str, float] = field(default_factory=dict)


def select_evidence(index: Searched, retrieved: Retrieved, papers: int = 0) -> Selected:
    """The sentences most likely to hold the answer, best first.

    A sentence scores by its abstract's score, its cosine with the question, the share of the
    question's weight that its words cover, and whether it states a contribution. At most
    SENTENCES of them, at most TOKENS tokens of the embedding model together, from the best
    ABSTRACTS abstracts. For keywords and paraphrases, the four best sentences of each of the
    four best abstracts instead; for a comparison, of each of the best `papers`.
    """
    read = _scored(index, retrieved)
    scored = [item for item in read if not addresses_model(item.quote)]
    ignored = len(read) - len(scored)
    scores = {hit.record.id: hit.score for hit in retrieved.hits}
    if papers:
        chosen = _side_by_side(_sides(retrieved, papers), scored)
        return Selected(chosen, "compare", ignored, scores)
    chosen = _within_budget(index, scored)
    if _seeks_papers(retrieved.question, chosen):
        surveyed = [hit.record.id for hit in retrieved.hits[:_SURVEYED]]
        return Selected(_side_by_side(surveyed, scored), "find", ignored, scores)
    return Selected(chosen, "detail", ignored, scores)


def names_apart(names: Sequence[str], hits: Sequence[Hit]) -> bool:
    """Whether names of one question stand in different abstracts only: then it asks about two.

    Each name must stand in a retrieved abstract, and no abstract may hold two of them.
    """
    holders = [{h.record.id for h in hits if _holds(h.record, name)} for name in names]
    return len(names) > 1 and all(holders) and all(not a & b for a, b in combinations(holders, 2))


def _holds(record: Record, name: str) -> bool:
    return name.casefold() in f"{record.title} {record.abstract}".casefold()


def _seeks_papers(question: str, evidence: Sequence[Evidence]) -> bool:
    """Whether a question is keywords, asks for work on something, or is put in other words."""
    if _LOOKS_FOR.search(question) and not names_in(question):
        return True
    words = terms(question)
    held = set(terms(" ".join(item.quote for item in evidence)))
    shared = sum(word in held for word in words)
    return not _ASKS.search(question) or shared < _SHARED_WORDS * len(words)


def _sides(retrieved: Retrieved, papers: int) -> list[str]:
    best = retrieved.hits[0].score if retrieved.hits else 0.0
    return [h.record.id for h in retrieved.hits[:papers] if h.score >= _NO_SIDE * best]


def _side_by_side(records: Sequence[str], scored: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The best sentences of each record, record by record."""
    return tuple(
        item
        for record in records
        for item in [e for e in scored if e.record.id == record][:_SURVEYED_SENTENCES]
    )


def _within_budget(index: Searched, scored: Sequence[Evidence]) -> tuple[Evidence, ...]:
    counts = index.embedding.count_tokens([evidence.quote for evidence in scored])
    chosen: list[Evidence] = []
    taken: dict[str, int] = {}
    pool, budget = list(zip(scored, counts, strict=True)), TOKENS
    while pool and len(chosen) < SENTENCES:
        best = max(
            pool, key=lambda row: row[0].score - _REPEAT_PENALTY * taken.get(row[0].record.id, 0)
        )
        pool.remove(best)
        evidence, count = best
        if count > budget and chosen:
            continue
        chosen.append(evidence)
        taken[evidence.record.id] = taken.get(evidence.record.id, 0) + 1
        budget -= count
    return tuple(chosen)


def _scored(index: Searched, retrieved: Retrieved) -> list[Evidence]:
    weights = {term: index.catalogue.idf(term) for term in terms(retrieved.question)}
    scored = [
        _score(retrieved, hit, sentence, weights)
        for hit in retrieved.hits[:ABSTRACTS]
        for sentence in index.sentences(hit.record)
    ]
    return sorted(scored, key=lambda e: (-e.score, e.record.id, e.start))


def _score(
    retrieved: Retrieved,
    hit: Hit,
    sentence: StoredSentence,
    weights: dict[str, float],
) -> Evidence:
    text = hit.record.abstract[sentence.start : sentence.end]
    held = set(terms(text))
    total = sum(weights.values())
    coverage = sum(weight for term, weight in weights.items() if term in held) / (total or 1.0)
    score = hit.score + float(sentence.vector @ retrieved.vector) + _COVERAGE_WEIGHT * coverage
    if _CLAIM.search(text):
        score += _CLAIM_BONUS
    return Evidence(hit.record, sentence.start, sentence.end, score)
