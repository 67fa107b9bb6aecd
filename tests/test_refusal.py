from __future__ import annotations

import pytest

from rag.answers import Evidence, Hit
from rag.records import Record, Source
from rag.refusal import is_off_topic, states_answer

RECORD = Record("r1", "We test UniMatch on FS-Mol with few shots.", Source("a.txt", 1))
EVIDENCE = (Evidence(RECORD, 0, len(RECORD.abstract), 1.0),)


@pytest.mark.parametrize(
    ("hits", "off"), [((), True), ((Hit(RECORD, 0.1),), True), ((Hit(RECORD, 0.5),), False)]
)
def test_a_question_is_off_topic_when_even_the_best_hit_is_far(
    hits: tuple[Hit, ...], off: bool
) -> None:
    assert is_off_topic(hits) is off


@pytest.mark.parametrize(
    ("question", "margin", "answered"),
    [
        ("How many shots does UniMatch use on FS-Mol?", 0.2, False),
        ("How many shots does UniMatch use on FS-Mol?", 1.5, True),
        ("unimatch fs-mol shots", 0.2, True),
        ("is there work on guessing how a compound behaves?", -0.2, True),
        ("is there work on guessing how a compound behaves?", -2.0, False),
    ],
)
def test_a_question_in_the_words_of_the_evidence_needs_a_convinced_model(
    question: str, margin: float, answered: bool
) -> None:
    assert states_answer(margin, question, EVIDENCE) is answered
