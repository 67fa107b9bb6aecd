"""From a question to an answer: understand, retrieve, pick evidence, write, verify, cite."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from rag import prompts
from rag.answers import Answer, Evidence, Stage
from rag.background import watched
from rag.citations import NOTHING_CITED, Cited, cite
from rag.closing import ClosingWords
from rag.conversation import Turn
from rag.drafts import Statement, parse, without_thoughts
from rag.errors import LLMError
from rag.evidence import Selected, names_apart, select_evidence
from rag.filters import NO_FILTERS, Filters
from rag.index import Searched
from rag.llms import Writer
from rag.questions import Asked, names_in, papers_wanted, sides_of
from rag.refusal import asks_for_a_thing, is_off_topic, says_more
from rag.retrieval import Retrieved, checked_question, retrieve
from rag.understanding import needs_llm, translator, understand
from rag.verification import Verifier

EXTRACTIVE = "extractive"

# An extractive answer is the best evidence: so many sentences, none this much below the best.
_EXTRACTED, _MUCH_BELOW = 3, 0.5


# A question with more names than this is a list of what one paper was tried on.
_MOST_NAMES = 4
_NO_WORD = "\0"


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
    index: Searched,
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
    return watched(run.snapshots, run.cancel)


def last_of(snapshots: Iterator[Answer]) -> Answer:
    """The complete answer at the end of a stream."""
    *_, answer = snapshots
    return answer


class _Run:
    """One question on its way to its answer."""

    def __init__(
        self,
        index: Searched,
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
        # Hits, evidence and words are of one corpus, whatever is ingested meanwhile.
        with self._index.pinned() as held:
            self._index = held
            yield from self._answered()

    def _answered(self) -> Iterator[Answer]:
        question, writer = self._question, self._writer
        answer = Answer(
            question=question,
            standalone_question=question,
            llm=writer.name if writer else EXTRACTIVE,
            stage="understanding",
        )
        if writer and needs_llm(question, self._history, self._knows):
            yield answer
        understood = understand(question, self._history, writer, self.cancel, self._knows)
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
        closing_words = ClosingWords(asked, translator(asked.language, writer, self.cancel))
        # No LLM is asked about what is off topic.
        if not selected.evidence or is_off_topic(found.hits):
            yield self._refused(answer, closing_words)
        elif writer is None:
            yield self._extracted(answer)
        else:
            yield from self._written(answer, writer, asked, selected, closing_words)

    def _knows(self, term: str) -> bool:
        """Whether a stemmed word stands in any abstract."""
        return self._index.catalogue.idf(term) < self._index.catalogue.idf(_NO_WORD)

    def _retrieved(self, asked: Asked) -> Retrieved:
        """What the question finds and, when it compares, what each of its sides finds."""
        options = self._options
        found = retrieve(self._index, asked.searched, options.k, options.filters)
        if asked.searched != asked.english:
            # What was said before helps to find the abstract, and hides the sentence in it.
            vector = self._index.embedding.embed_query(asked.english)
            found = replace(found, question=asked.english, vector=vector)
        for side in sides_of(asked.english) or self._named(asked.english):
            best = retrieve(self._index, side, 1, options.filters)
            found = found.joined(best, options.k)
        return found

    def _named(self, question: str) -> tuple[str, ...]:
        """The names in a question that has several; each may be of another abstract."""
        names = names_in(question)
        return names if 1 < len(names) <= _MOST_NAMES else ()

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
        closing_words: ClosingWords,
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
        self, answer: Answer, draft: str, desk: _Desk, closing_words: ClosingWords
    ) -> Iterator[Answer]:
        if not without_thoughts(draft).strip():
            warnings = (*answer.warnings, "the LLM gave no answer; this one is extractive")
            yield self._extracted(replace(answer, llm=EXTRACTIVE, warnings=warnings))
            return
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

    def _refused(self, answer: Answer, closing_words: ClosingWords) -> Answer:
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
        written, _ = prompts.without_missing(prompts.without_start_of_missing(draft))
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
            cited = cite(
                telling, self._evidence, self._verifier, self._keep, self._say, self._question
            )
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
