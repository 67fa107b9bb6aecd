"""Conversations as documents: one numbering, quotes, references, and nothing that acts."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from rag.answers import Answer, Citation, Claim
from rag.exporting import conversation_data, conversation_markdown
from rag.records import Record, Source

TEA = Record(
    "a" * 16, "Tea is hot. It cools by 5% an hour.", Source("/p/tea.txt", 1),
    title="On *Tea*", authors=("Müller, Ann",), year=2021, doi="10.1000/tea",
)  # fmt: skip
ICE = Record("b" * 16, "We propose IceNet, a cold network.", Source("/p/ice.txt", 7))


def cited(marker: int, record: Record, quote: str) -> Citation:
    start = record.abstract.index(quote)
    return Citation(marker, record, quote, start, start + len(quote), 1.0)


def answer(text: str, *citations: Citation, question: str = "q") -> Answer:
    claims = (Claim(text, tuple(c.marker for c in citations), 1.0),)
    return Answer(question, question, text, citations, claims)


TURNS = [
    ("What of tea?", answer("It is hot [1], ice is not [2].", cited(1, TEA, "Tea is hot."),
                            cited(2, ICE, "We propose IceNet, a cold network."))),
    ("And then?", answer("It cools [1]; hot it was [2], in $[1, 2]$ and $x[1]$, says [7].",
                         cited(1, TEA, "It cools by 5% an hour."), cited(2, TEA, "Tea is hot."))),
    ("Who won?", Answer("Who won?", "Who won the cup?", "The abstracts do not answer.",
                        answerable=False)),
]  # fmt: skip


def test_a_number_stands_for_one_quote_in_the_whole_document() -> None:
    data = conversation_data(TURNS)
    texts = [turn["answer"] for turn in data["turns"]]
    assert texts[:2] == [
        "It is hot [1], ice is not [2].",
        "It cools [3]; hot it was [1], in $[1, 2]$ and $x[1]$, says [7].",
    ]
    quotes: dict[int, str] = {}
    for turn in data["turns"]:
        for citation in turn["citations"]:
            marker, quote = citation["marker"], citation["quote"]
            assert quotes.setdefault(marker, quote) == quote
    assert quotes == {1: "Tea is hot.", 2: ICE.abstract, 3: "It cools by 5% an hour."}
    assert data["turns"][1]["claims"][0]["markers"] == [3, 1]
    assert data["turns"][1]["claims"][0]["text"] == texts[1]


def test_the_data_are_json_with_the_references_once() -> None:
    data = json.loads(json.dumps(conversation_data(TURNS)))
    assert [turn["question"] for turn in data["turns"]] == ["What of tea?", "And then?", "Who won?"]
    assert [(item["id"], item["markers"]) for item in data["references"]] == [
        (TEA.id, [1, 3]),
        (ICE.id, [2]),
    ]
    assert data["references"][0]["csl"]["DOI"] == "10.1000/tea"
    assert "title" not in data["references"][1]["csl"]


def test_the_document_has_questions_answers_quotes_and_references() -> None:
    text = conversation_markdown(TURNS)
    assert re.findall(r"^#+ (.*)", text, re.MULTILINE) == [
        "Questions and answers", "What of tea?", "And then?", "Who won?", "References",
    ]  # fmt: skip
    assert "It cools [3]; hot it was [1], in $[1, 2]$" in text
    assert "> [3] “It cools by 5% an hour.”" in text
    assert "Searched for: Who won the cup?" in text
    assert "The abstracts do not answer." in text
    assert (
        "- Müller, Ann (2021). *On \\*Tea\\**. <https://doi.org/10.1000/tea>. Quoted as [1], [3]."
    ) in text
    # The label is what the abstract is about, not its title.
    assert ("- No title in the source, abstract 7 of ice.txt (IceNet). Quoted as [2].\n") in text


def test_without_citations_there_are_no_references() -> None:
    assert "References" not in conversation_markdown(TURNS[2:])
    assert conversation_data([]) == {"turns": [], "references": []}


def test_the_answers_given_are_left_as_they_are() -> None:
    before = [replace(turn) for _, turn in TURNS]
    conversation_markdown(TURNS)
    assert [turn for _, turn in TURNS] == before


_HOSTILE = (
    "<img src=x onerror=y>", "![a](http://evil.test/a)", "[a](javascript:b)", "<script>", "&lt;",
    "[1](http://evil.test)", "[1]: http://evil.test", "**", "`", "# ", "- ", "1. ", "| a |", "~~~",
    "```", "$x$", "$<img src=x>$", "$![a](http://evil.test)$", "\\", "\\(a\\)", "\n", "    ", "a",
    "---", "===", "> ", "_b_", "<http://evil.test>", " ",
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(_HOSTILE), max_size=8).map("".join))
def test_no_text_acts_in_the_document(text: str) -> None:
    record = replace(TEA, abstract=f"Tea. {text}", title=text, venue=text, authors=(text,))
    turn = answer(f"{text} [1].", cited(1, record, record.abstract))
    page = MarkdownIt("commonmark").parse(conversation_markdown([(text, turn)]))
    inline = [child for token in page for child in token.children or ()]
    assert not [t for t in (*page, *inline) if t.type in ("image", "html_block", "html_inline")]
    links = [t.attrs["href"] for t in inline if t.type == "link_open"]
    assert links == ["https://doi.org/10.1000/tea"]
    assert not [t for t in page if t.type in ("fence", "code_block", "hr")]
    assert len([t for t in page if t.type == "heading_open"]) == 3
