"""Right and wrong pairs of a sentence and its quotes, made from the sample abstracts by rules.

A wrong pair is a right one with one thing changed, as models get things wrong: the citation
moved to another abstract, a number, a negation, or a name. Everything is deterministic.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rag.facts import names
from rag.records import Record
from rag.sentences import split_sentences
from rag.sources import read_records
from rag.words import plain, terms


@dataclass(frozen=True)
class Pair:
    """A sentence, the quotes that it is said to rest on, and the abstract that holds these."""

    kind: str
    sentence: str
    quotes: tuple[str, ...]
    abstract: str


def records(folder: Path) -> list[Record]:
    files = sorted(folder.glob("*.txt"))
    return [item for f in files for item in read_records(f) if isinstance(item, Record)]


def sentences(abstract: str) -> list[str]:
    return [abstract[start:end] for start, end in split_sentences(abstract)]


def right_pairs(abstracts: Sequence[str]) -> Iterator[Pair]:
    """Each sentence itself, and what the paraphrasing rules make of it, against the sentence."""
    for abstract in abstracts:
        for sentence in sentences(abstract):
            for kind, change in (("itself", str), *_PARAPHRASES.items()):
                changed = change(sentence)
                if kind == "itself" or changed != sentence:
                    yield Pair(kind, changed, (sentence,), abstract)


def wrong_pairs(rights: Sequence[Pair], abstracts: Sequence[str]) -> Iterator[Pair]:
    """Each right pair with one thing wrong, in every way that applies to it."""
    rng = random.Random(7)
    for right in rights:
        others = [abstract for abstract in abstracts if abstract != right.abstract]
        other = rng.choice(others)
        yield Pair("moved", right.sentence, _closest(right.sentence, other), other)
        for kind, change in _MISTAKES.items():
            changed = change(right, other, rng)
            if changed != right.sentence:
                yield Pair(kind, changed, right.quotes, right.abstract)


def _closest(sentence: str, abstract: str) -> tuple[str, ...]:
    """The two sentences of an abstract that share most words with a sentence."""
    words = set(terms(sentence))
    return tuple(sorted(sentences(abstract), key=lambda s: -len(words & set(terms(s))))[:2])


# --- mistakes -----------------------------------------------------------------------------------

_NUMBER = re.compile(r"(?<![\w.^_{-])\d+(?:[.,]\d+)*(?![\w}])")
_COUNT = re.compile(r"\b(two|three|four|five|six)\b")
_AUXILIARY = re.compile(r"\b(is|are|was|were|can|could|will|would|should|may)\b(?! not)")
_FINITE = {
    "achieves": "achieve", "outperforms": "outperform", "improves": "improve", "uses": "use",
    "allows": "allow", "enables": "enable", "shows": "show", "reduces": "reduce",
    "provides": "provide", "requires": "require", "demonstrates": "demonstrate",
    "consists": "consist", "captures": "capture", "introduces": "introduce", "makes": "make",
    "identifies": "identify", "gives": "give", "contains": "contain", "leads": "lead",
}  # fmt: skip
_PLAIN_VERB = re.compile(
    r"\b([Ww]e|[Tt]hey|[Ee]xperiments|[Rr]esults) (?=(?:propose|introduce|present|show|"
    r"demonstrate|develop|find|use|provide|achieve|study|prove|design|observe|evaluate)\b)"
)
_NEGATIONS = (
    (re.compile(r"\b(is|are|was|were|can|could|will|would|should|may|do|does) not\b"), r"\1"),
    (re.compile(r"\bcannot\b"), "can"),
    (re.compile(r"\b(?:almost )?never\b"), "always"),
    (re.compile(r"\bwithout\b"), "with"),
    (re.compile(r"\bno (?=\w+\b)(?!longer|less|more)"), "a "),
)


def _other_number(right: Pair, other: str, rng: random.Random) -> str:
    held = plain(" ".join(right.quotes))
    if found := _NUMBER.search(right.sentence):
        written = found.group()
        for _ in range(20):
            changed = re.sub(r"\d", lambda _: str(rng.randint(1, 9)), written)
            if changed != written and plain(changed) not in held:
                return right.sentence.replace(written, changed, 1)
    if found := _COUNT.search(right.sentence):
        return right.sentence.replace(found.group(), "seven", 1)
    return right.sentence


def _negation_added(right: Pair, other: str, rng: random.Random) -> str:
    sentence = right.sentence
    if _AUXILIARY.search(sentence):
        return _AUXILIARY.sub(r"\1 not", sentence, count=1)
    for verb, stem in _FINITE.items():
        if re.search(rf"\b{verb}\b", sentence):
            return re.sub(rf"\b{verb}\b", f"does not {stem}", sentence, count=1)
    return _PLAIN_VERB.sub(r"\1 do not ", sentence, count=1)


def _negation_removed(right: Pair, other: str, rng: random.Random) -> str:
    if "not only" in right.sentence or "not just" in right.sentence:
        return right.sentence
    for negation, affirmed in _NEGATIONS:
        if negation.search(right.sentence):
            return negation.sub(affirmed, right.sentence, count=1)
    return right.sentence


def _other_name(right: Pair, other: str, rng: random.Random) -> str:
    held = plain(right.abstract).casefold()
    mine = [
        name
        for name in names(right.sentence)
        if len(name) > 3 and not re.search(rf"[\\$]{re.escape(name)}", right.sentence)
    ]
    theirs = [
        name
        for name in names(plain(other))
        if re.search(r"[A-Z].*[A-Z]|\d", name)
        and len(name) > 3
        and not any(part in held for part in re.split(r"[-/]", name.casefold()))
    ]
    if not mine or not theirs:
        return right.sentence
    return right.sentence.replace(rng.choice(mine), rng.choice(theirs))


_MISTAKES: dict[str, Callable[[Pair, str, random.Random], str]] = {
    "number changed": _other_number,
    "negation added": _negation_added,
    "negation removed": _negation_removed,
    "name swapped": _other_name,
}

# --- paraphrases --------------------------------------------------------------------------------

_SYNONYMS = {
    "propose": "suggest", "proposes": "suggests", "introduce": "present", "show": "find",
    "demonstrate": "show", "demonstrates": "shows", "novel": "new", "method": "technique",
    "methods": "techniques", "approach": "method", "significantly": "clearly", "utilize": "use",
    "achieves": "reaches", "outperforms": "beats", "outperform": "beat", "existing": "earlier",
    "leverage": "use", "enhance": "improve", "enables": "allows", "extensive": "thorough",
    "various": "several", "large": "big", "crucial": "important", "furthermore": "moreover",
    "reduces": "lowers", "reducing": "lowering", "however": "but", "datasets": "data sets",
}  # fmt: skip
_LEAD = re.compile(
    r"^(?:In this (?:work|paper|study)|To (?:address|this|tackle|overcome)[^,]*|Specifically|"
    r"However|Moreover|Furthermore|Additionally|In addition|Finally|Therefore|Ultimately|"
    r"Experimentally|Interestingly|Building on[^,]*|Based on[^,]*), ",
)


def _synonyms(sentence: str) -> str:
    def other(match: re.Match[str]) -> str:
        word = match.group()
        return _SYNONYMS.get(word.casefold(), word)

    return re.sub(r"[A-Za-z]+", other, sentence)


def _without_lead(sentence: str) -> str:
    rest = _LEAD.sub("", sentence)
    return rest[:1].upper() + rest[1:]


def _lead_last(sentence: str) -> str:
    lead = _LEAD.match(sentence)
    if not lead:
        return sentence
    rest = sentence[lead.end() :].rstrip(".")
    words = lead.group()[:-2]
    return f"{rest[:1].upper()}{rest[1:]}, {words[:1].lower()}{words[1:]}."


def _without_last_clause(sentence: str) -> str:
    kept, comma, _ = sentence.rpartition(", ")
    return f"{kept}." if comma and len(kept) > 60 and not kept.count("$") % 2 else sentence


def _without_brackets(sentence: str) -> str:
    return re.sub(r" \([^()]*\)", "", sentence)


def _third_person(sentence: str) -> str:
    text = re.sub(r"\b([Ww])e\b(?= \w)", "the authors", sentence)
    text = re.sub(r"\b[Oo]ur\b", "their", text)
    return text[:1].upper() + text[1:]


def _without_mark_up(sentence: str) -> str:
    return plain(sentence)


_PARAPHRASES: dict[str, Callable[[str], str]] = {
    "synonyms": _synonyms,
    "lead dropped": _without_lead,
    "lead moved": _lead_last,
    "clause dropped": _without_last_clause,
    "brackets dropped": _without_brackets,
    "third person": _third_person,
    "mark-up dropped": _without_mark_up,
    "short": lambda s: _without_brackets(_without_last_clause(_without_lead(_synonyms(s)))),
}
