"""From a question to an answer: retrieve, pick evidence, write, cite. A LlamaIndex query engine."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import RESPONSE_TYPE, Response
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import QueryBundle

from rag import prompts
from rag.answers import Answer, Evidence, Hit, Stage
from rag.citations import NOTHING_CITED, Cited, cite
from rag.conversation import Turn
from rag.drafts import Statement, parse, without_thoughts
from rag.errors import LLMError
from rag.evidence import Selected, names_apart, select_evidence
from rag.filters import NO_FILTERS, Filters
from rag.index import Index
from rag.languages import phrases
from rag.llms import Writer
from rag.questions import Asked, names_in, papers_wanted, sides_of
from rag.refusal import asks_for_a_thing, is_off_topic, says_more
from rag.retrieval import Retrieved, as_nodes, checked_question, retrieve
from rag.understanding import needs_llm, translator, understand
from rag.verification import Verifier

EXTRACTIVE = "extractive"

# An extractive answer is the best evidence: so many sentences, none this much below the best.
_EXTRACTED, _MUCH_BELOW = 3, 0.5
# How often a silent stream repeats its last snapshot, so that whoever reads it can stop it.
_HEARTBEAT_S = 0.2


@dataclass(frozen=True, slots=True)
class Options:
    """How to answer.

    k:            how many abstracts to retrieve
    filters:      which abstracts are admitted
    unsupported:  what becomes of a sentence that no retrieved sentence supports
    """

    k: int = 10
    filters: Filters = NO_FILTERS
    unsupported: Literal["drop", "mark"] = "drop"


DEFAULT_OPTIONS = Options()


def stream_answer(
    index: Index,
    writer: Writer | None,
    question: str,
    history: Sequence[Turn] = (),
    options: Options = DEFAULT_OPTIONS,
) -> Iterator[Answer]:
    """Growing snapshots of the answer to a question; the last one, stage "done", is complete.

    Each text begins with the text before it: a sentence is shown once it is checked. The first
    snapshot has the hits and the evidence, unless an LLM must first make the question stand by
    itself or translate it. While the LLM is silent the last snapshot comes again every fifth of
    a second. Closing the iterator stops the LLM. Without a writer the answer is extractive:
    the best evidence itself. An LLM that fails leaves an extractive answer with a warning.
    Raises UsageError for a question that cannot be asked.
    """
    run = _Run(index, writer, checked_question(question), history, options)
    return _watched(run.snapshots, run.cancel)


def last_of(snapshots: Iterator[Answer]) -> Answer:
    """The complete answer at the end of a stream."""
    *_, answer = snapshots
    return answer


class _Run:
    """One question on its way to its answer."""

    def __init__(
        self,
        index: Index,
        writer: Writer | None,
        question: str,
        history: Sequence[Turn],
        options: Options,
    ) -> None:
        self.cancel = threading.Event()
        self._index = index
        self._writer = writer
        self._question = question
        self._history = history
        self._options = options
        self._clock = _Clock()

    def snapshots(self) -> Iterator[Answer]:
        question, writer = self._question, self._writer
        answer = Answer(
            question=question,
            standalone_question=question,
            llm=writer.name if writer else EXTRACTIVE,
            stage="understanding",
        )
        if writer and needs_llm(question, self._history):
            yield answer
        understood = understand(question, self._history, writer, self.cancel)
        asked = understood.asked
        found = self._retrieved(asked)
        selected = select_evidence(self._index, found, self._papers(asked, found))
        self._clock.mark("retrieve_s")
        answer = replace(
            answer,
            standalone_question=asked.standalone,
            retrieved=found.hits,
            evidence=selected.evidence,
            warnings=(*understood.warnings, *self._notes(found, selected)),
            timings=self._clock.timings,
            stage="reading",
        )
        yield answer
        closing_words = _ClosingWords(asked, translator(asked.language, writer, self.cancel))
        # No LLM is asked about what is off topic.
        if not selected.evidence or is_off_topic(found.hits):
            yield self._refused(answer, closing_words)
        elif writer is None:
            yield self._extracted(answer)
        else:
            yield from self._written(answer, writer, asked, selected, closing_words)

    def _retrieved(self, asked: Asked) -> Retrieved:
        """What the question finds and, when it compares, what each of its sides finds."""
        options = self._options
        found = retrieve(self._index, asked.searched, options.k, options.filters)
        if asked.searched != asked.english:
            # What was said before helps to find the abstract, and hides the sentence in it.
            vector = self._index.embedding.embed([asked.english])[0]
            found = replace(found, question=asked.english, vector=vector)
        for side in sides_of(asked.english):
            best = retrieve(self._index, side, 1, options.filters)
            found = found.joined(best, options.k)
        return found

    def _papers(self, asked: Asked, found: Retrieved) -> int:
        """How many abstracts to lay side by side; those that hold one name each count too."""
        wanted = papers_wanted(asked.english)
        return wanted or (2 if names_apart(names_in(asked.english), found.hits) else 0)

    def _notes(self, found: Retrieved, selected: Selected) -> Iterator[str]:
        if self._options.filters and not found.hits:
            yield "no abstract fulfils the filters"
        if selected.ignored:
            yield (
                f"left {selected.ignored} sentence(s) unread that give orders to a model rather "
                "than state something"
            )

    def _written(
        self,
        answer: Answer,
        writer: Writer,
        asked: Asked,
        selected: Selected,
        closing_words: _ClosingWords,
    ) -> Iterator[Answer]:
        desk = _Desk(
            asked.english, answer.evidence, self._verifier(), closing_words.say, self._options
        )
        draft = ""
        try:
            for delta in writer.write(asked.english, selected, self.cancel):
                draft += delta
                if delta and not prompts.may_become_refusal(draft):
                    self._clock.mark("first_token_s")
                    yield self._with(answer, desk.growing(draft), "writing")
        except LLMError as error:
            if not draft:
                warnings = (*answer.warnings, f"{error}; this answer is extractive")
                yield self._extracted(replace(answer, llm=EXTRACTIVE, warnings=warnings))
                return
            warnings = (*answer.warnings, f"{error}; the answer is incomplete")
            answer = replace(answer, warnings=warnings)
        yield from self._finished(answer, draft, desk, closing_words)

    def _finished(
        self, answer: Answer, draft: str, desk: _Desk, closing_words: _ClosingWords
    ) -> Iterator[Answer]:
        if prompts.is_refusal(without_thoughts(draft)):
            yield self._refused(answer, closing_words)
            return
        growing = _Growing(NOTHING_CITED, "")
        for growing in desk.finished(draft):
            if growing.cited.text:
                yield self._with(answer, growing, "writing")
        if not growing.cited.claims:
            warnings = (*answer.warnings, *growing.cited.warnings)
            yield self._refused(replace(answer, warnings=warnings), closing_words)
            return
        done = self._with(answer, growing, "done")
        _, missing = prompts.without_missing(draft)
        yield replace(done, text=closing_words.with_missing(done.text, missing))

    def _extracted(self, answer: Answer) -> Answer:
        """The best evidence as the answer, in the order it stands in its abstracts."""
        statements = [
            Statement(" ".join(item.quote.split()), (number,))
            for number, item in enumerate(answer.evidence[:_EXTRACTED], start=1)
            if item.score > answer.evidence[0].score - _MUCH_BELOW
        ]
        self._clock.mark("first_token_s")
        cited = cite(statements, answer.evidence, Verifier())
        return self._with(answer, _Growing(cited, ""), "done")

    def _with(self, answer: Answer, growing: _Growing, stage: Stage) -> Answer:
        if stage == "done":
            self._clock.mark("total_s")
        cited = growing.cited
        return replace(
            answer,
            text=cited.text,
            claims=cited.claims,
            citations=cited.citations,
            pending=growing.pending,
            warnings=(*answer.warnings, *cited.warnings),
            timings=self._clock.timings,
            stage=stage,
        )

    def _refused(self, answer: Answer, closing_words: _ClosingWords) -> Answer:
        self._clock.mark("first_token_s")
        self._clock.mark("total_s")
        return replace(
            answer,
            text=closing_words.refusal(answer.retrieved, answer.evidence),
            citations=(),
            claims=(),
            pending="",
            answerable=False,
            timings=self._clock.timings,
            stage="done",
        )

    def _verifier(self) -> Verifier:
        return Verifier(self._index.catalogue.idf, self._index.embedding.embed)


@dataclass(frozen=True, slots=True)
class _Growing:
    """What of a draft is settled, and the sentence that is not."""

    cited: Cited
    pending: str


class _Desk:
    """Checks a draft as it grows; what was checked is not checked again.

    `say` puts what was checked to the reader. It may ask the LLM, which writes the draft, so
    it waits until the draft is finished.
    """

    def __init__(
        self,
        question: str,
        evidence: Sequence[Evidence],
        verifier: Verifier,
        say: Callable[[str], str],
        options: Options,
    ) -> None:
        self._question = question
        self._evidence = evidence
        self._verifier = verifier
        self._say = say
        self._keep = options.unsupported == "mark"
        self._last: tuple[tuple[Statement, ...], Cited] = ((), NOTHING_CITED)

    def growing(self, draft: str) -> _Growing:
        """What is settled of an unfinished draft."""
        written, _ = prompts.without_missing(draft)
        parsed = parse(written, final=False)
        settled = parsed.statements if self._say is str else ()
        return _Growing(self._cited(settled), parsed.pending)

    def finished(self, draft: str) -> Iterator[_Growing]:
        """A finished draft; sentence by sentence where none was shown yet."""
        written, _ = prompts.without_missing(draft)
        statements = parse(written, final=True).statements
        first = len(statements) if self._say is str else 1
        for number in range(first, len(statements) + 1):
            yield _Growing(self._cited(statements[:number]), "")

    def _cited(self, statements: tuple[Statement, ...]) -> Cited:
        if self._last[0] != statements:
            telling = [told for s in statements for told in self._told(s)]
            cited = cite(telling, self._evidence, self._verifier, self._keep, self._say)
            self._last = (statements, cited)
        return self._last[1]

    def _told(self, statement: Statement) -> Iterator[Statement]:
        """A statement that says more than the question; for an echo of it, what it cites."""
        if says_more(statement.text, self._question):
            yield statement
        elif not asks_for_a_thing(self._question):
            for number in statement.numbers[:1]:
                if 1 <= number <= len(self._evidence):
                    quote = " ".join(self._evidence[number - 1].quote.split())
                    yield replace(statement, text=quote, numbers=(number,))


class _ClosingWords:
    """What an answer says of itself: that something is not in the abstracts."""

    def __init__(self, asked: Asked, say: Callable[[str], str]) -> None:
        self.say = say
        self._asked = asked
        self._phrases = phrases(asked.language)

    def refusal(self, hits: Sequence[Hit], evidence: Sequence[Evidence]) -> str:
        """That the abstracts do not answer, and what the nearest one does cover."""
        if is_off_topic(hits) or not evidence:
            return self._phrases.unanswered
        name = evidence[0].record.label
        # Without a title or a name of its own an abstract is labelled by its first words.
        closest = self._phrases.closest if "…" in name else self._phrases.named.format(name)
        return f"{self._phrases.unanswered} {closest} “{' '.join(evidence[0].quote.split())}”"

    def with_missing(self, text: str, missing: Sequence[str]) -> str:
        if not missing:
            return text
        asked = "; ".join(part.rstrip(" ?？.") for part in missing)
        return f"{text}\n\n{self._phrases.missing.format(asked)}"


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


def _watched(work: Callable[[], Iterator[Answer]], cancel: threading.Event) -> Iterator[Answer]:
    """The snapshots of work that is done in a thread of its own; the last again in silence.

    A generator can only be stopped between two values, and an LLM that reads a long prompt
    gives none: so the silence is given out, and closing this iterator sets `cancel`.
    """
    found: queue.Queue[Answer | BaseException | None] = queue.Queue()

    def run() -> None:
        try:
            for answer in work():
                found.put(answer)
                if cancel.is_set():
                    return
            found.put(None)
        except BaseException as error:  # given to the reader, who raises it
            found.put(error)

    threading.Thread(target=run, name="answer", daemon=True).start()
    last: Answer | None = None
    try:
        while True:
            try:
                item = found.get(timeout=_HEARTBEAT_S)
            except queue.Empty:
                if last is not None:
                    yield last
                continue
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            last = item
            yield item
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
        options = replace(DEFAULT_OPTIONS, k=self._k)
        question = query_bundle.query_str
        answer = last_of(stream_answer(self._abstracts, self._writer, question, (), options))
        nodes = as_nodes(answer.retrieved)
        return Response(answer.text, source_nodes=nodes, metadata={"answer": answer})

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        # In a thread: a local LLM would hold the event loop, and every other user, for seconds.
        return await asyncio.to_thread(self._query, query_bundle)

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {}
