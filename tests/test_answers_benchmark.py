"""The foreign engine of benchmarks/answers.py as something that gives Answers."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import (
    CompletionResponse,
    CompletionResponseGen,
    CustomLLM,
    LLMMetadata,
)

from rag.evaluation import Question, run_questions, summarise
from rag.records import Record, Source

FILE = Path(__file__).parent.parent / "benchmarks" / "answers.py"
TEA = Record("tea", "Tea is hot. TeaBench has 312 tasks.", Source("/d/000.txt", 1))
ICE = Record("ice", "Ice is cold.\n\nIt melts.", Source("/d/000.txt", 2), title="On ice")


@pytest.fixture(scope="module")
def answers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("answers_benchmark", FILE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["answers_benchmark"] = module
    spec.loader.exec_module(module)
    return module


class Scripted(CustomLLM):
    """Says the same to every prompt, a word at a time."""

    reply: str

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="scripted")

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=self.reply)

    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        text = ""
        for word in self.reply.split(" "):
            delta = f" {word}" if text else word
            text += delta
            yield CompletionResponse(text=text, delta=delta)


def asker(answers: ModuleType, reply: str, *records: Record) -> Any:
    index = VectorStoreIndex.from_documents(
        answers.documents(records), embed_model=MockEmbedding(embed_dim=4)
    )
    return answers.CitationAsker(index, Scripted(reply=reply), "scripted", records)


def test_its_markers_become_citations_of_whole_sources(answers: ModuleType) -> None:
    answer = asker(answers, "Tea is hot [1], [Source 2] [1, 7].", TEA, ICE).ask("q")
    assert answer.answerable
    assert answer.text == "Tea is hot [1], [Source 2] [1, 7]."
    assert [citation.marker for citation in answer.citations] == [1, 2]
    for citation in answer.citations:
        assert citation.quote == citation.record.abstract[citation.start : citation.end]
        assert citation.quote == citation.record.abstract
    assert answer.warnings == ("[7] stands for no source",)
    assert {hit.record.id for hit in answer.retrieved} == {"tea", "ice"}
    assert set(answer.timings) == {"retrieve_s", "first_token_s", "total_s"}


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("", True),
        ("Empty Response", True),
        ("The number of tasks is not explicitly mentioned in the sources [1].", True),
        ("The provided sources do not contain this. Tea is hot [1].", True),
        ("There is no information about it.", True),
        ("None of the sources are helpful.", True),
        ("TeaBench has 312 tasks [1]. Its cost is not mentioned.", False),
        ("It does not melt [1].", False),
    ],
)
def test_a_refusal_is_told_by_its_first_sentence(
    answers: ModuleType, text: str, refusal: bool
) -> None:
    assert answers.is_refusal(text) is refusal


def test_a_refusal_cites_nothing(answers: ModuleType) -> None:
    answer = asker(answers, "The sources do not say [1].", TEA).ask("q")
    assert (answer.answerable, answer.citations) == (False, ())


def test_it_is_scored_like_any_other(answers: ModuleType) -> None:
    engine = asker(answers, "It has 312 tasks [1].", TEA)
    question = Question(
        "1", "fact", "How many?", ("tea",), ("312",), evidence=("TeaBench has 312 tasks.",),
        standalone="How many tasks has TeaBench?",
    )  # fmt: skip
    runs = run_questions(engine, [question], searcher=engine)
    metrics = summarise(runs)["overall"]
    for name in ("key_fact_recall", "citation_precision", "exact_quotes", "evidence_recall",
                 "followup_recall_at_5"):  # fmt: skip
        assert metrics[name] == 1.0
    assert metrics["support_auc"] is None
    assert metrics["quote_words"] == len(TEA.abstract.split())
    shown = answers.table({"one": runs, "other": runs})
    assert [line.split()[:2] for line in shown.split("\n")[2:5]] == [
        ["fact"],
        ["one", "1.00"],
        ["other", "1.00"],
    ]
