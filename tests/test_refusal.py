from __future__ import annotations

import pytest

from rag.answers import Hit
from rag.evidence import Way
from rag.records import Record, Source
from rag.refusal import is_off_topic, says_more, states_answer

RECORD = Record("r1", "We test UniMatch on FS-Mol with few shots.", Source("a.txt", 1))


@pytest.mark.parametrize(
    ("hits", "off"), [((), True), ((Hit(RECORD, 0.1),), True), ((Hit(RECORD, 0.5),), False)]
)
def test_a_question_is_off_topic_when_even_the_best_hit_is_far(
    hits: tuple[Hit, ...], off: bool
) -> None:
    assert is_off_topic(hits) is off


@pytest.mark.parametrize(
    ("way", "margin", "answered"),
    [("detail", -2.0, False), ("detail", 1.5, True), ("find", -0.2, True), ("find", -2.0, False)],
)
def test_a_model_that_denies_the_answer_is_believed(
    way: Way, margin: float, answered: bool
) -> None:
    assert states_answer(margin, way) is answered


@pytest.mark.parametrize(
    ("sentence", "question", "more"),
    [
        (
            "The dataset used to pretrain it is given.",
            "Which dataset is used to pretrain it?",
            False,
        ),
        ("It is pretrained on ImageNet.", "Which dataset is used to pretrain it?", True),
        ("There are 16 models.", "How many models are there?", True),
        ("Yes, sampling is faster.", "Is sampling faster?", False),
        ("Sampling is up to 10x faster.", "Is sampling faster?", True),
    ],
)
def test_an_answer_says_more_than_its_question(sentence: str, question: str, more: bool) -> None:
    assert says_more(sentence, question) is more
