from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.drafts import Statement, parse


def cited(draft: str) -> list[tuple[int, ...]]:
    return [statement.numbers for statement in parse(draft).statements]


def texts(draft: str) -> list[str]:
    return [statement.text for statement in parse(draft).statements]


@pytest.mark.parametrize(
    ("draft", "expected"),
    [
        ("One is so [1]. Two is so [2].", [(1,), (2,)]),
        ("One is so. [1] Two is so. [2]", [(1,), (2,)]),
        ("One is so.[1] Two is so.[2]", [(1,), (2,)]),
        ("One is so.[1]Two is so.[2]", [(1,), (2,)]),
        ("[1] One is so. [2] Two is so.", [(1,), (2,)]),
        ("One is so [1,2]. Two is so [1][3].", [(1, 2), (1, 3)]),
        ("One is so [1], [2] and [4]. Two is so [2; 3].", [(1, 2, 4), (2, 3)]),
        ("One is so [1-3]. Two is so [2–4].", [(1, 2, 3), (2, 3, 4)]),
        ("One is so 【2】. Two is so【1†source】.", [(2,), (1,)]),
        ("One is so [Sentence 2]. Two is so [source 1, source 3].", [(2,), (1, 3)]),
        ("One is so [S1]. Two is so (Source 2).", [(1,), (2,)]),
        ("One is so ([1]). Two is so (see [2], [3]).", [(1,), (2, 3)]),
        ("One is so [[1]]. Two is so [2](#ref-2).", [(1,), (2,)]),
        (r"One is so \[1\]. Two is so.", [(1,), ()]),
        ("One is so^1^. Two is so<sup>2,3</sup>.", [(1,), (2, 3)]),
        ("一是这样的[1]。二是这样的【2】。", [(1,), (2,)]),
        ("One is so [1", [()]),
        ("One is so", [()]),
        ("One is so [1]\n\nTwo is so [2]", [(1,), (2,)]),
        ("One is so.\n[1]\nTwo is so.\n[2]", [(1,), (2,)]),
        ("[1] One is so\n[2] Two is so", [(1,), (2,)]),
    ],
)
def test_marker_forms(draft: str, expected: list[tuple[int, ...]]) -> None:
    assert cited(draft) == expected
    assert not any(sign in "".join(texts(draft)) for sign in "【】[]()^<>")


@pytest.mark.parametrize(
    ("draft", "expected"),
    [
        ("One is so (1). Two is so (2, 3).", [(1,), (2, 3)]),
        ("One is so. (1) Two is so. (2)", [(1,), (2,)]),
        ("It does (1) this and (2) that.", [()]),
        ("It came out in spring (2021).", [()]),
        ("It follows from Eq. (3).", [()]),
        ("It runs in O(1).", [()]),
    ],
)
def test_a_number_in_parentheses_is_a_marker_only_where_a_marker_stands(
    draft: str, expected: list[tuple[int, ...]]
) -> None:
    assert cited(draft) == expected


@pytest.mark.parametrize(
    "marker",
    ["(Ishikawa and Hashimoto, 2011)", "[Smith et al., 2020]", "(Smith, 2020; Lee et al. 2019a)"],
)
def test_an_author_with_a_year_cites_nothing(marker: str) -> None:
    assert parse(f"One is so {marker}.").statements == (Statement("One is so.", ()),)


@pytest.mark.parametrize(
    "draft",
    [
        "Values lie in $[0,1]$ here [2].",
        r"Values lie in \([1, 2]\) here [2].",
        "Values lie in [0, 1] here [2].",
    ],
)
def test_an_interval_is_no_marker(draft: str) -> None:
    assert cited(draft) == [(2,)]
    assert "here." in texts(draft)[0]
    assert "1" in texts(draft)[0]


@pytest.mark.parametrize(
    "draft",
    [
        "<think>Sentence [3] says so. Or not.</think>One is so [1].",
        "Sentence [3] says so. Or not.\n</think>\n\nOne is so [1].",
        "<answer>One is so [1].</answer><|im_end|>",
        "One is so [1]. <think>Is it [2]?",
        "## Answer\nOne is so [1].",
        "**Answer:** One is so [1].",
        "According to [1], one is so.",
    ],
)
def test_only_the_answer_of_a_draft_is_read(draft: str) -> None:
    assert parse(draft).statements == (Statement("One is so.", (1,)),)


@pytest.mark.parametrize("draft", ["<think>One is so [1].", "<thi", '```json\n{"answer": "One'])
def test_nothing_shows_of_what_may_not_be_the_answer(draft: str) -> None:
    assert parse(draft, final=False).statements == ()
    assert parse(draft, final=False).pending == ""


JSON_REPLIES = [
    {"answer": "One is so [1]. Two is so [2]."},
    {"answer": [{"text": "One is so.", "citations": [1]}, {"text": "Two is so.", "source": "[2]"}]},
    [{"sentence": "One is so.", "sources": ["Sentence 1"]}, {"sentence": "Two is so.", "ref": 2}],
    {"sentences": [{"text": "One is so.", "id": 1}, {"text": "Two is so.", "id": "2"}]},
    ["One is so [1].", "Two is so [2]."],
]


@pytest.mark.parametrize("reply", JSON_REPLIES)
@pytest.mark.parametrize("frame", ["{}", "```json\n{}\n```", "Here it is:\n```\n{}\n```"])
def test_json_replies(reply: object, frame: str) -> None:
    statements = parse(frame.replace("{}", json.dumps(reply, indent=1))).statements
    assert [(s.text, s.numbers) for s in statements[-2:]] == [
        ("One is so.", (1,)),
        ("Two is so.", (2,)),
    ]


@pytest.mark.parametrize(
    "draft",
    [
        '{"answer": "One is so [1].", "citations": [1,',
        '{answer: "One is so [1]."}',
        '{"answer": "One is so [1]."',
    ],
)
def test_malformed_json_is_read_as_text(draft: str) -> None:
    first = parse(draft).statements[0]
    assert (first.text, first.numbers) == ("One is so.", (1,))
    assert not any(sign in "".join(texts(draft)) for sign in '{}"')


@pytest.mark.parametrize("bullet", ["- ", "* ", "• ", "1. ", "(1) ", "  - "])
def test_list_items_are_statements(bullet: str) -> None:
    draft = (
        f"These are so:\n{bullet}One is so [1]. It is [2].\n{bullet}Two is so [3]\n\nAll is so [1]."
    )
    assert parse(draft).statements == (
        Statement("These are so:", ()),
        Statement("One is so.", (1,), "item"),
        Statement("It is.", (2,), "inside"),
        Statement("Two is so", (3,), "item"),
        Statement("All is so.", (1,)),
    )


@pytest.mark.parametrize(
    ("draft", "settled", "pending"),
    [
        ("One is so [1].", 0, "One is so."),
        ("One is so [1]. ", 0, "One is so."),
        ("One is so [1]. T", 1, "T"),
        ("One is so. [", 0, "One is so."),
        ("One is so. [1] T", 1, "T"),
        ("One is so [Sen", 0, "One is so"),
        ("One costs $5 [1] and", 0, "One costs $5 and"),
        ("One is so [1].\n- ", 0, "One is so."),
        ("One is so [1].\n- T", 1, "T"),
    ],
)
def test_a_sentence_is_settled_when_the_next_has_begun(
    draft: str, settled: int, pending: str
) -> None:
    parsed = parse(draft, final=False)
    assert (len(parsed.statements), parsed.pending) == (settled, pending)


PIECES = st.sampled_from(
    [
        *"One is so and Two then A. B 4 x, ; : - * # ( ) [ ] $ ^ . ! ?".split(),
        *"。 ” … & < { } \\ ` **".split(),
        *["\n", "\n\n", " ", "  ", ". ", "[1]", "[2, 3]", "[1][2]", "(1)", "(see [2])", "【1】"],
        *["\n- ", "\n1. ", "\n# Top\n", "^1^", "$x$", "$[0,1]$", "\\(a. B\\)", "e.g. ", "et al. "],
        *["(Smith, 2020)", "[S1]", "一二。", "... ", "iPhone", "[1](#a)", "<sup>1</sup>", "```"],
        *[
            "<think>B. [1]</think>",
            '{"answer": "One [1]. Two."}',
            "<answer>",
            "$5",
            "According to ",
        ],
    ]
)


@settings(deadline=None)
@given(st.lists(PIECES | st.text(alphabet="aB1 .[](),$\n-", max_size=4), max_size=14))
def test_nothing_that_was_settled_is_taken_back(pieces: list[str]) -> None:
    draft = "".join(pieces)
    final = parse(draft).statements
    for end in range(len(draft) + 1):
        settled = parse(draft[:end], final=False).statements
        assert settled == final[: len(settled)]


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=3), min_size=1, max_size=4))
def test_markers_are_read_back_whatever_the_form(numbers: list[list[int]]) -> None:
    draft = " ".join(f"Word is so [{', '.join(map(str, ns))}]." for ns in numbers)
    assert cited(draft) == [tuple(dict.fromkeys(ns)) for ns in numbers]
