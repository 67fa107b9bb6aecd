"""How one question went, as counts, and the file that a run keeps them in, one a line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from rag.answers import Answer, Citation, Hit
from rag.errors import UsageError
from rag.evaluation.collections import ranking_metrics
from rag.evaluation.gold import gold_found, holds_fact, is_exact, is_gold, shows
from rag.evaluation.jsonl import json_lines
from rag.evaluation.questions import Question
from rag.records import Record


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one question went; `as_dict` and `from_dict` keep it as a JSON line.

    labels:             digest of the labels that it was scored by
    gold, gold_in_k:    gold abstracts, and those among the first k retrieved
    facts, facts_found: key facts, and those in the answer
    citations:          markers; `exact_quotes` of them quote their abstract exactly
    cited, cited_gold:  distinct cited abstracts, and those that are gold
    gold_cited:         gold abstracts that are cited
    gold_quotes:        citations of gold abstracts; `evidence_quotes` of them show a sentence
                        of the labelled evidence
    evidence:           sentences of evidence; `evidence_shown` of them by a cited quote
    quoted_words:       words of all quotes together
    support:            how far the answer says it is borne out; None when it does not say
    searched_in_5, standalone_in_5: for a follow-up with a rewrite by hand, the gold abstracts
                        among the first 5 for the question as searched, and for the rewrite
    retrieve_s, first_token_s, total_s: seconds
    """

    id: str
    type: str
    question: str
    labels: str
    standalone_question: str
    answer: str
    llm: str
    refused: bool
    gold: int
    gold_in_1: int
    gold_in_5: int
    gold_in_10: int
    ndcg_at_10: float
    facts: int
    facts_found: int
    citations: int
    exact_quotes: int
    cited: int
    cited_gold: int
    gold_cited: int
    gold_quotes: int
    evidence_quotes: int
    evidence: int
    evidence_shown: int
    quoted_words: int
    support: float | None
    searched_in_5: int | None
    standalone_in_5: int | None
    retrieve_s: float | None
    first_token_s: float | None
    total_s: float | None

    @property
    def right(self) -> bool:
        """Whether it is right: every key fact found, or refused where there is no gold."""
        if not self.gold:
            return self.refused
        return not self.refused and self.facts_found == self.facts

    def as_dict(self) -> dict[str, Any]:
        """The outcome as plain JSON data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Outcome:
        """Raises KeyError naming the fields that are missing; further ones are ignored."""
        names = [field.name for field in fields(cls)]
        if missing := [name for name in names if name not in row]:
            raise KeyError(", ".join(missing))
        return cls(**{name: row[name] for name in names})


@dataclass(frozen=True, slots=True)
class FollowUp:
    """What a search found for a follow-up as it was searched, and for its rewrite by hand."""

    searched: Sequence[Hit]
    standalone: Sequence[Hit]


def score(
    question: Question, answer: Answer, llm: str, follow_up: FollowUp | None = None
) -> Outcome:
    """Compare the answer of `llm` with the labels of its question."""
    retrieved = [hit.record for hit in answer.retrieved]
    cited = list({citation.record.id: citation.record for citation in answer.citations}.values())
    of_gold = [c for c in answer.citations if gold_found(question.gold, [c.record])]
    return Outcome(
        id=question.id,
        type=question.type,
        question=question.question,
        labels=question.labels,
        standalone_question=answer.standalone_question,
        answer=answer.text,
        llm=llm,
        refused=not answer.answerable,
        gold=len(question.gold),
        gold_in_1=gold_found(question.gold, retrieved[:1]),
        gold_in_5=gold_found(question.gold, retrieved[:5]),
        gold_in_10=gold_found(question.gold, retrieved[:10]),
        ndcg_at_10=_ndcg(question.gold, retrieved),
        facts=len(question.key_facts),
        facts_found=sum(holds_fact(answer.text, fact) for fact in question.key_facts),
        citations=len(answer.citations),
        exact_quotes=sum(is_exact(citation) for citation in answer.citations),
        cited=len(cited),
        cited_gold=sum(gold_found(question.gold, [record]) > 0 for record in cited),
        gold_cited=gold_found(question.gold, cited),
        gold_quotes=len(of_gold),
        evidence_quotes=sum(_shows_any(c, question.evidence) for c in of_gold),
        evidence=len(question.evidence),
        evidence_shown=sum(
            any(shows(c, sentence) for c in answer.citations) for sentence in question.evidence
        ),
        quoted_words=sum(len(citation.quote.split()) for citation in answer.citations),
        support=answer.support if answer.claims else None,
        searched_in_5=_in_5(question, follow_up.searched) if follow_up else None,
        standalone_in_5=_in_5(question, follow_up.standalone) if follow_up else None,
        retrieve_s=answer.timings.get("retrieve_s"),
        first_token_s=answer.timings.get("first_token_s"),
        total_s=answer.timings.get("total_s"),
    )


def read_outcomes(path: Path) -> dict[str, Outcome]:
    """The outcomes in a file by id, the last of each; raises UsageError on anything else."""
    outcomes = {}
    for number, row in json_lines(path):
        try:
            outcome = Outcome.from_dict(row)
        except KeyError as error:
            raise UsageError(
                f"{path}, line {number}: no result of `rag eval` as it is now, it lacks "
                f"{error.args[0]}; name another file, or delete this one"
            ) from None
        outcomes[outcome.id] = outcome
    return outcomes


def append(path: Path, outcome: Outcome) -> None:
    """Add an outcome to a file of outcomes."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(outcome.as_dict(), ensure_ascii=False) + "\n")


def _ndcg(gold: Sequence[str], retrieved: Sequence[Record]) -> float:
    if not gold:
        return 0.0
    ranking = [
        next((gold_id for gold_id in gold if is_gold(gold_id, record)), record.id)
        for record in retrieved
    ]
    return ranking_metrics(ranking, dict.fromkeys(gold, 1))["ndcg_at_10"]


def _shows_any(citation: Citation, sentences: Sequence[str]) -> bool:
    return any(shows(citation, sentence) for sentence in sentences)


def _in_5(question: Question, hits: Sequence[Hit]) -> int:
    return gold_found(question.gold, [hit.record for hit in hits[:5]])
