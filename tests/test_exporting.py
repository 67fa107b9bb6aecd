"""Bibliographies: what is written reads back the same, here and with independent parsers."""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import bibtexparser
import pytest
import rispy
from bibtexparser.middlewares import (
    LatexDecodingMiddleware,
    SeparateCoAuthors,
    SplitNameParts,
)
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rag.assistant import Assistant
from rag.errors import UsageError
from rag.exporting import FORMATS, export
from rag.records import Record, Source, content_id
from rag.sources import cleaning, fields, read_records
from ui.routes import add_routes

SAMPLE = Path(__file__).parent.parent / "data"
SUFFIX = {"bibtex": "bib", "ris": "ris", "csl-json": "json"}
each_format = pytest.mark.parametrize("format", FORMATS)


def record(abstract: str = "We study tea.", **known: Any) -> Record:
    identity = {name: known[name] for name in ("title", "authors") if name in known}
    id_ = content_id(abstract, known.get("doi", ""), **identity)
    return Record(id_, abstract, Source("/papers/tea.txt", 3), **known)


PAPER = record(
    "BERT costs 5% & more: $x_1^2$ of {it}, from $5 to $10.\nMethods: a_b, x^{n} ~ C#.",
    title="On BERT in the Wild: $O(n)$ & 100% more",
    authors=(
        "Ann Müller",
        "Dupont, Jean-Pierre",
        "Bill and Melinda Gates Foundation",
        "World Health Organization",
        "Wilson LN",
        "Ludwig van Beethoven",
        "King, Jr., Martin Luther",
        "王小明",
    ),
    year=2021,
    venue="Journal of Tea & Biscuits",
    doi="10.1000/a_b%20(1)",
    url="https://example.org/~ann/?a=1&b_c=2#d%20e",
    keywords=("Health, general", "tea_bags", "C#"),
)


def read_back(format: str, records: list[Record]) -> list[Record]:
    """What ingesting the exported file would read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"library.{SUFFIX[format]}"
        path.write_text(export(format, records), encoding="utf-8")
        found = list(read_records(path))
    assert all(isinstance(item, Record) for item in found)
    return [item for item in found if isinstance(item, Record)]


def placeless(records: list[Record]) -> list[Record]:
    return [replace(item, source=Source("", 0), sources=()) for item in records]


def entries(records: list[Record]) -> list[dict[str, str]]:
    """BibTeX fields as bibtexparser decodes them."""
    library = bibtexparser.parse_string(
        export("bibtex", records), append_middleware=[LatexDecodingMiddleware()]
    )
    assert not library.failed_blocks
    return [{field.key: field.value for field in entry.fields} for entry in library.entries]


# --- examples ---------------------------------------------------------------------------------


@each_format
def test_a_full_record_is_read_back_whole(format: str) -> None:
    assert placeless(read_back(format, [PAPER])) == placeless([PAPER])


@each_format
def test_the_sample_is_read_back_whole(format: str) -> None:
    records = [r for path in sorted(SAMPLE.iterdir()) for r in read_records(path)]
    sample = [r for r in records if isinstance(r, Record)]
    assert len(sample) == 57
    assert placeless(read_back(format, sample)) == placeless(sample)


@each_format
def test_fields_that_are_missing_are_left_out(format: str) -> None:
    text = export(format, [record("Tea is hot.")])
    for name in ("title", "author", "year", "doi", "url", "keyword", "issued", "container-title"):
        assert not re.search(rf"^\W*{name}\w*\W* [=:] ", text, re.MULTILINE)
    assert not re.search(r"^(?:TI|AU|PY|T2|DO|UR|KW)  - ", text, re.MULTILINE)


@each_format
def test_a_derived_label_is_no_title_and_a_note_says_where_it_came_from(format: str) -> None:
    untitled = record("In this paper we propose TeaNet, a network for tea.")
    assert untitled.label == "TeaNet"
    text = export(format, [untitled])
    assert text.count("TeaNet") == 1
    assert "No title in the source, abstract 3 of tea.txt" in text
    assert "No title" not in export(format, [PAPER])


@each_format
def test_a_file_named_after_an_arxiv_paper_lends_its_id_to_no_abstract(format: str) -> None:
    untitled = replace(record(), source=Source("/x/arXiv 2101.00001.txt", 2))
    assert read_back(format, [untitled])[0].id == untitled.id


@each_format
def test_ids_of_dois_and_of_arxiv_papers_stay(format: str) -> None:
    address = "https://arxiv.org/abs/2101.00001"
    preprint = replace(record(url=address), id=content_id("", arxiv_id="2101.00001"))
    both = [preprint, record("Another.", doi="10.1000/x")]
    assert [r.id for r in read_back(format, both)] == [r.id for r in both]


@each_format
def test_nothing_to_export_and_the_same_twice(format: str) -> None:
    assert export(format, []).strip() in ("", "[]")
    assert export(format, [PAPER, PAPER]) == export(format, [PAPER])


@each_format
def test_characters_that_no_text_file_holds_are_gone(format: str) -> None:
    text = export(format, [record("Tea\x1b[2J is\x00 hot \ud800.", title="A\nB\x07")])
    text.encode()
    assert not re.search("[\x00-\x09\x0b-\x1f]", text)
    assert "Tea[2J is hot" in text


def test_another_format_is_refused() -> None:
    with pytest.raises(UsageError, match="'word': choose one of bibtex, ris, csl-json"):
        export("word", [PAPER])


def keys(records: list[Record]) -> list[str]:
    return [item["id"] for item in json.loads(export("csl-json", records))]


def test_cite_keys_are_ascii_unique_and_the_same_in_any_company() -> None:
    twins = [replace(PAPER, id=f"{n:016x}"[::-1], abstract=f"Number {n}.") for n in range(40)]
    bare = [record("Tea."), record("茶。", title="茶", authors=("王小明",))]
    every = [PAPER, *twins, *bare]
    found = keys(every)
    assert len(set(found)) == len(every)
    assert all(re.fullmatch(r"[a-z0-9-]+", key) for key in found)
    assert found[0].startswith("muller2021bert-")
    assert [keys([item]) for item in every] == [[key] for key in found]
    bib = bibtexparser.parse_string(export("bibtex", every))
    assert [entry.key for entry in bib.entries] == found
    assert [entry["id"] for entry in rispy.loads(export("ris", every))] == found


def test_ids_that_begin_alike_still_have_keys_of_their_own() -> None:
    alike = [replace(PAPER, id=f"abcdef{n:010x}") for n in range(3)]
    assert len(set(keys(alike))) == 3


def test_bibtexparser_reads_the_names_in_their_parts() -> None:
    library = bibtexparser.parse_string(
        export("bibtex", [PAPER]), append_middleware=[SeparateCoAuthors(), SplitNameParts()]
    )
    names = library.entries[0]["author"]
    parts = [(name.first, name.von, name.last, name.jr) for name in names]
    assert parts == [
        (["Ann"], [], ["Müller"], []),
        (["Jean-Pierre"], [], ["Dupont"], []),
        ([], [], ["{Bill and Melinda Gates Foundation}"], []),
        ([], [], ["{World Health Organization}"], []),
        ([], [], ["{Wilson LN}"], []),
        (["Ludwig"], ["van"], ["Beethoven"], []),
        (["Martin", "Luther"], [], ["King"], ["Jr."]),
        ([], [], ["王小明"], []),
    ]


def test_a_name_that_opens_with_an_escaped_sign_is_not_lost() -> None:
    library = bibtexparser.parse_string(
        export("bibtex", [record(authors=("Ann", "$", "&c"))]),
        append_middleware=[SeparateCoAuthors()],
    )
    assert library.entries[0]["author"] == ["Ann", r"{\$}", r"{\&c}"]


def test_csl_has_the_names_in_their_parts() -> None:
    (item,) = json.loads(export("csl-json", [PAPER]))
    assert item["author"][:4] == [
        {"family": "Müller", "given": "Ann"},
        {"family": "Dupont", "given": "Jean-Pierre"},
        {"literal": "Bill and Melinda Gates Foundation"},
        {"literal": "World Health Organization"},
    ]
    assert item["author"][5] == {
        "family": "Beethoven", "given": "Ludwig", "non-dropping-particle": "van"
    }  # fmt: skip
    plain = record(authors=("Dupont, Jean-Pierre",))
    assert "custom" not in json.loads(export("csl-json", [plain]))[0]


def test_bibtex_is_latex_with_its_mathematics() -> None:
    text = export("bibtex", [PAPER])
    assert r"title = {On {BERT} in the Wild: $O(n)$ \& 100\% more}," in text
    assert r"BERT costs 5\% \& more: $x_1^2$ of \{it\}, from \$5 to \$10." in text
    assert r"x\textasciicircum{}\{n\} \textasciitilde{} C\#" in text
    # Addresses are printed verbatim.
    assert f"url = {{{PAPER.url}}}," in text
    assert f"doi = {{{PAPER.doi}}}," in text


@pytest.mark.parametrize(
    "formula", [r"$\frac{a}{b}$", r"\(a<b\)", r"\[a\]", "$$a$$", r"\begin{align*}a&b\end{align*}"]
)
def test_formulas_stay(formula: str) -> None:
    assert f"so {formula} holds" in export("bibtex", [record(f"so {formula} holds")])


@pytest.mark.parametrize("broken", ["$a{$", "$5% of $", r"$\begin{x}$", r"$\left\{ x \right.$"])
def test_what_is_no_formula_to_latex_is_text(broken: str) -> None:
    text = f"So {broken} holds"
    assert entries([record(text)])[0]["abstract"] == text
    assert placeless(read_back("bibtex", [record(text)])) == placeless([record(text)])
    source = export("bibtex", [record(text)])
    assert source.count("{") == source.count("}")


@pytest.mark.parametrize(
    ("venue", "types"),
    [
        ("Journal of Tea", ("article", "JOUR", "article-journal")),
        ("Proceedings of the Tea Society", ("inproceedings", "CONF", "paper-conference")),
        ("ICLR 2025", ("inproceedings", "CONF", "paper-conference")),
        ("", ("misc", "GEN", "article")),
    ],
)
def test_the_venue_tells_the_type(venue: str, types: tuple[str, ...]) -> None:
    kept = [record(venue=venue)]
    bib = bibtexparser.parse_string(export("bibtex", kept)).entries[0].entry_type
    ris = rispy.loads(export("ris", kept))[0]["type_of_reference"]
    assert (bib, ris, json.loads(export("csl-json", kept))[0]["type"]) == types


# --- any text ---------------------------------------------------------------------------------

_NASTY = (
    "\\emph{x}", "$x^2$", "$$a$$", "\\(a<b\\)", "\\[", "\\begin{equation}a\\end{equation}",
    "{", "}", "\\", "$", "$5 and $10", "%", "&", "#", "_", "^", "~", "--", "---", "``", "''", "!`",
    "\n\n@article{", "\n\nTY  - JOUR", "\n\nER  - ", "\n\nAB  - ", "\n\n", "\n\n- ", "\n\n%T ",
    " and ", ", ", '"', "=", "<", ">", "\\{", "\\}", "\\$", "\\%", "@", "(", " ", "王", "é", "עב",
    "\U0001f375", "\u200d", "x_{i}", "BERT", "word", "1",
)  # fmt: skip
_TEXT = st.lists(st.sampled_from(_NASTY) | st.text(max_size=4), max_size=12).map("".join)
# Readers clean what they read; what was read is clean already, but for odd cases.
_ABSTRACT = _TEXT.map(lambda text: cleaning.abstract(f"word {text}")).filter(
    lambda text: bool(re.search(r"\w", text)) and cleaning.abstract(text) == text
)
_LINE = _TEXT.map(cleaning.line).filter(
    lambda text: cleaning.line(text) == text and not re.search("[\u0080-\u009f]", text)
)
_NAME = _LINE.filter(
    lambda text: fields.names([text]) == (text,) and text != "others" and "~" not in text
)
_KEYWORD = _LINE.filter(lambda text: fields.keywords([text]) == (text,))


@st.composite
def _records(draw: st.DrawFn) -> list[Record]:
    found: dict[str, Record] = {}
    for _ in range(draw(st.integers(1, 3))):
        made = record(
            draw(_ABSTRACT),
            title=draw(_LINE),
            authors=tuple(draw(st.lists(_NAME, unique=True, max_size=3))),
            year=draw(st.none() | st.integers(1500, 2099)),
            venue=draw(_LINE),
            doi=draw(st.sampled_from(("", "10.1000/a_b", "10.1234/x.(1)%"))),
            url=draw(st.sampled_from(("", "https://example.org/a_b?c=%20&d=~e#f"))),
            keywords=tuple(draw(st.lists(_KEYWORD, unique=True, max_size=3))),
        )
        assume(made.venue != made.title or not made.venue)
        found[made.id] = made
    return list(found.values())


@each_format
@settings(max_examples=15, deadline=None)
@given(records=_records())
def test_any_record_is_read_back_whole(format: str, records: list[Record]) -> None:
    assert placeless(read_back(format, records)) == placeless(records)


def squeezed(text: str) -> str:
    """Text without white space, which pylatexenc adds around formulas in display style, and
    with a circumflex for the look-alike that it has for one."""
    return "".join(text.split()).replace("\u02c6", "^")


@settings(max_examples=15, deadline=None)
@given(records=_records())
def test_bibtexparser_reads_any_record(records: list[Record]) -> None:
    for kept, entry in zip(records, entries(records), strict=True):
        assert squeezed(entry.get("title", "")) == squeezed(kept.title)
        assert squeezed(entry["abstract"]) == squeezed(kept.abstract)
        venue = entry.get("journal", "") + entry.get("booktitle", "")
        assert squeezed(venue) == squeezed(kept.venue)
        keywords = squeezed(entry.get("keywords", "")).rstrip(";")
        assert keywords == squeezed(";".join(kept.keywords))
        assert entry.get("year", "None") == str(kept.year)
    apart = bibtexparser.parse_string(
        export("bibtex", records), append_middleware=[SeparateCoAuthors()]
    )
    for kept, parsed in zip(records, apart.entries, strict=True):
        values = {field.key: field.value for field in parsed.fields}
        assert len(values.get("author", [])) == len(kept.authors)
        assert values.get("doi", "") == kept.doi
        assert values.get("url", "") == kept.url


@settings(max_examples=15, deadline=None)
@given(records=_records())
def test_rispy_reads_any_record(records: list[Record]) -> None:
    for kept, entry in zip(records, rispy.loads(export("ris", records)), strict=True):
        assert entry.get("title", "") == kept.title
        assert entry["abstract"].split() == kept.abstract.split()
        assert tuple(entry.get("authors", ())) == kept.authors
        assert entry.get("year", "None") == str(kept.year)
        assert entry.get("secondary_title", "") == kept.venue
        assert entry.get("doi", "") == kept.doi
        assert ";".join(entry.get("urls", ())) == kept.url
        assert tuple(entry.get("keywords", ())) == kept.keywords


# --- from an index ----------------------------------------------------------------------------


@pytest.mark.slow
def test_an_assistant_exports_by_id_and_all(sample: Assistant, tmp_path: Path) -> None:
    hits = sample.search("graph transformers", k=3)
    ids = [hit.record.id for hit in hits]
    assert sample.export("csl-json", ids) == export("csl-json", [hit.record for hit in hits])
    path = tmp_path / "all.bib"
    path.write_text(sample.export("bibtex"), encoding="utf-8")
    found = [item.id for item in read_records(path) if isinstance(item, Record)]
    assert sorted(found) == sorted(item.id for item in sample.records())
    with pytest.raises(UsageError, match=r"^no abstract has the id 'x', 'y', 'z' and 1 more: "):
        sample.export("ris", [ids[0], "x", "y", "z", "w"])


@pytest.mark.slow
def test_a_window_exports_for_the_command_line(sample: Assistant) -> None:
    app = FastAPI()
    add_routes(app, sample, "token")
    client = TestClient(app, headers={"Authorization": "Bearer token"})
    (hit,) = sample.search("graph transformers", k=1)
    body: dict[str, Any] = {"format": "ris", "ids": [hit.record.id]}
    assert client.post("/rag/export", json=body).json() == export("ris", [hit.record])
    every = client.post("/rag/export", json={"format": "csl-json"}).json()
    assert len(json.loads(every)) == 57
    for wrong in ({**body, "ids": ["gone"]}, {**body, "format": "word"}):
        refused = client.post("/rag/export", json=wrong)
        assert refused.status_code == 400
        assert refused.json()["kind"] == "UsageError"
    assert client.post("/rag/export", json=body, headers={"Authorization": ""}).status_code == 403
