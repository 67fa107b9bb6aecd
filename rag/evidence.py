"""Evidence: the few sentences that may hold the answer, within a token budget.

A small model on a CPU reads some twenty to ninety tokens a second, so it is given sentences
rather than abstracts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag.answers import Evidence, Hit
from rag.index import Searched
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


@dataclass(frozen=True, slots=True)
class Selected:
    """Evidence, best first, and whether the question looks for papers rather than a detail."""

    evidence: tuple[Evidence, ...]
    seeks_papers: bool = False


def _seeks_papers(question: str, evidence: Sequence[Evidence]) -> bool:
    """Whether a question is keywords, or put in other words than the evidence."""
    words = terms(question)
    held = set(terms(" ".join(item.quote for item in evidence)))
    shared = sum(word in held for word in words)
    return not _ASKS.search(question) or shared < _SHARED_WORDS * len(words)


def select_evidence(index: Searched, retrieved: Retrieved) -> Selected:
    """The sentences most likely to hold the answer, best first.

    A sentence scores by its abstract's score, its cosine with the question, the share of the
    question's weight that its words cover, and whether it states a contribution. At most
    SENTENCES of them, at most TOKENS tokens of the embedding model together, from the best
    ABSTRACTS abstracts. For a question that seeks papers, the four best sentences of each of
    the four best abstracts instead.
    """
    scored = _scored(index, retrieved)
    chosen = _within_budget(index, scored)
    if _seeks_papers(retrieved.question, chosen):
        return Selected(_survey(retrieved, scored), seeks_papers=True)
    return Selected(chosen)


def _survey(retrieved: Retrieved, scored: Sequence[Evidence]) -> tuple[Evidence, ...]:
    best = {hit.record.id: _SURVEYED_SENTENCES for hit in retrieved.hits[:_SURVEYED]}
    chosen = []
    for item in scored:
        if best.get(item.record.id, 0):
            best[item.record.id] -= 1
            chosen.append(item)
    return tuple(chosen)


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
