from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.answers import Evidence
from rag.citations import Cited, cite
from rag.drafts import parse
from rag.records import Record, Source
from rag.verification import Verifier

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


def cited(draft: str, evidence: Sequence[Evidence] = EVIDENCE, **options: bool) -> Cited:
    return cite(parse(draft).statements, evidence, Verifier(), **options)


def test_markers_run_from_1_in_order_of_appearance() -> None:
    draft = "Rewiring bottlenecks reduces squashing [3]. SOREL is stochastic [1]."
    answer = cited(draft)
    assert answer.text == "Rewiring bottlenecks reduces squashing [1]. SOREL is stochastic [2]."
    assert [(c.marker, c.quote) for c in answer.citations] == [(1, QUOTES[2]), (2, QUOTES[0])]
    assert all(c.record.abstract[c.start : c.end] == c.quote for c in answer.citations)


@pytest.mark.parametrize(
    "draft",
    ["SOREL is stochastic [1].", "SOREL is stochastic. [1].", "SOREL is stochastic. [1]"],
)
def test_a_marker_stands_before_one_full_stop(draft: str) -> None:
    assert cited(draft).text == "SOREL is stochastic [1]."


def test_a_marker_that_adds_no_support_is_left_out() -> None:
    draft = (
        "SOREL is a stochastic algorithm [1][3]. "
        "It converges in 40 rounds, reducing squashing [2][3]."
    )
    answer = cited(draft)
    assert answer.text == (
        "SOREL is a stochastic algorithm [1]. It converges in 40 rounds, reducing squashing [2][3]."
    )


def test_an_unknown_marker_is_never_shown_and_warned_of() -> None:
    answer = cited("SOREL is a stochastic algorithm [7][1].")
    assert answer.text == "SOREL is a stochastic algorithm [1]."
    assert any("1 citation marker" in warning for warning in answer.warnings)


def test_a_sentence_without_a_marker_is_given_the_evidence_that_covers_it() -> None:
    answer = cited("Rewiring bottlenecks reduces squashing.")
    assert [c.quote for c in answer.citations] == [QUOTES[2]]


def test_a_sentence_that_nothing_supports_is_left_out_with_a_warning() -> None:
    answer = cited("SOREL is stochastic [1]. Paris is the capital of France.")
    assert answer.text == "SOREL is stochastic [1]."
    assert any("left out 1 sentence" in warning for warning in answer.warnings)


def test_a_marker_on_the_wrong_evidence_is_moved_to_the_one_that_says_it() -> None:
    answer = cited("Rewiring the bottlenecks reduces squashing [1].")
    assert [c.quote for c in answer.citations] == [QUOTES[2]]


def test_a_marker_that_is_moved_is_warned_of_and_one_that_is_found_is_not() -> None:
    assert "moved" in cited("Rewiring the bottlenecks reduces squashing [1].").warnings[0]
    assert cited("Rewiring the bottlenecks reduces squashing.").warnings == ()


def test_two_sentences_of_an_abstract_together_support_what_neither_does() -> None:
    answer = cited(
        "SOREL converges in 40 rounds on graphs, as rewiring bottlenecks reduces squashing."
    )
    assert answer.text.endswith("squashing [1][2].")
    assert {c.quote for c in answer.citations} == set(QUOTES[1:])
    assert answer.claims[0].support > 0.8


@pytest.mark.parametrize(
    ("sentence", "fault"),
    [
        ("It converges in 50 rounds on graphs [2].", "the number 50 is not in the quote"),
        ("Rewiring the bottlenecks does not reduce squashing [3].", "not"),
        ("The DORIC algorithm is stochastic, for spectral risks [1].", "the name DORIC"),
        ("Paris is the capital [1].", "no retrieved sentence says it"),
    ],
)
def test_a_warning_says_why_a_sentence_was_left_out(sentence: str, fault: str) -> None:
    answer = cited(f"SOREL is stochastic [1]. {sentence}")
    assert answer.text == "SOREL is stochastic [1]."
    assert fault in answer.warnings[0]


def test_an_unsupported_sentence_is_kept_by_choice_but_marked() -> None:
    answer = cited("SOREL is stochastic [1]. Paris is the capital [2].", keep_unsupported=True)
    assert answer.text == "SOREL is stochastic [1]. Paris is the capital."
    assert [(c.supported, c.markers) for c in answer.claims] == [(True, (1,)), (False, ())]
    assert "kept without markers 1 sentence" in answer.warnings[0]


@pytest.mark.parametrize(
    "noise", ["Here are the relevant papers:", "Yes.", "In summary:", "Sources: [1]"]
)
def test_a_sentence_without_a_claim_is_left_out_without_noise(noise: str) -> None:
    answer = cited(f"{noise}\n\nSOREL is stochastic [1].", keep_unsupported=True)
    assert (answer.text, answer.warnings) == ("SOREL is stochastic [1].", ())


def test_connectives_are_no_claims() -> None:
    answer = cited("In contrast, however, SOREL is stochastic [1].")
    assert [c.support for c in answer.claims] == [1.0]


def test_a_list_keeps_an_item_a_line() -> None:
    draft = (
        "These fit:\n1. SOREL is stochastic [1]\n2. Paris is nice [2]\n"
        "3. Rewiring the bottlenecks reduces squashing [3].\n\nIt converges in 40 rounds [2]."
    )
    assert cited(draft).text == (
        "- SOREL is stochastic [1].\n- Rewiring the bottlenecks reduces squashing [2].\n\n"
        "It converges in 40 rounds [3]."
    )


def test_a_sentence_in_another_language_keeps_its_marker_unless_a_number_is_wrong() -> None:
    assert cited("它在40轮内收敛[2]。").text == "它在40轮内收敛 [1]。"
    assert cited("它在50轮内收敛[2]。").text == ""
    assert cited("SOREL 是一种随机算法。").citations[0].quote == QUOTES[0]
    assert cited("Il converge en 40 tours sur les graphes [2].").claims[0].markers == (1,)


SENTENCES = st.sampled_from(
    [
        "SOREL is a stochastic algorithm [1].", "It converges in 40 rounds [3][2].",
        "It converges in 50 rounds [2].", "Rewiring the bottlenecks reduces squashing.",
        "Here they are:", "Paris is the capital [9].",
        "\n- SOREL is stochastic [2]\n- Risks [1]\n\n",
    ]
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(SENTENCES, max_size=7), st.booleans())
def test_more_statements_never_change_the_text_of_the_first(drafts: list[str], keep: bool) -> None:
    statements = parse(" ".join(drafts)).statements
    verifier = Verifier()
    whole = cite(statements, EVIDENCE, verifier, keep)
    for end in range(len(statements)):
        part = cite(statements[:end], EVIDENCE, verifier, keep)
        assert whole.text.startswith(part.text)
        assert whole.claims[: len(part.claims)] == part.claims


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("ab [1]9,-.【】\n"), max_size=60), st.booleans())
def test_any_draft_gives_only_markers_that_have_a_citation(draft: str, keep: bool) -> None:
    answer = cited(draft, keep_unsupported=keep)
    assert [c.marker for c in answer.citations] == list(range(1, len(answer.citations) + 1))
    assert {n for claim in answer.claims for n in claim.markers} == {
        c.marker for c in answer.citations
    }
    place = 0
    for claim in answer.claims:
        place = answer.text.index(claim.text, place) + len(claim.text)
