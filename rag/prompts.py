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
    "Use only what the sentences state. End every sentence of your answer with the number of "
    "the sentence that states it, like [2]. If the sentences do not state the answer, reply "
    f"exactly {REFUSAL}."
)


def user_message(asked: Asked, evidence: Sequence[Evidence]) -> str:
    """The user's message: numbered evidence, one line each, then the question.

    A follow-up comes with the question before it, so that "it" can be understood.
    """
    lines = [
        f"[{number}] {' '.join(item.quote.split())}"
        for number, item in enumerate(evidence, start=1)
    ]
    earlier = [f"Earlier question: {asked.earlier}"] if asked.earlier else []
    return "\n".join([*lines, "", *earlier, f"Question: {' '.join(asked.question.split())}"])


def answer_grammar(evidence: int) -> str:
    """GBNF of a well-formed answer: the refusal, or one to three sentences that each end in
    one or two markers between 1 and `evidence`."""
    marks = " | ".join(f'"[{number}]"' for number in range(1, evidence + 1))
    return (
        f'root ::= "{REFUSAL}" | sentence (" " sentence){{0,2}}\n'
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
