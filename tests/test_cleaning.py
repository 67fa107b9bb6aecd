"""What is taken off an abstract, and what must stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.sources import cleaning


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        (
            "<jats:title>Abstract</jats:title><jats:p>We show a&lt;b and CO<jats:sub>2</jats:sub> "
            "at 10<jats:sup>-3</jats:sup>.</jats:p>",
            "We show a<b and CO2 at 10⁻³.",
        ),
        (
            "<jats:sec><jats:title>Background</jats:title><jats:p>One.</jats:p></jats:sec>"
            "<jats:sec><jats:title>Methods:</jats:title><jats:p>Two.</jats:p></jats:sec>",
            "Background: One.\nMethods: Two.",
        ),
        (
            "<h4>Objective</h4>To test.<h4>Results</h4>p &lt; 0.05 &amp; more.",
            "Objective: To test.\nResults: p < 0.05 & more.",
        ),
        (
            "We grew <i>E. coli</i> &amp;amp; <b class='x'>yeast</b>.<br/>Twice.",
            "We grew E. coli & yeast. Twice.",
        ),
        ("&lt;p&gt;We show.&lt;/p&gt;", "We show."),
        (
            "For <jats:inline-formula><jats:alternatives><jats:tex-math>\\documentclass{minimal}"
            "\\begin{document}$$x_1$$\\end{document}</jats:tex-math><mml:math><mml:mi>x</mml:mi>"
            "</mml:math></jats:alternatives></jats:inline-formula> we show.",
            "For $$x_1$$ we show.",
        ),
        ("<!-- x -->We<script>alert(1)</script> show.", "We show."),
        ("caf&eacute; &#8211; &#x3b1;", "café – α"),
    ],
)
def test_markup_goes(raw: str, clean: str) -> None:
    assert cleaning.abstract(raw) == clean


@pytest.mark.parametrize(
    "text",
    [
        "if a<b and c>d then x<b>y, for all i<j",
        "p<0.05, n>30, and 0<x<1",
        "We use $x_{<i} \\& y_{>i}$, \\textbf{bold}, \\cite{a<b>} and $5 and $10.",
        "(2R,3S)-N,N-dimethyl-4-[(E)-styryl]aniline; Fe3+ <--> Fe2+; 5′-<AGCT>-3′",
        "The tokens <s>, </s>, <mask> and <table> are added to <think> tags.",
        "AT&T and R&D; f(x)&g; a&b;c",
        "Use `x <- y`, **bold**, *it*, 1 < 2 > 0 and ~~no~~.",
        "We ask whether copyright law matters. Copyright law is good.",
        "We use Excel © 2010 at the University.",
        "There are two cases. (c) 2020 patients were treated by the authors of this journal.",
        "Abstract interpretation is sound.",
        "Abstract methods for programs are studied.",
        "Summary: we do it.",
        "می‌خواهم",
        "We show it. Published data of 2019 by Smith in the Journal of Wiley agree.",
    ],
)
def test_the_authors_text_stays(text: str) -> None:
    assert cleaning.abstract(text) == text


@pytest.mark.parametrize(
    "prefix",
    [
        "Abstract: ",
        "ABSTRACT: ",
        "Abstract. ",
        "Abstract—",
        "Abstract - ",
        "Abstract\n\n",
        "ABSTRACT ",
        "[Abstract] : ",
        "摘要：",
        "Résumé : ",
    ],
)
def test_the_word_abstract_before_it_goes(prefix: str) -> None:
    assert cleaning.abstract(prefix + "We show it.") == "We show it."


def test_a_heading_after_the_word_abstract_stays() -> None:
    assert cleaning.abstract("Abstract Background We ask.") == "Background We ask."


@pytest.mark.parametrize(
    "note",
    [
        "© 2020 Elsevier B.V. All rights reserved.",
        "Copyright © 2020 Elsevier Ltd. All rights reserved.",
        "(C) 2014 Elsevier Ltd. All rights reserved.",
        "Copyright 2024 Elsevier B.V., All rights reserved.",
        "© The Author(s) 2024.",
        "©2021 IEEE",
        "© 2014 WILEY-VCH Verlag GmbH & Co. KGaA, Weinheim.",
        "© 2017 The Authors. JBMR Plus Published by Wiley Periodicals, Inc. on behalf of the "
        "American Society for Bone and Mineral Research.",
        "2019 The Author(s). Published by Elsevier Ltd.",
        "Published by Elsevier Ltd.",
        "Crown Copyright © 2010. Published by Elsevier Ireland Ltd. All rights reserved.",
        "This article is protected by copyright. All rights reserved.",
        "© 2024 The Authors. This is an open access article under the CC BY license "
        "(http://creativecommons.org/licenses/by/4.0/).",
        "Copyright of Journal of X is the property of Y and its content may not be copied or "
        "emailed to multiple sites without the copyright holder's express written permission. "
        "(Copyright applies to all Abstracts.)",
        "[ABSTRACT FROM AUTHOR]",
        "(PsycInfo Database Record (c) 2020 APA, all rights reserved)",
    ],
)
def test_copyright_notes_at_the_end_go(note: str) -> None:
    assert cleaning.abstract(f"We show it in 2020. {note}") == "We show it in 2020."


def test_copyright_notes_at_the_start_go() -> None:
    assert (
        cleaning.abstract("© 2019 IEEE. In this paper, we show it.") == "In this paper, we show it."
    )
    assert (
        cleaning.abstract("© 2019 Elsevier B.V. We show it in this paper.")
        == "We show it in this paper."
    )


def test_odd_characters_are_made_plain() -> None:
    raw = "so\xadft hy\u200bphen,\xa0thin\u2009space\ud800 \x00\x93quote\x94\ufeff"
    assert cleaning.abstract(raw) == "soft hyphen, thin space\ufffd “quote”"


def test_wrapped_lines_are_joined_and_lists_and_sections_are_not() -> None:
    raw = "We show\nthat it\r\nis so.\n\n  New paragraph.\n* one\n* two\nMethods: many."
    assert (
        cleaning.abstract(raw)
        == "We show that it is so.\nNew paragraph.\n* one\n* two\nMethods: many."
    )


@pytest.mark.parametrize(
    "note",
    [
        "[No abstract available]",
        "No abstract available.",
        "N/A",
        "nan",
        "None",
        "-",
        "© 2003 IEEE.",
        "<p></p>",
    ],
)
def test_a_note_that_there_is_none_is_no_abstract(note: str) -> None:
    assert cleaning.abstract(note) in ("", "-")


def test_titles_are_one_line_without_markup() -> None:
    assert cleaning.line(" On <i>E. coli</i>\n &amp; a&lt;b ") == "On E. coli & a<b"


@given(st.text())
def test_any_text_can_be_cleaned_and_encoded(text: str) -> None:
    cleaning.abstract(text).encode("utf-8")
    cleaning.line(text).encode("utf-8")


@given(st.text(st.sampled_from("<>/apbi &;lt\n©.2019 ")))
def test_markup_like_text_can_be_cleaned(text: str) -> None:
    cleaning.abstract(text)


@given(st.lists(st.text(st.characters(categories=["L", "Nd"]), min_size=1), min_size=3))
def test_words_are_never_lost(words: list[str]) -> None:
    text = "The " + " ".join(words) + " end"
    assert cleaning.abstract(text) == text
