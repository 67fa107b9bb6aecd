"""ui.inline and ui.render: what a reader sees, and that data stays data."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.answers import Answer, Citation, Evidence, Hit
from rag.llms.install import InstallStatus
from rag.records import Record, Source
from ui.inline import to_html
from ui.render import (
    answer_html,
    error_html,
    header_html,
    place,
    plain_text,
    question_html,
    support_words,
    writer_html,
)

ABSTRACT = "Tools are rated. We propose Ada-Bench, which tests 12 tools. It costs $5 and $10."
QUOTE = "We propose Ada-Bench, which tests 12 tools."
OURS = {
    "a", "br", "button", "code", "details", "div", "em", "h1", "li", "mark", "p", "progress",
    "span", "strong", "summary", "sup", "ul", "wbr",
}  # fmt: skip
HOSTILE = (
    '<script>alert(1)</script><img src="https://evil.example/x.png" onerror="alert(1)">'
    "<style>body{display:none}</style>![i](https://evil.example/y.png)"
    "[click](javascript:alert(1)) <form action='https://evil.example'>\" onclick=\"x\n\n# head"
)


class Page(HTMLParser):
    """The tags, attributes and text of a piece of HTML; fails on unbalanced tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("br", "wbr"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)


def record(abstract: str = ABSTRACT, name: str = "r1", **facts: object) -> Record:
    return Record(name, abstract, Source(f"/home/me/{name}.txt", 4), **facts)  # type: ignore[arg-type]


def cited(text: str, *records: Record, quote: str = QUOTE, **facts: object) -> Answer:
    """An answer to which each record gives one citation."""
    citations = []
    for marker, source in enumerate(records, start=1):
        start = source.abstract.index(quote)
        citation = Citation(marker, source, quote, start, start + len(quote), 0.8)
        citations.append(citation)
    hits = tuple(Hit(source, 1.0) for source in records)
    given_facts = {"retrieved": hits, **facts}
    return Answer("q", "q", text, tuple(citations), **given_facts)  # type: ignore[arg-type]


# --- text ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("it costs $5 and $10", "it costs $5 and $10"),
        ("from $5-$10, or 7$ and 8$", "from $5-$10, or 7$ and 8$"),
        ("between $5 and 10$ each", "between $5 and 10$ each"),
        ("we have a<b and c>d & e", "we have a&lt;b and c&gt;d &amp; e"),
        ("a stray $ sign", "a stray $ sign"),
        ("*SVDQuant* is **fast**", "<em>SVDQuant</em> is <strong>fast</strong>"),
        ("set `x` to 1", "set <code>x</code> to 1"),
        ("2 * 3 * 4 and snake_case_name", "2 * 3 * 4 and snake_case_name"),
        ("``quoted'' and `quoted'", "``quoted&#x27;&#x27; and `quoted&#x27;"),
        ("line\nbreak", "line break"),
        ("two\n\nparagraphs", "two<br><br>paragraphs"),
    ],
)  # fmt: skip
def test_text_reads_as_written(text: str, shown: str) -> None:
    assert to_html(text) == shown


@pytest.mark.parametrize(
    ("text", "maths"),
    [
        (r"PixArt-$\Sigma$, and", r"\(\Sigma\)"),
        (r"a rate $O(\varepsilon^{-3/2})$.", r"\(O(\varepsilon^{-3/2})\)"),
        (r"H$_2$O", r"\(_2\)"),
        (r"\(a<b\)", r"\(a&lt;b\)"),
        (r"\[x = 1\]", r"\[x = 1\]"),
        ("$$x\n= 1$$", r"\[x = 1\]"),
        (r"the $\KSD$ metric", r"\(\operatorname{KSD}\)"),
        ("by $11.25%$ more", r"\(11.25\%\)"),
        (r"$<50\%$", r"\(&lt;50\%\)"),
        ("$400$ and", r"\(400\)"),
    ],
)
def test_maths_gets_the_page_delimiters(text: str, maths: str) -> None:
    assert f'<span class="aq-math">{maths}</span>' in to_html(text)


def test_a_stray_delimiter_cannot_pair_with_a_real_one() -> None:
    page = to_html(r"a \( b and $x_1$")
    assert re.findall(r"\\\(.*?\\\)", page) == [r"\(x_1\)"]


def test_data_cannot_name_a_placeholder() -> None:
    page = to_html("%%%LATEX_BLOCK_0%%% \ue0000\ue001 $x_1$")
    assert "%%%" not in page
    assert page.count("aq-math") == 1


@given(st.text(alphabet="$\\()[]{}*`<>&\"'% \n1aA_^-#!|\ue000\ue001", max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_text_is_balanced_inert_and_on_one_line(text: str) -> None:
    page = Page(to_html(text))
    assert set(page.tags) <= {"span", "em", "strong", "code", "br", "wbr"}
    assert {name for name, _ in page.attributes} <= {"class"}
    assert "\n" not in to_html(text)


# --- messages --------------------------------------------------------------------------------


def test_a_marker_leads_to_a_card_with_the_quote_marked() -> None:
    page = answer_html(cited("It tests 12 tools [1]. Twelve [1].", record()), "t3")
    assert page.count('href="#aq-t3-s1"') == 2
    assert page.count('id="aq-t3-m1"') == 1  # the first marker, where the card leads back to
    assert '<details class="aq-card" id="aq-t3-s1">' in page
    assert f"Tools are rated. <mark>{QUOTE}</mark> It costs $5 and $10." in page
    assert 'href="#aq-t3-m1"' in page


def test_the_space_before_a_marker_goes() -> None:
    assert "tools<sup>" in answer_html(cited("It tests 12 tools [1].", record()), "t1")


def test_a_number_in_brackets_without_a_citation_is_text() -> None:
    page = answer_html(cited("See [7] and [1].", record()), "t1")
    assert "See [7] and<sup>" in page
    assert "#aq-t1-s7" not in page


def test_twenty_markers_lead_to_twenty_cards() -> None:
    records = [record(name=f"r{n}") for n in range(20)]
    text = " ".join(f"Fact [{n}]." for n in range(1, 21))
    page = answer_html(cited(text, *records), "t1")
    for n in range(1, 21):
        assert page.count(f'id="aq-t1-s{n}"') == page.count(f'href="#aq-t1-s{n}"') == 1


def test_ids_of_two_turns_never_meet() -> None:
    answer = cited("It tests 12 tools [1].", record(), retrieved=(Hit(record(name="r2"), 1.0),))
    first, second = (
        set(re.findall(r' id="([^"]+)"', answer_html(answer, key))) for key in ("t1", "t2")
    )
    assert first
    assert second
    assert not first & second


def test_a_card_says_what_is_known_of_the_paper() -> None:
    known = record(title="Rating Tools", authors=("A. Lee", "B. Ng"), year=2024, venue="ICLR",
                   doi="10.1/x")  # fmt: skip
    page = answer_html(cited("Yes [1].", known), "t1")
    for part in ("Rating Tools", "A. Lee, B. Ng", "2024", "ICLR", "r1.txt, abstract 4",
                 'href="https://doi.org/10.1/x"', "closely supported"):  # fmt: skip
        assert part in page
    assert "aq-label" not in page


def test_a_derived_label_says_that_it_is_no_title() -> None:
    page = answer_html(cited("Yes [1].", record()), "t1")
    assert 'title="A label made from the text, not the title">Ada-Bench<' in page


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd"])
def test_only_web_addresses_become_links(url: str) -> None:
    assert f'href="{url}' not in answer_html(cited("Yes [1].", record(url=url)), "t1")


def test_what_was_retrieved_and_not_cited_is_folded_away() -> None:
    first, second = record(), record(name="r2")
    page = answer_html(cited("Yes [1].", first, retrieved=(Hit(first, 1), Hit(second, 0.5))), "t1")
    assert "Also retrieved (1)" in page
    assert "<details open" not in page


def test_evidence_comes_before_the_answer() -> None:
    evidence = Evidence(record(), 17, 17 + len(QUOTE), 1.0)
    reading = Answer("q", "q", evidence=(evidence,), stage="reading", llm="local")
    page = answer_html(reading, "t1")
    assert "Reading 1 sentence from 1 abstract" in page
    assert "Evidence found" in page
    assert f"<mark>{QUOTE}</mark>" in page
    assert "Answered by" not in page


def test_stages_are_told_and_end() -> None:
    assert "Searching the abstracts" in answer_html(Answer("q", "q", stage="reading"), "t1")
    assert "aq-stage" in answer_html(Answer("q", "q", "Half", stage="writing"), "t1")
    assert "aq-stage" not in answer_html(Answer("q", "q", "Whole."), "t1")
    stopped = answer_html(Answer("q", "q", "Half", stage="writing"), "t1", stopped=True)
    assert "aq-stage" not in stopped
    assert "Half" in stopped
    assert "Stopped" in stopped


def test_an_open_card_survives_a_growing_answer() -> None:
    # The page redraws only the blocks that changed: cards must be blocks of their own.
    evidence = Evidence(record(), 17, 17 + len(QUOTE), 1.0)
    snapshots = [
        answer_html(Answer("q", "q", text, evidence=(evidence,), stage="writing"), "t1")
        for text in ("One", "One two")
    ]
    first, second = (snapshot.split("\n\n") for snapshot in snapshots)
    assert first[-2:] == second[-2:]
    assert 'id="aq-t1-e0"' in first[-1]


def test_a_refusal_looks_like_one_and_lists_what_is_near() -> None:
    hits = tuple(Hit(record(name=f"r{n}"), 1.0) for n in range(5))
    text = "The abstracts do not answer this."
    page = answer_html(Answer("q", "q", text, answerable=False, retrieved=hits), "t1")
    assert f'<div class="aq-refusal"><p>{text}</p></div>' in page
    assert page.count('class="aq-card"') == 3
    assert "Sources" not in page
    assert "aq-answer" not in page


def test_warnings_the_search_and_the_writer_are_told() -> None:
    answer = Answer("And it?", "What does Ada-Bench test?", "Tools.", warnings=("Left out.",),
                    llm="openai:gpt-x", timings={"total_s": 2.34})  # fmt: skip
    page = answer_html(answer, "t1")
    assert "Searched for: What does Ada-Bench test?" in page
    assert "<li>Left out.</li>" in page
    assert "Answered by openai:gpt-x · 2.3 s" in page


def test_bullets_and_paragraphs() -> None:
    page = answer_html(Answer("q", "q", "First.\n\n- one\n- two\n\nLast."), "t1")
    assert "<p>First.</p><ul><li>one</li><li>two</li></ul><p>Last.</p>" in page


def test_the_copy_holds_the_answer_and_its_sources() -> None:
    answer = cited("It tests 12 tools [1].", record())
    expected = (
        f"It tests 12 tools [1].\n\nSources\n[1] Ada-Bench (r1.txt, abstract 4)\n    “{QUOTE}”"
    )
    assert plain_text(answer) == expected
    values = [v for name, v in Page(answer_html(answer, "t1")).attributes if name == "value"]
    assert values == [expected]


def test_hostile_data_is_inert_everywhere() -> None:
    sentence = "We test it."
    evil = Record(
        "r", f"{HOSTILE} {sentence} {HOSTILE}", Source(f"/x/{HOSTILE}.txt", 1), title=HOSTILE,
        authors=(HOSTILE,), venue=HOSTILE, url=f"https://x/{HOSTILE}",
    )  # fmt: skip
    answer = cited(f"{HOSTILE} [1]", evil, quote=sentence, warnings=(HOSTILE,), llm=HOSTILE,
                   evidence=(Evidence(evil, 0, len(HOSTILE), 1.0),))  # fmt: skip
    refusal = Answer(HOSTILE, HOSTILE + "x", HOSTILE, answerable=False, retrieved=(Hit(evil, 1.0),))
    reading = Answer(HOSTILE, HOSTILE, evidence=answer.evidence, stage="reading")
    for page in (
        *(answer_html(a, "t1") for a in (answer, refusal, reading)),
        question_html(HOSTILE), error_html(HOSTILE),
        writer_html(HOSTILE, InstallStatus("engine", HOSTILE, 0.5)),
    ):  # fmt: skip
        parsed = Page(page)
        assert set(parsed.tags) <= OURS
        assert not any(name.startswith("on") for name, _ in parsed.attributes)
        links = [value or "" for name, value in parsed.attributes if name == "href"]
        assert all(link.startswith(("#aq-t1-", "https://x/")) for link in links)
        # Markdown starts anew after a blank line, so each block must start with our own tag.
        assert all(block.startswith("<") and "\n" not in block for block in page.split("\n\n"))


def test_filters_are_told_under_the_question_and_stay_text() -> None:
    page = Page(question_html("What?", f"author {HOSTILE}"))
    assert set(page.tags) <= OURS
    assert "Only: author <script>alert(1)</script>" in page.text
    assert "Only" not in question_html("What?")


def test_small_words() -> None:
    assert support_words(0.9) == "closely supported"
    assert support_words(0.5) == "partly supported"
    assert support_words(0.0).startswith("weakly supported")
    assert place(Record("r", "a", Source("C:\\papers\\a.ris", 2))) == "a.ris, abstract 2"
    assert "57 abstracts from 3 files" in header_html({"records": 57, "sources": 3})
    assert "1 abstract from 1 file<" in header_html({"records": 1, "sources": ["a.txt"]})


def test_preparation_is_told_with_what_answers_meanwhile() -> None:
    page = writer_html("extractive", InstallStatus("engine", "building the engine", 0.25))
    assert "best sentences, no LLM" in page
    assert 'value="0.250"' in page
    assert "extractive until it is ready" in page
    ready = writer_html("local", InstallStatus("ready", "the local LLM is ready", 1.0))
    assert "Answers: the local LLM" in ready
    assert "until" not in ready
    assert "progress" not in ready
