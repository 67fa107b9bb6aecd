from __future__ import annotations

from pathlib import Path

import pytest

from rag.errors import SourceError
from rag.records import Record
from rag.sources import Skip, find_files, read_records

SAMPLE = Path(__file__).parent.parent / "data"


def records(path: Path) -> list[Record]:
    return [entry for entry in read_records(path) if isinstance(entry, Record)]


def test_the_sample_has_57_abstracts_in_three_files_without_their_headers() -> None:
    files, skips = find_files([SAMPLE])
    counts = [len(records(path)) for path in files]
    assert (counts, skips) == ([19, 19, 19], [])
    assert records(files[2])[0].abstract.startswith("This paper systematically explores neural")


def test_abstracts_keep_their_text_and_place(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("My papers\n\nFirst $x<y$ *one*.\nStill first.\n \n\nSecond.\n", "utf-8")
    first, second = records(path)
    assert first.abstract == "First $x<y$ *one*.\nStill first."
    assert (second.abstract, second.source.ordinal, second.source.path) == ("Second.", 2, str(path))


@pytest.mark.parametrize("header", ["ICLR 2025 论文列表", "ICLR 2025 Papers"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_bom_line_ends_and_headers(
    tmp_path: Path, header: str, encoding: str, newline: str
) -> None:
    path = tmp_path / "a.txt"
    text = newline.join([header, "", "We prove one thing.", "", "We prove another."])
    path.write_bytes(text.encode(encoding))
    assert [r.abstract for r in records(path)] == ["We prove one thing.", "We prove another."]


def test_a_file_without_a_header_keeps_its_first_abstract(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("We prove one thing.\n\nWe prove another.")
    assert len(records(path)) == 2


def test_a_wrapped_abstract_does_not_lose_its_first_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("We prove that a very long claim\nholds over two lines of text.\n")
    assert records(path)[0].abstract.startswith("We prove that")


def test_an_entry_without_words_is_skipped_and_named(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("We prove it.\n\n***\n\nWe prove that.")
    skips = [entry for entry in read_records(path) if isinstance(entry, Skip)]
    assert skips == [Skip(str(path), "entry 2", "no words in it")]


@pytest.mark.parametrize("content", [b"\x7fELF\x00\x01\x02", b"caf\xe9 and more"])
def test_what_is_not_utf8_text_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"a\.txt: .*UTF-8"):
        list(read_records(path))


def test_finding_files_leaves_hidden_ones_out_and_names_the_missing(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").mkdir()
    for name in ("b.txt", "sub/a.txt", ".hidden", ".git/c.txt"):
        (tmp_path / name).write_text("We prove it.")
    files, skips = find_files([tmp_path, tmp_path / "b.txt", tmp_path / "gone.txt"])
    assert [path.name for path in files] == ["b.txt", "a.txt"]
    assert [skip.path for skip in skips] == [str(tmp_path / "gone.txt")]
