"""Conversations: whether a question leans on earlier turns, and what it means by itself.

A first question, and one that stands by itself, is never touched. A follow-up is searched
together with the last turns, and shown as a standalone question: the LLM's rewriting when it
keeps to what was said, else the question with its topic behind it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag.errors import UsageError
from rag.languages import ENGLISH
from rag.questions import names_in
from rag.words import terms

Turn = Mapping[str, str]

# Words that point back at something said before, and openings that go on from it.
_POINTS_BACK = re.compile(
    r"\b(?:it|its|they|them|their|theirs|he|she|his|her)\b|"
    r"\b(?:this|that|these|those|the same|the (?:first|second|third|last|former|latter|other))"
    r"(?:\W*$|\W+(?:ones?|two|of (?:them|these|those)|papers?|works?|study|methods?|models?|"
    r"approach|framework|technique|loss|losses|datasets?|benchmarks?|attack|network|results?|"
    r"estimate|estimates?|head|module|claim|number|figure|comparison)\b)|"
    r"\b(?:that|this|these|those) (?:\w+ )?(?:do|does|is|are|was|were|work|mean|help|compare)\b|"
    r"^\W*(?:do|does|did|is|are|was|were|can|could|has|have|would|will) "
    r"(?:that|this|these|those)\b|"
    r"\b(?:compare|combine) (?:this|that|these|those)\b|"
    r"\bthe (?:authors?|paper|abstract|benchmark|datasets?|data|code|model|method|approach|"
    r"framework|algorithm)\b(?! (?:of|on|about|for|that|by|in|from|with|called|named|to))",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"^\W*(?:and|but|so|also|then|what about|how about|what else|anything else|which ones?|"
    r"why(?: not| so| is (?:that|this|it))?(?=\W*$)|how so|how come|really|more|tell me more|go on|"
    r"continue|explain|elaborate)\b",
    re.IGNORECASE,
)
_LIKEWISE = re.compile(r"\b(?:too|as well|also|either|instead|likewise)\W*$", re.IGNORECASE)
# The same in the other languages that questions are read in.
_ELSEWHERE = re.compile(
    r"它|他们|她们|[这那](?:个|些|篇|种)?(?:方法|模型|论文|框架|数据集?|工作|结果)|该(?:方法|论文|模型|框架)|それ|その|これ|この|そこ|彼ら|"
    r"그것|그들|이것|그 |이 (?:방법|모델|논문)|"
    r"\b(?:eso|esto|ese|esa|ellos|ellas|lo mismo|su|sus|celui|celle|ceux|cela|ça|leur|leurs|ils?|"
    r"elles?|dies(?:e[rs]?)?|sie|er|ihre?|davon|dabei|damit|dazu|das(?= auch| noch| \w+\W*$))\b|"
    r"^\W*(?:(?:y|et|und)\b|那么?|然后|还有|では|それでは|그럼|그리고|и )|"
    r"(?:에서|은|는|이|가)?도 ",
    re.IGNORECASE,
)
# What a word points at stands in the question itself when so much was named before it, or when
# the question is as long as this many words.
_NAMED_BEFORE, _LONG_QUESTION = 3, 14
_EXPLETIVE = re.compile(
    r"\bit (?:\w+ )?(?:possible|true|worth|necessary|known|clear|better to)\b", re.IGNORECASE
)
# Points at something that a rewriting names.
_ORDINAL = re.compile(r"\b(?:first|second|third|last|former|latter|other|same)\b", re.IGNORECASE)
_AMOUNT = re.compile(r"\bhow (?:many|much)\b", re.IGNORECASE)
_MARKERS = re.compile(r"\s*\[\d+\]")
_TURNS, _TURN_CHARACTERS = 3, 400
_LONGEST_REWRITING = 300


@dataclass(frozen=True, slots=True)
class Context:
    """What of a conversation a follow-up leans on: its last questions and its last answer."""

    questions: tuple[str, ...]
    answer: str = ""

    @property
    def topic(self) -> str:
        """What was named last, in the questions if anywhere there; else the last question."""
        for said in (*reversed(self.questions), self.answer):
            if names := names_in(said):
                return ", ".join(names[:2])
        return self.questions[-1].rstrip(" ?？")

    @property
    def text(self) -> str:
        """All of it, oldest first."""
        return " ".join(part for part in (*self.questions, self.answer) if part)


def context_of(question: str, history: Sequence[Turn], language: str = ENGLISH) -> Context | None:
    """What a question leans on; None when it is the first, or stands by itself.

    `history` holds {"role": "user" | "assistant", "content": text}, oldest first; of a long
    one the last turns count, each cut to some 400 characters. Raises UsageError for a history
    in another form.
    """
    said, answered = _split(history)
    if not said or not _leans(question, language):
        return None
    return Context(tuple(said[-_TURNS:]), answered[-1] if answered else "")


def with_topic(question: str, context: Context) -> str:
    """A follow-up as a standalone question without an LLM."""
    return f"{question} ({context.topic})"


def faithful(rewriting: str, question: str, context: Context) -> bool:
    """Whether an LLM's rewriting says what the follow-up says, of what the conversation is about.

    It is a question, keeps most of the follow-up's words, takes something from the
    conversation, and adds little that stands in neither.
    """
    new = set(terms(rewriting))
    own, known = set(terms(_ORDINAL.sub("", question))), set(terms(context.text))
    added = new - own
    return (
        rewriting.rstrip().endswith(("?", "？", "؟"))
        and len(rewriting) <= _LONGEST_REWRITING
        and (2 * len(new & own) > len(own) or not own)
        and bool(added & known)
        and len(added - known) <= 2
    )


def _split(history: Sequence[Turn]) -> tuple[list[str], list[str]]:
    said: list[str] = []
    answered: list[str] = []
    for place, turn in enumerate(history, start=1):
        role, content = _fields(turn, place)
        if content.strip():
            content = content.encode("utf-8", "replace").decode()  # half a surrogate pair
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


def _leans(question: str, language: str) -> bool:
    if language != ENGLISH and _ELSEWHERE.search(question):
        return True
    if _GOES_ON.search(question) or _LIKEWISE.search(question):
        return True
    if len(terms(_AMOUNT.sub("", question))) <= 1 and not names_in(question):
        return True
    points = _POINTS_BACK.search(_EXPLETIVE.sub("", question))
    if not points or len(question.split()) > _LONG_QUESTION:
        return False
    # "What is SVDQuant, and how does it work?" points at what it names itself.
    before = question[: points.start()]
    return not names_in(before) and len(terms(before)) < _NAMED_BEFORE
