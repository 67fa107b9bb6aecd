"""Filters: what a condition admits is the same in both stores, so it is tested on values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rag.errors import UsageError
from rag.filters import Filters, facets
from rag.records import Record, Source


def record(**fields: Any) -> Record:
    return Record("r", "Text.", fields.pop("source", Source("/d/a.ris", 1)), **fields)


def admits(found: Record, **criteria: Any) -> bool:
    """What both stores do: each condition asks for one of some values of a field."""
    filed = facets(found)
    filters = Filters.of(**criteria)
    first, last = filters.years
    in_years = filters.years == (None, None) or (
        filed.year is not None and (first or 0) <= filed.year <= (last or 9999)
    )
    return in_years and all(
        set(values) & set(filed.values.get(field, ())) for field, values in filters.conditions()
    )


@pytest.mark.parametrize(
    ("year", "years"),
    [
        (2021, (2021, 2021)),
        ("2021", (2021, 2021)),
        ("2019-2021", (2019, 2021)),
        (" 2019 – 2021 ", (2019, 2021)),
        ("2019-", (2019, None)),
        ("-2021", (None, 2021)),
    ],
)
def test_years_and_ranges(year: int | str, years: tuple[int | None, int | None]) -> None:
    assert Filters.of(year=year).years == years


@pytest.mark.parametrize(
    "criteria",
    [
        {"year": "soon"}, {"year": ""}, {"year": "-"}, {"year": "2021-2019"}, {"year": 21},
        {"author": " "}, {"venue": ""}, {"keyword": "…"}, {"source": ""},
    ],
)  # fmt: skip
def test_a_filter_that_asks_for_nothing_is_refused(criteria: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(criteria))):
        Filters.of(**criteria)


def test_no_filter_admits_every_record() -> None:
    assert not Filters.of()
    assert admits(record())


@pytest.mark.parametrize(
    ("author", "asked"),
    [
        ("Wei Zhang", ("zhang", "Zhang, Wei", "Wei Zhang", "W Zhang", "zhang w", "Zhang, W.")),
        ("Zhang W", ("Zhang", "Wei Zhang", "W. Zhang")),
        ("Wei LI", ("Li", "LI", "Wei Li", "Wei LI", "LI Wei", "W. Li", "Li W")),
        ("Wei Li", ("Wei LI", "LI, Wei", "LI W")),
        ("Wilson LN", ("wilson", "Wilson LN", "L. Wilson", "Lauren Wilson")),
        ("Wilson, Lauren N.", ("wilson", "Lauren Wilson", "Lauren N. Wilson", "Wilson LN")),
        ("Ludwig van Beethoven", ("beethoven", "van Beethoven", "Beethoven, Ludwig van")),
        ("Søren Müller-Łukasz", ("soren", "muller", "Müller-Łukasz", "MULLER")),
        ("王伟", ("王伟",)),
        ("王, 伟", ("王", "伟 王")),
    ],
)
def test_an_author_is_found_however_the_name_is_written(author: str, asked: tuple[str]) -> None:
    for name in asked:
        assert admits(record(authors=("Jane Roe", author)), author=name), name


@pytest.mark.parametrize(
    "asked", ["Wei Li", "Wei LI", "Zhang JW", "Jun Zhang", "Wu Zhang", "Zha", "W Li", "Roe J"]
)
def test_another_author_is_not(asked: str) -> None:
    assert not admits(record(authors=("Wei Zhang", "Jun Li")), author=asked)


def test_venues_and_keywords_are_found_by_words_that_follow_each_other() -> None:
    paper = record(
        venue="Advances in Neural Information Processing Systems",
        keywords=("Large language models", "Graph theory"),
    )
    assert admits(paper, venue="neural information processing")
    assert admits(paper, venue="ADVANCES", keyword="Language Models")
    assert admits(paper, keyword="theory")
    assert not admits(paper, venue="processing information")
    assert not admits(paper, keyword="language theory")
    assert not admits(paper, keyword="models graph")
    assert not admits(record(), venue="neural")


def test_a_source_is_a_file_a_folder_or_a_name(tmp_path: Path) -> None:
    path = tmp_path / "papers.zip" / "sub" / "a b.ris"
    paper = record(source=Source(str(path), 3), sources=(Source("/other/c.csv", 1),))
    for source in (path, path.parent, tmp_path, "a b.ris", "/other/c.csv", "c.csv"):
        assert admits(paper, source=source), source
    for source in ("b.ris", "sub/a b.ris", "/oth", "/"):
        assert not admits(paper, source=source), source


def test_a_record_without_a_year_is_in_no_range() -> None:
    assert not admits(record(), year="1900-")
    assert admits(record(year=2020), year="2019-2021")
    assert not admits(record(year=2022), year="-2021")


def test_a_paper_of_thousands_of_authors_has_few_values() -> None:
    paper = record(authors=tuple(f"Given{n} Family{n}" for n in range(5000)))
    assert len(facets(paper).values["author"]) == 1000
