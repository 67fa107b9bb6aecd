from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.sentences import split_sentences


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("As in Smith et al. the rate falls.", ["As in Smith et al. the rate falls."]),
        (
            "Strong vs. weak models, e.g. GPT-4, differ.",
            ["Strong vs. weak models, e.g. GPT-4, differ."],
        ),
        ("See Fig. 3 for it. We go on.", ["See Fig. 3 for it.", "We go on."]),
        ("By J. Smith. It holds.", ["By J. Smith.", "It holds."]),
        ("It grows by 2.87% in AUROC. Next.", ["It grows by 2.87% in AUROC.", "Next."]),
        ("Let $f(x) = 1. Y$ hold. Then.", ["Let $f(x) = 1. Y$ hold.", "Then."]),
        (
            "There are limits. (i) The first. (ii) Two.",
            ["There are limits.", "(i) The first.", "(ii) Two."],
        ),
        ("We name it so. iPhone users agree.", ["We name it so.", "iPhone users agree."]),
        ("它很快。我们证明了这一点！好吗？", ["它很快。", "我们证明了这一点！", "好吗？"]),
        ('He said "yes." Then left.', ['He said "yes."', "Then left."]),
        ("no stop at all", ["no stop at all"]),
        ("  \n ", []),
    ],
)
def test_boundaries(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@given(st.text(alphabet=st.sampled_from("aB .!?\n$。e.g(1)"), max_size=60))
def test_spans_are_ordered_and_cover_all_but_white_space(text: str) -> None:
    spans = split_sentences(text)
    assert all(a < b for a, b in spans)
    assert all(first[1] <= second[0] for first, second in pairwise(spans))
    covered = {i for start, end in spans for i in range(start, end)}
    assert all(text[i].isspace() for i in range(len(text)) if i not in covered)
    assert not any(text[s].isspace() or text[e - 1].isspace() for s, e in spans)
