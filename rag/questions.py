"""What kind of question is asked: its parts, and whether it compares or collects papers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rag.languages import ENGLISH

# A question of several parts is one sentence after another, or clauses that each begin with
# a question word: "How many images are there, and how were they chosen?"
_ENDS = re.compile(r"(?<=[?？])\s*(?=\S)")
_JOINT = re.compile(
    r",?\s+(?:and|or|but)\s+(?:also\s+)?(?="
    r"(?:(?:in|on|at|by|for|from|to|with|over|under|against)\s+)?"
    r"(?:what|which|who|whom|whose|when|where|why|how)\b)",
    re.IGNORECASE,
)
_ASKING = re.compile(r"\b(?:what|which|who|whom|whose|when|where|why|how)\b", re.IGNORECASE)
_DANGLES = re.compile(r"\b(?:what|which|who|whom|whose|when|where|why|how)$", re.IGNORECASE)
_MOST_PARTS, _SHORTEST_PART = 4, 3

_COMPARES = re.compile(
    r"\b(?:vs|versus|compar(?:e[sd]?|ing|isons?)|respectively)\b|"
    r"\bdiffer(?:s|ed|ent|ently|ences?)?\b.{0,60}\b(?:between|from|and)\b|"
    r"\b(?:each|both|either)(?: of)?(?: the(?:m|se)?| those)? "
    r"(?:one|case|papers?|works?|studies|study|methods?|approach(?:es)?|models?)\b|"
    r"\b\w+ and \w.{0,60} (?:each|both)\b|\b(?:in|does|do) each(?: one)?\s*[?,]|"
    r"\b(?:two|three|four|both|several) (?:\w+ ){0,4}"
    r"(?:papers|abstracts|works|studies|methods|approaches|models|benchmarks)\b",
    re.IGNORECASE,
)
_COLLECTS = re.compile(
    r"\b(?:which|what|any|list|name|find|show|all|other|how many)\b(?:\W+\w+){0,4}?\W+"
    r"(?:papers|abstracts|works|studies|articles|publications)\b",
    re.IGNORECASE,
)
_STOP = r"(?=\s*[?:;,.]|\s+(?:in|for|on|when|with respect|regarding|at)\b|\s*$)"
_SIDES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:between|compare|comparing)\s+(?P<a>[^?:;,.]{{2,60}}?)\s+(?:and|with|to|vs\.?|versus)\s+"
        rf"(?P<b>[^?:;,.]{{2,60}}?){_STOP}",
        rf"(?:^|[:;,.]\s*|\b(?:is|are|does|do|of)\s+)(?P<a>[^?:;,.]{{2,60}}?)\s+"
        rf"(?:vs\.?|versus|compared (?:to|with))\s+(?P<b>[^?:;,.]{{2,60}}?){_STOP}",
    )
)
# A capital or a digit behind a letter, a Greek letter with a hyphen, or several words with
# capitals within a sentence. What is in capitals alone is more often a common abbreviation,
# unless it is long.
_NAME = re.compile(
    r"(?<=[a-z,;:] )(?:[A-Z][a-z][\w-]* ){1,3}[A-Z][a-z][\w-]*|"
    r"(?<!\w)(?:[\u0370-\u03ff][-‑]\w+|"
    r"(?=[\w-]*[^\W\d_][\w-]*[A-Z\d])(?!(?:[A-Z]{1,4}s?|AI-\w+)\b(?!-))"
    r"[^\W_][\w-]*[^\W_])(?!\w)"
)
_COUNTS = {"two": 2, "both": 2, "three": 3, "four": 4}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and how it is to be taken.

    question:    as typed
    standalone:  the same by itself, what it leans on written out, in its own language
    english:     the standalone question in English, as far as an LLM could put it so
    searched:    what is searched for: `english`, and what helps to find what is meant
    language:    of the question and of the answer, ISO 639-1
    """

    question: str
    standalone: str
    english: str
    searched: str
    language: str = ENGLISH

    @classmethod
    def plain(cls, question: str) -> Asked:
        """A question that needs nothing."""
        return cls(question, question, question, question)


def parts_of(question: str) -> tuple[str, ...]:
    """The things that a question asks, in order; one when it asks one thing.

    Only the first part need make sense by itself: the others are to be read after it.
    """
    sentences = [part for part in _ENDS.split(question.strip()) if _ASKING.search(part)]
    found = [part for sentence in sentences for part in _clauses(sentence)]
    return tuple(found) if 1 < len(found) <= _MOST_PARTS else (question,)


def papers_wanted(question: str) -> int:
    """How many papers an answer should lay side by side; 0 when it asks about one matter.

    "A versus B" wants two, "which papers …" as many as there are: five at most.
    """
    if _COLLECTS.search(question):
        return 5
    if not _COMPARES.search(question):
        return 0
    counted = [n for word, n in _COUNTS.items() if re.search(rf"\b{word}\b", question, re.I)]
    return max(counted, default=2)


def sides_of(question: str) -> tuple[str, ...]:
    """What a comparison sets side by side, in its words; empty when it does not name both."""
    for pattern in _SIDES:
        if found := pattern.search(question):
            return found["a"].strip(), found["b"].strip()
    names = names_in(question)
    return names if len(names) > 1 and papers_wanted(question) else ()


def names_in(question: str) -> tuple[str, ...]:
    """The words of a question that look like the names of things: SVDQuant, GPT-4o, PIORF."""
    return tuple(dict.fromkeys(_NAME.findall(question)))


def _clauses(sentence: str) -> list[str]:
    clauses = [clause.strip(" ,;") for clause in _JOINT.split(sentence)]
    # "the what and why of LoRA", "where and when it was built" ask one thing.
    asks = all(_ASKING.search(clause) and not _DANGLES.search(clause) for clause in clauses)
    if asks and all(len(clause.split()) >= _SHORTEST_PART for clause in clauses):
        return clauses
    return [sentence.strip()]
