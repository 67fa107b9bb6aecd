from __future__ import annotations

import pytest

from rag.conversation import context_of, faithful, with_topic
from rag.errors import UsageError

HISTORY = (
    {"role": "user", "content": "What does WALoss do?"},
    {"role": "assistant", "content": "It aligns the Hamiltonians [1]."},
)


def test_a_first_question_leans_on_nothing() -> None:
    assert context_of("which data did they use?", ()) is None


@pytest.mark.parametrize(
    "question",
    [
        "which data did they train with?",
        "and for the gradient one?",
        "why?",
        "does it also work on video?",
        "Does SVDQuant do that too?",
        "what does the first of these do exactly?",
        "how many parameters?",
        "thanks! And does the second one need labels?",
    ],
)
def test_a_follow_up_leans_on_the_last_questions_and_the_last_answer(question: str) -> None:
    context = context_of(question, HISTORY)
    assert context is not None
    assert context.text == "What does WALoss do? It aligns the Hamiltonians."
    assert with_topic(question, context) == f"{question} (WALoss)"


@pytest.mark.parametrize(
    "question",
    [
        "Which algorithm minimises spectral risks?",
        "What is SVDQuant, and how does it work?",
        "Is it ever possible to prune a network without any data?",
        "What did the central bank decide about interest rates this month?",
        "Who are the authors of the SOREL paper?",
        "Is there a paper on graph rewiring?",
    ],
)
def test_a_question_that_stands_by_itself_leans_on_nothing(question: str) -> None:
    assert context_of(question, HISTORY) is None


@pytest.mark.parametrize(
    ("question", "language"),
    [("它快吗？", "zh"), ("¿y en vídeo?", "es"), ("Funktioniert das auch für Videos?", "de")],
)
def test_follow_ups_are_known_in_other_languages(question: str, language: str) -> None:
    assert context_of(question, HISTORY, language)


def test_of_a_long_history_the_end_counts_and_turns_are_cut() -> None:
    history = [{"role": role, "content": "word " * 5000} for role in ("user", "assistant")] * 30
    context = context_of("why?", history)
    assert context is not None
    assert len(context.text) < 2000


@pytest.mark.parametrize(
    ("rewriting", "good"),
    [
        ("Which data did they train WALoss with?", True),
        ("Which data did they train with?", False),  # says no more than the question
        ("WALoss was trained on PubChemQH.", False),  # an answer
        ("Which data did they train WALoss and the lunar lander simulator with?", False),
        ("What does WALoss do?", False),  # another question
        ("", False),
    ],
)
def test_a_rewriting_must_say_what_the_question_says_of_what_was_said(
    rewriting: str, good: bool
) -> None:
    question = "which data did they train with?"
    context = context_of(question, HISTORY)
    assert context is not None
    assert faithful(rewriting, question, context) is good


@pytest.mark.parametrize("turn", [{"role": "system", "content": "x"}, {"role": "user"}, "text"])
def test_a_malformed_history_is_refused_by_entry(turn: object) -> None:
    with pytest.raises(UsageError, match="history entry 3"):
        context_of("why?", [*HISTORY, turn])  # type: ignore[list-item]
