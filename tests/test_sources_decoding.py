"""Encodings and archives: the same abstracts come out of every packing."""

from __future__ import annotations

import contextlib
import gzip
import io
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.errors import SourceError
from rag.records import Record
from rag.sources import Skip, read_records
from rag.sources.decoding import open_text

WESTERN = "Les modèles génèrent — naïvement — des “résumés”.\n"
RIS = "TY  - JOUR\nTI  - {0}\nAB  - We show {0}.\nER  - \n\n"


def abstracts(path: Path) -> list[str]:
    return [entry.abstract for entry in read_records(path) if isinstance(entry, Record)]


def skips(path: Path) -> list[Skip]:
    return [entry for entry in read_records(path) if isinstance(entry, Skip)]


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"],
)
def test_western_text_is_read_in_every_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes((WESTERN * 3).encode(encoding))
    assert abstracts(path) == [(WESTERN * 3).strip()]


def test_one_latin_1_letter_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"caf\xe9 and more.")
    assert abstracts(path) == ["café and more."]


def test_a_latin_1_line_in_a_utf8_file_spoils_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("Für Größe 中文.\n\n".encode() + "Für Größe.\n\n".encode("latin-1") + b"End.")
    assert abstracts(path) == ["Für Größe 中文.", "Für Größe.", "End."]


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        (
            "gb18030",
            "我们提出了一种新的方法来训练大型语言模型，并证明它优于现有的方法。实验结果表明该方法有效。",
        ),
        (
            "cp1251",
            "Мы предлагаем новый метод обучения больших языковых моделей и показываем его пользу.",
        ),
        (
            "euc_jp",
            "本論文では、大規模言語モデルを学習するための新しい手法を提案し、その有効性を示す。",
        ),
    ],
)
def test_other_scripts_are_recognised(tmp_path: Path, encoding: str, text: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes((text * 5).encode(encoding))
    assert abstracts(path) == [text * 5]


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_any_text_in_utf8_is_read_as_it_is(text: str) -> None:
    with open_text(lambda: io.BytesIO(text.encode())) as stream:
        assert stream.read() == text.removeprefix("\ufeff")


@given(st.binary(max_size=400))
def test_any_bytes_are_text_or_refused(data: bytes) -> None:
    with contextlib.suppress(SourceError), open_text(lambda: io.BytesIO(data)) as stream:
        stream.read()


def test_gzip_is_read_as_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "a.ris.gz"
    path.write_bytes(gzip.compress(RIS.format("this").encode()))
    (record,) = read_records(path)
    assert isinstance(record, Record)
    assert (record.title, record.source.path) == ("this", str(path))


def test_zip_names_the_files_in_it_and_leaves_out_hidden_ones(tmp_path: Path) -> None:
    path = tmp_path / "papers.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("sub/a.ris", RIS.format("this") + RIS.format("that"))
        archive.writestr("b.csv.gz", gzip.compress(b"title,abstract\nT,We show those.\n"))
        archive.writestr("../../c.txt", "We show more.")
        archive.writestr("__MACOSX/._a.ris", "nothing")
        archive.writestr(".DS_Store", "nothing")
    found = [entry for entry in read_records(path) if isinstance(entry, Record)]
    assert [
        (r.abstract, r.source.path.removeprefix(f"{path}/"), r.source.ordinal) for r in found
    ] == [
        ("We show this.", "sub/a.ris", 1),
        ("We show that.", "sub/a.ris", 2),
        ("We show those.", "b.csv.gz", 1),
        ("We show more.", "c.txt", 1),
    ]
    assert skips(path) == []


def test_a_bad_file_in_a_zip_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "papers.zip"
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("a.txt", "We show it.")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("paper.pdf", b"%PDF-1.7 ...")
        archive.writestr("inner.zip", inner.getvalue())
        archive.writestr("a.txt", "We show this.")
        archive.writestr("rotten.txt", "We show that.")
    data = bytearray(path.read_bytes())
    at = data.index(b"We show that.")
    data[at : at + 2] = b"XX"  # now the check sum is wrong
    path.write_bytes(data)
    assert abstracts(path) == ["We show this."]
    assert [Path(skip.path).name for skip in skips(path)] == [
        "paper.pdf",
        "inner.zip",
        "rotten.txt",
    ]


def test_what_a_truncated_gzip_file_still_holds_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    lines = [
        f'{{"title": "T{i}", "abstract": "We show {i * i * 7919 % 9973}."}}' for i in range(20_000)
    ]
    packed = gzip.compress("\n".join(lines).encode())
    path.write_bytes(packed[: len(packed) // 2])
    assert len(abstracts(path)) > 5_000
    (skip,) = skips(path)
    assert skip.where.startswith("after entry ")
    assert "cannot be unpacked" in skip.reason


@pytest.mark.parametrize("name", ["bomb.zip", "bomb.gz"])
def test_a_bomb_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    zeros = b"0" * (40 << 20)
    if name == "bomb.gz":
        path.write_bytes(gzip.compress(zeros))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.txt", zeros)
    with pytest.raises(SourceError, match=rf"{name}: .*unpacks to more than"):
        list(read_records(path))


@pytest.mark.parametrize("member", ["word/document.xml", "ppt/presentation.xml"])
def test_office_files_are_refused_with_what_to_do(tmp_path: Path, member: str) -> None:
    path = tmp_path / "a.docx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", "")
        archive.writestr(member, "")
    with pytest.raises(SourceError, match="plain text"):
        list(read_records(path))


@given(st.integers(0, 200), st.integers(0, 255))
def test_a_damaged_zip_raises_nothing_else(place: int, value: int) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", "We show this and that.")
    data = bytearray(packed.getvalue())
    data[place % len(data)] = value
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.zip"
        path.write_bytes(data)
        with contextlib.suppress(SourceError):
            list(read_records(path))
