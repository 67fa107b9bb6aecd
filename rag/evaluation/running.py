"""The run over labelled questions: each is asked and scored, and the outcome kept at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from rag.answers import Answer
from rag.errors import UsageError
from rag.evaluation.collections import Searcher
from rag.evaluation.outcomes import FollowUp, Outcome, append, read_outcomes, score
from rag.evaluation.questions import Question

_FOLLOW_UP_DEPTH = 5


class Asker(Protocol):
    """What answers the questions; Assistant is one, and any other engine that gives Answers.

    What an engine cannot tell it leaves empty in the Answer, and the metrics that need it
    have no value.
    """

    @property
    def llm_name(self) -> str: ...

    def ask(self, question: str, history: Sequence[Mapping[str, str]] = ()) -> Answer: ...


def run_questions(
    asker: Asker,
    questions: Sequence[Question],
    out: Path | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    searcher: Searcher | None = None,
) -> list[Outcome]:
    """Ask every question and score its answer, in order.

    Each outcome is appended to `out` at once, and questions that `out` already holds are not
    asked again unless their labels changed, so an interrupted run goes on where it stopped.
    `progress` gets the number of questions done, of all, and the id of the next. `searcher`
    searches for follow-ups and for their rewrites by hand. Raises UsageError when `out` is of
    another LLM, and whatever asking raises.
    """
    done = _done(out, asker.llm_name) if out else {}
    outcomes = []
    for number, question in enumerate(questions):
        if progress:
            progress(number, len(questions), question.id)
        outcome = done.get(question.id)
        if outcome is None or outcome.labels != question.labels:
            answer = asker.ask(question.question, history=question.history)
            follow_up = _follow_up(question, answer, searcher) if searcher else None
            outcome = score(question, answer, asker.llm_name, follow_up)
            if out:
                append(out, outcome)
        outcomes.append(outcome)
    if progress:
        progress(len(questions), len(questions), "")
    return outcomes


def _follow_up(question: Question, answer: Answer, searcher: Searcher) -> FollowUp | None:
    if not question.standalone or not question.gold:
        return None
    return FollowUp(
        searched=searcher.search(answer.standalone_question, k=_FOLLOW_UP_DEPTH),
        standalone=searcher.search(question.standalone, k=_FOLLOW_UP_DEPTH),
    )


def _done(path: Path, llm: str) -> dict[str, Outcome]:
    outcomes = read_outcomes(path) if path.exists() else {}
    for outcome in outcomes.values():
        if outcome.llm != llm:
            raise UsageError(f"{path} holds answers of {outcome.llm}, not {llm}: name another file")
    return outcomes
