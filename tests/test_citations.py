from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.answers import Evidence
from rag.citations import cite, parse_draft, support
from rag.records import Record, Source

ABSTRACT = (
    "SOREL is a stochastic algorithm for spectral risks. It converges in 40 rounds on graphs. "
    "Rewiring the bottlenecks reduces squashing."
)
RECORD = Record("r1", ABSTRACT, Source("a.txt", 1))
QUOTES = (
    "SOREL is a stochastic algorithm for spectral risks.",
    "It converges in 40 rounds on graphs.",
    "Rewiring the bottlenecks reduces squashing.",
)
EVIDENCE = tuple(
    Evidence(RECORD, ABSTRACT.index(quote), ABSTRACT.index(quote) + len(quote), 1.0)
    for quote in QUOTES
)


@pytest.mark.parametrize(
    ("draft", "expected"),
    [
        ("One is so [1]. Two is so [2].", [(1,), (2,)]),
        ("One is so. [1] Two is so. [2]", [(1,), (2,)]),
        ("One is so [1,2]. Two is so [1][3].", [(1, 2), (1, 3)]),
        ("One is so [1-3].", [(1, 2, 3)]),
        ("One is so 【2】.", [(2,)]),
        ("Values lie in $[0,1]$ here [2].", [(2,)]),
        ("One is so (Ishikawa, 2011).", [()]),
        ("One is so [1", [()]),
    ],
)
def test_marker_forms(draft: str, expected: list[tuple[int, ...]]) -> None:
    assert [statement.numbers for statement in parse_draft(draft)] == expected


@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=3), min_size=1, max_size=4))
def test_markers_are_read_back_whatever_the_form(numbers: list[list[int]]) -> None:
    draft = " ".join(f"Word is so [{', '.join(map(str, ns))}]." for ns in numbers)
    assert [s.numbers for s in parse_draft(draft)] == [tuple(dict.fromkeys(ns)) for ns in numbers]


def test_markers_run_from_1_in_order_of_appearance() -> None:
    draft = "Rewiring bottlenecks reduces squashing [3]. SOREL is stochastic [1]."
    cited = cite(parse_draft(draft), EVIDENCE)
    assert cited.text == "Rewiring bottlenecks reduces squashing [1]. SOREL is stochastic [2]."
    assert [(c.marker, c.quote) for c in cited.citations] == [(1, QUOTES[2]), (2, QUOTES[0])]
    assert all(c.record.abstract[c.start : c.end] == c.quote for c in cited.citations)


@pytest.mark.parametrize(
    "draft",
    ["SOREL is stochastic [1].", "SOREL is stochastic. [1].", "SOREL is stochastic. [1]"],
)
def test_a_marker_stands_before_one_full_stop(draft: str) -> None:
    assert cite(parse_draft(draft), EVIDENCE).text == "SOREL is stochastic [1]."


def test_a_marker_that_adds_no_support_is_left_out() -> None:
    draft = (
        "SOREL is a stochastic algorithm [1][3]. "
        "It converges in 40 rounds, reducing squashing [2][3]."
    )
    cited = cite(parse_draft(draft), EVIDENCE)
    assert cited.text == (
        "SOREL is a stochastic algorithm [1]. It converges in 40 rounds, reducing squashing [2][3]."
    )


def test_an_unknown_marker_is_never_shown_and_warned_of() -> None:
    cited = cite(parse_draft("SOREL is a stochastic algorithm [7][1]."), EVIDENCE)
    assert cited.text == "SOREL is a stochastic algorithm [1]."
    assert any("1 citation marker" in warning for warning in cited.warnings)


def test_a_sentence_without_a_marker_is_given_the_evidence_that_covers_it() -> None:
    cited = cite(parse_draft("Rewiring bottlenecks reduces squashing."), EVIDENCE)
    assert [c.quote for c in cited.citations] == [QUOTES[2]]


def test_a_sentence_that_nothing_supports_is_left_out_with_a_warning() -> None:
    cited = cite(parse_draft("SOREL is stochastic [1]. Paris is the capital of France."), EVIDENCE)
    assert cited.text == "SOREL is stochastic [1]."
    assert any("left out 1 sentence" in warning for warning in cited.warnings)


def test_a_marker_on_the_wrong_evidence_is_moved_to_the_one_that_says_it() -> None:
    cited = cite(parse_draft("Rewiring the bottlenecks reduces squashing [1]."), EVIDENCE)
    assert [c.quote for c in cited.citations] == [QUOTES[2]]


def test_support_falls_when_a_number_differs() -> None:
    right = support("It converges in 40 rounds.", [QUOTES[1]])
    wrong = support("It converges in 50 rounds.", [QUOTES[1]])
    assert right == 1.0
    assert wrong < 0.5
    assert support("The weather is fine.", [QUOTES[1]]) == 0.0


def test_a_growing_draft_shows_its_last_sentence_but_no_half_marker() -> None:
    cited = cite(parse_draft("SOREL is stochastic [1]. It conv"), EVIDENCE, final=False)
    assert cited.text == "SOREL is stochastic [1]. It conv"
    assert cite(parse_draft("SOREL is stochastic ["), EVIDENCE, final=False).text == (
        "SOREL is stochastic"
    )


@given(st.text(alphabet=st.sampled_from("ab [1]9,-.【】\n"), max_size=60))
def test_any_draft_gives_only_markers_that_have_a_citation(draft: str) -> None:
    cited = cite(parse_draft(draft), EVIDENCE)
    assert [c.marker for c in cited.citations] == list(range(1, len(cited.citations) + 1))
    shown = {n for s in parse_draft(cited.text) for n in s.numbers}
    assert shown <= {c.marker for c in cited.citations}
