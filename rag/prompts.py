"""Every word sent to a model, and the form its answer must take."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag.answers import Evidence
from rag.conversation import Asked

REFUSAL = "NOT FOUND"

# Constant, so that a local model keeps it evaluated between questions.
SYSTEM = (
    "You answer questions about research papers from numbered sentences of their abstracts. "
    "You use only what these sentences state."
)
CHECK = "Do the sentences state the answer to the question, yes or no?"
ANSWER = (
    "Answer in one or two short sentences. End each with the number of the sentence that "
    "states it, like [2]."
)
JUDGE = "Is this paper about what the question describes, yes or no?"
ANSWER_OR_REFUSE = f"{ANSWER} If none states the answer, reply {REFUSAL}."


def user_message(asked: Asked, evidence: Sequence[Evidence], task: str) -> str:
    """The user's message: numbered evidence, one line each, then the question and the task.

    A follow-up comes with the question before it, so that "it" can be understood. Messages
    that differ in the task alone share all that comes before it.
    """
    lines = [
        f"[{number}] {' '.join(item.quote.split())}"
        for number, item in enumerate(evidence, start=1)
    ]
    earlier = [f"Earlier question: {asked.earlier}"] if asked.earlier else []
    question = f"Question: {' '.join(asked.question.split())}"
    return "\n".join([*lines, "", *earlier, question, task])


def answer_grammar(evidence: int) -> str:
    """GBNF of a well-formed answer: one to three sentences that each end in one or two
    markers between 1 and `evidence`."""
    marks = " | ".join(f'"[{number}]"' for number in range(1, evidence + 1))
    return (
        'root ::= sentence (" " sentence){0,2}\n'
        'sentence ::= [^ \\n\\[\\]] [^\\n\\[\\]]{10,360} " " mark mark? "."\n'
        f"mark ::= {marks}\n"
    )


_REFUSES = re.compile(r"^\W*not[ _]found\b", re.IGNORECASE)


def is_refusal(draft: str) -> bool:
    """Whether a draft says that the evidence does not hold the answer."""
    return bool(_REFUSES.match(draft))


def may_become_refusal(draft: str) -> bool:
    """Whether an unfinished draft could still turn out to be a refusal."""
    start = draft.strip().upper()
    return REFUSAL.startswith(start[: len(REFUSAL)])
