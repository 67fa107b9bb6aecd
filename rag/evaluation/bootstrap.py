"""Estimates over questions, and how far they would vary with other questions of the kind.

A resample draws as many questions as there are, with replacement; it is a row of weights, how
often each question was drawn. An Estimator turns rows of weights into one value each, so that
the estimate itself (all weights 1) and its resamples come from the same code. An interval is
the middle 95% of the resamples (percentile bootstrap), drawn with a fixed seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rag.evaluation.outcomes import Outcome

Interval = tuple[float, float]

_RESAMPLES = 2000
_SEED = 1
_MIDDLE = (2.5, 97.5)


class Estimator(Protocol):
    """A metric over questions."""

    def estimate(self, outcomes: Sequence[Outcome], weights: np.ndarray) -> np.ndarray:
        """One value for each row of `weights`, which has a column a question; NaN for none."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """The sum of parts over the sum of wholes; `parts` gives both for a question, 0 and 0
    where it has none. With wholes of 1 it is a mean."""

    parts: Callable[[Outcome], tuple[float, float]]

    def estimate(self, outcomes: Sequence[Outcome], weights: np.ndarray) -> np.ndarray:
        pairs = np.array([self.parts(outcome) for outcome in outcomes], dtype=float)
        part, whole = (weights @ pairs).T
        return _divided(part, whole)


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile of a value of each question, interpolated; None where it has none."""

    value: Callable[[Outcome], float | None]
    share: float

    def estimate(self, outcomes: Sequence[Outcome], weights: np.ndarray) -> np.ndarray:
        known = [(value, i) for i, o in enumerate(outcomes) if (value := self.value(o)) is not None]
        if not known:
            return np.full(len(weights), np.nan)
        values, columns = zip(*sorted(known), strict=True)
        # How many drawn values come up to each of the sorted ones.
        upto = weights[:, columns].cumsum(axis=1)
        place = self.share * np.maximum(upto[:, -1] - 1, 0)
        low, high = (
            np.array(values)[np.argmax(upto > edge[:, None], axis=1)]
            for edge in (np.floor(place), np.ceil(place))
        )
        found = low + (high - low) * (place - np.floor(place))
        return np.where(upto[:, -1] > 0, found, np.nan)


@dataclass(frozen=True, slots=True)
class AreaUnderCurve:
    """How often a score is higher for a question of the good kind than for one of the other,
    ties counting half: 0.5 is chance. `value` gives score and kind, None to leave it out."""

    value: Callable[[Outcome], tuple[float, bool] | None]

    def estimate(self, outcomes: Sequence[Outcome], weights: np.ndarray) -> np.ndarray:
        known = [(*value, i) for i, o in enumerate(outcomes) if (value := self.value(o))]
        if not known:
            return np.full(len(weights), np.nan)
        scores, good, columns = (np.array(part) for part in zip(*sorted(known), strict=True))
        firsts = np.flatnonzero(np.diff(scores, prepend=-np.inf))
        drawn = weights[:, columns]
        # Drawn questions of each kind at each distinct score.
        of_good = np.add.reduceat(np.where(good, drawn, 0.0), firsts, axis=1)
        of_bad = np.add.reduceat(np.where(good, 0.0, drawn), firsts, axis=1)
        below = of_bad.cumsum(axis=1) - of_bad / 2
        return _divided((of_good * below).sum(axis=1), of_good.sum(axis=1) * of_bad.sum(axis=1))


def estimate(estimator: Estimator, outcomes: Sequence[Outcome]) -> float | None:
    """The value over all the questions; None when it has none."""
    value = float(estimator.estimate(outcomes, np.ones((1, len(outcomes))))[0])
    return None if np.isnan(value) else value


def resamples(questions: int) -> np.ndarray:
    """Rows of weights for so many questions; always the same."""
    drawing = np.random.default_rng(_SEED)
    even = np.full(questions, 1 / questions)
    return drawing.multinomial(questions, even, size=_RESAMPLES).astype(float)


def interval(values: np.ndarray) -> Interval | None:
    """The middle 95% of resampled values.

    None when they are all the same: that says that the questions agree, not that other
    questions would.
    """
    values = values[~np.isnan(values)]
    if not values.size:
        return None
    low, high = (float(edge) for edge in np.percentile(values, _MIDDLE))
    return None if np.isclose(values.min(), values.max()) else (low, high)


def _divided(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    divided = np.full(len(part), np.nan)
    np.divide(part, whole, out=divided, where=whole > 0)
    return divided
