"""From a question to an answer: retrieve, pick evidence, write, cite. A LlamaIndex query engine."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import RESPONSE_TYPE, Response
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import QueryBundle

from rag import prompts
from rag.answers import Answer, Evidence, Hit
from rag.citations import Cited, Statement, cite, parse_draft
from rag.conversation import Asked
from rag.errors import LLMError
from rag.evidence import select_evidence
from rag.filters import NO_FILTERS, Filters
from rag.index import Index, Searched
from rag.llms import Writer
from rag.refusal import is_off_topic
from rag.retrieval import as_nodes, checked_question, retrieve

EXTRACTIVE = "extractive"

# An extractive answer is the best evidence: so many sentences, none this much below the best.
_EXTRACTED, _MUCH_BELOW = 3, 0.5
# How often a silent stream repeats its last snapshot, so that whoever reads it can stop it.
_HEARTBEAT_S = 0.2


def stream_answer(
    index: Searched, writer: Writer | None, asked: Asked, k: int, filters: Filters = NO_FILTERS
) -> Iterator[Answer]:
    """Growing snapshots of the answer to a question; the last one, stage "done", is complete.

    The first holds the hits and the evidence. While the LLM is silent the last snapshot
    comes again every fifth of a second. Closing the iterator stops the LLM. Without a writer the
    answer is extractive: the best evidence itself. An LLM that fails leaves an extractive
    answer with a warning. Raises UsageError for a question that cannot be asked.
    """
    clock = _Clock()
    question = checked_question(asked.question)
    with index.pinned() as snapshot:  # hits and evidence are of one corpus
        found = retrieve(snapshot, checked_question(asked.standalone), k, filters)
        selected = select_evidence(snapshot, found)
    evidence = selected.evidence
    asked = replace(asked, seeks_papers=selected.seeks_papers)
    clock.mark("retrieve_s")
    answer = Answer(
        question=question,
        standalone_question=asked.standalone,
        retrieved=found.hits,
        evidence=evidence,
        timings=clock.timings,
        llm=writer.name if writer else EXTRACTIVE,
        warnings=("no abstract fulfils the filters",) if filters and not found.hits else (),
        stage="reading",
    )
    yield answer
    # No LLM is asked about what is off topic.
    if not evidence or is_off_topic(found.hits):
        yield _refused(answer, clock)
    elif writer is None:
        yield _extracted(answer, clock)
    else:
        yield from _written(answer, writer, asked, clock)


def last_of(snapshots: Iterator[Answer]) -> Answer:
    """The complete answer at the end of a stream."""
    *_, answer = snapshots
    return answer


def _written(answer: Answer, writer: Writer, asked: Asked, clock: _Clock) -> Iterator[Answer]:
    draft, last = "", answer
    try:
        for delta in _pumped(writer, asked, answer.evidence):
            if delta:
                clock.mark("first_token_s")
                draft += delta
                last = _growing(answer, draft, clock)
            yield last
    except LLMError as error:
        if not draft:
            failed = replace(answer, warnings=(f"{error}; this answer is extractive",))
            yield _extracted(replace(failed, llm=EXTRACTIVE), clock)
            return
        answer = replace(answer, warnings=(f"{error}; the answer is incomplete",))
    yield _finished(answer, draft, clock)


def _growing(answer: Answer, draft: str, clock: _Clock) -> Answer:
    if prompts.may_become_refusal(draft):
        return replace(answer, timings=clock.timings)
    cited = cite(parse_draft(draft), answer.evidence, final=False)
    return _with(answer, cited, clock, stage="writing")


def _finished(answer: Answer, draft: str, clock: _Clock) -> Answer:
    if prompts.is_refusal(draft):
        return _refused(answer, clock)
    cited = cite(parse_draft(draft), answer.evidence)
    if not cited.citations:
        return _refused(replace(answer, warnings=(*answer.warnings, *cited.warnings)), clock)
    return _with(answer, cited, clock, stage="done")


def _extracted(answer: Answer, clock: _Clock) -> Answer:
    """The best evidence as the answer, in the order it stands in its abstracts."""
    statements = [
        Statement(" ".join(item.quote.split()), (number,))
        for number, item in enumerate(answer.evidence[:_EXTRACTED], start=1)
        if item.score > answer.evidence[0].score - _MUCH_BELOW
    ]
    clock.mark("first_token_s")
    return _with(answer, cite(statements, answer.evidence), clock, stage="done")


def _with(answer: Answer, cited: Cited, clock: _Clock, stage: Any) -> Answer:
    if stage == "done":
        clock.mark("total_s")
    return replace(
        answer,
        text=cited.text,
        citations=cited.citations,
        warnings=(*answer.warnings, *cited.warnings),
        timings=clock.timings,
        stage=stage,
    )


def _refused(answer: Answer, clock: _Clock) -> Answer:
    clock.mark("first_token_s")
    clock.mark("total_s")
    return replace(
        answer,
        text=_refusal_text(answer.retrieved),
        citations=(),
        answerable=False,
        timings=clock.timings,
        stage="done",
    )


def _refusal_text(hits: Sequence[Hit]) -> str:
    text = "The abstracts do not answer this question."
    if is_off_topic(hits):
        return text
    labels = " and ".join(f"“{hit.record.label}”" for hit in hits[:2])
    return f"{text} The closest ones: {labels}."


@dataclass(slots=True)
class _Clock:
    """Seconds since the question came, each moment marked once."""

    started: float = field(default_factory=time.perf_counter)
    marks: dict[str, float] = field(default_factory=dict)

    def mark(self, name: str) -> None:
        self.marks.setdefault(name, round(time.perf_counter() - self.started, 4))

    @property
    def timings(self) -> dict[str, float]:
        return dict(self.marks)


def _pumped(writer: Writer, asked: Asked, evidence: Sequence[Evidence]) -> Iterator[str]:
    """What a writer writes, from a thread of its own; an empty string when it is silent.

    A generator can only be stopped between two values, and an LLM that reads a long prompt
    gives none: so the silence is given out, and closing this iterator sets `cancel`.
    """
    cancel = threading.Event()
    pieces: queue.Queue[str | BaseException | None] = queue.Queue()

    def run() -> None:
        try:
            for delta in writer.write(asked, evidence, cancel):
                pieces.put(delta)
            pieces.put(None)
        except BaseException as error:  # given to the reader, who raises it
            pieces.put(error)

    thread = threading.Thread(target=run, name="writer", daemon=True)
    thread.start()
    try:
        while True:
            try:
                piece = pieces.get(timeout=_HEARTBEAT_S)
            except queue.Empty:
                yield ""
                continue
            if piece is None:
                return
            if isinstance(piece, BaseException):
                raise piece
            yield piece
    finally:
        cancel.set()


class AbstractQueryEngine(BaseQueryEngine):
    """A LlamaIndex query engine over an open index.

    `response.response` is the answer's text, `response.source_nodes` the retrieved abstracts,
    and `response.metadata["answer"]` the Answer itself.
    """

    def __init__(self, index: Index, writer: Writer | None, k: int = 10) -> None:
        super().__init__(callback_manager=CallbackManager())
        self._abstracts = index
        self._writer = writer
        self._k = k

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        question = query_bundle.query_str
        asked = Asked(question, question)
        answer = last_of(stream_answer(self._abstracts, self._writer, asked, self._k))
        nodes = as_nodes(answer.retrieved)
        return Response(answer.text, source_nodes=nodes, metadata={"answer": answer})

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        # In a thread: a local LLM would hold the event loop, and every other user, for seconds.
        return await asyncio.to_thread(self._query, query_bundle)

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {}
