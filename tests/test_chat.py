"""ui.chat: one question of the conversation, with everything that can go wrong."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Unpack

import pytest

from rag.answers import Answer
from rag.errors import LLMError
from rag.filters import Criteria, Filters
from ui.chat import Turn, Turns, history, messages, respond, stopped
from ui.filtering import BOXES, criteria


@dataclass
class Scripted:
    """Streams the given snapshots, then raises `error` if there is one."""

    snapshots: Sequence[Answer] = ()
    error: Exception | None = None
    asked: list[tuple[str, list[Mapping[str, str]]]] = field(default_factory=list)
    filtered: list[Criteria] = field(default_factory=list)
    closed: int = 0

    def stream(
        self,
        question: str,
        history: Sequence[Mapping[str, str]] = (),
        **filters: Unpack[Criteria],
    ) -> Iterator[Answer]:
        Filters.of(**filters)  # as the real one: raises UsageError
        self.asked.append((question, list(history)))
        self.filtered.append(filters)
        try:
            yield from self.snapshots
            if self.error:
                raise self.error
        finally:
            self.closed += 1


def snapshot(text: str, stage: str = "done") -> Answer:
    return Answer("q", "q", text, stage=stage)  # type: ignore[arg-type]


def last(turns: Iterator[Turns]) -> Turns:
    return list(turns)[-1]


def test_an_answer_grows_and_ends_complete() -> None:
    assistant = Scripted([snapshot("", "reading"), snapshot("A", "writing"), snapshot("A b.")])
    seen = list(respond(assistant, " what? ", ()))
    assert seen[0] == (Turn("what?"),)
    assert [t[-1].answer.text for t in seen[1:] if t[-1].answer] == ["", "A", "A b."]
    assert assistant.closed == 1


def test_the_last_snapshot_is_shown_however_fast_they_come() -> None:
    words = [snapshot("x" * n, "writing") for n in range(1, 500)]
    seen = list(respond(Scripted(words), "q", ()))
    assert len(seen) < 100  # a page is not redrawn for each of them
    assert seen[-1][-1].answer == words[-1]


def test_a_known_error_becomes_its_line() -> None:
    turns = last(respond(Scripted(error=LLMError("the LLM is away: start it")), "q", ()))
    assert turns[-1].error == "the LLM is away: start it"
    assert "the LLM is away" in messages(turns)[-1]["content"]


def test_an_unknown_error_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        turns = last(respond(Scripted(error=ValueError("secret detail")), "q", ()))
    assert "secret detail" not in messages(turns)[-1]["content"]
    assert "terminal" in turns[-1].error
    assert "secret detail" in caplog.text


def test_an_assistant_that_fails_at_once_is_caught() -> None:
    class Broken:
        def stream(self, question: str, history: object = (), **_: object) -> Iterator[Answer]:
            raise RuntimeError("no")

    assert last(respond(Broken(), "q", ()))[-1].error


def test_what_was_found_before_a_failure_stays() -> None:
    assistant = Scripted([snapshot("Half an answer", "writing")], LLMError("gone: ask again"))
    content = messages(last(respond(assistant, "q", ())))[-1]["content"]
    assert "gone: ask again" in content
    assert "Half an answer" in content
    assert "aq-stage" not in content


def test_closing_stops_the_llm() -> None:
    endless = Scripted(snapshots=itertools.repeat(snapshot("A", "writing")))  # type: ignore[arg-type]
    answering = respond(endless, "q", ())
    next(answering), next(answering)
    answering.close()
    assert endless.closed == 1


def test_a_blank_question_asks_nothing() -> None:
    assistant, before = Scripted(), (Turn("q", snapshot("A.")),)
    assert list(respond(assistant, " \n", before)) == [before]
    assert assistant.asked == []


def test_the_history_is_plain_text_of_answered_turns() -> None:
    turns = (
        Turn("one", snapshot("A <b> [1].")),
        Turn("two", error="it failed"),
        Turn("three", snapshot("Half", "writing"), stopped=True),
        Turn("four", stopped=True),
    )
    assistant = Scripted([snapshot("B.")])
    list(respond(assistant, "five", turns))
    expected = [
        {"role": "user", "content": "one"}, {"role": "assistant", "content": "A <b> [1]."},
        {"role": "user", "content": "three"}, {"role": "assistant", "content": "Half"},
    ]  # fmt: skip
    assert assistant.asked == [("five", expected)]
    assert history(()) == []


def test_stop_ends_the_last_turn_as_it_is() -> None:
    writing, done = Turn("q", snapshot("Half", "writing")), Turn("p", snapshot("A."))
    assert stopped((done, writing)) == (done, Turn("q", writing.answer, stopped=True))
    assert stopped((done,)) == (done,)
    assert stopped(()) == ()
    assert "Stopped" in messages(stopped((Turn("q"),)))[-1]["content"]


def test_messages_alternate_and_number_their_turns() -> None:
    shown = messages((Turn("one", snapshot("A.")), Turn("two")))
    assert [m["role"] for m in shown] == ["user", "assistant"] * 2
    assert "Searching" in shown[-1]["content"]


# --- filters ---------------------------------------------------------------------------------


def test_filled_boxes_become_the_filters_of_the_assistant() -> None:
    assert [box.field for box in BOXES] == list(Criteria.__annotations__)
    given = criteria((" 2019-2021 ", "ICLR", "", "  ", "papers.ris"))
    assert given == {"year": "2019-2021", "venue": "ICLR", "source": "papers.ris"}
    assert criteria(("",) * len(BOXES)) == criteria((None,) * len(BOXES)) == {}


def test_an_answer_says_what_it_was_restricted_to() -> None:
    assistant = Scripted([snapshot("A.")])
    free = last(respond(assistant, "all?", ()))
    turns = last(respond(assistant, "some?", free, year="2019-2021", author="Smith"))
    assert assistant.filtered == [{}, {"year": "2019-2021", "author": "Smith"}]
    asked = [message["content"] for message in messages(turns) if message["role"] == "user"]
    assert "Only:" not in asked[0]
    assert "Only: year 2019-2021, author Smith" in asked[1]


def test_a_bad_filter_is_told_like_other_errors() -> None:
    assistant = Scripted([snapshot("A.")])
    turns = last(respond(assistant, "q", (), year="20x"))
    assert "write 2021, 2019-2021" in turns[-1].error
    assert assistant.asked == []
    assert "aq-error" in messages(turns)[-1]["content"]
    assert last(respond(assistant, "q", turns, year="2020"))[-1].answer is not None
