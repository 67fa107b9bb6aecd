"""Answers over the real sample index; only the LLM's text is scripted."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Sequence

import pytest

from rag.answering import DEFAULT_OPTIONS, Options, last_of, stream_answer
from rag.answers import Answer
from rag.assistant import Assistant
from rag.conversation import Turn
from rag.errors import LLMError, UsageError
from rag.evidence import Selected
from rag.llamaindex import AbstractQueryEngine

pytestmark = pytest.mark.slow

QUESTION = "By how much does UniMatch improve AUROC on MoleculeNet?"


class Scripted:
    """A writer that writes what it was given and remembers what it was asked.

    `replies` are given to short requests (rewriting, translation), in order.
    """

    name = "scripted"

    def __init__(
        self, *deltas: str | Exception, pause: float = 0.0, replies: Sequence[str] = ()
    ) -> None:
        self.deltas = deltas
        self.pause = pause
        self.replies = list(replies)
        self.requests: list[str] = []
        self.asked: list[tuple[str, Selected]] = []
        self.cancelled = threading.Event()

    def complete(self, message: str, max_tokens: int, cancel: threading.Event) -> str:
        self.requests.append(message)
        return self.replies.pop(0) if self.replies else ""

    def write(self, question: str, selected: Selected, cancel: threading.Event) -> Iterator[str]:
        self.asked.append((question, selected))
        for delta in self.deltas:
            if cancel.wait(self.pause):
                self.cancelled.set()
                return
            if isinstance(delta, Exception):
                raise delta
            yield delta


def answer(
    sample: Assistant,
    writer: Scripted | None,
    question: str = QUESTION,
    history: Sequence[Turn] = (),
    options: Options = DEFAULT_OPTIONS,
) -> Answer:
    return last_of(stream_answer(sample._index, writer, question, history, options))


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
    snapshots = list(stream_answer(sample._index, writer, QUESTION))
    assert (snapshots[0].stage, snapshots[0].text) == ("reading", "")
    assert snapshots[0].evidence
    assert snapshots[0].retrieved[0].record.label == "UniMatch"
    pending = [s.pending for s in snapshots if s.stage == "writing" and s.pending]
    assert pending[0] == "UniMatch improves"
    assert [len(p) for p in pending] == sorted(len(p) for p in pending)
    assert (snapshots[-1].text, snapshots[-1].pending) == (
        "UniMatch improves AUROC by 2.87% [1].",
        "",
    )


def test_a_sentence_is_shown_once_it_is_checked_and_never_taken_back(sample: Assistant) -> None:
    draft = (
        "UniMatch improves AUROC by 2.87% [1]. Paris is the capital of France [1]. "
        "It gains 6.52% in ∆AUPRC [1]."
    )
    writer = Scripted(*draft.split(" ")[:1], *(f" {word}" for word in draft.split(" ")[1:]))
    texts = [s.text for s in stream_answer(sample._index, writer, QUESTION)]
    assert all(now.startswith(before) for before, now in itertools.pairwise(texts))
    assert not any("Paris" in text for text in texts)
    assert texts[-1].count("[1]") == 2


def test_streamed_or_not_the_answer_is_the_same(sample: Assistant) -> None:
    draft = "UniMatch improves AUROC by 2.87% [1]. It gains 6.52% in ∆AUPRC [1]."
    whole = answer(sample, Scripted(draft))
    growing = answer(sample, Scripted(*draft))
    assert (whole.text, whole.citations) == (growing.text, growing.citations)


def test_unsupported_sentences_are_marked_by_choice(sample: Assistant) -> None:
    draft = "UniMatch improves AUROC by 2.87% [1]. Paris is the capital of France."
    dropped = answer(sample, Scripted(draft))
    marked = answer(sample, Scripted(draft), options=Options(unsupported="mark"))
    assert "Paris" not in dropped.text
    assert "Paris" in marked.text
    assert [claim.supported for claim in marked.claims] == [True, False]
    assert dropped.warnings
    assert marked.warnings
    assert dropped.support > marked.support


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
    stream = stream_answer(sample._index, writer, QUESTION)
    while next(stream).stage != "writing":
        pass
    stream.close()  # type: ignore[attr-defined]
    assert writer.cancelled.wait(1.0)


def test_a_silent_writer_does_not_silence_the_stream(sample: Assistant) -> None:
    writer = Scripted("UniMatch improves it [1].", pause=1.0)
    stream = stream_answer(sample._index, writer, QUESTION)
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


HISTORY = (
    {"role": "user", "content": "What is UniMatch?"},
    {"role": "assistant", "content": "A network for few-shot molecular property prediction [1]."},
)


def test_a_follow_up_is_rewritten_shown_and_answered(sample: Assistant) -> None:
    rewritten = "By how much does UniMatch improve AUROC?"
    writer = Scripted("UniMatch improves AUROC by 2.87% [1].", replies=[rewritten])
    result = answer(sample, writer, "by how much does it improve AUROC?", HISTORY)
    assert (result.question, result.standalone_question) == (
        "by how much does it improve AUROC?",
        rewritten,
    )
    assert writer.asked[0][0] == rewritten
    assert result.retrieved[0].record.label == "UniMatch"


@pytest.mark.parametrize("reply", ["", "Sure! The answer is 5 [1].", "What is the moon made of?"])
def test_a_rewriting_that_strays_is_not_used(sample: Assistant, reply: str) -> None:
    writer = Scripted("UniMatch improves AUROC by 2.87% [1].", replies=[reply])
    result = answer(sample, writer, "by how much does it improve AUROC?", HISTORY)
    assert result.standalone_question == "by how much does it improve AUROC? (UniMatch)"


@pytest.mark.parametrize("question", [QUESTION, "Which algorithm minimises spectral risks?"])
def test_a_question_that_stands_by_itself_is_not_rewritten(
    sample: Assistant, question: str
) -> None:
    for history in ((), HISTORY):
        writer = Scripted("NOT FOUND")
        assert answer(sample, writer, question, history).standalone_question == question
        assert writer.requests == []


def test_a_topic_change_leaves_the_old_sources_behind(sample: Assistant) -> None:
    result = answer(sample, None, "What does the SOREL algorithm minimise?", HISTORY)
    assert "UniMatch" not in {c.record.label for c in result.citations}


def test_a_question_in_another_language_is_searched_in_english_and_answered_in_its_own(
    sample: Assistant,
) -> None:
    writer = Scripted(
        "UniMatch improves AUROC by 2.87% [1].",
        replies=["By how much does UniMatch improve AUROC?", "UniMatch mejora el AUROC un 2.87%."],
    )
    result = answer(sample, writer, "¿Cuánto mejora UniMatch el AUROC?")
    assert result.text == "UniMatch mejora el AUROC un 2.87% [1]."
    assert "2.87% in AUROC" in result.citations[0].quote
    assert result.standalone_question == "¿Cuánto mejora UniMatch el AUROC?"


def test_nothing_is_translated_while_the_llm_still_writes(sample: Assistant) -> None:
    """A local LLM does one thing at a time: asked within its own draft it would wait for itself."""

    class OneAtATime(Scripted):
        writing = False

        def complete(self, message: str, max_tokens: int, cancel: threading.Event) -> str:
            assert not self.writing
            return super().complete(message, max_tokens, cancel)

        def write(
            self, question: str, selected: Selected, cancel: threading.Event
        ) -> Iterator[str]:
            self.writing = True
            yield from super().write(question, selected, cancel)
            self.writing = False

    writer = OneAtATime(
        "UniMatch improves AUROC by 2.87% [1]. ",
        "It gains 6.52% in ∆AUPRC [1].",
        replies=["How does UniMatch gain?", "AUROC: 2.87%.", "∆AUPRC: 6.52%."],
    )
    result = answer(sample, writer, "¿Cuánto mejora UniMatch el AUROC?")
    assert result.text == "AUROC: 2.87% [1]. ∆AUPRC: 6.52% [1]."


def test_a_translation_that_changes_a_number_is_not_shown(sample: Assistant) -> None:
    writer = Scripted(
        "UniMatch improves AUROC by 2.87% [1].",
        replies=["How does UniMatch gain?", "UniMatch: 3.87%."],
    )
    assert "2.87%" in answer(sample, writer, "¿Cuánto mejora UniMatch el AUROC?").text


def test_a_refusal_is_in_the_language_of_the_question(sample: Assistant) -> None:
    result = answer(sample, Scripted("NOT FOUND"), "¿Cuántas GPU usó UniMatch?")
    assert result.text.startswith("Los resúmenes no responden")


def test_what_is_missing_of_a_partly_answered_question_is_said(sample: Assistant) -> None:
    draft = "UniMatch improves AUROC by 2.87% [1].\nMISSING: how many GPUs it took"
    result = answer(sample, Scripted(draft))
    assert result.answerable
    assert result.text.endswith("The abstracts do not say: how many GPUs it took")
    assert len(result.citations) == 1


def test_a_comparison_reads_sentences_of_both_sides(sample: Assistant) -> None:
    writer = Scripted("NOT FOUND")
    answer(sample, writer, "UniMatch versus SOREL: what problem does each one solve?")
    selected = writer.asked[0][1]
    assert selected.way == "compare"
    assert {e.record.label for e in selected.evidence} == {"UniMatch", "SOREL"}


def test_a_very_long_question_is_answered_without_an_exception(sample: Assistant) -> None:
    long = f"{'some background on molecules and few-shot learning ' * 250} {QUESTION}"
    assert answer(sample, None, long).retrieved


def test_an_echo_of_a_yes_or_no_question_gives_way_to_what_it_cites(sample: Assistant) -> None:
    writer = Scripted("Yes, UniMatch outperforms other methods on MoleculeNet [1].")
    result = answer(sample, writer, "Does UniMatch outperform other methods on MoleculeNet?")
    assert result.text.removesuffix(" [1].") in " ".join(result.citations[0].quote.split())


def test_what_is_missing_takes_back_nothing_while_it_is_written(sample: Assistant) -> None:
    draft = "UniMatch improves AUROC by 2.87% [1]. **MISSING:** the price of [7] GPUs"
    texts = [s.text for s in stream_answer(sample._index, Scripted(*draft), QUESTION)]
    assert all(now.startswith(before) for before, now in itertools.pairwise(texts))
    assert texts[-1].endswith("The abstracts do not say: the price of GPUs")


def test_a_correction_of_the_question_may_repeat_what_it_denies(sample: Assistant) -> None:
    question = "Why does UniMatch improve AUROC by 5.31%?"
    draft = "UniMatch improves AUROC by 2.87%, not 5.31% [1]."
    assert "not 5.31%" in answer(sample, Scripted(draft), question).text
    assert "4.44%" not in answer(sample, Scripted(draft.replace("5.31", "4.44")), question).text


def test_what_a_translation_adds_as_a_marker_is_left_out(sample: Assistant) -> None:
    replies = ["By how much does UniMatch gain?", "UniMatch gana 2.87% [7] ［8］."]
    writer = Scripted("UniMatch improves AUROC by 2.87% [1].", replies=replies)
    assert answer(sample, writer, "¿Cuánto gana UniMatch?").text == "UniMatch gana 2.87% [1]."


@pytest.mark.parametrize("question", ["Is it raining in Paris?", "Who is the president of France?"])
def test_an_off_topic_turn_gets_no_topic_from_the_conversation(
    sample: Assistant, question: str
) -> None:
    writer = Scripted("It rains [1].")
    result = answer(sample, writer, question, HISTORY)
    assert (result.answerable, result.standalone_question) == (False, question)
    assert writer.asked == writer.requests == []


@pytest.mark.parametrize(
    "question",
    ["UniMatch or SOREL: which is faster?", "What do UniMatch and SOREL have in common?"],
)
def test_names_of_different_papers_are_each_searched(sample: Assistant, question: str) -> None:
    result = answer(sample, None, question)
    assert {e.record.label for e in result.evidence} == {"UniMatch", "SOREL"}


def test_an_llm_that_only_thinks_leaves_an_extractive_answer(sample: Assistant) -> None:
    result = answer(sample, Scripted("<think>Let me see. UniMatch"))
    assert (result.llm, result.answerable) == ("extractive", True)
    assert "gave no answer" in result.warnings[0]
