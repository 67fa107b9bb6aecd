from __future__ import annotations

import pytest

from rag.records import Record, Source, content_id, derived_label


def test_identity_ignores_white_space_and_case_but_not_words() -> None:
    assert content_id("We  show\nthat.") == content_id("we show that.")
    assert content_id("We show that.") != content_id("We show this.")


def test_a_doi_is_the_identity_when_there_is_one() -> None:
    assert content_id("one text", "10.1/ABC") == content_id("another text", "10.1/abc")
    assert content_id("one text", "10.1/abc") != content_id("one text")


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
