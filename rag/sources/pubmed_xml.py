"""PubMed XML: `<PubmedArticle>` and `<PubmedBookArticle>` of a `<PubmedArticleSet>`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TextIO
from xml.etree.ElementTree import Element

from rag.sources import fields, xml_records
from rag.sources.entry import Bad, Entry
from rag.sources.xml_records import line

_RECORDS = frozenset({"PubmedArticle", "PubmedBookArticle"})
_START = re.compile(r"<(?:PubmedArticleSet|PubmedArticle|PubmedBookArticle|PubmedBookArticleSet)\b")


def matches(head: str, suffix: str) -> bool:
    """Whether this is XML with PubMed's elements."""
    return head.lstrip("\ufeff \t\r\n").startswith("<") and bool(_START.search(head))


def read(stream: TextIO) -> Iterator[Entry | Bad]:
    """The entries of a PubMed XML file, one at a time."""
    for number, article in enumerate(xml_records.elements(stream, _RECORDS), start=1):
        yield article if isinstance(article, Bad) else _entry(article, f"entry {number}")


def _entry(record: Element, where: str) -> Entry:
    # A book chapter has the parts of an article directly below BookDocument.
    article = _first(record, "MedlineCitation/Article", "BookDocument")
    ids = record.findall("./PubmedData/ArticleIdList/ArticleId[@IdType='doi']")
    ids += article.findall("./ELocationID[@EIdType='doi']")
    ids += article.findall("./ArticleIdList/ArticleId[@IdType='doi']")
    pmid = line(_first(record, "MedlineCitation/PMID", "BookDocument/PMID"))
    title = next(filter(None, map(line, article.iterfind("ArticleTitle"))), "")
    book = line(article.find("Book/BookTitle"))
    words = record.findall("./MedlineCitation/KeywordList/Keyword")
    words += article.findall("./KeywordList/Keyword")
    words += record.findall("./MedlineCitation/MeshHeadingList/MeshHeading/DescriptorName")
    doi = fields.doi(*map(line, ids))
    return Entry(
        where,
        abstract=_abstract(article.findall("./Abstract/AbstractText"))
        or _abstract(record.findall("./MedlineCitation/OtherAbstract/AbstractText")),
        title=title or line(article.find("VernacularTitle")) or book,
        authors=_authors(article.iterfind("AuthorList/Author"))
        or _authors(article.iterfind("Book/AuthorList/Author")),
        year=fields.year(*map(line, _dates(article))),
        venue=line(_first(article, "Journal/Title", "Journal/ISOAbbreviation")) or book,
        doi=doi,
        url=f"https://pubmed.ncbi.nlm.nih.gov/{pmid}/" if pmid else "",
        keywords=fields.keywords(map(line, words)),
        arxiv_id=fields.arxiv_id(doi),
    )


def _first(element: Element, *paths: str) -> Element:
    found = (element.find(path) for path in paths)
    return next((child for child in found if child is not None), Element("none"))


def _abstract(parts: Iterable[Element]) -> str:
    """The parts of an abstract on a line each, a structured one's with their labels."""
    lines = []
    for part in parts:
        content, label = line(part), part.get("Label", "").strip()
        if label and label != "UNLABELLED":
            content = f"{label}: {content}"
        lines.append(content)
    return "\n".join(filter(None, lines))


def _authors(authors: Iterable[Element]) -> tuple[str, ...]:
    return tuple(filter(None, map(_name, authors)))


def _name(author: Element) -> str:
    family = line(author.find("LastName"))
    given = line(_first(author, "ForeName", "Initials"))
    suffix = line(author.find("Suffix"))
    return ", ".join(filter(None, (family, given, suffix))) or line(author.find("CollectiveName"))


def _dates(article: Element) -> list[Element]:
    paths = (
        "Journal/JournalIssue/PubDate/Year",
        "Journal/JournalIssue/PubDate/MedlineDate",
        "ArticleDate/Year",
        "ContributionDate/Year",
        "Book/PubDate/Year",
    )
    return [date for path in paths for date in article.iterfind(path)]
