from __future__ import annotations

import pytest

from rag.records import Record, Source, content_id, derived_label, same_paper_key


def test_identity_ignores_white_space_and_case_but_not_words() -> None:
    assert content_id("We  show\nthat.") == content_id("we show that.")
    assert content_id("We show that.") != content_id("We show this.")


def test_a_doi_is_the_identity_when_there_is_one() -> None:
    assert content_id("one text", "10.1/ABC") == content_id("another text", "10.1/abc")
    assert content_id("one text", "10.1/abc") != content_id("one text")


def test_an_arxiv_id_is_the_identity_without_a_doi() -> None:
    one = content_id("one text", arxiv_id="2101.00001")
    assert one == content_id("another", arxiv_id="2101.00001v3", title="T")
    assert one == content_id("another", "10.48550/arXiv.2101.00001")
    assert one != content_id("one text", "10.1/abc", arxiv_id="2101.00001")


def test_the_title_and_first_author_count_where_they_are_known() -> None:
    paper = content_id("a text", title="On Risk.", authors=("Doe, Jane", "Roe, R."))
    assert paper == content_id("A  text", title="on risk", authors=("Jane Doe",))
    assert paper != content_id("a text", title="On risk", authors=("Roe, R.",))
    assert paper != content_id("a text", title="On luck", authors=("Doe, Jane",))


@pytest.mark.parametrize(
    "names",
    [
        [
            "Wilson, Lauren N.",
            "Lauren N. Wilson",
            "Wilson L.N.",
            "Wilson LN",
            "WILSON, L.",
            "Wilson, Jr., L.",
        ],
        ["Beethoven, Ludwig van", "Ludwig van Beethoven", "van Beethoven, Ludwig"],
        ["García Márquez, G.", "Gabriel Garcia Marquez", "García Márquez G"],
        ["Peñalver E", "Enrique Penalver", "Peñalver, E"],
        ["Martin Luther King Jr.", "King, Martin Luther", "King ML Jr"],
        ["王伟"],
    ],
)
def test_the_first_author_is_the_same_however_the_name_is_ordered(names: list[str]) -> None:
    source = Source("a.txt", 1)
    keys = {
        same_paper_key(Record("1", "Text.", source, title="On Risk", authors=(name, "Other, A.")))
        for name in names
    }
    assert len(keys) == 1
    assert keys != {""}


def test_the_same_title_by_others_is_another_paper_and_an_unknown_one_is_none() -> None:
    source = Source("a.txt", 1)

    def key(title: str, *authors: str) -> str:
        return same_paper_key(Record("1", "Text.", source, title=title, authors=authors))

    assert key("On α-risk: a Survey", "Doe, J.") == key("On <α> Risk — A survey.", "J. Doe")
    assert key("On risk", "Doe, J.") != key("On risk", "Roe, J.")
    assert key("", "Doe, J.") == key("On risk") == key("…", "Doe, J.") == ""


@pytest.mark.parametrize(
    ("abstract", "label"),
    [
        ("Graphs are hard. In this paper, we propose SOREL, the first such method.", "SOREL"),
        ("We design an algorithm called Water-Probe that detects marks.", "Water-Probe"),
        ("We introduce Universal Matching Networks (UniMatch), a framework.", "UniMatch"),
        ("LLMs are big. We propose to shrink LLMs. We call it TinyQ.", "TinyQ"),
    ],
)
def test_label_is_the_name_an_abstract_introduces(abstract: str, label: str) -> None:
    assert derived_label(abstract) == label


def test_label_without_a_name_is_the_start_of_the_claim_cut_at_a_word() -> None:
    label = derived_label(
        "Much is unknown. We study how very deep networks of many layers learn smooth "
        "functions from few examples when the noise is large."
    )
    assert label.startswith("We study how very deep networks")
    assert label.endswith("…")
    assert len(label) <= 73


def test_a_title_is_the_label_and_a_derived_label_is_no_title() -> None:
    source = Source("a.txt", 1)
    assert Record("1", "We propose SOREL.", source, title="On Risks").label == "On Risks"
    untitled = Record("1", "We propose SOREL.", source)
    assert (untitled.label, untitled.title) == ("SOREL", "")
