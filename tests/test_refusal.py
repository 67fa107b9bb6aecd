from __future__ import annotations

import pytest

from rag.answers import Hit
from rag.conversation import Asked
from rag.records import Record, Source
from rag.refusal import is_off_topic, states_answer

RECORD = Record("r1", "We test UniMatch on FS-Mol with few shots.", Source("a.txt", 1))


@pytest.mark.parametrize(
    ("hits", "off"), [((), True), ((Hit(RECORD, 0.1),), True), ((Hit(RECORD, 0.5),), False)]
)
def test_a_question_is_off_topic_when_even_the_best_hit_is_far(
    hits: tuple[Hit, ...], off: bool
) -> None:
    assert is_off_topic(hits) is off


@pytest.mark.parametrize(
    ("seeks_papers", "margin", "answered"),
    [(False, 0.2, False), (False, 1.5, True), (True, -0.2, True), (True, -2.0, False)],
)
def test_a_question_for_a_detail_needs_a_convinced_model(
    seeks_papers: bool, margin: float, answered: bool
) -> None:
    asked = Asked("q", "q", seeks_papers=seeks_papers)
    assert states_answer(margin, asked) is answered
