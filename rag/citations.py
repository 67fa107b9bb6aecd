"""From statements to an answer: each checked against the evidence, its citations renumbered.

A draft cites by the number that its evidence had in the prompt. A reader sees markers 1..n in
order of appearance, each standing for one sentence of one abstract, quoted verbatim.

A statement                                          becomes
whose cited evidence supports it                     a claim with those markers that add support
that other evidence supports                         a claim with markers for that, and a warning
                                                     if it cited something else
that nothing supports                                nothing, or, by choice, a claim without
                                                     markers; a warning says what is wrong
that makes no claim, as "Here are the papers:"       nothing: no fact is lost
A marker that stands for no evidence is removed, with a warning.

Statements are checked one by one, so more of them never change the text of the first ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from rag.answers import Citation, Claim, Evidence
from rag.drafts import Place, Statement
from rag.verification import Verdict, Verifier, carries_claim

# A further marker must add this much support, or a model's habit of citing [1][2] would stand.
_ADDED_SUPPORT = 0.05
# Where markers are found for a sentence, so many of the likeliest quotes are tried two by two,
# and a second one must be worth this much.
_PAIRED, _WORTH_A_SECOND = 6, 0.15


@dataclass(frozen=True, slots=True)
class Cited:
    """What a reader may see of a draft."""

    text: str
    claims: tuple[Claim, ...]
    citations: tuple[Citation, ...]
    warnings: tuple[str, ...]


NOTHING_CITED = Cited("", (), (), ())


@dataclass(frozen=True, slots=True)
class _Checked:
    """A statement, the evidence that supports it, and what is to be said about that."""

    statement: Statement
    numbers: tuple[int, ...]
    verdict: Verdict
    unknown: int
    moved: bool = False

    @property
    def fault(self) -> str:
        return self.verdict.faults[0] if self.verdict.faults else "no retrieved sentence says it"


def cite(
    statements: Sequence[Statement],
    evidence: Sequence[Evidence],
    verifier: Verifier,
    keep_unsupported: bool = False,
    say: Callable[[str], str] = str,
    question: str = "",
) -> Cited:
    """Check statements against the evidence they were written from, and number the citations.

    `say` puts a checked sentence to the reader, in another language perhaps.
    """
    desk = _Desk(evidence, verifier, question)
    checked = [desk.check(s) for s in statements if carries_claim(s.text)]
    shown = [item for item in checked if item.numbers or keep_unsupported]
    order = tuple(dict.fromkeys(number for item in shown for number in item.numbers))
    marker = {number: position for position, number in enumerate(order, start=1)}
    claims = tuple(_claim(item, [marker[n] for n in item.numbers], say) for item in shown)
    return Cited(
        text=_laid_out(zip((item.statement.place for item in shown), claims, strict=True)),
        claims=claims,
        citations=tuple(desk.citation(n, marker[n], shown) for n in order),
        warnings=tuple(_warnings(checked, keep_unsupported)),
    )


# What a sentence sets what it says against.
_CONTRAST = re.compile(
    r",?\s*\b(?:and not|not|rather than|instead of|as opposed to)\s+"
    r"(?P<denied>(?:[^,.;:]|\.(?=\d)){1,60})"
)


class _Desk:
    """Evidence, and who compares it with statements."""

    def __init__(
        self, evidence: Sequence[Evidence], verifier: Verifier, question: str = ""
    ) -> None:
        self._question = question.casefold()
        self._evidence = evidence
        self._verifier = verifier

    def check(self, statement: Statement) -> _Checked:
        """What a statement may cite: what it does cite, else what else supports it."""
        known = tuple(n for n in statement.numbers if 1 <= n <= len(self._evidence))
        unknown = len(statement.numbers) - len(known)
        verdict = self._verify(statement.text, known)
        if verdict.supported:
            needed = self._needed(statement.text, known, verdict)
            return _Checked(statement, needed, self._verify(statement.text, needed), unknown)
        found, elsewhere = self._elsewhere(statement.text)
        if found:
            return _Checked(statement, found, elsewhere, unknown, moved=bool(known))
        return _Checked(statement, (), verdict if known else elsewhere, unknown)

    def citation(self, number: int, marker: int, shown: Sequence[_Checked]) -> Citation:
        item = self._evidence[number - 1]
        backed = [checked for checked in shown if number in checked.numbers]
        support = max(self._share_in(number, checked) for checked in backed)
        return Citation(marker, item.record, item.quote, item.start, item.end, round(support, 3))

    def _verify(self, text: str, numbers: Sequence[int]) -> Verdict:
        chosen = [self._evidence[number - 1] for number in numbers]
        records = dict.fromkeys(item.record.id for item in chosen)
        by_id = {item.record.id: item.record for item in chosen}
        context = " ".join(
            f"{record.title}. {record.abstract} {'; '.join(record.authors)}"
            for record in (by_id[record_id] for record_id in records)
        )
        quotes = [item.quote for item in chosen]
        return self._verifier.verify(self._without_contrast(text), quotes, context)

    def _without_contrast(self, text: str) -> str:
        """A sentence without what it denies of the question: "4 bits, not 8 bits".

        An answer that corrects its question repeats what no quote says.
        """

        def asked(match: re.Match[str]) -> str:
            things = re.findall(r"\w*\d(?:[\w.]*\w)?|[A-Z]\w+", match["denied"])
            known = bool(things) and all(thing.casefold() in self._question for thing in things)
            return "" if known else match.group()

        return _CONTRAST.sub(asked, text)

    def _needed(self, text: str, known: tuple[int, ...], verdict: Verdict) -> tuple[int, ...]:
        """The cited evidence without what adds no support; the earlier of two like ones stays."""
        for number in reversed(known):
            rest = tuple(n for n in known if n != number)
            without = self._verify(text, rest)
            if without.supported and without.support > verdict.support - _ADDED_SUPPORT:
                known = rest
        return known

    def _elsewhere(self, text: str) -> tuple[tuple[int, ...], Verdict]:
        """The evidence that supports a text best, one sentence or two of the same abstract.

        Without any, nothing and what is wrong with the likeliest.
        """
        every = range(1, len(self._evidence) + 1)
        single: dict[tuple[int, ...], Verdict] = {(n,): self._verify(text, (n,)) for n in every}
        if not single:
            return (), Verdict(0.0)
        likely = sorted(single, key=lambda numbers: -single[numbers].likeness)
        pairs: dict[tuple[int, ...], Verdict] = {
            (a, b): self._verify(text, (a, b))
            for a, b in combinations(sorted(numbers[0] for numbers in likely[:_PAIRED]), 2)
            if self._evidence[a - 1].record.id == self._evidence[b - 1].record.id
        }
        best = max(single, key=lambda numbers: single[numbers].support)
        pair = max(pairs, key=lambda numbers: pairs[numbers].support, default=best)
        found = single | pairs
        if found[pair].support >= found[best].support + _WORTH_A_SECOND:
            best = pair
        return (best, found[best]) if _stands(found[best]) else ((), found[likely[0]])

    def _share_in(self, number: int, checked: _Checked) -> float:
        """How far one quote bears a statement out, which may need other quotes too."""
        if checked.numbers == (number,):
            return checked.verdict.support
        return self._verify(checked.statement.text, (number,)).likeness


def _stands(verdict: Verdict) -> bool:
    return verdict.supported and verdict.compared


def _claim(item: _Checked, markers: Sequence[int], say: Callable[[str], str]) -> Claim:
    return Claim(
        text=_marked(say(item.statement.text), markers),
        markers=tuple(markers),
        support=round(item.verdict.support, 3),
        supported=bool(markers),
    )


def _marked(text: str, markers: Sequence[int]) -> str:
    """The sentence with its markers before its final stop."""
    if not markers:
        return text
    signs = "".join(f"[{n}]" for n in markers)
    body = text.rstrip(" .!?。！？")
    stop = text[len(body) :].strip()[:1] or "."
    return f"{body} {signs}{stop}"


def _laid_out(claims: Iterator[tuple[Place, Claim]]) -> str:
    """The claims as running text, the items of lists each on a line."""
    text, listing = "", False
    for place, claim in claims:
        if place == "item" or (place == "inside" and not listing):
            text += ("\n- " if listing else "\n\n- ") + claim.text
        elif place == "text" and listing:
            text += f"\n\n{claim.text}"
        else:
            text += f" {claim.text}"
        listing = place != "text"
    return text.strip()


def _warnings(checked: Sequence[_Checked], keep_unsupported: bool) -> Iterator[str]:
    unknown = sum(item.unknown for item in checked)
    if unknown:
        yield f"removed {unknown} citation marker(s) that stand for no evidence"
    moved = sum(item.moved for item in checked)
    if moved:
        yield f"moved the marker(s) of {moved} sentence(s) to the evidence that supports them"
    faults = [item.fault for item in checked if not item.numbers]
    if faults:
        done = "kept without markers" if keep_unsupported else "left out"
        reasons = "; ".join(dict.fromkeys(faults))
        yield f"{done} {len(faults)} sentence(s) that no retrieved sentence supports: {reasons}"
