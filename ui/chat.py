"""The conversation: turns, and the generator that answers the next question.

Nothing here knows Gradio or keeps state: a chat's turns belong to its caller, so two
browser sessions share nothing. Nothing here raises either, because a handler that raises
leaves a Gradio page with its question box locked: errors become part of the turn.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Unpack

from rag.answers import Answer
from rag.errors import RagError
from rag.filters import Criteria
from ui.filtering import in_words
from ui.render import answer_html, error_html, question_html, waiting_html

log = logging.getLogger(__name__)

_UNEXPECTED = "Something went wrong with this question; the terminal shows the details."
_PAUSE = 0.05  # seconds between two snapshots shown; a page cannot usefully redraw faster


class Answering(Protocol):
    """What the chat needs of an assistant."""

    def stream(
        self,
        question: str,
        history: Sequence[Mapping[str, str]] = (),
        **filters: Unpack[Criteria],
    ) -> Iterator[Answer]:
        """Growing snapshots, the last complete; closing the iterator stops the LLM."""
        ...


@dataclass(frozen=True, slots=True)
class Turn:
    """One question and what became of it.

    `answer` is the latest snapshot, None before the first; `error` is a line for the
    reader when the question failed; `stopped` when the reader ended it early; `only` are
    the filters it was asked with.
    """

    question: str
    answer: Answer | None = None
    error: str = ""
    stopped: bool = False
    only: Criteria = field(default_factory=Criteria)


Turns = tuple[Turn, ...]


def respond(
    assistant: Answering, question: str, turns: Turns, **filters: Unpack[Criteria]
) -> Generator[Turns, None, None]:
    """The turns with one more, again and again while its answer grows.

    Closing the generator closes the assistant's stream, which stops the LLM.
    """
    question = question.strip()
    if not question:
        yield turns
        return
    turn = Turn(question, only=filters)
    yield (*turns, turn)
    stream: Iterator[Answer] = iter(())
    try:
        stream = assistant.stream(question, history(turns), **filters)
        for grown in _paced(turn, stream):
            turn = grown
            yield (*turns, turn)
    except RagError as error:
        yield (*turns, replace(turn, error=str(error)))
    except Exception:  # the boundary to the page: anything else would lock its question box
        log.exception("the question %r failed", question[:200])
        yield (*turns, replace(turn, error=_UNEXPECTED))
    finally:
        if isinstance(stream, Generator):
            stream.close()


def stopped(turns: Turns) -> Turns:
    """The turns after the reader pressed Stop: the last one ends as it is."""
    if not turns or turns[-1].error or _finished(turns[-1]):
        return turns
    return (*turns[:-1], replace(turns[-1], stopped=True))


def history(turns: Turns) -> list[dict[str, str]]:
    """The conversation as the assistant takes it: plain text, failed turns left out."""
    items: list[dict[str, str]] = []
    for turn in turns:
        if turn.answer is not None and turn.answer.text and not turn.error:
            items.append({"role": "user", "content": turn.question})
            items.append({"role": "assistant", "content": turn.answer.text})
    return items


def messages(turns: Turns) -> list[dict[str, Any]]:
    """The turns as Gradio's chat messages."""
    shown: list[dict[str, Any]] = []
    for number, turn in enumerate(turns, start=1):
        shown.append({"role": "user", "content": _asked(turn)})
        shown.append({"role": "assistant", "content": _reply(turn, f"t{number}")})
    return shown


def _asked(turn: Turn) -> str:
    return question_html(turn.question, in_words(turn.only))


def _reply(turn: Turn, key: str) -> str:
    if turn.error:
        # What was found before the failure is still worth reading.
        rest = answer_html(replace(turn.answer, stage="done"), key) if turn.answer else ""
        return f"{error_html(turn.error)}\n\n{rest}"
    if turn.answer is not None:
        return answer_html(turn.answer, key, turn.stopped)
    return error_html("Stopped before anything was found.") if turn.stopped else waiting_html()


def _paced(turn: Turn, stream: Iterator[Answer]) -> Iterator[Turn]:
    """A turn for each snapshot worth showing: a new stage, the last one, or one in time."""
    shown_at, stage, shown = 0.0, "", turn
    for snapshot in stream:
        turn = replace(turn, answer=snapshot)
        if snapshot.stage != stage or time.monotonic() - shown_at >= _PAUSE:
            shown_at, stage, shown = time.monotonic(), snapshot.stage, turn
            yield turn
    if turn is not shown:
        yield turn


def _finished(turn: Turn) -> bool:
    return turn.answer is not None and turn.answer.stage == "done"
