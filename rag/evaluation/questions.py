"""Labelled questions, from a JSONL file: one JSON object a line.

id           any text, different for each question
question     what is asked
type         what kind of question; metrics are given by type          (default: "question")
gold         ids of the abstracts that answer it; empty or absent when none does
key_facts    strings that a right answer holds; variants of one are joined by |
evidence     the sentences of the gold abstracts that state the answer
answer       a right answer, for people to read
history      earlier {"role", "content"} turns of a follow-up
standalone   a follow-up, rewritten by hand so that it stands by itself
draft        true for a question that nobody has checked yet
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag.errors import UsageError
from rag.evaluation.jsonl import json_lines

_LISTS = ("gold", "key_facts", "evidence", "history")
_TEXTS = ("type", "answer", "standalone")


@dataclass(frozen=True, slots=True)
class Question:
    """A labelled question. `gold` is empty when the abstracts do not answer it."""

    id: str
    type: str
    question: str
    gold: tuple[str, ...] = ()
    key_facts: tuple[str, ...] = ()
    history: tuple[Mapping[str, str], ...] = ()
    evidence: tuple[str, ...] = ()
    standalone: str = ""
    answer: str = ""
    draft: bool = False

    @property
    def labels(self) -> str:
        """A digest of all that the scores of an answer depend on."""
        parts = (
            self.type, self.question, self.gold, self.key_facts, self.evidence, self.standalone,
            [sorted(turn.items()) for turn in self.history],
        )  # fmt: skip
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def read_questions(
    path: Path, only: Sequence[str] = (), limit: int | None = None
) -> list[Question]:
    """The questions of a JSONL file, those of the types `only` when given, the first `limit`.

    Raises UsageError naming the line that is no question, or a type that no question has.
    """
    questions: dict[str, Question] = {}
    for number, row in json_lines(path):
        question = _question(path, number, row)
        if question.id in questions:
            raise UsageError(f"{path}, line {number}: id {question.id!r} was used before")
        questions[question.id] = question
    if not questions:
        raise UsageError(f"{path} holds no questions: give one JSON object a line")
    return of_types(list(questions.values()), only, path)[:limit]


def of_types(questions: Sequence[Any], only: Sequence[str], path: Path) -> list[Any]:
    """Those whose `type` is one of `only`, all when it is empty.

    Raises UsageError for a type that is not in the file `path` they are from.
    """
    types = sorted({question.type for question in questions})
    for wanted in only:
        if wanted not in types:
            raise UsageError(f"no question of type {wanted!r} in {path}: use {', '.join(types)}")
    return [question for question in questions if not only or question.type in only]


def _question(path: Path, number: int, row: Mapping[str, Any]) -> Question:
    where = f"{path}, line {number}"
    for name in ("id", "question"):
        if not isinstance(row.get(name), str) or not row[name].strip():
            raise UsageError(f"{where}: {name} is missing or no text")
    for name in _LISTS:
        if not isinstance(row.get(name, []), list):
            raise UsageError(f"{where}: {name} is no list")
    for name in _LISTS[:-1]:
        if not all(isinstance(item, str) for item in row.get(name, [])):
            raise UsageError(f"{where}: {name} holds something that is no text")
    if not all(isinstance(turn, dict) for turn in row.get("history", [])):
        raise UsageError(f'{where}: history holds something that is no {{"role", "content"}}')
    for name in _TEXTS:
        if not isinstance(row.get(name, ""), str):
            raise UsageError(f"{where}: {name} is no text")
    return Question(
        id=row["id"],
        type=row.get("type", "question"),
        question=row["question"],
        gold=tuple(row.get("gold", ())),
        key_facts=tuple(row.get("key_facts", ())),
        history=tuple(row.get("history", ())),
        evidence=tuple(row.get("evidence", ())),
        standalone=row.get("standalone", ""),
        answer=row.get("answer", ""),
        draft=bool(row.get("draft", False)),
    )
