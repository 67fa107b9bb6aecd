"""Answers, hits and reports as terminal text, from the JSON data of the commands.

It works on the JSON data, not on the types behind it, so that what a chat window answered
for the command line looks the same as what was answered here. Pure, except for the file
names, which are shown relative to the current folder where they are below it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Json = Mapping[str, Any]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_TEXT_SHOWN = 200
_SKIPS_SHOWN = 50


def printable(text: str) -> str:
    """Text without control characters: an abstract must not steer the reader's terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def citations_text(answer: Json) -> str:
    """What follows an answer: its citations, its warnings, and who wrote it."""
    lines = [
        f"[{c['marker']}] {_label(c)} — {_place(c['source'])}: “{_one_line(c['quote'])}”"
        for c in answer["citations"]
    ]
    lines += [f"warning: {warning}" for warning in answer["warnings"]]
    if answer.get("standalone_question", "") != answer.get("question", ""):
        lines.append(f"asked as: {_one_line(answer['standalone_question'])}")
    total = answer["timings"].get("total_s")
    lines.append(f"answered by {answer['llm']}" + (f" in {total:.1f} s" if total else ""))
    return printable("\n".join(lines))


def hits_text(hits: Sequence[Json]) -> str:
    """A numbered list of abstracts, best first, each with the start of its text."""
    entries = [
        f"{rank}. {_label(hit)}  (score {hit['score']:.2f})\n"
        f"   {_place(hit['source'])}, id {hit['id']}\n"
        f"   {_start(hit['text'])}"
        for rank, hit in enumerate(hits, start=1)
    ]
    return printable("\n".join(entries) or "nothing found")


def report_text(report: Json) -> str:
    """The counts of an ingest, then every entry that was left out and why."""
    counts = ", ".join(
        f"{report[name]:,} {name}" for name in ("read", "added", "updated", "unchanged", "removed")
    )
    skips = report["skipped"]
    lines = [f"{counts}, {len(skips):,} skipped; {report['records']:,} records in the index"]
    for skip in skips[:_SKIPS_SHOWN]:
        where = f", {skip['where']}" if skip["where"] else ""
        lines.append(f"skipped {skip['path']}{where}: {skip['reason']}")
    if len(skips) > _SKIPS_SHOWN:
        lines.append(f"… and {len(skips) - _SKIPS_SHOWN:,} more; --json lists every one")
    return printable("\n".join(lines))


def removal_text(report: Json) -> str:
    """How many records went."""
    return f"{report['removed']:,} removed; {report['records']:,} records in the index"


def status_text(status: Json) -> str:
    """One line a fact; nested facts are indented below their name."""
    return printable("\n".join(_status_lines(status, indent="")))


def _status_lines(value: Any, indent: str) -> list[str]:
    lines = []
    for name, item in value.items():
        head = f"{indent}{str(name).replace('_', ' ')}:"
        if isinstance(item, Mapping) and item:
            lines += [head, *_status_lines(item, indent + "  ")]
        elif isinstance(item, list | tuple) and item:
            lines += [head, *(f"{indent}  {_status_item(entry)}" for entry in item)]
        else:
            lines.append(f"{head} {_status_item(item)}")
    return lines


def _status_item(item: Any) -> str:
    if isinstance(item, Mapping):
        facts = ((name, value) for name, value in item.items() if value is not False)
        return ", ".join(n if value is True else f"{n} {value}" for n, value in facts) or "none"
    if isinstance(item, bool):
        return "yes" if item else "no"
    return "none" if item in (None, [], ()) else str(item)


def _label(entry: Json) -> str:
    return _one_line(entry.get("title") or entry.get("label") or entry["id"])


def _place(source: Json) -> str:
    path = Path(source["path"])
    here = Path.cwd()
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    return f"{shown} #{source['ordinal']}"


def _start(text: str) -> str:
    text = _one_line(text)
    if len(text) <= _TEXT_SHOWN:
        return text
    return text[:_TEXT_SHOWN].rsplit(" ", 1)[0] + " …"


def _one_line(text: str) -> str:
    return " ".join(text.split())
