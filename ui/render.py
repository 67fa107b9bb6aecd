"""An answer as one message of the chat: safe HTML, and nothing else (no Gradio here).

A message is a row of blocks, each one line of balanced HTML, with a blank line between two:
the page compares blocks, so a growing answer redraws only what changed and an open card
stays open. Every id carries the turn's key, so cards and markers of two turns never meet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from textwrap import shorten
from typing import TYPE_CHECKING, Any
from urllib.parse import quote as percent_encoded

from rag.answers import Answer, Citation, Evidence
from rag.records import Record
from ui.inline import attribute, to_html

if TYPE_CHECKING:
    from rag.llms.install import InstallStatus

_EVIDENCE_SHOWN = 4
_NEAREST_SHOWN = 3
_SEARCHED_SHOWN = 140
# From which support on, the style, and the words for it.
_SUPPORT = (
    (0.7, "aq-good", "closely supported"),
    (0.4, "aq-fair", "partly supported"),
    (0.0, "aq-poor", "weakly supported: read the source"),
)
_LLM_NAMES = {"extractive": "best sentences, no LLM", "local": "the local LLM"}


def question_html(question: str, only: str = "") -> str:
    """A question as a message; `only` says in words which abstracts it was restricted to."""
    asked = f'<div class="aq-question">{to_html(question)}</div>'
    return f'{asked}\n\n<div class="aq-only">Only: {to_html(only)}</div>' if only else asked


def waiting_html() -> str:
    """The message before the first snapshot arrives."""
    return _stage("Searching the abstracts")


def error_html(message: str) -> str:
    """A one-line error as a message."""
    return f'<div class="aq-error">{to_html(message)}</div>'


def answer_html(answer: Answer, key: str, stopped: bool = False) -> str:
    """An answer, or a snapshot of one, as a message.

    `key` tells this turn's ids from those of other turns; `stopped` says that the reader
    ended it early.
    """
    finished = stopped or answer.stage == "done"
    blocks = [] if finished else [_stage(_stage_words(answer))]
    blocks += _followed_up(answer)
    if finished and not answer.answerable:
        blocks += _refusal(answer, key)
    else:
        blocks += _text(answer, key, finished)
        blocks += _notes(answer, stopped)
        blocks += _sources(answer, key)
        blocks += [] if answer.citations else _evidence(answer, key)
        blocks += _also_retrieved(answer, key) if finished else []
    blocks += [_foot(answer)] if finished else []
    return "\n\n".join(blocks)


def welcome_html() -> str:
    """What an empty conversation shows above the example questions."""
    return (
        '<div class="aq-welcome"><p class="aq-hello">What would you like to know?</p>'
        "<p>Answers come from the abstracts only, and every sentence names the one it rests "
        "on.</p></div>"
    )


def header_html(status: Mapping[str, Any]) -> str:
    """The name of the window and the size of the collection, from `Assistant.status()`."""
    records, sources = status.get("records", 0), status.get("sources", 0)
    files = sources if isinstance(sources, int) else len(sources)
    size = f"{_count(records, 'abstract')} from {_count(files, 'file')}"
    return f'<h1>Abstract QA</h1><span class="aq-size">{size}</span>'


def writer_html(llm: str, preparing: InstallStatus | None = None) -> str:
    """Which LLM answers now, and how far the local one is if it is being prepared."""
    now = f'<span class="aq-now">Answers: {to_html(_LLM_NAMES.get(llm, llm))}</span>'
    if preparing is None:
        return now
    known = preparing.fraction is not None
    value = f' value="{preparing.fraction:.3f}"' if known else ""
    bar = "" if preparing.final else f'<progress max="1"{value}></progress>'
    until = "" if preparing.final else "; answers are extractive until it is ready"
    message = to_html(f"{preparing.message}{until}")
    return f'{now}<span class="aq-prepare">{bar}<span>{message}</span></span>'


def plain_text(answer: Answer) -> str:
    """The answer with its sources, as it is copied to the clipboard."""
    lines = [answer.text]
    if answer.citations:
        lines += ["", "Sources"]
    for c in answer.citations:
        lines += [f"[{c.marker}] {c.record.label} ({place(c.record)})", f"    “{c.quote}”"]
    return "\n".join(lines)


def place(record: Record) -> str:
    """Where a record was read, in words: file name and place in it."""
    name = PurePath(record.source.path.replace("\\", "/")).name
    return f"{name}, abstract {record.source.ordinal}"


def support_words(support: float) -> str:
    """What a support in [0, 1] means to a reader."""
    return _support_level(support)[1]


# --- the blocks of a message ---------------------------------------------------------------


def _stage(words: str) -> str:
    return f'<div class="aq-stage"><span class="aq-pulse"></span>{to_html(words)}</div>'


def _stage_words(answer: Answer) -> str:
    if answer.stage == "understanding":
        return "Understanding the question"
    if answer.stage == "writing":
        return "Writing; a sentence stays once it is checked" if answer.pending else "Writing"
    if not answer.evidence:
        return "Searching the abstracts"
    abstracts = len({e.record.id for e in answer.evidence})
    return (
        f"Reading {_count(len(answer.evidence), 'sentence')} from {_count(abstracts, 'abstract')}"
    )


def _followed_up(answer: Answer) -> list[str]:
    searched = answer.standalone_question.strip()
    if not searched or searched == answer.question.strip():
        return []
    # A follow-up is searched together with what was said before, which can be long.
    shown = shorten(searched, _SEARCHED_SHOWN, placeholder="…")
    hint = attribute(searched)
    return [f'<div class="aq-searched" title="{hint}">Searched for: {to_html(shown)}</div>']


def _text(answer: Answer, key: str, finished: bool) -> list[str]:
    # The sentence that is being written is not checked yet, and looks like it.
    pending = "" if finished else answer.pending.strip()
    if not answer.text.strip() and not pending:
        return []
    body = _paragraphs(answer.text, _Markers(answer.citations, key)) if answer.text else ""
    body += f'<p class="aq-pending">{to_html(pending)}</p>' if pending else ""
    state = "" if finished else " aq-growing"
    return [f'<div class="aq-answer{state}">{body}</div>']


def _refusal(answer: Answer, key: str) -> list[str]:
    text = answer.text.strip() or "The abstracts do not answer this question."
    nearest = answer.retrieved[:_NEAREST_SHOWN]
    blocks = [f'<div class="aq-refusal"><p>{to_html(text)}</p></div>', *_notes(answer, False)]
    if nearest:
        blocks.append('<div class="aq-heading">Nearest abstracts</div>')
        blocks += [_abstract_card(hit.record, f"aq-{key}-n{n}") for n, hit in enumerate(nearest)]
    return blocks


def _notes(answer: Answer, stopped: bool) -> list[str]:
    notes = [*answer.warnings, *(["Stopped before the answer was complete."] if stopped else [])]
    items = "".join(f"<li>{to_html(note)}</li>" for note in notes)
    return [f'<ul class="aq-notes">{items}</ul>'] if items else []


def _sources(answer: Answer, key: str) -> list[str]:
    if not answer.citations:
        return []
    heading = '<div class="aq-heading">Sources</div>'
    return [heading, *(_source_card(citation, key) for citation in answer.citations)]


def _evidence(answer: Answer, key: str) -> list[str]:
    if not answer.evidence:
        return []
    shown = answer.evidence[:_EVIDENCE_SHOWN]
    heading = '<div class="aq-heading">Evidence found</div>'
    return [heading, *(_evidence_card(e, f"aq-{key}-e{n}") for n, e in enumerate(shown))]


def _also_retrieved(answer: Answer, key: str) -> list[str]:
    cited = {citation.record.id for citation in answer.citations}
    rest = [hit for hit in answer.retrieved if hit.record.id not in cited]
    if not rest:
        return []
    cards = "".join(_abstract_card(hit.record, f"aq-{key}-r{n}") for n, hit in enumerate(rest))
    summary = f"<summary>Also retrieved ({len(rest)})</summary>"
    return [f'<details class="aq-also">{summary}<div class="aq-cards">{cards}</div></details>']


def _foot(answer: Answer) -> str:
    writer = _LLM_NAMES.get(answer.llm, answer.llm)
    seconds = answer.timings.get("total_s")
    time = "" if seconds is None else f" · {_duration(seconds)}"
    copy = (
        '<button type="button" class="aq-copy" title="Copy the answer and its sources" '
        f'value="{attribute(plain_text(answer))}">Copy</button>'
    )
    said = f"Answered by {to_html(writer)}{time}"
    return f'<div class="aq-foot"><span>{said}</span>{copy if answer.text else ""}</div>'


def _support_level(support: float) -> tuple[str, str]:
    return next((style, words) for least, style, words in _SUPPORT if max(support, 0) >= least)


# --- cards -----------------------------------------------------------------------------------


def _source_card(citation: Citation, key: str) -> str:
    record, number = citation.record, citation.marker
    back = (
        f'<a class="aq-back" href="#aq-{key}-m{number}" '
        f'title="Back to marker {number} in the answer">Back to the answer</a>'
    )
    level, words = _support_level(citation.support)
    support = (
        f'<span class="aq-support {level}" title="Support {citation.support:.2f} of 1">'
        f"{words}</span>"
    )
    return (
        f'<details class="aq-card" id="aq-{key}-s{number}">'
        f'<summary><span class="aq-number">{number}</span>'
        f"{_summary(record, citation.quote)}</summary>"
        f"{_about(record, support)}"
        f'<div class="aq-abstract">{_highlighted(record, citation.start, citation.end)}</div>'
        f"{back}</details>"
    )


def _evidence_card(evidence: Evidence, element: str) -> str:
    record = evidence.record
    return (
        f'<details class="aq-card aq-found" id="{element}">'
        f'<summary><span class="aq-said"><span class="aq-quote">{to_html(evidence.quote)}</span>'
        f'<span class="aq-place">{to_html(record.label)}</span></span></summary>'
        f"{_about(record)}"
        f'<div class="aq-abstract">{_highlighted(record, evidence.start, evidence.end)}</div>'
        "</details>"
    )


def _abstract_card(record: Record, element: str) -> str:
    return (
        f'<details class="aq-card" id="{element}"><summary>{_summary(record)}</summary>'
        f'{_about(record)}<div class="aq-abstract">{to_html(record.abstract)}</div></details>'
    )


def _summary(record: Record, quote: str = "") -> str:
    derived = "" if record.title else ' title="A label made from the text, not the title"'
    kind = "aq-title" if record.title else "aq-title aq-label"
    where = f'<span class="aq-place">{to_html(place(record))}</span>'
    name = f'<span class="{kind}"{derived}>{to_html(record.label)}</span>'
    said = f'<span class="aq-glimpse">{to_html(quote)}</span>' if quote else ""
    return f'<span class="aq-said">{name}{where}{said}</span>'


def _about(record: Record, first: str = "") -> str:
    year = str(record.year) if record.year is not None else ""
    facts = (", ".join(record.authors), record.venue, year)
    parts = [first, *(to_html(fact) for fact in facts if fact), _link(record)]
    shown = ' <span class="aq-dot">·</span> '.join(part for part in parts if part)
    return f'<div class="aq-about">{shown}</div>' if shown else ""


def _link(record: Record) -> str:
    """The DOI or the address of the paper; a link only where it is a safe one."""
    address = f"https://doi.org/{percent_encoded(record.doi)}" if record.doi else record.url
    shown = attribute(record.doi or record.url)
    if not address.lower().startswith("https://"):
        return shown
    return f'<a href="{attribute(address)}" target="_blank" rel="noopener noreferrer">{shown}</a>'


def _highlighted(record: Record, start: int, end: int) -> str:
    text = record.abstract
    before, quote, after = text[:start], text[start:end], text[end:]
    return f"{to_html(before)}<mark>{to_html(quote)}</mark>{to_html(after)}"


# --- text with markers -----------------------------------------------------------------------


class _Markers:
    """Turns `[n]` into a link to its card; the first link of each n can be gone back to."""

    def __init__(self, citations: Sequence[Citation], key: str) -> None:
        self._citations = {citation.marker: citation for citation in citations}
        self._key = key
        self._used: set[int] = set()

    def __call__(self, number: int) -> str | None:
        citation = self._citations.get(number)
        if citation is None:
            return None
        first = number not in self._used
        self._used.add(number)
        element = f' id="aq-{self._key}-m{number}"' if first else ""
        hint = attribute(f"Source {number}, {citation.record.label}: {citation.quote}")
        link = f'<a class="aq-marker"{element} href="#aq-{self._key}-s{number}" title="{hint}">'
        return f"<sup>{link}{number}</a></sup>"


def _paragraphs(text: str, marker: _Markers) -> str:
    """Paragraphs and plain bullet lists, which is all the layout that an answer needs."""
    parts: list[str] = []
    bullets: list[str] = []
    for line in [*text.strip().splitlines(), ""]:
        bullet = line.lstrip().startswith(("- ", "* ", "• "))
        if bullet:
            bullets.append(f"<li>{to_html(line.lstrip()[2:], marker)}</li>")
            continue
        if bullets:
            parts.append(f"<ul>{''.join(bullets)}</ul>")
            bullets = []
        if line.strip():
            parts.append(f"<p>{to_html(line, marker)}</p>")
    return "".join(parts)


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
