from __future__ import annotations

import pytest

from rag.questions import names_in, papers_wanted, parts_of, sides_of


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("How many images are there, and how were they chosen?", 2),
        ("What is SANA? Which compression does it use?", 2),
        ("How many methods does it beat, and on which datasets?", 2),
        ("What is the what and why of LoRA?", 1),
        ("Can one simulate where and when quakes happen?", 1),
        ("tau bench pass^8 retail", 1),
        ("Which of retail and airline is harder?", 1),
    ],
)
def test_a_question_is_split_where_another_begins(question: str, parts: int) -> None:
    found = parts_of(question)
    assert len(found) == parts
    assert all(part.rstrip("?") in question for part in found)


@pytest.mark.parametrize(
    ("question", "papers"),
    [
        ("BuNN vs PIORF: how does each one fight over-squashing?", 2),
        ("How do CMLoRA and SVDQuant each relate to LoRAs?", 2),
        ("Compare the two pruning papers.", 2),
        ("What is the difference between GFlowNets and diffusion models?", 2),
        ("Which three papers study graphs?", 5),
        ("Which papers are about privacy?", 5),
        ("What is SVDQuant?", 0),
        ("how could I blend small tweaks without them fighting each other?", 0),
        ("What happens in each little group?", 0),
    ],
)
def test_comparisons_and_collections_want_several_papers(question: str, papers: int) -> None:
    assert papers_wanted(question) == papers


def test_the_sides_of_a_comparison_are_found() -> None:
    assert sides_of("BuNN vs PIORF: which is faster?") == ("BuNN", "PIORF")
    assert sides_of("What is the difference between message passing and diffusion?") == (
        "message passing",
        "diffusion",
    )
    assert sides_of("What is SVDQuant?") == ()


def test_names_are_told_from_words_and_common_abbreviations() -> None:
    question = "Does SVDQuant beat GPT-4o, τ-bench or PIORF on an LLM with A-Bench data?"
    assert names_in(question) == ("SVDQuant", "GPT-4o", "τ-bench", "PIORF", "A-Bench")
