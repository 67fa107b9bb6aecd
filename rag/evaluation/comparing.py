"""Two runs over the same questions: what differs, and whether chance could explain it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rag.errors import UsageError
from rag.evaluation.bootstrap import estimate, interval, resamples
from rag.evaluation.metrics import METRICS
from rag.evaluation.outcomes import Outcome, read_outcomes
from rag.evaluation.questions import of_types


def compare_files(a: Path, b: Path, only: Sequence[str] = ()) -> dict[str, Any]:
    """Compare two result files of `rag eval --out`; see `compare`. Raises UsageError."""
    runs = [of_types(list(read_outcomes(path).values()), only, path) for path in (a, b)]
    compared = compare(*runs)
    if not compared["paired"]:
        raise UsageError(f"{a} and {b} have no question in common: nothing to compare")
    return {"a": _run(a, runs[0]), "b": _run(b, runs[1]), **compared}


def compare(a: Sequence[Outcome], b: Sequence[Outcome]) -> dict[str, Any]:
    """Plain JSON data: each metric of two runs, its difference b - a, and what changed.

    Only questions that both hold, with the same labels, are paired. The interval of a difference
    is by paired bootstrap, None where no resample differs. `only_a`, `only_b`, `relabelled` and
    `changed` name questions by id.
    """
    of_a, of_b = ({outcome.id: outcome for outcome in run} for run in (a, b))
    common = [id_ for id_ in of_a if id_ in of_b]
    paired = [id_ for id_ in common if of_a[id_].labels == of_b[id_].labels]
    before, after = [of_a[id_] for id_ in paired], [of_b[id_] for id_ in paired]
    return {
        "paired": len(paired),
        "only_a": [id_ for id_ in of_a if id_ not in of_b],
        "only_b": [id_ for id_ in of_b if id_ not in of_a],
        "relabelled": [id_ for id_ in common if id_ not in paired],
        "metrics": _differences(before, after) if paired else {},
        "changed": [
            _change(x, y) for x, y in zip(before, after, strict=True) if verdict(x) != verdict(y)
        ],
    }


def verdict(outcome: Outcome) -> str:
    """How a question went, in two or three words."""
    if outcome.refused:
        return "refused"
    if not outcome.facts:
        return "answered"
    return f"{outcome.facts_found} of {outcome.facts} facts"


def _differences(a: Sequence[Outcome], b: Sequence[Outcome]) -> dict[str, Any]:
    weights = resamples(len(a))
    found = {}
    for name, metric in METRICS.items():
        before, after = estimate(metric, a), estimate(metric, b)
        if before is None and after is None:
            continue
        both = before is not None and after is not None
        varied = metric.estimate(b, weights) - metric.estimate(a, weights)
        edges = interval(varied) if both else None
        found[name] = {
            "a": before,
            "b": after,
            "difference": after - before if before is not None and after is not None else None,
            "interval": list(edges) if edges else None,
        }
    return found


def _change(a: Outcome, b: Outcome) -> dict[str, Any]:
    return {
        "id": a.id,
        "type": a.type,
        "a": verdict(a),
        "b": verdict(b),
        "better": _goodness(b) > _goodness(a),
        "worse": _goodness(b) < _goodness(a),
    }


def _goodness(outcome: Outcome) -> float:
    if outcome.refused or not outcome.gold:
        return float(outcome.right)
    return outcome.facts_found / outcome.facts if outcome.facts else 1.0


def _run(path: Path, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {
        "file": str(path),
        "llm": ", ".join(dict.fromkeys(outcome.llm for outcome in outcomes)),
        "questions": len(outcomes),
    }
