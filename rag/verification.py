"""Whether quotes bear a sentence out: a support score, and what is wrong with it.

A sentence is compared by its words, by its meaning where an embedding is given, and by the
facts that a quote can contradict (`rag.facts`). One fault is enough to lose support.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rag.facts import (
    Reading,
    faults,
    holds_name,
    is_stated_apart,
    missing_names,
    missing_numbers,
    same_direction,
    strong_names,
)
from rag.words import carries_meaning, plain, stems

# A sentence counts as supported from here on. Of people's paraphrases of the sample abstracts,
# laid beside the sentences that they paraphrase, 72 of 73 score above; laid beside the nearest
# sentences of another abstract, none does.
ENOUGH_SUPPORT = 0.45
# With a fault the support is cut to this, below ENOUGH_SUPPORT.
_FAULTY = 0.25
# From so many of its words up the meaning is asked too, unless the words are enough already.
_WORDS_UNSURE = 0.2
# What is not English shares few words with an English quote: with nothing to compare, unknown.
_UNKNOWN = ENOUGH_SUPPORT

# How an answer speaks of papers and joins its sentences; a quote need not say it back.
_FRAME = frozenset(
    stem
    for stem in stems(
        "however contrast therefore thus hence moreover furthermore additionally addition also "
        "overall summary conclusion conclude finally first firstly second secondly third lastly "
        "yes according abstract paper papers study studies work works article author authors "
        "research researchers sentence source evidence answer question propose proposes proposed "
        "present presents presented introduce introduces introduced show shows shown demonstrate "
        "demonstrates find finds found report reports reported describe describes described "
        "state states stated mention mentions discuss discusses address addresses note notes "
        "namely specifically particular similarly instead meanwhile consequently respectively "
        "example one called named following listed here relevant several various approach method "
        "exactly result results"
    )
)
_FOREIGN_WORDS = frozenset(
    "der die das und ist nicht mit ein eine einen von für wird werden auf dem den des im zu auch "
    "durch sich sind le la les une est dans pour par sur qui que avec du au aux et ne pas ce "
    "cette el los las en por con para del se una un y es lo il gli che di della dei per non è "
    "sono os uma do da em com não o e het een van de".split()
)
_ENGLISH_WORDS = frozenset(
    "the of and to in is that for with as are by on it an be from which this at not or its can "
    "their has than was were a more how using".split()
)

# Letters beyond Latin and Greek, which English text uses for its symbols.
_NOT_LATIN = re.compile(r"[\u0400-\u1dff\u2e80-\ud7ff\uf900-\ufaff]")
_LATIN = re.compile(r"[^\u0400-\u1dff\u2e80-\ud7ff\uf900-\ufaff\s]+")
_OTHER_SCRIPT = 0.3  # share of letters
_ENOUGH_COMPARED = 2  # of so many Latin words, one at least should be in the quotes
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
_SPACED = re.compile(r"(?<=\d)[. ](?=\d{3}(?!\d))")

Embed = Callable[[Sequence[str]], np.ndarray]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How far quotes bear a sentence out.

    likeness:  how far words and meaning agree, in [0, 1]
    faults:    what a quote lacks or contradicts, a few words each
    compared:  False when there was nothing that could be compared
    """

    likeness: float
    faults: tuple[str, ...] = ()
    compared: bool = True

    @property
    def support(self) -> float:
        """The likeness, in [0, 1], but little of it when there is a fault."""
        return min(self.likeness, _FAULTY) if self.faults else self.likeness

    @property
    def supported(self) -> bool:
        return self.support >= ENOUGH_SUPPORT


class Verifier:
    """Compares sentences with quotes; keeps what it has read, so use one for each question.

    idf:      the weight of a stem, as the catalogue counts it; all weigh the same without it
    embed:    vectors of length 1, one a text; without it words alone decide. Asked once for
              a sentence, and only where its words leave doubt
    vectors:  vectors that are already there, by text, such as those of the evidence
    """

    def __init__(
        self,
        idf: Callable[[str], float] | None = None,
        embed: Embed | None = None,
        vectors: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self._idf = idf or (lambda stem: 1.0)
        self._embed = embed
        self._vectors = dict(vectors or {})
        self._readings: dict[str, Reading] = {}
        self._weights: dict[str, float] = {}

    def verify(self, text: str, quotes: Sequence[str], context: str = "") -> Verdict:
        """How far `quotes` together bear out the sentence `text`.

        `context` is what the quotes stand in, their title and abstract: names may come from
        there, numbers and negations may not. A sentence in another language than English, or
        in another script than its quotes, is compared by its numbers, its names in Latin
        letters and its meaning alone; with nothing to compare it counts as just supported,
        `compared` being False.
        """
        if not quotes:
            return Verdict(0.0)
        claim = self._read(text)
        sources = tuple(self._read(quote) for quote in quotes)
        around = self._read(context)
        if is_foreign(text, quotes):
            return self._verify_foreign(claim, sources, around, quotes)
        found = tuple(dict.fromkeys(faults(claim, sources, around)))
        return Verdict(self._likeness(claim, sources, around, quotes), found)

    def _likeness(
        self, claim: Reading, sources: Sequence[Reading], around: Reading, quotes: Sequence[str]
    ) -> float:
        share = self._share(claim, sources, around)
        if self._embed is None or not _WORDS_UNSURE <= share < ENOUGH_SUPPORT:
            return share
        return max(share, (share + self._cosine(claim.text, quotes)) / 2)

    def _share(self, claim: Reading, sources: Sequence[Reading], around: Reading) -> float:
        """The share of the claim's meaning-carrying words, by weight, that the sources hold."""
        told = dict.fromkeys(s for s in claim.stems if carries_meaning(s) and s not in _FRAME)
        words = [stem for stem in told if not is_stated_apart(stem)]
        if told and not words:
            return 1.0  # "It is 45%.": the facts decide
        subject = {stem for n in claim.names if holds_name(n, (around,)) for stem in stems(n)}
        total = held = 0.0
        for word in words:
            weight = self._weight(word)
            like = same_direction(word)
            if any(word in s.held or like & s.held for s in sources):
                held += weight
            elif word in subject:
                continue  # what the abstract is about: neither for nor against
            total += weight
        return held / total if total else 0.0

    def _weight(self, stem: str) -> float:
        if stem not in self._weights:
            self._weights[stem] = self._idf(stem)
        return self._weights[stem]

    def _cosine(self, text: str, quotes: Sequence[str]) -> float:
        """The cosine of a text with the nearest of the quotes, or with all of them together."""
        assert self._embed is not None
        missing = [t for t in dict.fromkeys((text, *quotes)) if t not in self._vectors]
        if missing:
            self._vectors.update(zip(missing, self._embed(missing), strict=True))
        vectors = np.stack([self._vectors[quote] for quote in quotes])
        together = vectors.mean(axis=0)
        together /= np.linalg.norm(together) or 1.0
        return float(np.max(np.vstack([vectors, together]) @ self._vectors[text]))

    def _verify_foreign(
        self, claim: Reading, sources: Sequence[Reading], around: Reading, quotes: Sequence[str]
    ) -> Verdict:
        latin = self._read(" ".join(_LATIN.findall(claim.plain)))
        european = self._read(_DECIMAL_COMMA.sub(".", _SPACED.sub("", latin.text)))
        strong = strong_names(latin.plain)
        # 2,87 and 2.864 are read both ways.
        numbers = set(missing_numbers(latin, sources)) and set(missing_numbers(european, sources))
        found = (*sorted(numbers), *missing_names(latin, strong, sources, around))
        words = [stem for stem in latin.stems if carries_meaning(stem)]
        if not _NOT_LATIN.search(claim.plain):  # words of another language are not compared
            words = [stem for name in strong for stem in stems(name)]
            words += [stem for stem in latin.stems if stem[0].isdigit()]
        held = sum(any(word in s.held for s in (*sources, around)) for word in words)
        if len(words) >= _ENOUGH_COMPARED and not held:
            return Verdict(_FAULTY, found)
        likeness = _UNKNOWN + (1 - _UNKNOWN) * held / len(words) if words else _UNKNOWN
        if not held and self._embed is not None:
            likeness = max(likeness, self._cosine(claim.text, quotes))
        return Verdict(likeness, found, compared=held > 0)

    def _read(self, text: str) -> Reading:
        reading = self._readings.get(text)
        if reading is None:
            reading = self._readings[text] = Reading(text)
        return reading


def carries_claim(text: str) -> bool:
    """Whether a sentence says anything that a quote could bear out.

    "Here are the papers:" and "Yes." do not: they are no facts, and nothing can be wrong
    with them.
    """
    if text.rstrip(" *_").endswith((":", "：")):
        return False
    return any(carries_meaning(stem) and stem not in _FRAME for stem in stems(plain(text)))


def is_foreign(text: str, quotes: Sequence[str]) -> bool:
    """Whether a sentence is in another script than its quotes, or in another language."""
    share = _share_not_latin(text)
    if abs(share - _share_not_latin(" ".join(quotes))) > _OTHER_SCRIPT:
        return True
    words = re.findall(r"[^\W\d_]+", text.casefold())
    foreign = sum(word in _FOREIGN_WORDS for word in words)
    return foreign >= 2 and foreign > sum(word in _ENGLISH_WORDS for word in words)


def _share_not_latin(text: str) -> float:
    others = len(_NOT_LATIN.findall(text))
    return others / max(sum(sign.isalpha() for sign in text), others) if others else 0.0
