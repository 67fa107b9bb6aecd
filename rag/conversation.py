"""Follow-ups: what a question that leans on earlier turns is searched as."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag.errors import UsageError
from rag.words import terms

Turn = Mapping[str, str]

# Words that point back at something said before, and openings that go on from it.
_POINTS_BACK = re.compile(
    r"\b(?:it|its|they|them|their|theirs|that|this|these|those|he|she|his|her|"
    r"the (?:first|second|third|last|former|latter|other|same)|ones?)\b",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"^\W*(?:and|but|so|also|then|what about|how about|which ones?|why|how so)\b", re.IGNORECASE
)
# "that" and "this" in a question this long rarely point outside it.
_LONG_QUESTION = 14
_MARKERS = re.compile(r"\s*\[\d+\]")
_TURNS, _TURN_CHARACTERS = 3, 400


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and how it is to be taken.

    standalone:    what it is searched as
    earlier:       the question before it when it leans on that
    seeks_papers:  whether it looks for papers rather than for one detail
    """

    question: str
    standalone: str
    earlier: str = ""
    seeks_papers: bool = False


def in_context(question: str, history: Sequence[Turn]) -> Asked:
    """A question together with what it needs of the conversation before it.

    `history` holds {"role": "user" | "assistant", "content": text}, oldest first. A first
    question, and one that stands by itself, is searched as it is. A follow-up is searched
    together with the last questions and the last answer. Raises UsageError for a history in
    another form.
    """
    said, answered = _split(history)
    if not said or not _leans(question):
        return Asked(question, question)
    answer = answered[-1] if answered else ""
    parts = [*said[-_TURNS:], answer, question]
    return Asked(question, " ".join(part for part in parts if part), earlier=said[-1])


def _split(history: Sequence[Turn]) -> tuple[list[str], list[str]]:
    said: list[str] = []
    answered: list[str] = []
    for place, turn in enumerate(history, start=1):
        role, content = _fields(turn, place)
        if content.strip():
            line = " ".join(_MARKERS.sub("", content).split())[:_TURN_CHARACTERS]
            (said if role == "user" else answered).append(line)
    return said, answered


def _fields(turn: Turn, place: int) -> tuple[str, str]:
    role, content = (turn.get("role"), turn.get("content")) if isinstance(turn, Mapping) else (0, 0)
    if role not in ("user", "assistant") or not isinstance(content, str):
        raise UsageError(
            f'history entry {place} is not {{"role": "user" or "assistant", "content": "text"}}'
        )
    return role, content


def _leans(question: str) -> bool:
    words = question.split()
    if _GOES_ON.search(question) or len(terms(question)) <= 1:
        return True
    return len(words) <= _LONG_QUESTION and bool(_POINTS_BACK.search(question))
