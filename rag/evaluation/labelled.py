"""Answers to labelled questions, scored. Each metric is over the questions it applies to:

hit@1              first retrieved abstract is gold; share of questions with gold
recall@5           gold abstracts among the first 5 retrieved / gold; mean over such questions
key facts          key facts found in the answer / key facts, over all questions together;
                   a fact is variants joined by |, compared as case-insensitive substrings
all facts          share of questions with key facts whose answer holds every one
refused            share of questions answered by "the abstracts do not say"; good for
                   questions without gold, bad for those with it
exact quotes       citations with abstract[start:end] == quote / citations
citation precision cited abstracts that are gold / cited; mean over questions with gold that
                   cite something
citation recall    gold abstracts that are cited / gold; mean over questions with gold, a
                   refusal counting 0
timings            medians in seconds
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import fmean, median
from typing import Any, Protocol

from rag.answers import Answer, Citation
from rag.errors import UsageError
from rag.evaluation.jsonl import json_lines
from rag.records import Record

TIMINGS = ("retrieve_s", "first_token_s", "total_s")
_PLACE = re.compile(r"(\d{3})-(\d{2,})")
_DOI_ADDRESS = re.compile(r"https?://(?:dx\.)?doi\.org/", re.IGNORECASE)


class Asker(Protocol):
    """What answers the questions; Assistant is one."""

    @property
    def llm_name(self) -> str: ...

    def ask(self, question: str, history: Sequence[Mapping[str, str]] = ()) -> Answer: ...


@dataclass(frozen=True, slots=True)
class Question:
    """A labelled question. `gold` is empty when the abstracts do not answer it."""

    id: str
    type: str
    question: str
    gold: tuple[str, ...] = ()
    key_facts: tuple[str, ...] = ()
    history: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one question went, as counts; `as_dict` and `from_dict` keep it as a JSON line.

    `cited` counts distinct cited abstracts, `citations` counts markers.
    """

    id: str
    type: str
    question: str
    standalone_question: str
    answer: str
    llm: str
    refused: bool
    gold: int
    gold_first: bool
    gold_in_5: int
    facts: int
    facts_found: int
    citations: int
    exact_quotes: int
    cited: int
    cited_gold: int
    gold_cited: int
    retrieve_s: float | None
    first_token_s: float | None
    total_s: float | None

    def as_dict(self) -> dict[str, Any]:
        """The outcome as plain JSON data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Outcome:
        """Raises KeyError when a field is missing; further fields are ignored."""
        return cls(**{field.name: row[field.name] for field in fields(cls)})


def read_questions(
    path: Path, only: Sequence[str] = (), limit: int | None = None
) -> list[Question]:
    """The questions of a JSONL file, those of the types `only` when given, the first `limit`.

    Raises UsageError naming the line that is no question, or a type that no question has.
    """
    questions = [_question(path, number, row) for number, row in json_lines(path)]
    types = sorted({question.type for question in questions})
    for wanted in only:
        if wanted not in types:
            raise UsageError(f"no question of type {wanted!r} in {path}: use {', '.join(types)}")
    if only:
        questions = [question for question in questions if question.type in only]
    if not questions:
        raise UsageError(f"{path} holds no questions: give one JSON object a line")
    return questions[:limit]


def run_questions(
    asker: Asker,
    questions: Sequence[Question],
    out: Path | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Outcome]:
    """Ask every question and score its answer, in order.

    Each outcome is appended to `out` at once, and questions that `out` already holds are not
    asked again, so an interrupted run goes on where it stopped. `progress` gets the number of
    questions done, of all, and the id of the next. Raises UsageError when `out` is of another
    LLM, and whatever asking raises.
    """
    done = _read_outcomes(out, asker.llm_name) if out else {}
    outcomes = []
    for number, question in enumerate(questions):
        if progress:
            progress(number, len(questions), question.id)
        outcome = done.get(question.id)
        if outcome is None:
            answer = asker.ask(question.question, history=question.history)
            outcome = score(question, answer, asker.llm_name)
            if out:
                _append(out, outcome)
        outcomes.append(outcome)
    if progress:
        progress(len(questions), len(questions), "")
    return outcomes


def score(question: Question, answer: Answer, llm: str) -> Outcome:
    """Compare the answer of `llm` with the labels of its question."""
    retrieved = [hit.record for hit in answer.retrieved]
    cited = list({citation.record.id: citation.record for citation in answer.citations}.values())
    return Outcome(
        id=question.id,
        type=question.type,
        question=question.question,
        standalone_question=answer.standalone_question,
        answer=answer.text,
        llm=llm,
        refused=not answer.answerable,
        gold=len(question.gold),
        gold_first=_gold_found(question.gold, retrieved[:1]) > 0,
        gold_in_5=_gold_found(question.gold, retrieved[:5]),
        facts=len(question.key_facts),
        facts_found=sum(holds_fact(answer.text, fact) for fact in question.key_facts),
        citations=len(answer.citations),
        exact_quotes=sum(is_exact(citation) for citation in answer.citations),
        cited=len(cited),
        cited_gold=sum(_gold_found(question.gold, [record]) > 0 for record in cited),
        gold_cited=_gold_found(question.gold, cited),
        retrieve_s=answer.timings.get("retrieve_s"),
        first_token_s=answer.timings.get("first_token_s"),
        total_s=answer.timings.get("total_s"),
    )


def summarise(outcomes: Sequence[Outcome]) -> dict[str, dict[str, Any]]:
    """The metrics by question type, in order of first appearance, then under "overall".

    A metric is None where no question of the type can have it.
    """
    by_type: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_type.setdefault(outcome.type, []).append(outcome)
    return {name: _metrics(rows) for name, rows in [*by_type.items(), ("overall", outcomes)]}


def is_gold(gold_id: str, record: Record) -> bool:
    """Whether a gold id names this record.

    `000-04` is the fourth abstract of a file whose name starts with 000, in any of the
    record's sources; any other id is a record id or a DOI.
    """
    if place := _PLACE.fullmatch(gold_id):
        prefix, ordinal = place[1], int(place[2])
        return any(
            source.ordinal == ordinal and Path(source.path).name.startswith(prefix)
            for source in (record.source, *record.sources)
        )
    doi = _DOI_ADDRESS.sub("", gold_id).casefold()
    return gold_id == record.id or (bool(record.doi) and doi == record.doi.casefold())


def holds_fact(text: str, fact: str) -> bool:
    """Whether a text holds one of the variants of a key fact, joined by |."""
    variants = (variant.strip().casefold() for variant in fact.split("|"))
    return any(variant and variant in text.casefold() for variant in variants)


def is_exact(citation: Citation) -> bool:
    """Whether the quote is the very slice of the abstract that it claims to be."""
    slice_ = citation.record.abstract[citation.start : citation.end]
    return bool(citation.quote) and slice_ == citation.quote


def _gold_found(gold: Sequence[str], records: Sequence[Record]) -> int:
    return sum(any(is_gold(gold_id, record) for record in records) for gold_id in gold)


def _metrics(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    with_gold = [o for o in outcomes if o.gold]
    without_gold = [o for o in outcomes if not o.gold]
    citing = [o for o in with_gold if o.cited]
    with_facts = [o for o in outcomes if o.facts]
    return {
        "questions": len(outcomes),
        "hit_at_1": _mean(o.gold_first for o in with_gold),
        "recall_at_5": _mean(o.gold_in_5 / o.gold for o in with_gold),
        "key_fact_recall": _share(
            sum(o.facts_found for o in outcomes), sum(o.facts for o in outcomes)
        ),
        "all_facts": _mean(o.facts_found == o.facts for o in with_facts),
        "answered": _mean(not o.refused for o in outcomes),
        "wrongly_refused": _mean(o.refused for o in with_gold),
        "refusal_recall": _mean(o.refused for o in without_gold),
        "exact_quotes": _share(
            sum(o.exact_quotes for o in outcomes), sum(o.citations for o in outcomes)
        ),
        "citation_precision": _mean(o.cited_gold / o.cited for o in citing),
        "citation_recall": _mean(o.gold_cited / o.gold for o in with_gold),
        **{f"median_{name}": _median(getattr(o, name) for o in outcomes) for name in TIMINGS},
    }


def _mean(values: Iterable[float]) -> float | None:
    values = list(values)
    return fmean(values) if values else None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _question(path: Path, number: int, row: Mapping[str, Any]) -> Question:
    for name in ("id", "question"):
        if not isinstance(row.get(name), str) or not row[name].strip():
            raise UsageError(f"{path}, line {number}: {name} is missing or no text")
    for name in ("gold", "key_facts", "history"):
        if not isinstance(row.get(name, []), list):
            raise UsageError(f"{path}, line {number}: {name} is no list")
    return Question(
        id=row["id"],
        type=str(row.get("type", "question")),
        question=row["question"],
        gold=tuple(row.get("gold", ())),
        key_facts=tuple(row.get("key_facts", ())),
        history=tuple(row.get("history", ())),
    )


def _read_outcomes(path: Path, llm: str) -> dict[str, Outcome]:
    if not path.exists():
        return {}
    outcomes = {}
    for number, row in json_lines(path):
        try:
            outcome = Outcome.from_dict(row)
        except KeyError as error:
            raise UsageError(f"{path}, line {number}: no result of `rag eval` ({error})") from None
        if outcome.llm != llm:
            raise UsageError(f"{path} holds answers of {outcome.llm}, not {llm}: name another file")
        outcomes[outcome.id] = outcome
    return outcomes


def _append(path: Path, outcome: Outcome) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(outcome.as_dict(), ensure_ascii=False) + "\n")
