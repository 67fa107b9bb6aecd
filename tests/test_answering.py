"""Answers over the real sample index; only the LLM's text is scripted."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence

import pytest

from rag.answering import AbstractQueryEngine, last_of, stream_answer
from rag.answers import Answer, Evidence
from rag.assistant import Assistant
from rag.conversation import Asked
from rag.errors import LLMError, UsageError

pytestmark = pytest.mark.slow

QUESTION = "By how much does UniMatch improve AUROC on MoleculeNet?"


class Scripted:
    """A writer that writes what it was given and remembers what it was asked."""

    name = "scripted"

    def __init__(self, *deltas: str | Exception, pause: float = 0.0) -> None:
        self.deltas = deltas
        self.pause = pause
        self.asked: list[Asked] = []
        self.cancelled = threading.Event()

    def write(
        self, asked: Asked, evidence: Sequence[Evidence], cancel: threading.Event
    ) -> Iterator[str]:
        self.asked.append(asked)
        for delta in self.deltas:
            if cancel.wait(self.pause):
                self.cancelled.set()
                return
            if isinstance(delta, Exception):
                raise delta
            yield delta


def answer(sample: Assistant, writer: Scripted | None, question: str = QUESTION) -> Answer:
    return last_of(stream_answer(sample._index, writer, Asked(question, question), 10))


def test_an_answer_cites_the_sentence_that_says_it(sample: Assistant) -> None:
    result = answer(sample, Scripted("UniMatch improves AUROC ", "by 2.87% [1]", "."))
    assert result.text == "UniMatch improves AUROC by 2.87% [1]."
    assert result.answerable
    (citation,) = result.citations
    assert "2.87% in AUROC" in citation.quote
    assert citation.record.abstract[citation.start : citation.end] == citation.quote
    assert citation.support > 0.9
    assert (result.llm, result.stage) == ("scripted", "done")
    assert set(result.timings) == {"retrieve_s", "first_token_s", "total_s"}


def test_snapshots_start_with_evidence_and_grow(sample: Assistant) -> None:
    writer = Scripted("UniMatch improves", " AUROC", " by 2.87% [1].", pause=0.01)
    asked = Asked(QUESTION, QUESTION)
    snapshots = list(stream_answer(sample._index, writer, asked, 10))
    assert (snapshots[0].stage, snapshots[0].text) == ("reading", "")
    assert snapshots[0].evidence
    assert snapshots[0].retrieved[0].record.label == "UniMatch"
    texts = [s.text for s in snapshots if s.stage == "writing"]
    assert texts[0] == "UniMatch improves"
    assert [len(t) for t in texts] == sorted(len(t) for t in texts)
    assert snapshots[-1] == answer(sample, writer) or snapshots[-1].text == texts[-1]


@pytest.mark.parametrize("draft", ["NOT FOUND", "Not found.", "NOT FOUND in the abstracts"])
def test_a_refusal_has_no_citation_and_says_so(sample: Assistant, draft: str) -> None:
    result = answer(sample, Scripted(draft[:3], draft[3:]))
    assert not result.answerable
    assert result.citations == ()
    assert "do not answer" in result.text
    assert "UniMatch" in result.text  # what comes closest


def test_an_answer_without_any_support_is_a_refusal(sample: Assistant) -> None:
    result = answer(sample, Scripted("Paris is the capital of France."))
    assert (result.answerable, result.citations) == (False, ())
    assert "Paris" not in result.text
    assert result.warnings


def test_an_off_topic_question_never_reaches_the_llm(sample: Assistant) -> None:
    writer = Scripted("Use flour [1].")
    result = answer(sample, writer, "How do I keep a sourdough starter alive in the fridge?")
    assert (result.answerable, writer.asked) == (False, [])


def test_without_an_llm_the_answer_is_the_best_evidence(sample: Assistant) -> None:
    result = answer(sample, None)
    assert result.llm == "extractive"
    assert "2.87% in AUROC" in result.citations[0].quote
    assert all(c.support == 1.0 for c in result.citations)


def test_closing_the_stream_stops_the_writer(sample: Assistant) -> None:
    writer = Scripted("UniMatch ", *["is good "] * 500, pause=0.02)
    stream = stream_answer(sample._index, writer, Asked(QUESTION, QUESTION), 10)
    while next(stream).stage != "writing":
        pass
    stream.close()  # type: ignore[attr-defined]
    assert writer.cancelled.wait(1.0)


def test_a_silent_writer_does_not_silence_the_stream(sample: Assistant) -> None:
    writer = Scripted("UniMatch improves it [1].", pause=1.0)
    stream = stream_answer(sample._index, writer, Asked(QUESTION, QUESTION), 10)
    next(stream)
    started = time.perf_counter()
    assert next(stream).stage == "reading"
    assert time.perf_counter() - started < 0.9
    stream.close()  # type: ignore[attr-defined]


def test_a_failing_llm_leaves_an_extractive_answer_and_a_warning(sample: Assistant) -> None:
    result = answer(sample, Scripted(LLMError("the server at X refused")))
    assert result.llm == "extractive"
    assert result.citations
    assert "the server at X refused" in result.warnings[0]


def test_an_llm_that_dies_while_writing_keeps_what_is_supported(sample: Assistant) -> None:
    result = answer(sample, Scripted("UniMatch improves AUROC by 2.87% [1]. And", LLMError("gone")))
    assert result.text == "UniMatch improves AUROC by 2.87% [1]."
    assert "gone" in result.warnings[0]


@pytest.mark.parametrize("question", ["", "  \n", "word " * 20_000, "\x00\ud800", None])
def test_a_question_that_cannot_be_asked_is_refused(sample: Assistant, question: str) -> None:
    with pytest.raises(UsageError, match="question"):
        answer(sample, None, question)


def test_the_query_engine_gives_the_same_answer_with_nodes(sample: Assistant) -> None:
    writer = Scripted("UniMatch improves AUROC by 2.87% [1].")
    response = AbstractQueryEngine(sample._index, writer).query(QUESTION)
    direct = answer(sample, writer)
    assert str(response) == direct.text
    assert response.metadata["answer"].citations == direct.citations
    assert [n.node.node_id for n in response.source_nodes] == [
        hit.record.id for hit in direct.retrieved
    ]
