"""The catalogue: every record, and the words of its abstract, in one Tantivy index.

It answers three questions from a fresh process, from files that are mapped into memory: which
record has this id, which abstracts hold these words (BM25), and which records fulfil these
filters. A change writes a segment of its own; what was there is not written again.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import tantivy

from rag.filters import FIELDS, NO_FILTERS, Filters, facets
from rag.papers import record_from
from rag.records import Record
from rag.words import analyzer, terms

_ANALYZER = "english"
# Tantivy's BM25 saturates at idf·(k1 + 1) for each term, with its fixed k1 of 1.2.
_SATURATION = 2.2
_HEAP_BYTES = 50_000_000


@dataclass(frozen=True, slots=True)
class Entry:
    """A record of the catalogue with the number of its chunks at each level.

    `versions` are the records that were merged into it, each as it was read, with its place;
    empty when there is one only.
    """

    record: Record
    passages: int
    sentences: int
    versions: tuple[Record, ...] = ()

    @property
    def owner(self) -> str:
        """Names the text that the chunks of this entry are of; a text that was edited is
        another one."""
        text = f"{self.record.title}\0{self.record.abstract}".encode("utf-8", "surrogatepass")
        return f"{self.record.id}.{hashlib.sha256(text).hexdigest()[:8]}"


class Catalogue:
    """Records and their words on disk, or in memory for nothing at all."""

    def __init__(self, folder: Path | None = None) -> None:
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
        self._index = tantivy.Index(_schema(), path=str(folder) if folder else None)
        self._index.register_tokenizer(_ANALYZER, analyzer())
        self._index.reload()

    def __len__(self) -> int:
        return int(self._index.searcher().num_docs)

    def put(self, entries: Sequence[Entry]) -> None:
        """Write entries, in place of those with the same ids, all or none."""
        if not entries:
            return
        writer = self._index.writer(heap_size=_HEAP_BYTES, num_threads=1)
        for entry in entries:
            writer.delete_documents_by_term("id", entry.record.id)
        for entry in entries:
            writer.add_document(_document(entry))
        self._commit(writer)

    def remove(self, ids: Sequence[str]) -> None:
        if not ids:
            return
        writer = self._index.writer(heap_size=_HEAP_BYTES, num_threads=1)
        for record_id in ids:
            writer.delete_documents_by_term("id", record_id)
        self._commit(writer)

    def get(self, ids: Sequence[str]) -> dict[str, Entry]:
        """The entries with these ids; an id that is not there is left out."""
        if not ids:
            return {}
        searcher = self._index.searcher()
        query = tantivy.Query.term_set_query(self._index.schema, "id", list(ids))
        found = searcher.search(query, limit=len(ids)).hits
        entries = (_entry(searcher.doc(address)) for _, address in found)
        return {entry.record.id: entry for entry in entries}

    def entries(self) -> Iterator[Entry]:
        """Every entry, in no particular order."""
        searcher = self._index.searcher()
        if searcher.num_docs:
            hits = searcher.search(tantivy.Query.all_query(), limit=searcher.num_docs).hits
            yield from (_entry(searcher.doc(address)) for _, address in hits)

    def admitted(self, owners: Collection[str], filters: Filters = NO_FILTERS) -> set[str]:
        """Those of `owners` that are here and that the filters admit."""
        if not owners:
            return set()
        schema = self._index.schema
        here = tantivy.Query.term_set_query(schema, "owner", list(owners))
        searcher = self._index.searcher()
        query = _all_of([tantivy.Query.const_score_query(here, 0.0), *_demands(schema, filters)])
        hits = searcher.search(query, limit=len(owners), count=False).hits
        # Reading the numbers takes no look at the stored entries, which would be slow.
        found = set(searcher.fast_field_values("number", [address for _, address in hits]))
        return {owner for owner in owners if _number(owner) in found}

    def matching(self, filters: Filters, most: int) -> tuple[int, list[Entry]]:
        """The number of entries that the filters admit, and these, if there are `most` at most."""
        searcher = self._index.searcher()
        query = _all_of(list(_demands(self._index.schema, filters)))
        found = searcher.search(query, limit=max(most, 1))
        count = int(found.count)  # type: ignore[attr-defined]  # not in its stubs
        few = found.hits if count <= most else []
        return count, [_entry(searcher.doc(address)) for _, address in few]

    def idf(self, term: str) -> float:
        """ln(1 + (N - n + 0.5) / (n + 0.5)), n of the N abstracts holding the term."""
        searcher = self._index.searcher()
        total, holding = searcher.num_docs, searcher.doc_freq("body", term)
        holding = min(holding, total)  # removed abstracts count until Tantivy merges
        return math.log(1 + (total - holding + 0.5) / (holding + 0.5))

    def search(self, text: str, k: int, filters: Filters = NO_FILTERS) -> list[tuple[str, float]]:
        """The k best abstracts admitted, by BM25, as (record id, score), best first, ties by id.

        Scores are divided by the most that the query could score, so they lie in [0, 1]
        and say how much of the query, by weight, an abstract covers. Abstracts without
        any word of the query are left out.
        """
        words = terms(text)
        if not words or k < 1:
            return []
        most = _SATURATION * sum(self.idf(word) for word in words)
        schema = self._index.schema
        query = tantivy.Query.boolean_query(
            [
                (tantivy.Occur.Should, tantivy.Query.term_query(schema, "body", word, "freq"))
                for word in words
            ]
        )
        if filters:
            query = _all_of([query, *_demands(schema, filters)])
        searcher = self._index.searcher()
        found = [
            (str(searcher.doc(address)["id"][0]), min(score / most, 1.0))
            for score, address in searcher.search(query, limit=k).hits
        ]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))

    def _commit(self, writer: tantivy.IndexWriter) -> None:
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("owner", tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("number", fast=True)
    builder.add_text_field("body", tokenizer_name=_ANALYZER, index_option="freq")
    builder.add_integer_field("year", indexed=True, fast=True)
    for field in FIELDS:
        builder.add_text_field(field, tokenizer_name="raw", index_option="basic")
    builder.add_bytes_field("entry", stored=True, indexed=False)
    return builder.build()


def _document(entry: Entry) -> tantivy.Document:
    record = entry.record
    filed = facets(record)
    document = tantivy.Document(
        id=record.id,
        owner=entry.owner,
        body=f"{record.title}\n{record.abstract}",
        entry=entry_json(entry).encode(),
    )
    document.add_unsigned("number", _number(entry.owner))
    if filed.year is not None:
        document.add_integer("year", filed.year)
    for field, values in filed.values.items():
        for value in values:
            document.add_text(field, value)
    return document


def _number(owner: str) -> int:
    """Stands for an owner where only numbers are kept."""
    return int.from_bytes(hashlib.blake2b(owner.encode(), digest_size=8).digest(), "big")


def _all_of(queries: Sequence[tantivy.Query]) -> tantivy.Query:
    return tantivy.Query.boolean_query([(tantivy.Occur.Must, query) for query in queries])


def _demands(schema: tantivy.Schema, filters: Filters) -> Iterator[tantivy.Query]:
    """What a record must fulfil, as queries that add nothing to its score."""
    if filters.years != (None, None):
        years = tantivy.Query.range_query(schema, "year", tantivy.FieldType.Integer, *filters.years)
        yield tantivy.Query.const_score_query(years, 0.0)
    for field, values in filters.conditions():
        either = tantivy.Query.term_set_query(schema, field, list(values))
        yield tantivy.Query.const_score_query(either, 0.0)


def entry_json(entry: Entry) -> str:
    """An entry as JSON."""
    return json.dumps(asdict(entry), ensure_ascii=False)


def entry_from_json(text: str | bytes) -> Entry:
    """An entry from what `entry_json` makes of it."""
    data = json.loads(text)
    versions = tuple(record_from(version) for version in data["versions"])
    return Entry(record_from(data["record"]), data["passages"], data["sentences"], versions)


def _entry(document: tantivy.Document) -> Entry:
    return entry_from_json(document["entry"][0])
