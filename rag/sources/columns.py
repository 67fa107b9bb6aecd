"""What columns and keys are called, and how their values are written.

Tables and JSON share this: a name is compared without case, accents, spaces and
punctuation, so "Author(s)", "authors" and "AUTHORS " are one.
"""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache

from rag.sources import fields
from rag.sources.entry import Entry

# For each field the names that fill it, the most telling first; the first that has a value
# in a record wins. Two-letter names are the tags of RIS, MEDLINE and Web of Science.
_SPELLINGS: Mapping[str, str] = {
    "abstract": "abstract abstracts abstractnote abstracttext abstracten englishabstract "
    "paperabstract articleabstract abstracttranslation originalabstract ab n2 resume resumen "
    "riassunto resumo zusammenfassung kurzfassung 摘要 中文摘要 要旨 抄録 초록 аннотация summary "
    "description text",
    "title": "title titles articletitle papertitle documenttitle primarytitle publishedtitle "
    "fulltitle titleen englishtitle papername articlename ti t1 titre titulo titolo titel 标题 "
    "题名 タイトル 제목 название displayname originaltitle alternatetitle shorttitle",
    "authors": "authors author authornames authorname authorlist creators creator au a1 "
    "authorfullnames authorfullname af authorsfull auteurs auteur autores autor autoren autori "
    "作者 著者 저자 авторы writers primaryauthors firstauthors firstauthor",
    "year": "year publicationyear yearpublished publishedyear yearofpublication pubyear py "
    "dateyear annee ano anno jahr 年份 发表年份 年 год datepublished publicationdate "
    "publishedon publisheddate published publishedat pubdate dateofpublication issued date y1 "
    "da dp coverdate publishedonline publishedprint onlinedate conferencedate pdate odate "
    "createddate created cdate tcdate updateddate updatedate",
    "venue": "sourcetitle journalbook journal journaltitle journalname publicationtitle "
    "publicationname publication containertitle venue publicationvenue primarylocation "
    "booktitle conference conferencename conferencetitle proceedings proceedingstitle "
    "meetingname secondarytitle journalfull journalref jf jo jt so t2 ta journalabbreviation "
    "abbreviatedsourcetitle revue revista rivista zeitschrift 期刊 刊名 venueid",
    "doi": "doi dois digitalobjectidentifier articledoi paperdoi doiurl doilink do di externalids "
    "lid",
    "url": "url urls link links weblink paperurl paperlink articleurl articlelink abstracturl "
    "landingpageurl externalurl fulltextlink openreviewurl openreviewlink site website "
    "webpage ur pdfurl pdflink pdf sourceurl sourceurls",
    "keywords": "keywords keyword authorkeywords authorskeywords keywordsauthor keywordplus "
    "keywordsplus indexkeywords kw de ot tags tag manualtags automatictags subjects subject "
    "subjectterms topics meshterms mesh mh fieldsofstudy categories category motscles "
    "palabrasclave palavraschave parolechiave schlagworter schlagworte 关键词 キーワード 키워드 "
    "primaryarea emtreemedicalindextermsmajorfocus emtreemedicalindexterms",
    "arxiv_id": "arxivid arxiv arxivnumber eprint eprintid",
}
# 1758370688 and 1758370688811: seconds and milliseconds since 1970; 20240115: a day.
_EPOCH = re.compile(r"\d{9,13}")
_COMPACT_DATE = re.compile(r"\d{8}|\d{6}")
# "['Marx, Karl', 'Lindgren, Astrid']", as Python and JSON write lists into a cell.
_LIST = re.compile(r"\s*\[.*\]\s*", re.DOTALL)
_PARENTHESES = re.compile(r" ?\([^()]{0,400}\)")
_INITIALS = re.compile(r"(?:[^\W\d_]\.?[-\s]?){1,4}")
_AND = re.compile(r",? (?:and|&) ", re.IGNORECASE)
_ET_AL = re.compile(r"et\.? al\.?", re.IGNORECASE)
_SCOPUS_ID = re.compile(r" ?\(\d{6,}\)")
_MAX_DEPTH = 4
_LAST_YEAR = 2099


def _plain(name: str) -> str:
    decomposed = unicodedata.normalize("NFKD", name).casefold()
    return "".join(char for char in decomposed if char.isalnum())


_FIELDS = {
    _plain(name): (field, rank)
    for field, names in _SPELLINGS.items()
    for rank, name in enumerate(names.split())
}


@lru_cache(maxsize=4096)
def field_of(name: str) -> tuple[str, int] | None:
    """The field that a column of this name fills, and its rank among the names that do."""
    return _FIELDS.get(_plain(name))


def by_field(values: Iterable[tuple[str, object]]) -> dict[str, list[object]]:
    """The values of named columns under the field each fills, the most telling first."""
    ranked: dict[str, list[tuple[int, object]]] = {}
    for name, value in values:
        if value and (found := field_of(name)):
            field, rank = found
            ranked.setdefault(field, []).append((rank, value))
    return {
        field: [value for _, value in sorted(pairs, key=lambda pair: pair[0])]
        if len(pairs) > 1
        else [pairs[0][1]]
        for field, pairs in ranked.items()
    }


def entry(values: Mapping[str, list[object]], where: str) -> Entry:
    """The entry made of the values that `by_field` sorted."""
    doi = fields.doi(*map(text, values.get("doi", ())))
    url = first_link(values.get("url", ()))
    arxiv_ids = map(fields.bare_arxiv_id, map(text, values.get("arxiv_id", ())))
    return Entry(
        where,
        abstract=_first_text(values.get("abstract", ())),
        title=fields.one_line(_first_text(values.get("title", ()))),
        authors=next(filter(None, map(people, values.get("authors", ()))), ()),
        year=next(filter(None, map(year, values.get("year", ()))), None),
        venue=fields.one_line(_first_text(values.get("venue", ()))),
        doi=doi,
        url=url,
        keywords=next(filter(None, map(keywords, values.get("keywords", ()))), ()),
        arxiv_id=next(filter(None, arxiv_ids), "") or fields.arxiv_id(doi, url),
    )


def _first_text(values: Iterable[object]) -> str:
    return next((found for value in values if (found := text(value))), "")


def text(value: object, depth: int = 0) -> str:
    """A value as text, whatever it is wrapped in: {"value": …}, a list of paragraphs, labelled
    sections, a name. White space around it is left out."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool) or value is None or depth > _MAX_DEPTH:
        return ""
    if isinstance(value, (int, float)):
        whole = isinstance(value, float) and value.is_integer()
        return str(int(value)) if whole else str(value)
    if isinstance(value, list):
        return " ".join(part for item in value if (part := text(item, depth + 1)))
    if isinstance(value, dict):
        return _wrapped(value, depth + 1)
    return str(value)


def _wrapped(value: Mapping[object, object], depth: int) -> str:
    for key in ("value", "text", "#text", "_", "name", "display_name", "title", "DOI", "en", "url"):
        if found := text(value.get(key), depth):
            label = text(value.get("label") or value.get("heading"), depth)
            return f"{label}: {found}" if label else found
    return text(value.get("source"), depth)


def year(value: object) -> int | None:
    """The year of a date, however it is written: 2020, "2020-05-01", {"date-parts": [[2020]]},
    milliseconds since 1970."""
    if isinstance(value, dict):
        value = value.get("date-parts") or value.get("value") or value.get("year")
    while isinstance(value, list):
        value = value[0] if value else ""
    written = text(value)
    if _EPOCH.fullmatch(written):
        seconds = int(written) / (1000 if len(written) >= 12 else 1)
        found = datetime.fromtimestamp(seconds, UTC).year
        return found if found <= _LAST_YEAR else None
    return fields.year(written[:4] if _COMPACT_DATE.fullmatch(written) else written)


def first_link(values: Iterable[object]) -> str:
    """The first address among values that hold one or several each."""
    for value in values:
        for part in text(value).replace(";", " ").split():
            if part.startswith(("http://", "https://")):
                return part
    return ""


def keywords(value: object) -> tuple[str, ...]:
    """The keywords of a list, or of a text that parts them by semicolons, bars or commas."""
    if isinstance(value, dict):
        value = value.get("value", value)
    if isinstance(value, str):
        listed = _listed(value)
        if listed is None:
            parted = value.replace("|", ";") if ";" not in value else value
            return fields.keywords([parted], commas=True)
        value = listed
    if isinstance(value, list):
        items = [text(item) for item in value]
        return fields.keywords(items, commas=len(items) == 1)
    return ()


def people(value: object) -> tuple[str, ...]:
    """The names of a list of authors, or of a text that parts them, each as it is written."""
    if isinstance(value, dict):
        value = value.get("value", [value])
    if isinstance(value, str):
        listed = _listed(value)
        if listed is None:
            return _parted_names(value)
        value = listed
    if not isinstance(value, list):
        return ()
    if len(value) == 1 and isinstance(value[0], str):
        return _parted_names(value[0])
    found = (" ".join(_name(item).split()).strip(" ,;") for item in value)
    return tuple(dict.fromkeys(name for name in found if name))


def _name(value: object) -> str:
    if isinstance(value, list):  # arXiv's authors_parsed: family, given, suffix
        family, given, suffix = [*map(text, value), "", "", ""][:3]
        return f"{given} {family} {suffix}"
    if not isinstance(value, dict):
        return text(value)
    by_name = {re.sub(r"[^a-z]", "", str(key).casefold()): item for key, item in value.items()}
    for key in ("name", "fullname", "displayname", "literal", "value", "preferredname", "raw"):
        if found := text(by_name.get(key)):
            return found
    family = _either(by_name, "family", "lastname", "last", "surname", "familyname")
    given = _either(by_name, "given", "firstname", "first", "forename", "givenname")
    if family or given:
        return f"{family}, {given}".strip(", ")
    return _name(by_name["author"]) if isinstance(by_name.get("author"), dict) else ""


def _either(values: Mapping[str, object], *keys: str) -> str:
    return next((found for key in keys if (found := text(values.get(key)))), "")


def _listed(value: str) -> list[object] | None:
    """The list that a cell spells out, or None."""
    if not _LIST.fullmatch(value):
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            found = read(value.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        return found if isinstance(found, list) else None
    return None


def _parted_names(value: str) -> tuple[str, ...]:
    for separator in (";", "|", "\n"):
        if separator in value:
            parts = value.split(separator)
            break
    else:
        parts = _parted_by_words_and_commas(" ".join(value.split()))
    found = (_SCOPUS_ID.sub("", " ".join(part.split())).strip(" ,;") for part in parts)
    return tuple(dict.fromkeys(name for name in found if name and not _ET_AL.fullmatch(name)))


def _parted_by_words_and_commas(value: str) -> list[str]:
    parts = _AND.split(value)
    commas = [part.count(",") for part in parts]
    if len(parts) > 1 and all(count == 1 for count in commas):
        return parts  # BibTeX: "Family, Given and Family, Given"
    if not any(commas):
        return parts
    bare = _PARENTHESES.sub("", _PARENTHESES.sub("", value))  # affiliations hold commas too
    return _parted_by_commas([part for piece in _AND.split(bare) for part in piece.split(",")])


def _parted_by_commas(parts: list[str]) -> list[str]:
    """One name a part, or one every two parts where the commas stand inside of names."""
    parts = [part for part in (part.strip() for part in parts) if part]
    if len(parts) % 2 == 0 and parts:
        pairs = list(zip(parts[::2], parts[1::2], strict=True))
        if all(_is_family_and_given(family, given, len(pairs)) for family, given in pairs):
            return [f"{family}, {given}" for family, given in pairs]
    if len(parts) > 1 and sum(part.count(".") for part in parts) == 1:
        parts[-1] = parts[-1].removesuffix(".")  # PubMed ends its list of names like a sentence
    return parts


def _is_family_and_given(family: str, given: str, pairs: int) -> bool:
    if _INITIALS.fullmatch(given) and given == given.upper():
        return True
    return " " not in family or (pairs == 1 and " " not in given)
