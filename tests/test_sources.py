from __future__ import annotations

import os
from pathlib import Path

import pytest

from rag.errors import SourceError
from rag.records import Record, Source
from rag.sources import Located, Skip, find_files, read_entries, read_records
from rag.sources.entry import Entry

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


def test_what_is_no_text_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\x7fELF\x00\x01\x02")
    with pytest.raises(SourceError, match=r"a\.txt: .*UTF-8"):
        list(read_records(path))


RIS = "TY  - JOUR\nTI  - On risk\nAU  - Doe, Jane\nPY  - 2020\nAB  - We show it.\nER  - \n"
BIBTEX = "@article{k, title={On risk}, author={Doe, Jane}, year=2020, abstract={We show it.}}\n"
CSV = 'title,authors,year,abstract\nOn risk,"Doe, Jane",2020,We show it.\n'
JSON = '[{"title": "On risk", "authors": ["Doe, Jane"], "year": 2020, "abstract": "We show it."}]'
CSL = (
    '[{"type": "article", "title": "On risk", "author": [{"family": "Doe", "given": "Jane"}], '
    '"issued": {"date-parts": [[2020]]}, "abstract": "We show it."}]'
)
ENW = "%0 Journal Article\n%T On risk\n%A Doe, Jane\n%D 2020\n%X We show it.\n"
NBIB = "PMID- 1\nTI  - On risk\nFAU - Doe, Jane\nDP  - 2020 May\nAB  - We show it.\n"
ISI = "FN X\nVR 1.0\nPT J\nAU Doe, Jane\nTI On risk\nPY 2020\nAB We show it.\nER\n\nEF\n"
PUBMED = (
    '<?xml version="1.0"?><PubmedArticleSet><PubmedArticle><MedlineCitation><Article>'
    "<Journal><JournalIssue><PubDate><Year>2020</Year></PubDate></JournalIssue></Journal>"
    "<ArticleTitle>On risk</ArticleTitle><Abstract><AbstractText>We show it.</AbstractText>"
    "</Abstract><AuthorList><Author><LastName>Doe</LastName><ForeName>Jane</ForeName></Author>"
    "</AuthorList></Article></MedlineCitation></PubmedArticle></PubmedArticleSet>"
)
FORMATS = [
    RIS,
    BIBTEX,
    CSV,
    CSV.replace("authors,", '"authors",'),
    JSON,
    CSL,
    ENW,
    NBIB,
    ISI,
    PUBMED,
]


@pytest.mark.parametrize("suffix", ["txt", "ris", "csv", "json", "bib", "xml", "jsonl", ""])
@pytest.mark.parametrize("content", FORMATS)
def test_the_content_and_not_the_suffix_says_what_a_file_is(
    tmp_path: Path, content: str, suffix: str
) -> None:
    path = tmp_path / f"export.{suffix}"
    path.write_text(content, "utf-8")
    (record,) = read_records(path)
    assert isinstance(record, Record)
    assert (record.title, record.abstract, record.year) == ("On risk", "We show it.", 2020)
    assert [name.partition(",")[0].split()[-1] for name in record.authors] == ["Doe"]
    assert record.source == Source(str(path), 1)


def test_the_same_paper_has_the_same_id_in_every_format(tmp_path: Path) -> None:
    ids = set()
    for number, content in enumerate(FORMATS):
        path = tmp_path / f"{number}.txt"
        path.write_text(content, "utf-8")
        ids.update(record.id for record in records(path))
    assert len(ids) == 1


def test_an_entry_without_an_abstract_is_skipped_and_its_title_named(tmp_path: Path) -> None:
    path = tmp_path / "a.ris"
    path.write_text(RIS + RIS.replace("AB  - We show it.\n", "") + RIS)
    _, skip, last = read_records(path)
    assert skip == Skip(str(path), "entry 2", 'no abstract: "On risk"')
    assert isinstance(last, Record)
    assert last.source.ordinal == 3


@pytest.mark.parametrize("placeholder", ["[No abstract available]", "n/a", "", " ", "None"])
def test_a_note_that_there_is_no_abstract_is_none(tmp_path: Path, placeholder: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"title,abstract\nOn risk,{placeholder}\nOn luck,We show it.\n")
    assert [record.title for record in records(path)] == ["On luck"]


def test_titles_suffice_when_asked_to(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("PMID,Title,Authors\n1,On risk,Doe J\n")
    with pytest.raises(SourceError, match="PMID, Title, Authors"):
        records(path)
    (record,) = read_records(path, titles_suffice=True)
    assert isinstance(record, Record)
    assert (record.abstract, record.title) == ("On risk", "On risk")


def test_the_values_as_they_stand_in_the_file_stay_reachable(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("title,abstract\nT,No\nOn risk,<p>Abstract: We show a&lt;b.</p>\n")
    record = records(path)[1]
    assert record.abstract == "We show a<b."
    raw = [entry for entry in read_entries(path) if isinstance(entry, Located)]
    entry = raw[record.source.ordinal - 1]
    assert entry.source == record.source
    assert isinstance(entry.value, Entry)
    assert entry.value.abstract == "<p>Abstract: We show a&lt;b.</p>"


def test_plain_text_is_kept_as_written(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("Abstract: we write &lt; and <i>  twice</i>. © 2020 Us. All rights reserved.")
    assert records(path)[0].abstract == path.read_text()


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3", "PDF; export"),
        (b"SQLite format 3\x00" + bytes(100), "SQLite database; export"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "save it as XLSX"),
        (b"<!DOCTYPE html><html><body>We show</body></html>", "web page"),
        (b"<?xml version='1.0'?><library><book/></library>", "XML of an unknown kind"),
        (b"PAR1\x15\x04", "Parquet"),
        (bytes(range(1, 32)) * 9, "binary"),
    ],
)
def test_files_that_hold_no_abstracts_are_refused_with_what_to_do(
    tmp_path: Path, content: bytes, hint: str
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=rf"a\.txt: .*{hint}"):
        list(read_records(path))


def test_odd_names_are_read(tmp_path: Path) -> None:
    path = tmp_path / "my papers 📚 (1).txt"
    path.write_text("We prove it.")
    files, skips = find_files([tmp_path])
    assert (files, skips) == ([path.resolve()], [])
    assert records(files[0])[0].source.path == str(path)


def test_an_unreadable_file_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(SourceError, match=r"a\.txt: cannot be read \(Permission denied\)"):
        list(read_records(path))


def test_links_are_followed_once_and_circles_are_named(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    for place in (folder / "sub", elsewhere):
        place.mkdir(parents=True)
        (place / "a.txt").write_text("We prove it.")
    (folder / "sub" / "up").symlink_to(folder)
    (folder / "more").symlink_to(elsewhere)
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "gone.txt").symlink_to(folder / "nowhere.txt")
    files, skips = find_files([folder])
    assert files == sorted([elsewhere.resolve() / "a.txt", folder.resolve() / "sub" / "a.txt"])
    assert sorted(Path(skip.path).name for skip in skips) == ["gone.txt", "loop"]
    assert all("leads nowhere" in skip.reason for skip in skips)


def test_a_pipe_is_named_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    files, skips = find_files([tmp_path / "pipe.txt"])
    assert (files, [skip.reason for skip in skips]) == (
        [],
        ["not a file: a pipe, socket or device"],
    )


def test_finding_files_leaves_hidden_ones_out_and_names_the_missing(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").mkdir()
    for name in ("b.txt", "sub/a.txt", ".hidden", ".git/c.txt"):
        (tmp_path / name).write_text("We prove it.")
    files, skips = find_files([tmp_path, tmp_path / "b.txt", tmp_path / "gone.txt"])
    assert [path.name for path in files] == ["b.txt", "a.txt"]
    assert [skip.path for skip in skips] == [str(tmp_path / "gone.txt")]


def test_a_file_with_nothing_but_a_header_has_no_abstract(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("ICLR 2025 Papers\n")
    assert list(read_records(path)) == []


def test_text_under_a_name_for_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "code.py"
    path.write_text("def f(x):\n    return x\n")
    with pytest.raises(SourceError, match=r"code\.py: no known format.*\.txt"):
        list(read_records(path))
