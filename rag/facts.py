"""What a sentence states that a quote can contradict: numbers, names, negations, directions.

Each finding is a fault: a few words that tell a reader what is wrong. Everything here is
decided by rules on words, so that a fault can be explained and costs microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from rag.words import carries_meaning, plain, stems

_DIGITS = re.compile(
    r"(?P<number>\d+(?:\.\d+)?)"
    r"(?:[ -]?(?P<scale>thousand|million|billion|trillion)\b|(?P<letter>[KMBTkmb])(?![A-Za-z\d]))?"
)
_BEFORE_DIGITS = re.compile(r"(?:[A-Za-z\d]+-|[A-Za-z])$")
_SCALES = {"thousand": 1e3, "k": 1e3, "million": 1e6, "m": 1e6, "billion": 1e9, "b": 1e9,
           "trillion": 1e12, "t": 1e12}  # fmt: skip
# "One" is a pronoun as often as a number.
_NUMBER_WORDS: dict[str, tuple[float, ...]] = {
    "two": (2,), "three": (3,), "four": (4,), "five": (5,), "six": (6,), "seven": (7,),
    "eight": (8,), "nine": (9,), "ten": (10,), "eleven": (11,), "twelve": (12,),
    "twenty": (20,), "thirty": (30,), "forty": (40,), "fifty": (50,), "sixty": (60,),
    "seventy": (70,), "eighty": (80,), "ninety": (90,), "hundred": (100,),
    "twice": (2,), "double": (2,), "doubles": (2,), "doubled": (2,), "doubling": (2,),
    "twofold": (2,), "triple": (3,), "triples": (3,), "tripled": (3,), "threefold": (3,),
    "half": (0.5, 50, 2), "halves": (0.5, 50, 2), "halved": (0.5, 50, 2), "quarter": (0.25, 25, 4),
}  # fmt: skip
# A quote that says one of these bears out a number, though no sentence need say it back.
_QUOTED_NUMBER_WORDS = _NUMBER_WORDS | {
    "one": (1,), "single": (1,), "once": (1,), "both": (2,), "dual": (2,), "pair": (2,),
    "pairs": (2,), "bi": (2,), "binary": (2,),
}  # fmt: skip
_ABOUT = re.compile(r"(?:about|around|nearly|almost|roughly|approximately|some|~)\s*\$?$")
_ROUNDING = 0.05
_BELOW = r"(?:under|below|less than|fewer than|at most|up to|no more than|<=?|≤)"
_ABOVE = r"(?:over|above|more than|greater than|at least|exceeding|no less than|>=?|≥)"

_WORD = re.compile(r"[^\W_]+(?:[-'./+][^\W_]+)*")
_OPENS = re.compile(r"(?:[.!?:]\s|[\n;]\s*)[\s\"'“‘(\[]*$")
# A number with its unit is no name: 7x, 10th, 4bit, 125K.
_QUANTITY = re.compile(r"\d+(?:\.\d+)?(?:x|st|nd|rd|th|[kKMBT]|[a-z]{2,})?")

_NO_NEGATION = re.compile(
    r"\b(?:not (?:only|just|merely|simply|to mention)|no (?:less|more|fewer|later|earlier) than|"
    r"no (?:matter|doubt)|nothing but|whether or not|if not|without loss of generality)\b"
)
_CONTRACTION = re.compile(r"\b(?:can't|cannot|won't|(\w+)n't)\b")
_CLAUSE_END = re.compile(r"[.,;:()!?]\s|[()]|\s-\s|\b(?:but|while|whereas|although|though)\b")


def _stemmed(words: str) -> frozenset[str]:
    return frozenset(stems(words))


# Words that turn what follows into its contrary: a sentence may not add one.
_NEGATORS = _stemmed("not no never without nor neither none cannot fails fail failed unable")
# With these, all that answer a negation, and that a sentence may not turn into a plain yes.
_NEGATING = _NEGATORS | _stemmed(
    "lack lacks lacking avoid remove eliminate bypass instead rather inability impossible prevent "
    "exclude exclusion absent absence unlike few little rarely seldom barely un non "
    "free less struggle independent regardless except discard omit"
)
# "Without relying on X" says no more than "without X".
_USING = _stemmed("rely require need depend employ utilize resort involve access")
_REACH = 3  # meaning-carrying words that a negation governs
_NEIGHBOURS = 4  # words on either side by which two places are recognised as the same

# Pairs of contraries, each on an axis of its own.
_AXES: tuple[tuple[frozenset[str], frozenset[str]], ...] = tuple(
    (_stemmed(one), _stemmed(other))
    for one, other in (
        (
            "increase increases raise raises grow grows rise rises boost boosts higher greater "
            "larger bigger amplify",
            "decrease decreases reduce reduces reduction lower lowers drop drops fall falls "
            "decline shrink diminish fewer smaller attenuate lessen cut cuts",
        ),
        (
            "improve improves improvement better outperform outperforms surpass exceed superior "
            "beat beats enhance enhances best",
            "degrade degrades degradation worse worsen worsens underperform underperforms "
            "deteriorate inferior worst",
        ),
        ("faster quicker accelerate acceleration speedup", "slower slow slows decelerate slowdown"),
        (
            "largest highest maximize maximise",
            "smallest lowest minimize minimise",
        ),
        ("more", "less fewer"),
        ("before", "after"),
        ("cheaper", "costlier dearer"),
        ("easier simpler", "harder"),
        ("always", "never"),
        ("stronger", "weaker"),
        ("strong", "weak"),
        ("supervised", "unsupervised"),
        ("linear", "nonlinear"),
    )
)
_SIDES = tuple((side, other) for a, b in _AXES for side, other in ((a, b), (b, a)))
_DIRECTED = frozenset().union(*(side for side, _ in _SIDES))
_NUMBER_STEMS = _stemmed(" ".join((*_NUMBER_WORDS, *_SCALES)))
_PREFIXES = ("un", "in", "im", "non", "dis", "ir")
_SHORTEST_INITIALS = 3  # fewer letters follow one another by chance
_SHORTEST_ROOT = 6  # so that "inform" is no contrary of "form"


@dataclass(frozen=True)
class Reading:
    """One text, read for comparing."""

    text: str

    @cached_property
    def plain(self) -> str:
        return plain(self.text)

    @cached_property
    def clauses(self) -> tuple[tuple[str, ...], ...]:
        """The stems of each clause, in order, negations spelled out."""
        text = _CONTRACTION.sub(_not, _NO_NEGATION.sub(" ", self.plain.casefold()))
        return tuple(tuple(stems(clause)) for clause in _CLAUSE_END.split(text))

    @cached_property
    def stems(self) -> tuple[str, ...]:
        return tuple(stem for clause in self.clauses for stem in clause)

    @cached_property
    def held(self) -> frozenset[str]:
        """The stems, and pairs of neighbours as one word: "fine-tune" bears out "finetune"."""
        joined = (a + b for a, b in zip(self.stems, self.stems[1:], strict=False))
        return frozenset((*self.stems, *joined))

    @cached_property
    def compact(self) -> str:
        """Letters and digits alone, in lower case."""
        return "".join(sign for sign in self.plain.casefold() if sign.isalnum())

    @cached_property
    def initials(self) -> str:
        """The first letters of the words, in lower case."""
        return "".join(word[0] for word in re.findall(r"[^\W_]+", self.plain.casefold()))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names: capitalised within a sentence, mixed in case, or with a digit."""
        return names(self.plain)

    @cached_property
    def values(self) -> frozenset[float]:
        """Every value that a number of the text can be read as."""
        found: set[float] = set()
        for match in _DIGITS.finditer(self.plain):
            found.add(float(match["number"]))
            found.add(_scaled(match))
        for word in re.findall(r"[a-z]+", self.plain.casefold()):
            found.update(_QUOTED_NUMBER_WORDS.get(word, ()))
        return frozenset(found)

    @cached_property
    def negations(self) -> tuple[tuple[int, ...], ...]:
        """For each negation, the places in `stems` of the words that it governs."""
        return tuple(self._scopes(_NEGATORS))

    @cached_property
    def weak_negations(self) -> tuple[tuple[int, ...], ...]:
        """The same for every word that may stand for a negation."""
        return tuple(self._scopes(_NEGATING))

    def _scopes(self, cues: frozenset[str]) -> Iterator[tuple[int, ...]]:
        offset = 0
        for clause in self.clauses:
            for place, stem in enumerate(clause):
                if stem in cues:
                    after = range(place + 1, len(clause))
                    scope = [i for i in after if _governable(clause[i])][:_REACH]
                    if stem == "free" or not scope:  # training-free; the key is not used
                        scope = [i for i in range(place) if _governable(clause[i])][-2:]
                    yield tuple(offset + i for i in scope)
            offset += len(clause)

    def around(self, place: int) -> frozenset[str]:
        """The meaning-carrying stems near a place."""
        low, high = max(place - _NEIGHBOURS, 0), place + _NEIGHBOURS + 1
        near = (*self.stems[low:place], *self.stems[place + 1 : high])
        return frozenset(stem for stem in near if carries_meaning(stem))


def faults(claim: Reading, quotes: Sequence[Reading], context: Reading) -> Iterator[str]:
    """What stands in a claim and not in its quotes, or the other way round.

    Names may come from `context`, the abstract and the title that the quotes stand in: a
    sentence says "SOREL" where its quote says "our algorithm".
    """
    yield from missing_numbers(claim, quotes)
    yield from missing_names(claim, claim.names, quotes, context)
    yield from _turned_negations(claim, quotes)
    yield from _turned_directions(claim, quotes)
    yield from _turned_bounds(claim, quotes)
    yield from _turned_prefixes(claim, quotes)


def names(text: str) -> tuple[str, ...]:
    """The names in plain text: capitalised within a sentence, mixed in case, or with a digit."""
    found = []
    for match in _WORD.finditer(text):
        word = match.group().removesuffix("'s")
        if word.islower():
            continue
        opens = not text[: match.start()].strip() or bool(_OPENS.search(text[: match.start()][-6:]))
        if any(_is_name(part, opens and at == 0) for at, part in enumerate(_parts(word))):
            found.append(word)
    return tuple(dict.fromkeys(found))


def strong_names(text: str) -> tuple[str, ...]:
    """The names that are names in any language: with a digit, or a capital within a word."""
    return tuple(name for name in names(text) if any(_is_name(p, True) for p in _parts(name)))


def holds_name(name: str, readings: Sequence[Reading]) -> bool:
    """Whether texts hold a name, written together or apart."""
    key = "".join(sign for sign in name.casefold() if sign.isalnum())
    whole = stems(key)[0] if stems(key) else key
    return any(key in r.held or whole in r.held or _within(key, r.compact) for r in readings)


def _abbreviates(name: str, quotes: Sequence[Reading]) -> bool:
    """Whether a name is the initials of words that follow one another in a quote."""
    short = name.removesuffix("s")
    return (
        len(short) >= _SHORTEST_INITIALS
        and short.isupper()
        and any(short.casefold() in quote.initials for quote in quotes)
    )


def _within(key: str, compact: str) -> bool:
    return len(key) >= _SHORTEST_ROOT and key in compact


def _governable(stem: str) -> bool:
    return carries_meaning(stem) and stem not in _USING and stem not in _NEGATORS


def _not(match: re.Match[str]) -> str:
    return f"{match[1] or 'can'} not"


def _scaled(match: re.Match[str]) -> float:
    scale = (match["scale"] or match["letter"] or "").casefold()
    return float(match["number"]) * _SCALES.get(scale, 1.0)


def missing_numbers(claim: Reading, quotes: Sequence[Reading]) -> Iterator[str]:
    """The numbers of a claim that no quote holds, in digits or in words."""
    values = frozenset(value for quote in quotes for value in quote.values)
    for written, wanted, rounded in _stated_numbers(claim.plain):
        near = any(abs(v - w) <= _ROUNDING * abs(w) for v in values for w in wanted)
        if not (values & wanted or (rounded and near)):
            yield f"the number {written} is not in the quote"


def _stated_numbers(text: str) -> Iterator[tuple[str, frozenset[float], bool]]:
    """Each number as written, the values it can mean, and whether it is said to be rounded."""
    for match in _DIGITS.finditer(text):
        start, after = match.start(), text[match.end() : match.end() + 2]
        before = _BEFORE_DIGITS.search(text[max(start - 20, 0) : start])
        if before and (before.group()[-1] != "-" or before.group() != before.group().lower()):
            continue  # within a name: GPT4, CIFAR-10
        if after[:1].isupper():
            continue  # 3D
        unit = "%" if after.lstrip().startswith("%") else ""
        rounded = bool(_ABOUT.search(text[max(start - 16, 0) : start].casefold()))
        written = text[start : match.end()] + unit
        yield written, frozenset({float(match["number"]), _scaled(match)}), rounded
    for word in re.findall(r"[a-z]+", text.casefold()):
        if word in _NUMBER_WORDS:
            yield f"“{word}”", frozenset(_NUMBER_WORDS[word]), False


# "16 GB" and "16GB" are one quantity; the number is compared by itself.
_UNITS = frozenset({"KB", "MB", "GB", "TB", "Hz", "kHz", "MHz", "GHz", "GPUs", "FLOPs"})


def missing_names(
    claim: Reading, stated: Sequence[str], quotes: Sequence[Reading], context: Reading
) -> Iterator[str]:
    """Those of the names that a claim states that neither quotes nor context hold."""
    sources = (*quotes, context)
    for name in stated:
        if name in _UNITS or holds_name(name, sources) or _abbreviates(name, quotes):
            continue
        parts = _parts(name)
        missing = [p for p in parts if _is_name(p, False) and not holds_name(p, sources)]
        missing = [part for part in missing if not _abbreviates(part, quotes)]
        if missing and not _spelled_out(name, claim, sources):
            yield f"the name {name} is not in the quote"


def _spelled_out(name: str, claim: Reading, sources: Sequence[Reading]) -> bool:
    """Whether a capitalised word belongs to words whose initials the sources hold as a name."""
    words = re.findall(r"[^\W_]+", claim.plain)
    letters = "".join(word[0] for word in words).casefold()
    shorts = {n for s in sources for n in s.names if n.isupper() and len(n) >= _SHORTEST_INITIALS}
    for short in shorts:
        at = letters.find(short.casefold())
        if at >= 0 and name in words[at : at + len(short)]:
            return True
    return False


def _parts(word: str) -> list[str]:
    return [part for part in re.split(r"[-/]", word) if part]


def _is_name(part: str, opens: bool) -> bool:
    if len(part) < 2 or not re.search(r"[A-Za-z]", part) or _QUANTITY.fullmatch(part):
        return False
    if re.search(r"\d", part) or re.search(r"[A-Z]", part[1:]):
        return True
    return part[0].isupper() and not opens


def _turned_negations(claim: Reading, quotes: Sequence[Reading]) -> Iterator[str]:
    for scope in claim.negations:
        if not _answered(claim, scope, quotes):
            yield "the quote does not say “not” here"
            return
    for quote in quotes:
        for scope in quote.weak_negations:
            if _left_out(claim, quote, scope, quotes):
                yield "the quote says “not” here"
                return


def _answered(claim: Reading, scope: tuple[int, ...], quotes: Sequence[Reading]) -> bool:
    """Whether quotes negate too what a negation of the claim governs."""
    found = [pair for place in scope if max(pair := _likeness(claim, place, quotes)) >= 0]
    if any(sum(place in other for other in claim.negations) > 1 for place in scope):
        found = [pair[::-1] for pair in found]  # "not never" is a plain yes
    if found:
        return any(2 * within >= outside for outside, within in found)
    return any(quote.negations for quote in quotes)


def _left_out(
    claim: Reading, quote: Reading, scope: tuple[int, ...], quotes: Sequence[Reading]
) -> bool:
    """Whether the claim says without a negation what the quote says with one."""
    governed = {place for s in claim.weak_negations for place in s}
    for at in scope[:2]:
        places = [i for i, stem in enumerate(claim.stems) if stem == quote.stems[at]]
        if not places or any(place in governed for place in places):
            return False
        likeness = [_likeness(claim, place, quotes) for place in places]
        if not any(within > max(outside, 0) for outside, within in likeness):
            return False
    return bool(scope)


def _likeness(claim: Reading, place: int, quotes: Sequence[Reading]) -> tuple[int, int]:
    """How like the place its best counterparts are, outside and within a negation; -1 for none."""
    outside = within = -1
    near = claim.around(place)
    for quote in quotes:
        governed = {at for scope in quote.weak_negations for at in scope}
        for at, stem in enumerate(quote.stems):
            if stem == claim.stems[place]:
                shared = len(near & quote.around(at))
                if at in governed:
                    within = max(within, shared)
                else:
                    outside = max(outside, shared)
    return outside, within


def is_stated_apart(stem: str) -> bool:
    """Whether a stem belongs to a number or a negation, which are compared as facts."""
    return stem in _NEGATING or stem in _NUMBER_STEMS or stem.isdigit()


def same_direction(stem: str) -> frozenset[str]:
    """The stems that say the same on an axis of contraries: "beats" and "outperforms"."""
    return next((side for side, _ in _SIDES if stem in side), frozenset())


def _turned_directions(claim: Reading, quotes: Sequence[Reading]) -> Iterator[str]:
    for place, stem in enumerate(claim.stems):
        if stem not in _DIRECTED:
            continue
        for side, other in _SIDES:
            if stem not in side:
                continue
            same, contrary, word = _directions(claim.around(place), quotes, side, other)
            if contrary > max(same, 0):
                yield _contrary(word, quotes, stem, claim)
                return


def _directions(
    near: frozenset[str],
    quotes: Sequence[Reading],
    side: frozenset[str],
    other: frozenset[str],
) -> tuple[int, int, str]:
    same = contrary = -1
    word = ""
    for quote in quotes:
        for at, stem in enumerate(quote.stems):
            if stem not in side and stem not in other:
                continue
            shared = len(near & quote.around(at))
            if stem in side:
                same = max(same, shared)
            elif shared > contrary:
                contrary, word = shared, stem
    return same, contrary, word


def _turned_bounds(claim: Reading, quotes: Sequence[Reading]) -> Iterator[str]:
    text = claim.plain.casefold()
    held = " ".join(quote.plain.casefold() for quote in quotes)
    for here, there in ((_BELOW, _ABOVE), (_ABOVE, _BELOW)):
        for match in re.finditer(rf"{here}\s*(\d+(?:\.\d+)?)", text):
            number = rf"\s*{re.escape(match[1])}(?![\d.]*\d)"
            if re.search(there + number, held) and not re.search(here + number, held):
                yield f"the quote bounds {match[1]} from the other side"


def _turned_prefixes(claim: Reading, quotes: Sequence[Reading]) -> Iterator[str]:
    held = frozenset(stem for quote in quotes for stem in quote.stems)
    mine = frozenset(claim.stems)
    for prefix in _PREFIXES:
        for stem in mine - held:
            root = stem.removeprefix(prefix)
            known = len(root) >= _SHORTEST_ROOT and root in held and root not in mine
            if root != stem and known and not any(quote.negations for quote in quotes):
                yield _contrary(root, quotes, stem, claim)
            contrary = prefix + stem
            if len(stem) >= _SHORTEST_ROOT and contrary in held and not claim.weak_negations:
                yield _contrary(contrary, quotes, stem, claim)


def _contrary(theirs: str, quotes: Sequence[Reading], mine: str, claim: Reading) -> str:
    return f"the quote says “{_written(theirs, quotes)}”, not “{_written(mine, (claim,))}”"


def _written(stem: str, readings: Sequence[Reading]) -> str:
    """A stem as the word that it stands for in a text."""
    words = (word for reading in readings for word in re.findall(r"[^\W_]+", reading.plain))
    return next((word for word in words if stem in stems(word)), stem)
