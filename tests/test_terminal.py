"""Terminal text from the JSON data of the commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rag.terminal import (
    citations_text,
    hits_text,
    printable,
    report_text,
    status_text,
)


def answer(**changed: Any) -> dict[str, Any]:
    citation = {
        "marker": 1,
        "id": "ab",
        "quote": "One\nline.",
        "source": {"path": "/d/a.txt", "ordinal": 4},
        "title": "",
        "label": "τ-bench",
    }
    known = {"citations": [citation], "warnings": ["[7] was dropped"], "llm": "local"}
    return {**known, "timings": {"total_s": 12.34}, **changed}


def test_citations_warnings_and_the_writer() -> None:
    assert citations_text(answer()).split("\n") == [
        "[1] τ-bench — /d/a.txt #4: “One line.”",
        "warning: [7] was dropped",
        "answered by local in 12.3 s",
    ]


def test_an_answer_without_citations_still_names_its_writer() -> None:
    bare = answer(citations=[], warnings=[], timings={})
    assert citations_text(bare) == "answered by local"


def test_hits_show_titles_places_and_the_start_of_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    hit = {
        "id": "ab",
        "score": 0.456,
        "title": "A title",
        "label": "A title",
        "text": "word " * 100,
        "source": {"path": str(tmp_path / "data" / "a.txt"), "ordinal": 2},
    }
    lines = hits_text([hit, {**hit, "title": "", "label": "Lab\nel", "text": "short"}]).split("\n")
    assert lines[0] == "1. A title  (score 0.46)"
    assert lines[1] == "   data/a.txt #2, id ab"
    assert lines[2].endswith("word …")
    assert len(lines[2]) < 210
    assert (lines[3], lines[5]) == ("2. Lab el  (score 0.46)", "   short")
    assert hits_text([]) == "nothing found"


def test_a_report_names_every_skipped_entry() -> None:
    report = {
        "read": 3, "added": 1, "updated": 0, "unchanged": 2, "removed": 0, "records": 3,
        "skipped": [
            {"path": "a.txt", "where": "entry 2", "reason": "no words in it"},
            {"path": "b.pdf", "where": "", "reason": "a binary file"},
        ],
    }  # fmt: skip
    assert report_text(report).split("\n") == [
        "3 read, 1 added, 0 updated, 2 unchanged, 0 removed, 2 skipped; 3 records in the index",
        "skipped a.txt, entry 2: no words in it",
        "skipped b.pdf: a binary file",
    ]


def test_the_status_is_one_line_a_fact() -> None:
    status = {
        "records": 57,
        "embedding_model": {"name": "m", "dimension": 384},
        "sources": [{"path": "/d/a.txt", "records": 20}],
        "healthy": True,
        "problems": [],
    }
    assert status_text(status).split("\n") == [
        "records: 57",
        "embedding model:",
        "  name: m",
        "  dimension: 384",
        "sources:",
        "  path /d/a.txt, records 20",
        "healthy: yes",
        "problems: none",
    ]


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert printable("a\x1b[2Jb\tc\nd\x9b") == "a�[2Jb\tc\nd�"
    evil = answer(warnings=["\x1b]0;title\x07"])
    assert "\x1b" not in citations_text(evil)
