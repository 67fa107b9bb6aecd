"""Which records are one paper, whatever order they come in."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from rag.papers import Version, merged, papers
from rag.records import Record, Source, content_id


def record(path: str, abstract: str = "We test tools.", **fields: Any) -> Record:
    arxiv_id = fields.pop("arxiv_id", "")
    known = {key: fields[key] for key in ("title", "authors") if key in fields}
    id_ = content_id(abstract, fields.get("doi", ""), arxiv_id=arxiv_id, **known)
    url = f"https://arxiv.org/abs/{arxiv_id}" if arxiv_id else ""
    return Record(id_, abstract, Source(path, 1), url=url, **fields)


def groups(*records: Record) -> set[frozenset[str]]:
    """The paths of each paper; the same in every order."""
    found = []
    for order in permutations(records):
        by_id = papers(Version.of(each) for each in order)
        assert set(by_id) <= {each.id for each in records}
        found.append({frozenset(v.source.path for v in versions) for versions in by_id.values()})
    assert all(each == found[0] for each in found)
    return found[0]


TITLE = {"title": "On Tools", "authors": ("Ada Lo",)}


def test_one_doi_is_one_paper_and_two_are_two() -> None:
    a, b = record("a", doi="10.1/x", **TITLE), record("b", "Other.", doi="10.1/X", title="Tools")
    c = record("c", doi="10.1/y", **TITLE)
    assert groups(a, b, c) == {frozenset("ab"), frozenset("c")}


def test_title_and_first_author_join_what_has_no_common_identifier() -> None:
    a = record("a", doi="10.1/x", **TITLE)
    b = record("b", "Another abstract.", title="On tools.", authors=("Lo, A.", "Bo Li"))
    c = record("c", "A preprint.", arxiv_id="2101.00001", **TITLE)
    assert groups(a, b, c) == {frozenset("abc")}


def test_the_same_title_by_others_or_under_another_arxiv_id_stays_apart() -> None:
    a = record("a", "One.", arxiv_id="2101.00001", **TITLE)
    b = record("b", "Two.", arxiv_id="2101.00002", **TITLE)
    c = record("c", "Three.", title="On Tools", authors=("Eve Su",))
    d = record("d", "Four.", title="On Tools")
    assert groups(a, b, c, d) == {frozenset(path) for path in "abcd"}


def test_the_id_is_the_dois_else_the_arxiv_ids_else_the_longest_abstracts() -> None:
    long, short = record("a", "A longer text.", **TITLE), record("b", "Short.", **TITLE)
    arxiv = record("c", "Mid text.", arxiv_id="2101.00001", **TITLE)
    doi = record("d", "S.", doi="10.1/x", **TITLE)
    for best, rest in ((long, (short,)), (arxiv, (long, short)), (doi, (arxiv, long))):
        assert list(papers(map(Version.of, (best, *rest)))) == [best.id]


def test_merging_keeps_the_longest_abstract_and_every_field_that_any_has() -> None:
    a = record("a", "Short.", **TITLE, year=2020, doi="10.1/x", keywords=("tools",))
    b = record("b", "A longer abstract.", title="On tools", venue="ICLR", arxiv_id="2101.00001")
    for order in permutations((a, b)):
        paper = merged("id", order)
        assert (paper.id, paper.abstract, paper.title) == ("id", "A longer abstract.", "On tools")
        assert (paper.year, paper.venue, paper.doi) == (2020, "ICLR", "10.1/x")
        assert (paper.authors, paper.keywords) == (("Ada Lo",), ("tools",))
        assert paper.url == "https://arxiv.org/abs/2101.00001"
        assert (paper.source, paper.sources) == (Source("a", 1), (Source("b", 1),))


def test_a_title_of_one_word_joins_nothing() -> None:
    lee = {"title": "Editorial", "authors": ("Lee, A.",)}
    assert groups(record("a", "On penguins.", **lee), record("b", "On zebras.", **lee)) == {
        frozenset("a"),
        frozenset("b"),
    }
