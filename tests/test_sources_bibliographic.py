from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.errors import SourceError
from rag.records import Record
from rag.sources import (
    bibtex,
    csl,
    endnote_xml,
    enw,
    fields,
    latex,
    medline,
    pubmed_xml,
    read_records,
    ris,
    web_of_science,
)
from rag.sources.entry import Bad, Entry

READERS = [ris, medline, web_of_science, enw, bibtex, pubmed_xml, endnote_xml, csl]


def read(reader: ModuleType, text: str) -> list[Entry | Bad]:
    return list(reader.read(io.StringIO(text)))


def only(reader: ModuleType, text: str) -> Entry:
    (entry,) = read(reader, text)
    assert isinstance(entry, Entry)
    return entry


def entries(reader: ModuleType, text: str) -> list[Entry]:
    return [entry for entry in read(reader, text) if isinstance(entry, Entry)]


RIS = """\
Provider: Some Library

TY  - JOUR
AU  - Müller, Ann
AU  - Lee, Bo
TI  - On Things
T2  - Journal of Things
J2  - J. Things
AB  - We study things.
Second paragraph.
DO  - https://doi.org/10.1000/ABC.1
UR  - https://example.org/1
UR  - https://example.org/2
PY  - 2021/03/04
KW  - one
KW  - two; three
ER  -

"""
MEDLINE = """\

PMID- 123
DP  - 2019 Feb 3
TI  - On things that are long enough
      to be wrapped.
LID - S1-2(3)4 [pii]
LID - 10.1000/abc [doi]
AB  - BACKGROUND: A first line
      and a second.
FAU - Müller, Ann
AU  - Müller A
FAU - Lee, Bo
AU  - Lee B
JT  - Journal of things
TA  - J Things
MH  - Things/*therapy
OT  - stuff

PMID- 124
TI  - Another.
AB  - More.
"""
WEB_OF_SCIENCE = """\
FN Clarivate Analytics Web of Science
VR 1.0
PT J
AU Muller, A
   Lee, B
AF Müller, Ann
   Lee, Bo
TI On things that are
   wrapped
SO JOURNAL OF THINGS
DE one; two
   words
AB A first line
   and a second.
DI 10.1000/abc
PY 2018
ER

PT C
TI Another
AB More.
ER

EF
"""
ENW = """\
%0 Journal Article
%A Müller, Ann
%A Lee, Bo
%T On Things
%J Journal of Things
%D 2017
%X A first paragraph.
A second one; 100% text.
%K one
two
%R 10.1000/abc
%U https://example.org/1

%0 Book
%T Another
%X More.
"""
BIBTEX = r"""
Scopus
EXPORT DATE: 1 May 2021

@string{jot = "Journal of " # {Things}}
@comment{nothing to see}
@article{mueller2020,
  author = {M{\"u}ller, Ann and Lee, Bo and {Arts and Sciences}},
  title = {On {DNA} \& Things},
  journal = jot,
  year = 2020,
  abstract = {We gain 5\% on $x_{i}<y$ at caf\'es,
     with {\emph{much}} care \cite{a}.},
  keywords = {one, two},
  doi = {10.1000/abc},
  url = {https://example.org/a\_b},
}
@inproceedings(lee2021, author="Bo Lee", title="A ""quoted"" {"}thing{"}", crossref={proc})
@article{arx, title={T}, abstract={A}, eprint={2101.00001v2}, archiveprefix={arXiv}}
@proceedings{proc, title={Proc. of Things}, year={2021}}
"""
PUBMED_XML = """\
<?xml version="1.0" encoding="ISO-8859-1"?>
<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle//EN" "https://example.org/p.dtd">
<PubmedArticleSet>
<PubmedArticle><MedlineCitation><PMID Version="1">123</PMID><Article>
<Journal><JournalIssue><PubDate><MedlineDate>2015 Jan-Feb</MedlineDate></PubDate></JournalIssue>
<Title>Journal of things</Title></Journal>
<ArticleTitle>On <i>E. coli</i> things</ArticleTitle>
<ELocationID EIdType="doi">10.1000/abc</ELocationID>
<Abstract><AbstractText Label="BACKGROUND">CO<sub>2</sub> &lt; 10<sup>5</sup>.</AbstractText>
<AbstractText Label="METHODS">We look.</AbstractText><CopyrightInformation>©</CopyrightInformation>
</Abstract><AuthorList><Author><LastName>Müller</LastName><ForeName>Ann</ForeName></Author>
<Author><CollectiveName>The Group</CollectiveName></Author></AuthorList></Article>
<KeywordList><Keyword>one</Keyword></KeywordList></MedlineCitation>
<PubmedData><ReferenceList><Reference><ArticleIdList><ArticleId IdType="doi">10.9999/no</ArticleId>
</ArticleIdList></Reference></ReferenceList></PubmedData></PubmedArticle>
<PubmedBookArticle><BookDocument><PMID>9</PMID><ArticleTitle>Chapter</ArticleTitle><Book>
<BookTitle>The Book</BookTitle><PubDate><Year>2001</Year></PubDate></Book>
<Abstract><AbstractText>More.</AbstractText></Abstract></BookDocument></PubmedBookArticle>
</PubmedArticleSet>
"""
ENDNOTE_XML = """\
<?xml version="1.0" encoding="UTF-8" ?><xml><records><record>
<source-app name="EndNote" version="20.0">EndNote</source-app><ref-type name="J">17</ref-type>
<contributors><authors><author><style face="normal">Müller, </style><style>Ann</style></author>
<author>Lee, Bo</author></authors></contributors>
<titles><title><style face="normal">On </style><style face="italic">things</style></title>
<secondary-title>Journal of Things</secondary-title></titles>
<dates><year><style>2016</style></year></dates>
<keywords><keyword>one</keyword><keyword>two</keyword></keywords>
<electronic-resource-num>10.1000/abc</electronic-resource-num>
<urls><related-urls><url>https://example.org/1</url></related-urls></urls>
<abstract><style>First.&#xD;Second &lt;b.</style></abstract></record>
<record><titles><title>Another</title></titles><abstract>More.</abstract></record>
</records></xml>
"""
CSL = """\
[{"id": "a", "type": "article-journal", "title": "On things", "abstract": "We study\\nthings.",
  "author": [{"family": "Müller", "given": "Ann"}, {"literal": "The Group"},
             {"family": "Berg", "given": "Jo", "non-dropping-particle": "van den",
              "suffix": "Jr."}],
  "issued": {"date-parts": [[2014, 5]]}, "container-title": "Journal of Things",
  "DOI": "10.1000/abc", "URL": "https://example.org/1", "keyword": "one, two"},
 {"id": "b", "title": "Another", "abstract": "More.", "issued": {"raw": "May 2013"}}]
"""
EXAMPLES = {
    ris: RIS,
    medline: MEDLINE,
    web_of_science: WEB_OF_SCIENCE,
    enw: ENW,
    bibtex: BIBTEX,
    pubmed_xml: PUBMED_XML,
    endnote_xml: ENDNOTE_XML,
    csl: CSL,
}


@pytest.mark.parametrize("reader", READERS)
def test_each_format_is_recognised_by_its_own_reader_whatever_its_suffix(
    reader: ModuleType,
) -> None:
    for text in (EXAMPLES[reader], "\ufeff" + EXAMPLES[reader]):
        assert [other for other in READERS if other.matches(text, "txt")] == [reader]


@pytest.mark.parametrize("reader", READERS)
def test_each_format_is_read_under_a_suffix_that_lies(reader: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    path.write_text(EXAMPLES[reader], "utf-8")
    records = [entry for entry in read_records(path) if isinstance(entry, Record)]
    expected = [entry for entry in read(reader, EXAMPLES[reader]) if isinstance(entry, Entry)]
    assert [record.title for record in records] == [e.title for e in expected if e.abstract]
    assert records[0].authors[0] == "Müller, Ann"


@pytest.mark.parametrize(
    "text",
    [
        "ICLR 2025 Papers\n\nWe write to a@b.org {for example}. TY - or not.\n\nPT and FN.",
        "title,abstract\n@home,AB  - is no tag here\n",
        '{"title": "x", "_bibtex": "@article{a,\\n title={x}}"}',
        "<html><body>PubmedArticle</body></html>",
        "%PDF-1.4",
        "",
    ],
)
def test_other_text_is_not_recognised(text: str) -> None:
    assert not [reader for reader in READERS if reader.matches(text, "txt")]


def test_ris() -> None:
    assert only(ris, RIS) == Entry(
        "entry 1",
        abstract="We study things.\nSecond paragraph.",
        title="On Things",
        authors=("Müller, Ann", "Lee, Bo"),
        year=2021,
        venue="Journal of Things",
        doi="10.1000/ABC.1",
        url="https://example.org/1",
        keywords=("one", "two", "three"),
    )


def test_ris_with_the_older_tags() -> None:
    entry = only(ris, "TY  - JOUR\nT1  - T\nA1  - Lee, B\nN2  - A\nY1  - 1999//\nJF  - V\nER  -\n")
    assert (entry.title, entry.authors, entry.abstract) == ("T", ("Lee, B",), "A")
    assert (entry.year, entry.venue) == (1999, "V")


@pytest.mark.parametrize(
    "text",
    [
        "TY  - JOUR\nAB  - One.\n\nTY  - JOUR\nAB  - Two.\n",
        "TY  - JOUR\r\nAB  - One.\r\nER  - \r\n\r\nTY  - JOUR\r\nAB  - Two.\r\nER  -\r\n",
        "TY - JOUR\nAB - One.\nER -\nTY - JOUR\nAB - Two.\nER -\n",
        "TY  -JOUR\nAB  -One.\nER\nTY  -JOUR\nAB  -Two.\nER\n",
        "\ufeff1.\nTY  - JOUR\nAB  - One.\nER  - \n\n2.\nTY  - JOUR\nAB  - Two.\nER  - ",
    ],
    ids=["no ER", "CRLF", "one space", "no space after the dash", "BOM and numbers"],
)
def test_ris_as_programs_really_write_it(text: str) -> None:
    assert ris.matches(text, "ris")
    assert [entry.abstract for entry in read(ris, text) if isinstance(entry, Entry)] == [
        "One.",
        "Two.",
    ]


def test_ris_repeated_and_copied_abstracts_are_whole_but_not_double() -> None:
    text = "TY  - JOUR\nAB  - One.\nAB  - Two.\nN2  - One.\nER  - \n"
    assert only(ris, text).abstract == "One.\nTwo."


def test_ris_wrapped_lines_are_one_and_a_line_like_a_tag_is_text() -> None:
    text = "TY  - JOUR\nAB  - We find\n      that\nII - it holds.\nER  - \n"
    assert only(ris, text).abstract == "We find that\nII - it holds."


def test_medline() -> None:
    first, second = read(medline, MEDLINE)
    assert first == Entry(
        "entry 1",
        abstract="BACKGROUND: A first line and a second.",
        title="On things that are long enough to be wrapped.",
        authors=("Müller, Ann", "Lee, Bo"),
        year=2019,
        venue="Journal of things",
        doi="10.1000/abc",
        url="https://pubmed.ncbi.nlm.nih.gov/123/",
        keywords=("stuff", "Things/therapy"),
    )
    assert isinstance(second, Entry)
    assert second.abstract == "More."


def test_web_of_science() -> None:
    first, second = read(web_of_science, WEB_OF_SCIENCE)
    assert first == Entry(
        "entry 1",
        abstract="A first line and a second.",
        title="On things that are wrapped",
        authors=("Müller, Ann", "Lee, Bo"),
        year=2018,
        venue="JOURNAL OF THINGS",
        doi="10.1000/abc",
        keywords=("one", "two words"),
    )
    assert isinstance(second, Entry)
    assert second.abstract == "More."


def test_enw() -> None:
    first, second = read(enw, ENW)
    assert first == Entry(
        "entry 1",
        abstract="A first paragraph.\nA second one; 100% text.",
        title="On Things",
        authors=("Müller, Ann", "Lee, Bo"),
        year=2017,
        venue="Journal of Things",
        doi="10.1000/abc",
        url="https://example.org/1",
        keywords=("one", "two"),
    )
    assert isinstance(second, Entry)
    assert second.abstract == "More."


def test_refer_files_without_types_are_parted_by_blank_lines() -> None:
    text = "%A Lee, Bo and Roy, Jo\n%T One\n%X First.\n\n%A Arts and Sciences\n%T Two\n"
    first, second = entries(enw, text)
    assert (first.authors, first.abstract) == (("Lee, Bo", "Roy, Jo"), "First.")
    assert (second.authors, second.title) == (("Arts and Sciences",), "Two")


def test_bibtex() -> None:
    first, second, third, parent = entries(bibtex, BIBTEX)
    assert first == Entry(
        "entry 1",
        abstract=("We gain 5% on $x_{i}<y$ at cafés,\nwith much care \\cite{a}."),
        title="On DNA & Things",
        authors=("Müller, Ann", "Lee, Bo", "Arts and Sciences"),
        year=2020,
        venue="Journal of Things",
        doi="10.1000/abc",
        url="https://example.org/a_b",
        keywords=("one", "two"),
    )
    assert (second.authors, second.year, second.venue) == (("Bo Lee",), 2021, "Proc. of Things")
    assert (third.where, third.arxiv_id) == ("entry 3", "2101.00001")
    assert (parent.where, parent.title) == ("entry 4", "Proc. of Things")


def test_crossref_is_followed_forwards_and_backwards_and_into_nothing() -> None:
    text = """@proceedings{P1, title={First}, year={2001}}
        @inproceedings{a, crossref={p1}, abstract={A}}
        @inproceedings{b, crossref={P2}, year={1999}, abstract={B}}
        @inproceedings{c, crossref={nowhere}, abstract={C}}
        @misc{bad, abstract={
        @misc{p2, title={Second}, year={2002}}"""
    found = read(bibtex, text)
    assert [type(entry) for entry in found] == [Entry, Entry, Entry, Entry, Bad, Entry]
    a, b, c = (entry for entry in found if isinstance(entry, Entry) and entry.abstract)
    assert (a.venue, a.year) == ("First", 2001)
    assert (b.venue, b.year) == ("Second", 1999)
    assert (c.venue, c.year, c.where) == ("", None, "entry 4")


def test_biblatex_names_of_fields() -> None:
    entry = only(
        bibtex,
        "@online{a, title={T}, subtitle={S}, date={2022-05-01}, journaltitle={V},"
        " author={others}, abstract={A}}",
    )
    assert (entry.title, entry.year, entry.venue, entry.authors) == ("T: S", 2022, "V", ())


@pytest.mark.parametrize(
    "broken",
    [
        "@article{bad, title={A {B}, abstract={Lost}\n}\n",
        "@article{bad, title={A B}}, abstract={Lost}\n}\n",
        '@article{bad, title="A B, abstract={Lost}\n}\n',
        "@article{bad title={A}, abstract={Lost}\n}\n",
        "@article{bad, title={A B}, abstract={Cut o\n",
    ],
)
def test_an_unbalanced_bibtex_entry_is_named_and_the_others_load(broken: str) -> None:
    text = f"@article{{one, abstract={{1}}}}\n\n{broken}\n@article{{two, abstract={{2}}}}\n"
    one, bad, two = read(bibtex, text)
    assert isinstance(one, Entry)
    assert isinstance(two, Entry)
    assert (one.abstract, two.abstract, two.where) == ("1", "2", "entry 3")
    assert isinstance(bad, Bad)
    assert bad.where == "line 3"
    assert "bad" in bad.reason


def test_a_cut_off_bibtex_file_keeps_what_is_whole() -> None:
    one, bad = read(bibtex, "@misc{a, abstract={1}}\n@misc{b, abstract={2 and mor")
    assert isinstance(one, Entry)
    assert bad == Bad("line 2", 'the BibTeX entry "b" has unmatched braces, quotes or commas')


def test_bibtex_recovers_a_forgotten_comma_and_takes_repeated_keys_and_fields() -> None:
    text = "@a{k, title={T}\n year={2001}\n abstract={A}}\n@a{k, note={x}, note={y}, abstract={B}}"
    first, second = entries(bibtex, text)
    assert (first.title, first.year, first.abstract, second.abstract) == ("T", 2001, "A", "B")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"M{\"u}ller M\"uller M{\"{u}}ller M\"{u}ller", "Müller Müller Müller Müller"),
        (r"{\'E}cole \c{c}a \v{s} \H{o} \k a \r{a} \u{g} \=a \.z", "École ça š ő ą å ğ ā ż"),
        (
            r"Stra{\ss}e, Stra\ss e, \o{}re, {\AA}ngstr\"om, \L\'od\'z",
            "Straße, Straße, øre, Ångström, Łódź",
        ),
        (r"\'{\i} na\"{\i}ve na\"\i ve", "í naïve naïve"),
        (r"R\&D at 5\% \_ \# \$5 \{x\}", "R&D at 5% _ # $5 {x}"),
        (r"5% of {DNA} {{RNA}}", "5% of DNA RNA"),
        (r"$\alpha_{i} \& {x}$ and \(a\{b\) \[c\]", r"$\alpha_{i} \& {x}$ and \(a\{b\) \[c\]"),
        (r"from $5 to {AB} $10", "from $5 to AB $10"),
        (r"$$x^{2}$$ x^{2} H_{2}O", r"$$x^{2}$$ x^{2} H_{2}O"),
        (r"**bold** *it* `code` [a](b) -- ``q''", r"**bold** *it* `code` [a](b) -- ``q''"),
        (r"\emph{very} {\em so} \textbf{\textit{x}} \enquote{q}", "very so x “q”"),
        (r"\cite[p. 3]{a,b} \foo* \bar*{x}", r"\cite[p. 3]{a,b} \foo* \bar*{x}"),
        (r"10\textsuperscript{5} CO\textsubscript{2}", "10<sup>5</sup> CO2"),
        (r"\textless{}b \textasciitilde{} \~{} \textbackslash n \alpha", "<b ~ ~ \\n α"),
        (r"\begin{align}a &= {b}\end{align}", r"\begin{align}a &= {b}\end{align}"),
        (r"open { and } close \\ end\ x don\'t", r"open  and  close   end x don\'t"),
        (r"open { only", "open { only"),
        (r"only } close", "only } close"),
        ("at the end \\", "at the end \\"),
        (r"\href{http://x}{this} \url{http://y/\%7e}", "this http://y/%7e"),
    ],
)
def test_latex_becomes_text_and_mathematics_stays(source: str, text: str) -> None:
    assert latex.decoded(source) == text


def test_latex_of_absurd_depth_is_read() -> None:
    assert "x" in latex.decoded("{" * 5000 + "x" + "}" * 5000)
    assert latex.decoded("\\(" * 3000 + "$" * 3000 + "{" * 3000)


def test_pubmed_xml() -> None:
    first, second = entries(pubmed_xml, PUBMED_XML)
    assert first == Entry(
        "entry 1",
        abstract="BACKGROUND: CO2 < 10<sup>5</sup>.\nMETHODS: We look.",
        title="On E. coli things",
        authors=("Müller, Ann", "The Group"),
        year=2015,
        venue="Journal of things",
        doi="10.1000/abc",
        url="https://pubmed.ncbi.nlm.nih.gov/123/",
        keywords=("one",),
    )
    assert (second.title, second.venue, second.year) == ("Chapter", "The Book", 2001)
    assert second.abstract == "More."


def test_endnote_xml() -> None:
    first, second = entries(endnote_xml, ENDNOTE_XML)
    assert first == Entry(
        "entry 1",
        abstract="First.\nSecond <b.",
        title="On things",
        authors=("Müller, Ann", "Lee, Bo"),
        year=2016,
        venue="Journal of Things",
        doi="10.1000/abc",
        url="https://example.org/1",
        keywords=("one", "two"),
    )
    assert second.abstract == "More."


def test_csl() -> None:
    first, second = entries(csl, CSL)
    assert first == Entry(
        "entry 1",
        abstract="We study\nthings.",
        title="On things",
        authors=("Müller, Ann", "The Group", "van den Berg, Jo, Jr."),
        year=2014,
        venue="Journal of Things",
        doi="10.1000/abc",
        url="https://example.org/1",
        keywords=("one", "two"),
    )
    assert (second.year, second.abstract) == (2013, "More.")


def test_csl_as_crossref_answers_it() -> None:
    text = """{"status": "ok", "message": {"facets": {}, "items": [{"title": ["T", "t"],
        "container-title": ["V"], "author": [{"given": "Bo", "family": "Lee"}],
        "issued": {"date-parts": [[2020]]}, "subject": ["x"],
        "abstract": "<jats:p>A</jats:p>"}]}}"""
    assert csl.matches(text, "json")
    entry = only(csl, text)
    assert (entry.title, entry.venue, entry.year, entry.keywords) == ("T", "V", 2020, ("x",))
    assert entry.abstract == "<jats:p>A</jats:p>"


def test_cut_off_csl_keeps_what_is_whole() -> None:
    first, bad = read(csl, CSL[: CSL.index("More.")])
    assert isinstance(first, Entry)
    assert isinstance(bad, Bad)
    assert bad.where == "after entry 1"
    with pytest.raises(SourceError, match="JSON"):
        read(csl, CSL[: CSL.index("We study")])


@pytest.mark.parametrize(("reader", "text"), [(pubmed_xml, PUBMED_XML), (endnote_xml, ENDNOTE_XML)])
def test_cut_off_xml_keeps_what_is_whole_and_names_the_place(reader: ModuleType, text: str) -> None:
    first, bad = read(reader, text[: text.index("More.")])
    assert isinstance(first, Entry)
    assert isinstance(bad, Bad)
    assert bad.where.startswith("line ")


@pytest.mark.parametrize("reader", [pubmed_xml, endnote_xml])
@pytest.mark.parametrize(
    "declaration",
    ['<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">', '<!ENTITY a SYSTEM "file:///etc/passwd">'],
)
def test_xml_that_defines_entities_is_refused(reader: ModuleType, declaration: str) -> None:
    text = f"<!DOCTYPE xml [{declaration}]><xml><records><record>&a;</record></records></xml>"
    with pytest.raises(SourceError, match="entities"):
        read(reader, text)


def test_years_dois_and_ids_as_they_are_written() -> None:
    assert fields.year("c. 2004-2005", "1999") == 2004
    assert fields.year("12345", "") is None
    assert fields.doi("http://dx.doi.org/10.1000/x.y,") == "10.1000/x.y"
    assert fields.doi("see elsewhere", "DOI: 10.1000/x") == "10.1000/x"
    assert fields.arxiv_id("https://arxiv.org/abs/2101.00001v3") == "2101.00001"
    assert fields.arxiv_id("10.48550/arXiv.2101.00001") == "2101.00001"
    assert fields.arxiv_id("arXiv preprint arXiv:hep-th/9901001") == "hep-th/9901001"
    assert fields.bare_arxiv_id("hep-th/9901001v1") == "hep-th/9901001"
    assert fields.names(["M&uuml;ller, A; Lee, B;"]) == ("Müller, A", "Lee, B")


# --- Properties -----------------------------------------------------------------------------

# Line ends and other controls are the formats' own; a lone surrogate is no text.
_LINE = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=60).map(
    lambda line: " ".join(line.split())
)
_LINES = st.lists(_LINE.filter(bool), min_size=1, max_size=4)


def as_ris(lines: list[str]) -> str:
    return "TY  - JOUR\nAB  - " + "\n".join(lines) + "\nER  - \n"


def as_medline(lines: list[str]) -> str:
    return "PMID- 1\nAB  - " + "\n      ".join(lines) + "\n\n"


def as_web_of_science(lines: list[str]) -> str:
    return "FN X\nVR 1.0\nPT J\nAB " + "\n   ".join(lines) + "\nER\n\nEF\n"


def as_enw(lines: list[str]) -> str:
    return "%0 Book\n%X " + "\n".join(lines) + "\n"


def as_bibtex(lines: list[str]) -> str:
    escapes = {"\\": r"\textbackslash{}", "^": r"\^{}", "~": r"\textasciitilde{}"}
    escapes |= {char: "\\" + char for char in "{}$&%#_"}
    escaped = "\n".join("".join(escapes.get(char, char) for char in line) for line in lines)
    return f"@article{{a,\n  abstract = {{{escaped}}},\n}}\n"


def _xml(line: str) -> str:
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def as_pubmed_xml(lines: list[str]) -> str:
    parts = "".join(f"<AbstractText>{_xml(line)}</AbstractText>" for line in lines)
    article = f"<Article><Abstract>{parts}</Abstract></Article>"
    return f"<PubmedArticle><MedlineCitation>{article}</MedlineCitation></PubmedArticle>"


def as_endnote_xml(lines: list[str]) -> str:
    abstract = "&#xD;".join(map(_xml, lines))
    return f"<xml><records><record><abstract>{abstract}</abstract></record></records></xml>"


def as_csl(lines: list[str]) -> str:
    return json.dumps([{"id": "a", "abstract": "\n".join(lines)}])


WRITERS = {
    ris: as_ris,
    medline: as_medline,
    web_of_science: as_web_of_science,
    enw: as_enw,
    bibtex: as_bibtex,
    pubmed_xml: as_pubmed_xml,
    endnote_xml: as_endnote_xml,
    csl: as_csl,
}


def _is_xml_text(lines: list[str]) -> bool:
    return not any(char in "\ufffe\uffff" for line in lines for char in line)


@pytest.mark.parametrize("reader", READERS)
@settings(max_examples=25, deadline=None)
@given(lines=_LINES)
def test_any_text_survives_each_format(reader: ModuleType, lines: list[str]) -> None:
    # A line that looks like a tag is one; no program writes it so.
    if reader is ris:
        lines = [re.sub(r"^(?=[A-Z][A-Z0-9] +-|ER$)", "(", line) for line in lines]
    if reader is enw:
        lines = [line.lstrip("%") or "x" for line in lines]
    if not _is_xml_text(lines):
        lines = [line.replace("\ufffe", "").replace("\uffff", "") or "x" for line in lines]
    abstract = only(reader, WRITERS[reader](lines)).abstract
    assert abstract.split() == " ".join(lines).split()


def damaged(example: str) -> st.SearchStrategy[str]:
    """Parts of an example with other text put between them."""
    places = st.integers(0, len(example))
    return st.builds(
        lambda a, b, c, junk: example[min(a, b) : max(a, b)] + junk + example[c:],
        places,
        places,
        places,
        st.text(max_size=30),
    )


@pytest.mark.parametrize("reader", READERS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_no_input_raises_anything_but_our_errors(reader: ModuleType, data: st.DataObject) -> None:
    text = data.draw(st.text(max_size=200) | damaged(EXAMPLES[reader]))
    reader.matches(text, "txt")
    try:
        found = read(reader, text)
    except SourceError:
        return
    assert all(isinstance(entry, Entry | Bad) for entry in found)


@settings(max_examples=100, deadline=None)
@given(st.text(st.sampled_from("\\{}$^_~\"'%& aeicu()[]\nbegin"), max_size=60))
def test_latex_decoding_never_fails_and_keeps_letters(source: str) -> None:
    decoded = latex.decoded(source)
    assert decoded.count("g") <= source.count("g")


@pytest.mark.parametrize("reader", [ris, medline, web_of_science, enw, bibtex])
def test_entries_come_before_the_file_is_read_whole(reader: ModuleType) -> None:
    class Lines:
        taken = 0

        def __iter__(self) -> Iterator[str]:
            for _ in range(1000):
                for line in EXAMPLES[reader].replace("crossref={proc}", "x={y}").splitlines(True):
                    self.taken += 1
                    yield line

    lines = Lines()
    next(iter(reader.read(lines)))
    assert lines.taken < 100
