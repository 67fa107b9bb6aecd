"""When not to answer: off-topic questions, and details that the evidence does not state.

The thresholds were set on the labelled development questions of the sample corpus.
"""

from __future__ import annotations

from collections.abc import Sequence

from rag.answers import Hit
from rag.conversation import Asked

# Best abstract's score below which a question is about something else. There, off-topic
# questions score 0.12 to 0.33 and answerable ones from 0.27 up.
_OFF_TOPIC = 0.25

# A small model that is asked whether the evidence states the answer leans towards no when the
# question is put in other words than the evidence, or is a few keywords. So a question for a
# detail must convince it; one that seeks papers need only not be denied outright.
_CONVINCED = 0.8
_NOT_DENIED = -0.7


def is_off_topic(hits: Sequence[Hit]) -> bool:
    """Whether the best of the hits, given best first, is still about something else."""
    return not hits or hits[0].score < _OFF_TOPIC


def states_answer(margin: float, asked: Asked) -> bool:
    """Whether to answer, by a model's judgement whether the evidence states the answer.

    `margin` is its log-probability of "yes" less that of "no".
    """
    return margin >= (_NOT_DENIED if asked.seeks_papers else _CONVINCED)
