"""Which records are one paper, and what they come to together.

Records of one id are one paper. So are records of the same title and first author, unless
they carry different DOIs or different arXiv ids: a preprint without a DOI joins the article.
Nothing here depends on the order in which files were read.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from rag.records import Record, Source, content_id, same_paper_key
from rag.sources.fields import arxiv_id

_ARXIV_DOI = re.compile(r"10\.48550/arxiv\.", re.IGNORECASE)
_DOI_RANK, _ARXIV_RANK, _CONTENT_RANK = range(3)


@dataclass(frozen=True, slots=True)
class Version:
    """A record as it stands at one place, without its text: what telling papers apart needs.

    key:     equal for records of one paper, empty when not known
    rank:    how good an identity its id is: 0 a DOI's, 1 an arXiv id's, 2 the content's
    length:  of its abstract
    digest:  of every field but the place
    offset:  where the record was put aside after reading, -1 when it was not read now
    home:    the id under which the index holds it, empty when it was read now
    """

    id: str
    key: str
    rank: int
    length: int
    digest: bytes
    source: Source
    offset: int = -1
    home: str = ""

    @classmethod
    def of(cls, record: Record, *, offset: int = -1, home: str = "") -> Self:
        fields = repr(replace(record, source=_NOWHERE, sources=()))
        digest = hashlib.blake2b(fields.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        key = same_paper_key(record)
        return cls(
            record.id,
            hashlib.blake2b(key.encode(), digest_size=12).hexdigest() if key else "",
            _rank(record),
            len(record.abstract),
            digest,
            record.source,
            offset,
            home,
        )


_NOWHERE = Source("", 0)


def papers(versions: Iterable[Version]) -> dict[str, list[Version]]:
    """The versions of each paper in the order of their places, by the paper's id.

    A paper's id is its DOI's, else its arXiv id's, else that of its longest abstract.
    """
    by_id: dict[str, list[Version]] = defaultdict(list)
    ids_of: dict[str, set[str]] = defaultdict(set)
    for version in versions:
        by_id[version.id].append(version)
        if version.key:
            ids_of[version.key].add(version.id)
    joined = _Joined({id_: min(v.rank for v in group) for id_, group in by_id.items()})
    for key in sorted(key for key, ids in ids_of.items() if len(ids) > 1):
        joined.join(ids_of[key])
    found: dict[str, list[Version]] = {}
    for ids in joined.groups():
        group = [version for id_ in ids for version in by_id[id_]]
        best = min(group, key=lambda v: (v.rank, -v.length, v.id))
        found[best.id] = sorted(group, key=lambda v: (v.source.path, v.source.ordinal))
    return found


def merged(id_: str, versions: Sequence[Record]) -> Record:
    """One record of all versions of a paper: the longest abstract, and each other field from
    the version with that abstract, or from the fullest other one where it lacks it."""
    places = sorted({v.source for v in versions}, key=lambda s: (s.path, s.ordinal))
    ordered = sorted(versions, key=lambda v: (-len(v.abstract), -_fullness(v), repr(v)))
    registered = sorted(ordered, key=_rank)
    first = ordered[0]
    return replace(
        first,
        id=id_,
        source=places[0],
        sources=tuple(places[1:]),
        title=next((v.title for v in ordered if v.title), ""),
        authors=next((v.authors for v in ordered if v.authors), ()),
        year=next((v.year for v in ordered if v.year is not None), None),
        venue=next((v.venue for v in ordered if v.venue), ""),
        doi=next((v.doi for v in registered if v.doi), ""),
        url=next((v.url for v in ordered if v.url), ""),
        keywords=next((v.keywords for v in ordered if v.keywords), ()),
    )


class _Joined:
    """Sets of ids that only grow together while they hold one DOI and one arXiv id at most."""

    def __init__(self, ranks: dict[str, int]) -> None:
        self._ranks = ranks
        self._set_of = {id_: [id_] for id_ in ranks}

    def join(self, ids: Iterable[str]) -> None:
        ordered = sorted(ids, key=lambda id_: (self._ranks[id_], id_))
        for place, one in enumerate(ordered):
            for other in ordered[place + 1 :]:
                if self._may(one, other):
                    self._unite(one, other)

    def groups(self) -> list[list[str]]:
        return list({id(group): group for group in self._set_of.values()}.values())

    def _may(self, one: str, other: str) -> bool:
        left, right = self._set_of[one], self._set_of[other]
        if left is right:
            return False
        ranks = [self._ranks[id_] for id_ in (*left, *right)]
        return ranks.count(_DOI_RANK) <= 1 and ranks.count(_ARXIV_RANK) <= 1

    def _unite(self, one: str, other: str) -> None:
        left, right = self._set_of[one], self._set_of[other]
        left += right
        for id_ in right:
            self._set_of[id_] = left


def _rank(record: Record) -> int:
    if record.doi and record.id == content_id("", record.doi):
        return _ARXIV_RANK if _ARXIV_DOI.match(record.doi) else _DOI_RANK
    number = arxiv_id(record.url)
    named = number and record.id == content_id("", arxiv_id=number)
    return _ARXIV_RANK if named else _CONTENT_RANK


def _fullness(record: Record) -> int:
    fields = (record.title, record.authors, record.year, record.venue, record.doi, record.url)
    return sum(bool(field) for field in (*fields, record.keywords))


def record_from(data: Mapping[str, Any]) -> Record:
    """A record from the JSON data that `dataclasses.asdict` makes of it."""
    return Record(
        **{
            **data,
            "authors": tuple(data["authors"]),
            "keywords": tuple(data["keywords"]),
            "source": Source(**data["source"]),
            "sources": tuple(Source(**source) for source in data["sources"]),
        }
    )
