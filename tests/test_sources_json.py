"""JSON and JSON Lines in the shapes that researchers have."""

from __future__ import annotations

import contextlib
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.errors import SourceError
from rag.sources import json_records
from rag.sources.entry import Bad, Entry


def read(text: str) -> list[Entry | Bad]:
    return list(json_records.read(io.StringIO(text)))


def one(value: object) -> Entry:
    (entry,) = read(json.dumps(value))
    assert isinstance(entry, Entry)
    return entry


PAPER = {"title": "T", "abstract": "We show it.", "year": 2020}
OTHER = {"title": "U", "abstract": "We show more.", "year": 2021}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([PAPER, OTHER]),
        json.dumps([PAPER, OTHER], indent=1),
        json.dumps(PAPER) + "\n" + json.dumps(OTHER) + "\n",
        "\n" + json.dumps(PAPER) + "\n\n" + json.dumps(OTHER),
        json.dumps({"papers": [PAPER, OTHER], "count": 2}),
        json.dumps({"count": 2, "data": {"results": [PAPER, OTHER]}}, indent=2),
        '{"notes": [\n' + json.dumps(PAPER) + ",\n" + json.dumps(OTHER) + "\n]}",
        json.dumps({"2020": [PAPER], "2021": [OTHER]}),
        json.dumps({"id1": PAPER, "id2": OTHER}),
        json.dumps({"title": "My library", "items": [PAPER, OTHER]}),
        json.dumps([{"paper": PAPER, "score": 1}, {"paper": OTHER}]),
    ],
)
def test_records_are_found_wherever_they_stand(text: str) -> None:
    assert json_records.matches(text, "")
    found = [entry for entry in read(text) if isinstance(entry, Entry)]
    assert [(entry.title, entry.abstract, entry.year) for entry in found] == [
        ("T", "We show it.", 2020),
        ("U", "We show more.", 2021),
    ]


def test_one_record_alone() -> None:
    paper = {**PAPER, "authors": [{"name": "Ann Lee"}], "references": [{"title": "Other"}]}
    assert one(paper).authors == ("Ann Lee",)


def test_arxivs_snapshot() -> None:
    entry = one(
        {
            "id": "0704.0001",
            "submitter": "P. Nadolsky",
            "authors": "C. Balázs, E. L. Berger and C.-P. Yuan",
            "title": "Calculation of prompt\n  diphoton production",
            "journal-ref": "Phys.Rev.D76:013009,2007",
            "doi": "10.1103/PhysRevD.76.013009",
            "categories": "hep-ph hep-ex",
            "abstract": "  We show\nit.\n",
            "versions": [{"version": "v1", "created": "Mon, 2 Apr 2007 19:18:42 GMT"}],
            "update_date": "2008-11-26",
            "authors_parsed": [
                ["Balázs", "C.", ""],
                ["Berger", "E. L.", ""],
                ["Yuan", "C. -P.", "Jr"],
            ],
        }
    )
    assert entry == Entry(
        "entry 1",
        abstract="We show\nit.",
        title="Calculation of prompt diphoton production",
        authors=("C. Balázs", "E. L. Berger", "C. -P. Yuan Jr"),
        year=2007,
        venue="Phys.Rev.D76:013009,2007",
        doi="10.1103/PhysRevD.76.013009",
        url="https://arxiv.org/abs/0704.0001",
        keywords=("hep-ph", "hep-ex"),
        arxiv_id="0704.0001",
    )


@pytest.mark.parametrize(("id_", "year"), [("2305.10429", 2023), ("hep-th/9901001", 1999)])
def test_arxiv_ids_date_a_paper(id_: str, year: int) -> None:
    entry = one({"id": id_, "submitter": "A", "abstract": "We.", "update_date": "2024-01-01"})
    assert (entry.year, entry.arxiv_id) == (year, id_)


@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: {"value": value}])
def test_openreviews_notes_of_both_versions(wrap: object) -> None:
    assert callable(wrap)
    content = {
        "title": "T",
        "abstract": "We show it.",
        "authors": ["Ann Lee", "Bo Wu"],
        "keywords": ["a; b"],
        "venue": "ICLR 2026 Poster",
        "pdf": "/pdf/1.pdf",
    }
    note = {
        "id": "x1",
        "forum": "x1",
        "content": {key: wrap(value) for key, value in content.items()},
        "cdate": 1758370688811,
    }
    entry = one({"notes": [note]})
    assert (entry.title, entry.abstract) == ("T", "We show it.")
    assert (entry.authors, entry.keywords) == (("Ann Lee", "Bo Wu"), ("a", "b"))
    assert (entry.venue, entry.year) == ("ICLR 2026 Poster", 2025)
    assert entry.url == "https://openreview.net/forum?id=x1"


def test_paper_lists_give_the_year_in_their_bibtex() -> None:
    entry = one(
        [{"title": "T", "abstract": "A.", "author": "A B;C D", "bibtex": "@misc{x, year={2017}}"}]
    )
    assert (entry.year, entry.authors) == (2017, ("A B", "C D"))


def test_openalex_crossref_and_semantic_scholar() -> None:
    alex = one(
        {
            "results": [
                {
                    "display_name": "T",
                    "abstract_inverted_index": {"We": [0, 2], "show": [1], "win.": [3]},
                    "authorships": [],
                    "publication_year": 2020,
                    "doi": "https://doi.org/10.1000/x",
                    "primary_location": {"source": {"display_name": "Nature"}},
                }
            ]
        }
    )
    assert (alex.title, alex.abstract) == ("T", "We show We win.")
    assert (alex.doi, alex.year, alex.venue) == ("10.1000/x", 2020, "Nature")
    crossref = one(
        {
            "message": {
                "items": [
                    {
                        "title": ["T"],
                        "abstract": "<jats:p>We.</jats:p>",
                        "author": [{"given": "Ann", "family": "Lee"}],
                        "issued": {"date-parts": [[2019, 2]]},
                        "container-title": ["Nature"],
                        "DOI": "10.1000/y",
                    }
                ]
            }
        }
    )
    assert (crossref.title, crossref.authors, crossref.year) == ("T", ("Lee, Ann",), 2019)
    assert (crossref.venue, crossref.doi) == ("Nature", "10.1000/y")
    scholar = one(
        {
            "data": [
                {"title": "T", "abstract": "A.", "externalIds": {"ArXiv": "1", "DOI": "10.1000/z"}}
            ]
        }
    )
    assert scholar.doi == "10.1000/z"


def test_a_bad_line_is_named_and_the_others_are_read() -> None:
    lines = [json.dumps(PAPER), '{"title": "cut", "abst', "[]", "7", json.dumps(OTHER)]
    found = read("\n".join(lines))
    assert [e.title if isinstance(e, Entry) else e.where for e in found] == [
        "T",
        "line 2",
        "line 3",
        "line 4",
        "U",
    ]


def test_a_document_that_breaks_off_keeps_what_is_whole() -> None:
    whole = json.dumps({"papers": [PAPER, OTHER, PAPER]})
    first, second, bad = read(whole[:-40])
    assert isinstance(first, Entry)
    assert isinstance(second, Entry)
    assert isinstance(bad, Bad)
    assert bad.where == "after entry 2"
    with pytest.raises(SourceError, match="not valid JSON"):
        read(whole[:30])


def test_large_documents_are_read_element_by_element(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_records, "_SMALL", 10)
    for document in (
        {"n": {"m": 1}, "papers": [PAPER, OTHER]},
        [PAPER, OTHER],
        {"1": PAPER, "2": OTHER},
    ):
        found = read(json.dumps(document, indent=1))
        assert [entry.title for entry in found if isinstance(entry, Entry)] == ["T", "U"]


def test_a_record_without_an_abstract_stays_an_entry() -> None:
    found = read(json.dumps([{"title": "T"}, {"name": "x"}, PAPER]))
    assert [entry.abstract for entry in found if isinstance(entry, Entry)] == [
        "",
        "",
        "We show it.",
    ]


def test_a_text_that_begins_with_a_bracket_is_no_json() -> None:
    assert not json_records.matches("[1] We cite. {x}", "txt")
    assert not json_records.matches("{\\bf We} show", "")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(list(PAPER)), inner)
    ),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=4))
def test_any_json_is_read_or_refused(values: list[object]) -> None:
    for text in (json.dumps(values), "\n".join(json.dumps(value) for value in values)):
        try:
            found = read(text)
        except SourceError:
            continue
        assert all(isinstance(entry, (Entry, Bad)) for entry in found)


@given(st.text(), st.sampled_from(["", "[", "{", '[{"title": "', '{"papers": [']))
def test_any_text_is_read_or_refused(text: str, start: str) -> None:
    json_records.matches(start + text, "")
    with contextlib.suppress(SourceError):
        read(start + text)


TEXT = st.text(st.characters(exclude_categories=["Cs"])).map(str.strip).filter(bool)


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1), st.booleans())
def test_records_survive_a_round_trip(papers: list[tuple[str, str]], lines: bool) -> None:
    records = [{"title": title, "abstract": abstract} for title, abstract in papers]
    text = "\n".join(map(json.dumps, records)) if lines else json.dumps(records)
    found = [entry for entry in read(text) if isinstance(entry, Entry)]
    assert [entry.abstract for entry in found] == [abstract for _, abstract in papers]
    assert [entry.title for entry in found] == [" ".join(title.split()) for title, _ in papers]
