"""A conversation as one document: its answers numbered through, its quotes, its references.

A number stands for one sentence of one abstract, as in a single answer, and for the same one
throughout the document. The references are the papers that are quoted, each once, with the
numbers of their quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rag.answers import Answer, Citation
from rag.exporting import csl_json
from rag.exporting.markdown import escaped
from rag.exporting.references import Reference, references
from rag.exporting.tex import MATHS
from rag.records import Record

Turn = tuple[str, Answer]
_Span = tuple[str, int, int]

_MARKER = re.compile(rf"{MATHS.pattern}|\[(?P<marker>\d{{1,4}})\]", re.DOTALL)

_LINKABLE = re.compile(r"https?://[^\s<>\\]+")


def conversation_markdown(turns: Sequence[Turn]) -> str:
    """Questions and answers, each answer with its quotes, then the references, as Markdown.

    Text of abstracts and models is escaped: it can hold no link, image or tag. Mathematics
    stays as written.
    """
    numbered = _numbered(turns)
    blocks = [block for question, answer in numbered for block in _turn_blocks(question, answer)]
    if cited := _cited(numbered):
        lines = (f"- {_reference_line(reference, cited)}" for reference in references_of(numbered))
        blocks += ["## References", "\n".join(lines)]
    return "\n\n".join(["# Questions and answers", *blocks]) + "\n"


def conversation_data(turns: Sequence[Turn]) -> dict[str, Any]:
    """The same as plain JSON data.

    `turns`: each answer in the layout of `rag ask --json`; `references`: a CSL item for each
    paper quoted, with its id here and the markers of its quotes.
    """
    numbered = _numbered(turns)
    cited = _cited(numbered)
    return {
        "turns": [{**answer.as_dict(), "question": question} for question, answer in numbered],
        "references": [
            {
                "id": reference.record.id,
                "markers": cited[reference.record.id],
                "csl": csl_json.item(reference),
            }
            for reference in references_of(numbered)
        ],
    }


def references_of(turns: Sequence[Turn]) -> list[Reference]:
    """The papers quoted in these turns, each once, in the order of their first quotes."""
    return references(c.record for _, answer in turns for c in answer.citations)


# --- one numbering -------------------------------------------------------------------------


def _numbered(turns: Sequence[Turn]) -> list[Turn]:
    """The turns with markers that stand for one quote each, 1..n by first appearance."""
    known: dict[_Span, int] = {}
    return [(question, _renumbered(answer, known)) for question, answer in turns]


def _renumbered(answer: Answer, known: dict[_Span, int]) -> Answer:
    new = {c.marker: known.setdefault(_span(c), len(known) + 1) for c in answer.citations}
    claims = tuple(
        replace(
            claim,
            text=_remarked(claim.text, new),
            markers=tuple(new[marker] for marker in claim.markers if marker in new),
        )
        for claim in answer.claims
    )
    citations = tuple(replace(c, marker=new[c.marker]) for c in answer.citations)
    text = _remarked(answer.text, new)
    return replace(answer, text=text, claims=claims, citations=citations)


def _span(citation: Citation) -> _Span:
    return citation.record.id, citation.start, citation.end


def _remarked(text: str, new: Mapping[int, int]) -> str:
    def replaced(match: re.Match[str]) -> str:
        number = new.get(int(match["marker"] or 0))
        return f"[{number}]" if number else match.group()

    return _MARKER.sub(replaced, text)


def _cited(turns: Sequence[Turn]) -> dict[str, list[int]]:
    """The markers of each record's quotes, by its id."""
    cited: dict[str, set[int]] = {}
    for _, answer in turns:
        for citation in answer.citations:
            cited.setdefault(citation.record.id, set()).add(citation.marker)
    return {id_: sorted(markers) for id_, markers in cited.items()}


# --- Markdown ------------------------------------------------------------------------------


def _turn_blocks(question: str, answer: Answer) -> Iterator[str]:
    yield f"## {escaped(_one_line(question))}"
    asked = _one_line(answer.standalone_question)
    if asked and asked != _one_line(question):
        yield f"Searched for: {escaped(asked)}"
    if answer.text.strip():
        yield _answer_text(answer)
    if answer.citations:
        yield "\n>\n".join(map(_quote_line, sorted(answer.citations, key=lambda c: c.marker)))
    if answer.warnings:
        yield "\n".join(f"- Note: {escaped(_one_line(warning))}" for warning in answer.warnings)


def _answer_text(answer: Answer) -> str:
    """The answer's paragraphs and lists, its markers as they are and all else escaped."""
    markers = {citation.marker for citation in answer.citations}
    lines = []
    for line in answer.text.splitlines():
        bullet = "- " if line.startswith("- ") else ""
        # Indented, a line would be program code.
        lines.append(bullet + escaped(line.removeprefix(bullet).strip(), markers))
    return "\n".join(lines)


def _quote_line(citation: Citation) -> str:
    return f"> [{citation.marker}] “{escaped(_one_line(citation.quote))}”"


def _reference_line(reference: Reference, cited: Mapping[str, Sequence[int]]) -> str:
    record = reference.record
    markers = ", ".join(f"[{marker}]" for marker in cited[record.id])
    year = f"({record.year})" if record.year else ""
    people = " ".join(filter(None, (escaped("; ".join(record.authors)), year)))
    sentences = (people, _named(reference), escaped(record.venue), _address(record))
    written = ". ".join(part.rstrip(".") for part in sentences if part)
    return f"{written}. Quoted as {markers}."


def _named(reference: Reference) -> str:
    """The title, else, said to be none, where the abstract was read and what it is about."""
    record = reference.record
    if record.title:
        return f"*{escaped(record.title)}*"
    return f"{escaped(reference.note)} ({escaped(record.label)})"


def _address(record: Record) -> str:
    address = f"https://doi.org/{record.doi}" if record.doi else record.url
    return f"<{address}>" if _LINKABLE.fullmatch(address) else escaped(address)


def _one_line(text: str) -> str:
    return " ".join(text.split())
