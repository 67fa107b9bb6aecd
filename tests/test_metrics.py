"""Intervals, comparisons, and how metrics are shown."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag.answers import Answer, Citation
from rag.errors import SetupError, UsageError
from rag.evaluation import Outcome, Question, compare, compare_files, intervals, score, summarise
from rag.evaluation.bootstrap import AreaUnderCurve, Quantile, Ratio, estimate, interval, resamples
from rag.evaluation.outcomes import append
from rag.evaluation.plotting import check_plot, plot
from rag.evaluation.tables import comparison_text, evaluation_text, value_text
from rag.records import Record, Source

TEA = Record("tea", "Tea is hot.", Source("/d/000.txt", 1))
CITED = (Citation(1, TEA, "Tea is hot.", 0, 11, 1.0),)


def outcome(
    id_: str, found: int = 1, seconds: float = 1.0, type_: str = "fact", **changed: Any
) -> Outcome:
    """An answer that holds so many of the facts a, b, c."""
    question = Question(id_, type_, "q", ("tea",), ("a", "b", "c"))
    text = "abc"[:found]
    answer = Answer("q", "q", text, CITED, timings={"total_s": seconds})
    return replace(score(question, answer, "local"), **changed)


def run(*found: int) -> list[Outcome]:
    return [outcome(str(n), facts) for n, facts in enumerate(found)]


FOUND = Ratio(lambda o: (o.facts_found, o.facts))
TOTAL = Quantile(lambda o: o.total_s, 0.9)
CURVE = AreaUnderCurve(lambda o: (o.total_s or 0.0, o.facts_found == 3))


def repeated(outcomes: list[Outcome], weights: np.ndarray) -> list[Outcome]:
    return [o for o, times in zip(outcomes, weights, strict=True) for _ in range(int(times))]


@pytest.mark.parametrize("metric", [FOUND, TOTAL, CURVE])
def test_a_resample_counts_as_its_questions_written_out(metric: Any) -> None:
    drawing = np.random.default_rng(0)
    outcomes = [
        outcome(str(n), int(drawing.integers(4)), float(drawing.integers(5))) for n in range(20)
    ]
    weights = resamples(20)[:50]
    expected = [estimate(metric, repeated(outcomes, row)) for row in weights]
    assert metric.estimate(outcomes, weights) == pytest.approx(expected, nan_ok=True)


def test_quantiles_and_the_curve_by_hand() -> None:
    outcomes = [outcome(str(n), 3 if n in (1, 3) else 0, float(n)) for n in range(4)]
    assert estimate(Quantile(lambda o: o.total_s, 0.5), outcomes) == 1.5
    assert estimate(TOTAL, outcomes) == pytest.approx(2.7)
    # Of the pairs (1,0) (1,2) (3,0) (3,2) three are in order.
    assert estimate(CURVE, outcomes) == 0.75
    tied = [replace(o, total_s=1.0) for o in outcomes]
    assert estimate(CURVE, tied) == 0.5
    assert estimate(CURVE, outcomes[:1]) is None


def test_an_interval_holds_its_estimate_and_narrows_with_more_questions() -> None:
    few, many = run(*[0, 3] * 5), run(*[0, 3] * 80)
    (low, high), (lower, higher) = (
        intervals(outcomes)["overall"]["key_fact_recall"] for outcomes in (few, many)
    )
    assert low < lower < 0.5 < higher < high
    assert intervals(few) == intervals(few)


def test_an_interval_covers_about_95_in_100_collections() -> None:
    drawing = np.random.default_rng(3)
    weights, covered = resamples(60), 0
    for _ in range(100):
        outcomes = run(*(3 * drawing.binomial(1, 0.7, size=60)))
        edges = interval(FOUND.estimate(outcomes, weights))
        assert edges
        covered += edges[0] <= 0.7 <= edges[1]
    assert 88 <= covered <= 100


def test_questions_that_agree_have_no_interval() -> None:
    found = intervals(run(3, 3, 3))["overall"]
    assert found["key_fact_recall"] is None
    assert found["refusal_recall"] is None


# --- two runs ---------------------------------------------------------------------------------


def test_a_comparison_pairs_the_questions() -> None:
    a, b = run(*range(4), *range(4)), run(*(1, 2, 3, 3) * 2)
    compared = compare(a, b)
    row = compared["metrics"]["key_fact_recall"]
    assert (row["a"], row["b"]) == (0.5, 0.75)
    assert row["difference"] == pytest.approx(0.25)
    low, high = row["interval"]
    assert 0 < low < 0.25 < high
    # The questions vary far more than the differences do.
    wide = intervals(a)["overall"]["key_fact_recall"]
    assert high - low < (wide[1] - wide[0]) / 2
    assert [change["id"] for change in compared["changed"]] == ["0", "1", "2", "4", "5", "6"]
    assert compared["changed"][0] == {
        "id": "0", "type": "fact", "a": "0 of 3 facts", "b": "1 of 3 facts",
        "better": True, "worse": False,
    }  # fmt: skip


def test_the_same_run_twice_does_not_differ() -> None:
    compared = compare(run(0, 1, 2), run(0, 1, 2))
    assert compared["changed"] == []
    assert {row["difference"] for row in compared["metrics"].values()} == {0.0}
    assert {row["interval"] for row in compared["metrics"].values()} == {None}


def kept(path: Path, *outcomes: Outcome) -> Path:
    for one in outcomes:
        append(path, one)
    return path


def test_files_of_different_questions_and_llms_say_so(tmp_path: Path) -> None:
    a = kept(tmp_path / "a.jsonl", outcome("1"), outcome("2"), outcome("3"))
    b = kept(
        tmp_path / "b.jsonl",
        outcome("1", refused=True, llm="big"),
        outcome("2", labels="others", llm="big"),
        outcome("4", llm="big"),
    )
    result = compare_files(a, b)
    assert (result["paired"], result["relabelled"]) == (1, ["2"])
    text = comparison_text(result)
    assert "different LLMs" in text
    assert "Only A holds, left out: 1 (3)" in text
    assert "Only B holds, left out: 1 (4)" in text
    assert "Labelled differently, left out: 1 (2)" in text
    assert "Worse in B: 1\n  1 (fact): 1 of 3 facts -> refused" in text
    with pytest.raises(UsageError, match="no question in common"):
        compare_files(a, kept(tmp_path / "c.jsonl", outcome("9")))
    with pytest.raises(UsageError, match="no question of type 'facts'"):
        compare_files(a, b, ["facts"])


# --- tables and pictures -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "value", "edges", "text"),
    [
        ("all_facts", 0.856, (0.79, 0.921), "0.86 [.79,.92]"),
        ("all_facts", 0.9, (0.1, 1.0), "0.90 [.10,1]"),
        ("followup_difference", -0.1, (-0.3, 0.0), "-0.10 [-.30,0]"),
        ("all_facts", 1.0, None, "1.00"),
        ("all_facts", None, None, "–"),
        ("median_total_s", 0.0334, (0.029, 1.24), "0.033 [.029,1.2]"),
        ("quote_words", 26.4, (9.96, 31.0), "26 [10.0,31]"),
    ],
)
def test_a_value_and_its_interval(
    metric: str, value: float | None, edges: tuple[float, float] | None, text: str
) -> None:
    assert value_text(metric, value, edges) == text


def reported(outcomes: list[Outcome]) -> dict[str, Any]:
    return {
        "llm": "local",
        "metrics": summarise(outcomes),
        "intervals": intervals(outcomes),
    }


def many_types() -> list[Outcome]:
    """Every metric has a value and most an interval, under long names."""
    return [
        outcome(
            f"{type_} {n}",
            n,
            n * 10.123,
            type_,
            gold=n % 3,
            gold_in_1=0,
            refused=n == 1,
            support=n / 7,
            evidence=3,
            evidence_shown=n % 3,
            evidence_quotes=n % 2,
            searched_in_5=n % 2 if n % 3 else None,
            standalone_in_5=1 if n % 3 else None,
            retrieve_s=n / 10,
            first_token_s=n / 3,
        )
        for type_ in ("unanswerable_near", "unanswerable_far", "multilingual")
        for n in range(4)
    ]


def test_the_tables_fit_a_terminal() -> None:
    text = evaluation_text(reported(many_types()))
    assert max(map(len, text.split("\n"))) <= 120
    titles = [block.split("\n")[0].split("  ")[0] for block in text.split("\n\n")[1:-1]]
    assert titles == [
        "Retrieval", "Follow-ups, recall@5", "Answers and refusals", "Citations", "Seconds",
    ]  # fmt: skip
    assert text.count("\nunanswerable_near ") == 5


def test_what_has_no_value_is_left_out() -> None:
    bare = [outcome("1", citations=0, gold=0, facts=0, total_s=None)]
    text = evaluation_text(reported(bare))
    assert [line.split() for line in text.split("\n")[2:5]] == [
        ["Answers", "and", "refusals", "refusal"],
        ["type", "n", "recall"],
        ["fact", "1", "0.00"],
    ]


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml")])
def test_the_metrics_become_a_picture(tmp_path: Path, suffix: str, start: bytes) -> None:
    file = tmp_path / f"metrics{suffix}"
    check_plot(file)
    plot(reported(run(1, 2, 3)), file)
    assert file.read_bytes().startswith(start)
    assert file.stat().st_size > 10_000


def test_a_picture_that_cannot_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=r"name a \.png or \.svg"):
        check_plot(tmp_path / "metrics.jpg")
    with pytest.raises(UsageError, match="there is no folder"):
        check_plot(tmp_path / "none" / "metrics.png")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SetupError, match=r"pip install 'abstract-qa\[plot\]'"):
        check_plot(tmp_path / "metrics.png")
