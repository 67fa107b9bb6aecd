from __future__ import annotations

import pytest

from rag.conversation import in_context
from rag.errors import UsageError

HISTORY = (
    {"role": "user", "content": "What does WALoss do?"},
    {"role": "assistant", "content": "It aligns the Hamiltonians [1]."},
)


def test_a_first_question_is_searched_as_it_is() -> None:
    assert in_context("which data did they use?", ()).standalone == "which data did they use?"


@pytest.mark.parametrize(
    "question", ["which data did they train with?", "and for the gradient one?", "why?"]
)
def test_a_follow_up_is_searched_with_what_it_leans_on(question: str) -> None:
    asked = in_context(question, HISTORY)
    assert asked.standalone == f"What does WALoss do? It aligns the Hamiltonians. {question}"
    assert (asked.question, asked.earlier) == (question, "What does WALoss do?")


def test_a_standalone_question_is_not_rewritten() -> None:
    question = "Which algorithm minimises spectral risks?"
    assert in_context(question, HISTORY).standalone == question


def test_long_turns_are_cut_so_that_a_follow_up_can_be_searched() -> None:
    history = [{"role": role, "content": "word " * 5000} for role in ("user", "assistant")] * 3
    assert len(in_context("why?", history).standalone) < 2000


@pytest.mark.parametrize("turn", [{"role": "system", "content": "x"}, {"role": "user"}, "text"])
def test_a_malformed_history_is_refused_by_entry(turn: object) -> None:
    with pytest.raises(UsageError, match="history entry 3"):
        in_context("why?", [*HISTORY, turn])  # type: ignore[list-item]
