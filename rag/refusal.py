"""When not to answer: off-topic questions, and details that the evidence does not state.

Three gates: how near the best abstract is, whether the model finds the answer in the evidence,
and whether a sentence of its answer is borne out by a quote (`rag.verification`) and says more
than the question does.

The thresholds were set on the labelled development questions of the sample corpus.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag.answers import Hit
from rag.words import terms

if TYPE_CHECKING:
    from rag.evidence import Way

# Best abstract's score below which a question is about something else. There, off-topic
# questions score 0.12 to 0.33 and answerable ones from 0.27 up.
_OFF_TOPIC = 0.25

# A small model that is asked whether the evidence states the answer leans towards no when the
# question is put in other words, and towards yes when the subject is right and the detail is
# missing. So it only has to lean; what it then makes up, the verification does not let pass.
_LEANS = 0.0
_NOT_DENIED = -1.5

# What a sentence may put in the place of the answer without giving it.
_EMPTY_WORDS = (
    "yes sentence marked described stated mentioned specified given provided following abstract"
)
# What a follow-up speaks of stands in brackets behind it when no LLM wrote it out.
_TOPIC = re.compile(r"\s*\([^()]*\)\s*$")
_ASKS_FOR = re.compile(r"\b(?:what|which|who|whom|whose|when|where|why|how)\b", re.IGNORECASE)


def is_off_topic(hits: Sequence[Hit]) -> bool:
    """Whether the best of the hits, given best first, is still about something else."""
    return not hits or hits[0].score < _OFF_TOPIC


def states_answer(margin: float, way: Way) -> bool:
    """Whether to answer, by a model's judgement whether the evidence states the answer.

    `margin` is its log-probability of "yes" less that of "no".
    """
    return margin >= {"detail": _LEANS, "find": _NOT_DENIED, "compare": _NOT_DENIED}[way]


def asks_for_a_thing(question: str) -> bool:
    """Whether a question wants a name, a number or a reason, rather than yes or no."""
    return bool(_ASKS_FOR.search(_TOPIC.sub("", question)))


def says_more(sentence: str, question: str) -> bool:
    """Whether a sentence says something that the question does not say itself.

    "The dataset used to train it is given." is no answer to "Which dataset …?", and "Yes, it is
    worth it." to "Is it worth it?" is an echo that no quote can be compared with.
    """
    return bool(_said(sentence) - _said(question) - _said(_EMPTY_WORDS))


def _said(text: str) -> frozenset[str]:
    # The stemmer leaves the plurals of abbreviations: "LLMs".
    return frozenset(term.removesuffix("s") for term in terms(text))
