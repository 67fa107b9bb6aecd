"""Retrieval: dense and lexical evidence fused with regard to the query, one hit an abstract.

How the two are fused. The dense score of an abstract is the mean of its best passage's and
its best sentence's cosine: the passage knows what the abstract is about, the sentence keeps a
detail from being averaged away. The lexical score is BM25 divided by the most that the query
could reach, so it says how much of the query's weight, rare words counting most, the abstract
covers. The final score is dense + lexical^1.5. A question that names things is covered well
by the right abstract, and the lexical part decides; a paraphrase shares only stray words with
any abstract, its coverage is small everywhere, the power makes it smaller still, and the dense
part decides. There is no weight to set for a collection.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from rag.answers import Hit
from rag.errors import UsageError
from rag.filters import NO_FILTERS, Filters
from rag.index import Searched

# Depth of each candidate list. An abstract that one list misses gets that list's lowest
# score, which is the most it can have there.
_PASSAGES, _SENTENCES, _LEXICAL = 100, 200, 100
_POWER = 1.5

MAX_QUESTION_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What a question found: its vector, float32 of length 1, and the hits, best first."""

    question: str
    vector: np.ndarray
    hits: tuple[Hit, ...]

    def joined(self, other: Retrieved, k: int) -> Retrieved:
        """The same with the hits of another search among its own, each at its better score."""
        best = {hit.record.id: hit for hit in sorted((*self.hits, *other.hits), key=_by_score)}
        ranked = sorted(best.values(), key=lambda hit: (-hit.score, hit.record.id))
        return replace(self, hits=tuple(ranked[:k]))


def checked_question(question: str) -> str:
    """The question without white space around it. Raises UsageError when it cannot be asked."""
    if not isinstance(question, str):
        raise UsageError(f"a question is text, not {type(question).__name__}")
    # What is no character, half a surrogate pair or a control code, no model can read.
    question = re.sub(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", " ", question).strip()
    if not question:
        raise UsageError("the question is empty; ask something about the abstracts")
    if len(question) > MAX_QUESTION_CHARACTERS:
        raise UsageError(
            f"the question has {len(question):,} characters, at most "
            f"{MAX_QUESTION_CHARACTERS:,} can be searched for; shorten it"
        )
    return question


def retrieve(index: Searched, question: str, k: int, filters: Filters = NO_FILTERS) -> Retrieved:
    """The k best abstracts that the filters admit, best first, ties by record id.

    Raises UsageError for a question that is empty or too long, or a k below 1.
    """
    question = checked_question(question)
    if k < 1:
        raise UsageError(f"k is {k}; ask for at least 1 abstract")
    vector = index.embedding.embed_query(question)
    with index.pinned() as held:
        scores = _fused(
            passages=_best(held.nearest("passage", vector, max(k, _PASSAGES), filters)),
            sentences=_best(held.nearest("sentence", vector, max(k, _SENTENCES), filters)),
            lexical=dict(held.catalogue.search(question, max(k, _LEXICAL), filters)),
        )
        ranked = sorted(scores, key=lambda id_: (-scores[id_], id_))[:k]
        entries = held.catalogue.get(ranked)
    hits = [Hit(entries[id_].record, scores[id_]) for id_ in ranked]
    return Retrieved(question, vector, tuple(hits))


def _by_score(hit: Hit) -> float:
    return hit.score


def _best(found: Iterable[tuple[str, float]]) -> dict[str, float]:
    best: dict[str, float] = {}
    for record_id, score in found:
        best[record_id] = max(score, best.get(record_id, -1.0))
    return best


def _fused(
    passages: dict[str, float], sentences: dict[str, float], lexical: dict[str, float]
) -> dict[str, float]:
    low_passage = min(passages.values(), default=0.0)
    low_sentence = min(sentences.values(), default=0.0)
    low_lexical = min(lexical.values()) if len(lexical) >= _LEXICAL else 0.0
    return {
        id_: (passages.get(id_, low_passage) + sentences.get(id_, low_sentence)) / 2
        + lexical.get(id_, low_lexical) ** _POWER
        for id_ in {*passages, *sentences, *lexical}
    }
