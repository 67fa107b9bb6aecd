"""Files given to the window: kept, ingested, and what is said of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from rag.errors import SourceError
from ui import uploads
from ui.uploads import add_files, kept, report_html, safe_name

REPORT = {
    "read": 3, "added": 1, "updated": 0, "unchanged": 1, "removed": 0, "records": 58,
    "skipped": [{"path": "/x/<b>.ris", "where": "entry 2", "reason": "no abstract"}],
}  # fmt: skip


class Collection:
    def __init__(self, folder: Path, error: Exception | None = None) -> None:
        self.uploads = folder
        self.error = error
        self.given: list[Path] = []

    def ingest(self, paths: Sequence[Path], *, progress: uploads.Progress) -> SimpleNamespace:
        self.given += paths
        progress("embedding", 1, 4)
        if self.error:
            raise self.error
        return SimpleNamespace(as_dict=lambda: REPORT)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "sent" / "my papers 📄.ris"
    file.parent.mkdir()
    file.write_text("TY  - JOUR")
    return file


def test_files_are_kept_and_ingested_with_progress(tmp_path: Path, file: Path) -> None:
    collection = Collection(tmp_path / "uploads")
    *progress, last = add_files(collection, [str(file)])
    assert collection.given == [tmp_path / "uploads" / "my papers 📄.ris"]
    assert collection.given[0].read_text() == "TY  - JOUR"
    assert ['value="0.250"' in line and "Embedding: 1 of 4" in line for line in progress] == [True]
    assert last == report_html(REPORT)


def test_a_report_shows_every_count_and_escapes_names() -> None:
    shown = report_html(REPORT)
    assert "<td>3</td><td>1</td><td>0</td><td>1</td><td>0</td><td>1</td>" in shown
    assert "58 abstracts" in shown
    assert "&lt;b&gt;.ris, entry 2: no abstract" in shown
    assert "\n" not in shown


def test_a_file_that_cannot_be_read_is_named_and_not_kept(tmp_path: Path, file: Path) -> None:
    collection = Collection(tmp_path / "uploads", SourceError("nothing could be read: <x>"))
    *_, last = add_files(collection, [file])
    assert "aq-error" in last
    assert "nothing could be read: &lt;x&gt;" in last
    assert list((tmp_path / "uploads").iterdir()) == []


def test_too_large_a_file_and_surprises_are_one_line(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Collection(tmp_path / "uploads", RuntimeError("secret"))
    *_, last = add_files(broken, [file])
    assert "Something went wrong" in last
    assert "secret" not in last
    monkeypatch.setattr(uploads, "MOST_BYTES", 5)
    (last,) = add_files(broken, [file])
    assert "is larger than" in last


def test_one_name_with_other_content_gets_a_number(tmp_path: Path, file: Path) -> None:
    folder = tmp_path / "uploads"
    first, again = kept(file, folder), kept(file, folder)
    file.write_text("TY  - BOOK")
    other = kept(file, folder)
    assert first == again == folder / "my papers 📄.ris"
    assert other == folder / "my papers 📄 (2).ris"
    assert {each.name for each in folder.iterdir()} == {first.name, other.name}


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("a.ris", "a.ris"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("..", "upload"),
        (".hidden", "hidden"),
        ("a\x1b[2Jb:c.bib", "a_[2Jb_c.bib"),
        ("", "upload"),
        ("x" * 300 + ".ris", "x" * 160 + ".ris"),
        ("冰" * 100 + ".csv", "冰" * 53 + ".csv"),
    ],
)
def test_names_are_made_safe(name: str, safe: str) -> None:
    assert safe_name(name) == safe
