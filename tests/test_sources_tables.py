"""CSV, TSV and XLSX: any sensible columns, and what happens to rows that are broken."""

from __future__ import annotations

import csv
import io
from datetime import datetime
from pathlib import Path

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.errors import SourceError
from rag.records import Record
from rag.sources import columns, read_records, tables
from rag.sources.entry import Bad, Entry


def read(text: str) -> list[Entry | Bad]:
    return list(tables.read(io.StringIO(text)))


def entries(text: str) -> list[Entry]:
    return [entry for entry in read(text) if isinstance(entry, Entry)]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_found(delimiter: str) -> None:
    rows = [["Title", "Abstract", "Year"], ["A, b; c", "We show, it; is.", "2020"]]
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)
    (entry,) = entries(text.getvalue())
    assert (entry.title, entry.abstract, entry.year) == ("A, b; c", "We show, it; is.", 2020)


@pytest.mark.parametrize(
    "header",
    [
        "Title,Abstract,Authors,Year,Source title,DOI,Link,Author Keywords",  # Scopus
        "Title,Abstract Note,Author,Publication Year,Publication Title,DOI,Url,Manual Tags",
        "TI,AB,AU,PY,SO,DI,UR,DE",  # Web of Science
        "title,abstract,author(s),publication_date,journal,doi,url,keywords",
        "PAPER TITLE,Abstract_Text,Author/s,Date Published,Journal/Book,Doi,URLs,Key words",
        "Titre,Résumé,Auteurs,Année,Revue,DOI,Lien,Mots-clés".replace("Lien", "Link"),
        "标题,摘要,作者,年份,期刊,DOI,URL,关键词",
        '"Titel","Zusammenfassung","Autoren","Jahr","Zeitschrift","DOI","URL","Schlagwörter"',
    ],
)
def test_columns_go_by_many_names(header: str) -> None:
    row = (
        "T,We show it.,Doe J.; Roe R.,2020-05-01,Nature,https://doi.org/10.1000/x,http://a.b/c,k; l"
    )
    assert entries(f"{header}\n{row}\n") == [
        Entry(
            "row 2",
            abstract="We show it.",
            title="T",
            authors=("Doe J.", "Roe R."),
            year=2020,
            venue="Nature",
            doi="10.1000/x",
            url="http://a.b/c",
            keywords=("k", "l"),
        )
    ]


def test_the_more_telling_column_wins_and_an_empty_one_gives_way() -> None:
    text = "Index Keywords,Author Keywords,Title,Abstract\na,b,T,X shows.\nc,,U,Y shows.\n"
    assert [entry.keywords for entry in entries(text)] == [("b",), ("c",)]


def test_rows_above_the_header_are_left_out() -> None:
    text = "sep=;\nSEARCH QUERY;birds;\n;;\nTitle;Abstract;Year\nT;We show it.;2020\n"
    (entry,) = entries(text)
    assert (entry.where, entry.abstract) == ("row 5", "We show it.")


def test_a_table_without_abstracts_is_refused_with_its_columns() -> None:
    with pytest.raises(SourceError, match="no column of abstracts among Title, Decision; call"):
        read("Title,Decision\nT,Accept\n")
    with pytest.raises(SourceError, match="save the search in the format 'PubMed'"):
        read("PMID,Title,Create Date\n1,T,2020\n")
    with pytest.raises(SourceError, match="empty table"):
        read("\n\n")


def test_ragged_rows_are_named_and_the_others_read() -> None:
    found = read("title,abstract,year\nA,We show a.,2020\nB,We\nC,We show c.,2021,x,y\nD,d.,2022\n")
    assert [e.title if isinstance(e, Entry) else (e.where, e.reason) for e in found] == [
        "A",
        ("row 3", "has 2 cells where the header has 3"),
        ("row 4", "has 5 cells where the header has 3"),
        "D",
    ]


def test_empty_cells_at_the_end_of_a_row_may_be_missing_or_too_many() -> None:
    text = "title,abstract,year,doi,url\nA,We show a.,2020\nB,We show b.,2021,,,,\n\n,,,,\n"
    assert [(entry.title, entry.year) for entry in entries(text)] == [("A", 2020), ("B", 2021)]


def test_a_lost_quotation_mark_costs_one_row() -> None:
    rows = ['A,"We show a.",2020', 'B,"We lost b.,2021', 'C,"We show c.",2022', "D,d.,1", ""]
    found = read("\n".join(["title,abstract,year", *rows]))
    assert [e.title if isinstance(e, Entry) else e.where for e in found] == ["A", "row 3", "C", "D"]


def test_a_truncated_table_keeps_what_is_whole() -> None:
    found = read('title,abstract\nA,"We show\nin two lines."\nB,"We were cut in the mid')
    assert [e.abstract if isinstance(e, Entry) else e.where for e in found] == [
        "We show\nin two lines.",
        "row 3",
    ]


def test_quotes_that_are_not_doubled_are_forgiven() -> None:
    one, two = entries('title,abstract,year\nA,"We "do" it",2020\nB,"We\nsay "so" too",2021\n')
    assert (one.abstract, one.year) == ('We do" it"', 2020)
    assert (two.abstract, two.year) == ('We\nsay so" too"', 2021)


def test_a_cell_longer_than_pythons_limit_is_read() -> None:
    long = "word " * 40_000
    assert entries(f"title,abstract,references\nA,We show.,{long}\n")[0].abstract == "We show."


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("Yang, Z.; Jiang, B.", ("Yang, Z.", "Jiang, B.")),
        ("Yang Z., Jiang B., Xu J.", ("Yang Z.", "Jiang B.", "Xu J.")),
        ("Griffin DK, Larkin DM, O'Connor RE.", ("Griffin DK", "Larkin DM", "O'Connor RE")),
        ("C. Balázs, E. L. Berger", ("C. Balázs", "E. L. Berger")),
        ("Smith, John and Doe, Jane", ("Smith, John", "Doe, Jane")),
        ("John Smith, Jane Doe and Bob Lee", ("John Smith", "Jane Doe", "Bob Lee")),
        ("John Smith, Jane Doe, and Bob Lee", ("John Smith", "Jane Doe", "Bob Lee")),
        ("Smith, J., Doe, A. B.", ("Smith, J.", "Doe, A. B.")),
        ("Smith, John", ("Smith, John",)),
        ("van der Berg, Jan", ("van der Berg, Jan",)),
        ("Yang Bo", ("Yang Bo",)),
        ("Ann Lee (MIT, USA), Bo Wu (ETH)", ("Ann Lee", "Bo Wu")),
        ("['Marx, Karl', 'Lindgren, Astrid']", ("Marx, Karl", "Lindgren, Astrid")),
        (
            "Wilson, Lauren N. (58975547800); Organ, Chris (1143896120)",
            ("Wilson, Lauren N.", "Organ, Chris"),
        ),
        ("Ann Lee, et al.", ("Ann Lee",)),
        ("王伟; 李娜", ("王伟", "李娜")),
        ("", ()),
    ],
)
def test_authors_are_told_apart_however_they_are_joined(
    written: str, names: tuple[str, ...]
) -> None:
    assert columns.people(written) == names


@pytest.mark.parametrize(
    ("written", "year"),
    [
        ("2020", 2020),
        (2020.0, 2020),
        ("May 5, 1999", 1999),
        ("20210304", 2021),
        (1758370688811, 2025),
        ({"date-parts": [[2018, 5]]}, 2018),
        ("n.d.", None),
        ("", None),
    ],
)
def test_years_are_found_in_dates(written: object, year: int | None) -> None:
    assert columns.year(written) == year


def workbook(path: Path, *sheets: list[list[object]]) -> Path:
    book = openpyxl.Workbook()
    for number, rows in enumerate(sheets):
        sheet = book.active if number == 0 else book.create_sheet()
        assert sheet is not None
        sheet.title = f"Sheet{number + 1}"
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_workbooks_are_read_sheet_by_sheet(tmp_path: Path) -> None:
    path = workbook(
        tmp_path / "a.xlsx",
        [["notes"], ["nothing here"]],
        [["my library"], [], ["Title", "Abstract", "Year"], ["A", "We show a.", 2020.0]],
        [["Abstract", "Published"], ["We show b.", datetime(2021, 5, 1)], ["We show c.", None, 3]],
    )
    first, second, skip = read_records(path)
    assert isinstance(first, Record)
    assert isinstance(second, Record)
    assert (first.title, first.abstract, first.year) == ("A", "We show a.", 2020)
    assert (second.abstract, second.year, second.source.ordinal) == ("We show b.", 2021, 2)
    assert not isinstance(skip, Record)
    assert (skip.where, skip.reason) == ("Sheet3 row 3", "has 3 cells where the header has 2")


def test_a_workbook_without_abstracts_names_its_columns(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", [["Title", "Decision"], ["T", "Accept"]])
    with pytest.raises(SourceError, match=r"a\.xlsx: Sheet1: no column of abstracts among Title"):
        list(read_records(path))


def test_a_damaged_workbook_is_refused(tmp_path: Path) -> None:
    path = workbook(
        tmp_path / "a.xlsx", [["Title", "Abstract"], *[["T", f"We {i}."] for i in range(99)]]
    )
    data = bytearray(path.read_bytes())
    at = data.index(b"xl/worksheets/sheet1.xml") + 60
    data[at : at + 40] = bytes(40)
    path.write_bytes(data)
    with pytest.raises(SourceError, match=r"a\.xlsx: cannot be read as an XLSX workbook"):
        list(read_records(path))


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    tables.matches(text, "")
    for header in ("", "title,abstract\n", "abstract;x\n"):
        try:
            found = read(header + text)
        except SourceError:
            continue
        assert all(isinstance(entry, (Entry, Bad)) for entry in found)


LINE = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1)
CELL = LINE.map(lambda text: " ".join(text.split())).filter(bool)


@given(st.lists(st.tuples(CELL, CELL), min_size=1), st.sampled_from([",", ";", "\t"]))
def test_tables_survive_a_round_trip(rows: list[tuple[str, str]], delimiter: str) -> None:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows([("title", "abstract"), *rows])
    found = entries(text.getvalue())
    assert [(entry.title, entry.abstract) for entry in found] == rows


@pytest.mark.parametrize(
    ("row", "whole"),
    [
        ("D,We study cells that programs leave out.", True),
        ("D,We study cells that progr", False),
        ("D", False),
    ],
)
def test_a_row_that_ends_with_its_abstract_is_kept_when_the_abstract_is_finished(
    row: str, whole: bool
) -> None:
    (value,) = read(f"title,abstract,year\n{row}\n")
    assert isinstance(value, Entry) is whole
