"""Questions drafted from one's own abstracts, for a person to correct.

Sentences that state something specific are taken from abstracts all over the collection, always
the same ones for the same collection. An LLM writes a question that each answers; without one
the question is the sentence with a gap. Every fifth question asks for a detail that its
abstract does not mention.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from llama_index.core.llms import LLM

from rag.errors import UsageError
from rag.llms.api import api_errors
from rag.records import Record
from rag.sentences import split_sentences

# Of so many questions one has no answer.
_NEAR_EVERY = 5
# Abstracts looked at for each question wanted: some hold no specific sentence.
_ABSTRACTS_A_QUESTION = 3
_SENTENCE_WORDS = (8, 60)
_QUESTION_WORDS = (4, 40)
_FACTS = 3
_SPECIFIC = 2

# Not the 1) of a list.
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*\s?(?:%|×|[KMB]\b)?(?![\w)])")
# CamelCase, acronyms, and names with a digit or a hyphen in them.
_NAME = re.compile(r"\b(?=\w*[A-Z0-9])(?:[A-Z]\w*[A-Z0-9]\w*|[a-z]+[A-Z]\w*)(?:-\w+)*")
# What the authors did or found, not what is known.
_FINDING = re.compile(
    r"\b(?:we|our|results?|experiments?|this (?:paper|work|study))\b", re.IGNORECASE
)
_LEANING = re.compile(
    r"^\W*(?:it|its|this|these|they|their|that|those|however|also)\b", re.IGNORECASE
)
_THOUGHTS = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL)
_QUOTES = "\"'“”‘’*` "

_PROMPT = """\
Here is a sentence from the abstract of the paper "{label}":

{sentence}

Write one short question that this sentence answers. Name the subject of the paper in the \
question, so that it can be understood by somebody who has not seen the sentence. Do not write \
"this sentence", "the paper" or "the authors", and do not give the answer away. Write the \
question alone."""

# A detail, the words that would mention it, and a question for it.
_DETAILS = (
    (r"gpu|hardware|cluster", "What hardware was used in the work on “{label}”?"),
    (r"fund|grant|sponsor", "Who funded the work on “{label}”?"),
    (r"cost|budget|dollar|\$\s?\d|€", "How much money did the work on “{label}” cost?"),
    (r"licen[sc]e", "Under which licence are the materials of “{label}” given out?"),
    (r"software|library|python|package|toolkit", "Which software was used for “{label}”?"),
    (r"months|weeks|years?\b|duration", "How many months did the work on “{label}” take?"),
)


class QuestionWriter(Protocol):
    """What writes a question for a sentence; an LLM behind it may be any."""

    @property
    def name(self) -> str: ...

    def write(self, prompt: str) -> str:
        """The answer to a prompt, whole. LLMError: there is none."""


@dataclass(frozen=True, slots=True)
class LLMWriter:
    """Any LlamaIndex LLM as a QuestionWriter."""

    llm: LLM
    name: str

    def write(self, prompt: str) -> str:
        with api_errors(self.llm):
            return str(self.llm.complete(prompt).text)


@dataclass(frozen=True, slots=True)
class Draft:
    """Drafted questions, as rows of a question file.

    by_template: how many questions are sentences with a gap, for want of a good one.
    """

    rows: tuple[dict[str, Any], ...]
    by_template: int


def draft_questions(
    records: Iterable[Record],
    wanted: int,
    writer: QuestionWriter | None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Draft:
    """Draft so many questions, fewer when the abstracts hold too few specific sentences.

    Raises UsageError when they hold none, LLMError when the writer fails.
    """
    sample = _sample(records, wanted * _ABSTRACTS_A_QUESTION)
    # A label that is cut short does not say what a question is about.
    named = sorted(sample, key=lambda record: record.label.endswith("…"))
    near = list(islice(_near_misses(named), wanted // _NEAR_EVERY))
    facts = list(islice(_specific(sample), wanted - len(near)))
    if not facts:
        raise UsageError("no sentence in the index states a number or a finding")
    rows, by_template = [], 0
    for number, (record, sentence) in enumerate(facts):
        if progress:
            progress(number, len(facts), record.id)
        question = _written(writer, record, sentence) if writer else ""
        by_template += not question
        rows.append(_fact_row(record, sentence, question or _with_gap(sentence)))
    numbered = [{"id": f"d{n:03}", **row} for n, row in enumerate([*rows, *near], start=1)]
    return Draft(tuple(numbered), by_template)


def write_draft(path: Path, draft: Draft) -> None:
    """Write the rows as a question file. Raises UsageError when there is a file already."""
    refuse_existing(path)
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in draft.rows)
    with path.open("x", encoding="utf-8") as file:
        file.writelines(lines)


def refuse_existing(path: Path) -> None:
    """Raise UsageError when the file is there, or cannot be."""
    if path.exists():
        raise UsageError(f"{path} exists, and may hold corrected questions: name another file")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent}; make it first")


def _sample(records: Iterable[Record], most: int) -> list[Record]:
    """Some of the records, as if drawn, but the same whatever their order."""

    def rank(record: Record) -> bytes:
        return hashlib.sha256(record.id.encode()).digest()

    return heapq.nsmallest(most, records, key=rank)


def _specific(records: Sequence[Record]) -> Iterator[tuple[Record, str]]:
    """The most specific sentence of each record, then the second of each, and so on."""
    ranked = [(record, _ranked(record.abstract)) for record in records]
    for place in range(max((len(sentences) for _, sentences in ranked), default=0)):
        for record, sentences in ranked:
            if place < len(sentences):
                yield record, sentences[place]


def _ranked(abstract: str) -> list[str]:
    sentences = [abstract[start:end] for start, end in split_sentences(abstract)]
    least, most = _SENTENCE_WORDS
    fit = [s for s in sentences if least <= len(s.split()) <= most and _specificity(s) >= _SPECIFIC]
    return sorted(fit, key=lambda sentence: -_specificity(sentence))


def _specificity(sentence: str) -> int:
    return (
        2 * bool(_NUMBER.search(sentence))
        + bool(_NAME.search(sentence))
        + 2 * bool(_FINDING.search(sentence))
        - 2 * bool(_LEANING.search(sentence))
    )


def _written(writer: QuestionWriter, record: Record, sentence: str) -> str:
    """A question by the writer; empty when what it wrote is none."""
    prompt = _PROMPT.format(label=record.label, sentence=" ".join(sentence.split()))
    text = _THOUGHTS.sub("", writer.write(prompt))
    lines = (line.strip(_QUOTES) for line in text.splitlines())
    question = next((line for line in lines if line.endswith(("?", "？"))), "")
    least, most = _QUESTION_WORDS
    return question if least <= len(question.split()) <= most else ""


def _with_gap(sentence: str) -> str:
    text = " ".join(sentence.split())
    facts = _facts(text)
    if not facts:
        return f"What is said about this: {' '.join(text.split()[:8])} …?"
    gap = re.sub(rf"(?<!\w){re.escape(facts[0])}(?!\w)", "…", text)
    return f"What belongs in the gap: “{gap}”?"


def _fact_row(record: Record, sentence: str, question: str) -> dict[str, Any]:
    facts = [fact for fact in _facts(sentence) if fact.casefold() not in question.casefold()]
    return {
        "type": "fact",
        "draft": True,
        "question": question,
        "gold": [record.id],
        "answer": " ".join(sentence.split()),
        "key_facts": facts[:_FACTS],
        "evidence": [sentence],
        "label": record.label,
    }


def _facts(sentence: str) -> list[str]:
    """The numbers and names of a sentence, in order."""
    found = [*_NUMBER.finditer(sentence), *_NAME.finditer(sentence)]
    ordered = sorted(found, key=lambda match: match.start())
    return list(dict.fromkeys(match.group().strip() for match in ordered))


def _near_misses(records: Sequence[Record]) -> Iterator[dict[str, Any]]:
    """A question a record, for a detail that the words of its abstract do not touch."""
    for number, record in enumerate(records):
        order = _DETAILS[number % len(_DETAILS) :] + _DETAILS[: number % len(_DETAILS)]
        for words, question in order:
            if not re.search(words, record.abstract, re.IGNORECASE):
                yield {
                    "type": "unanswerable_near",
                    "draft": True,
                    "question": question.format(label=record.label),
                    "gold": [],
                    "topic": record.id,
                    "answer": "The abstract does not say.",
                    "key_facts": [],
                    "evidence": [],
                    "label": record.label,
                }
                break
