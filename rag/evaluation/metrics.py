"""The metrics of answers to labelled questions. Each is over the questions it applies to.

hit@1              first retrieved abstract is gold; share of questions with gold
recall@k           gold abstracts among the first k retrieved / gold; mean over such questions
nDCG@10            of the gold abstracts among the first 10 retrieved; mean over such questions
key facts          key facts found in the answer / key facts, over all questions together;
                   a fact is variants joined by |, compared as case-insensitive substrings
all facts          share of questions with key facts whose answer holds every one
support AUC        how well the answer's own support tells right answers (all facts) from
                   wrong ones, over answered questions with key facts; 0.5 is chance
answered           share of questions that are not refused
wrongly refused    share of questions with gold that are refused
refusal precision  refusals of questions without gold / refusals; where there are both kinds
refusal recall     share of questions without gold that are refused
exact quotes       citations with abstract[start:end] == quote / citations
citation precision cited abstracts that are gold / cited; mean over questions with gold that
                   cite something
citation recall    gold abstracts that are cited / gold; mean over questions with gold, a
                   refusal counting 0
evidence precision cited quotes of gold abstracts that show labelled evidence / such quotes;
                   mean over questions with evidence that cite a gold abstract
evidence recall    sentences of labelled evidence that a cited quote shows / such sentences;
                   mean over questions with evidence, a refusal counting 0
quote words        words a cited quote: quoting whole abstracts shows all evidence, and no one
                   reads it
follow-ups         recall@5 for the question as it was searched, for its rewrite by hand, and
                   the first minus the second; mean over questions that have a rewrite
timings            medians and 90th percentiles in seconds
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag.evaluation.bootstrap import (
    AreaUnderCurve,
    Estimator,
    Quantile,
    Ratio,
    estimate,
    interval,
    resamples,
)
from rag.evaluation.outcomes import Outcome

TIMINGS = ("retrieve_s", "first_token_s", "total_s")
OVERALL = "overall"


@dataclass(frozen=True, slots=True)
class _OfBothKinds:
    """A ratio that means something only over questions with gold and without."""

    ratio: Ratio

    def estimate(self, outcomes: Sequence[Outcome], weights: np.ndarray) -> np.ndarray:
        if len({outcome.gold > 0 for outcome in outcomes}) < 2:
            return np.full(len(weights), np.nan)
        return self.ratio.estimate(outcomes, weights)


def _mean(
    value: Callable[[Outcome], float], over: Callable[[Outcome], object] = lambda _: True
) -> Ratio:
    return Ratio(lambda outcome: (value(outcome), 1.0) if over(outcome) else (0.0, 0.0))


def _timing(name: str, share: float) -> Quantile:
    def value(outcome: Outcome) -> float | None:
        seconds: float | None = getattr(outcome, name)
        return seconds

    return Quantile(value, share)


def _support(outcome: Outcome) -> tuple[float, bool] | None:
    if outcome.refused or not outcome.facts or outcome.support is None:
        return None
    return outcome.support, outcome.facts_found == outcome.facts


def _follow_up(searched: int, standalone: int) -> Ratio:
    return _mean(
        lambda o: (
            (searched * (o.searched_in_5 or 0) + standalone * (o.standalone_in_5 or 0)) / o.gold
        ),
        lambda o: o.standalone_in_5 is not None,
    )


METRICS: Mapping[str, Estimator] = {
    "hit_at_1": _mean(lambda o: o.gold_in_1 > 0, lambda o: o.gold),
    "recall_at_1": _mean(lambda o: o.gold_in_1 / o.gold, lambda o: o.gold),
    "recall_at_5": _mean(lambda o: o.gold_in_5 / o.gold, lambda o: o.gold),
    "recall_at_10": _mean(lambda o: o.gold_in_10 / o.gold, lambda o: o.gold),
    "ndcg_at_10": _mean(lambda o: o.ndcg_at_10, lambda o: o.gold),
    "key_fact_recall": Ratio(lambda o: (o.facts_found, o.facts)),
    "all_facts": _mean(lambda o: o.facts_found == o.facts, lambda o: o.facts),
    "support_auc": AreaUnderCurve(_support),
    "answered": _mean(lambda o: not o.refused),
    "wrongly_refused": _mean(lambda o: o.refused, lambda o: o.gold),
    "refusal_precision": _OfBothKinds(_mean(lambda o: not o.gold, lambda o: o.refused)),
    "refusal_recall": _mean(lambda o: o.refused, lambda o: not o.gold),
    "exact_quotes": Ratio(lambda o: (o.exact_quotes, o.citations)),
    "citation_precision": _mean(lambda o: o.cited_gold / o.cited, lambda o: o.gold and o.cited),
    "citation_recall": _mean(lambda o: o.gold_cited / o.gold, lambda o: o.gold),
    "evidence_precision": _mean(
        lambda o: o.evidence_quotes / o.gold_quotes, lambda o: o.evidence and o.gold_quotes
    ),
    "evidence_recall": _mean(lambda o: o.evidence_shown / o.evidence, lambda o: o.evidence),
    "quote_words": Ratio(lambda o: (o.quoted_words, o.citations)),
    "followup_recall_at_5": _follow_up(1, 0),
    "standalone_recall_at_5": _follow_up(0, 1),
    "followup_difference": _follow_up(1, -1),
    **{f"median_{name}": _timing(name, 0.5) for name in TIMINGS},
    **{f"p90_{name}": _timing(name, 0.9) for name in TIMINGS},
}


def summarise(outcomes: Sequence[Outcome]) -> dict[str, dict[str, Any]]:
    """The metrics by question type, in order of first appearance, then under "overall".

    A metric is None where no question of the type can have it.
    """
    return {
        name: {"questions": len(rows)} | {m: estimate(e, rows) for m, e in METRICS.items()}
        for name, rows in by_type(outcomes).items()
    }


def intervals(outcomes: Sequence[Outcome]) -> dict[str, dict[str, Any]]:
    """The 95% intervals of the metrics, as [low, high], in the layout of `summarise`.

    None where there is no metric, or where the questions of the type do not differ in it.
    """
    found = {}
    for name, rows in by_type(outcomes).items():
        weights = resamples(len(rows))
        ranges = {m: interval(e.estimate(rows, weights)) for m, e in METRICS.items()}
        found[name] = {m: list(edges) if edges else None for m, edges in ranges.items()}
    return found


def by_type(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """Outcomes by question type, in order of first appearance, and all under "overall"."""
    types: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        types.setdefault(outcome.type, []).append(outcome)
    return {**types, OVERALL: list(outcomes)}
