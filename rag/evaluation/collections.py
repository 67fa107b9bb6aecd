"""Retrieval on a test collection, scored. Means over the queries with a relevant document:

nDCG@10    sum of grade / log2(rank + 1) over the first 10, divided by that of an ideal order
recall@k   relevant documents among the first k / relevant documents
MRR        1 / rank of the first relevant document, 0 when it is not among the first 10
hit@1      share of queries whose first document is relevant
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol

from rag.answers import Hit
from rag.errors import UsageError
from rag.evaluation.jsonl import json_lines, text_lines

_DEPTH = 10


class Searcher(Protocol):
    """What ranks abstracts for a query; Assistant is one."""

    def search(self, query: str, k: int = 10) -> list[Hit]: ...


@dataclass(frozen=True, slots=True)
class Collection:
    """A test collection: documents and queries by id, grades above 0 by query and document."""

    documents: Mapping[str, str]
    queries: Mapping[str, str]
    grades: Mapping[str, Mapping[str, int]]


def read_collection(folder: Path) -> Collection:
    """Read corpus.jsonl, queries.jsonl and qrels.tsv; raises UsageError on what is not so.

    A document is its title and text on one line; documents without text and queries without
    a relevant document are left out.
    """
    documents = {}
    for number, row in json_lines(folder / "corpus.jsonl"):
        text = _one_line(row.get("title"), row.get("text"))
        if text:
            documents[_beir_id(folder / "corpus.jsonl", number, row)] = text
    grades = _read_grades(folder / "qrels.tsv")
    queries = {}
    for number, row in json_lines(folder / "queries.jsonl"):
        query_id = _beir_id(folder / "queries.jsonl", number, row)
        if query_id in grades:
            queries[query_id] = _one_line(row.get("text"))
    if not documents or not queries:
        raise UsageError(f"{folder} holds no documents, or no queries with relevant documents")
    return Collection(documents, queries, grades)


def write_corpus(collection: Collection, path: Path) -> dict[int, str]:
    """Write the documents as a text file of abstracts; the id of each ordinal."""
    header = "Documents of a test collection"
    path.write_text("\n\n".join([header, *collection.documents.values()]) + "\n", encoding="utf-8")
    return dict(enumerate(collection.documents, start=1))


def run_collection(
    searcher: Searcher,
    collection: Collection,
    ids: Mapping[int, str],
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[str, float]:
    """Search for every query and average the metrics; `ids` comes from `write_corpus`."""
    rows = []
    for number, (query_id, query) in enumerate(collection.queries.items()):
        if progress:
            progress(number, len(collection.queries), query_id)
        ranking = _document_ids(searcher.search(query, k=_DEPTH), ids)
        rows.append(ranking_metrics(ranking, collection.grades[query_id]))
    return {name: fmean(row[name] for row in rows) for name in rows[0]}


def ranking_metrics(ranking: Sequence[str], grades: Mapping[str, int]) -> dict[str, float]:
    """The metrics of one ranking, best first, given the grades above 0 of the relevant ids."""
    gains = [grades.get(document, 0) for document in ranking[:_DEPTH]]
    first = next((rank for rank, gain in enumerate(gains, start=1) if gain > 0), None)
    return {
        "ndcg_at_10": _dcg(gains) / _dcg(sorted(grades.values(), reverse=True)[:_DEPTH]),
        "recall_at_5": sum(gain > 0 for gain in gains[:5]) / len(grades),
        "recall_at_10": sum(gain > 0 for gain in gains) / len(grades),
        "mrr": 1 / first if first else 0.0,
        "hit_at_1": float(first == 1),
    }


def _dcg(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def _document_ids(hits: Sequence[Hit], ids: Mapping[int, str]) -> list[str]:
    # Documents with the same words became one record, which then stands for all of them.
    return [
        ids[source.ordinal] for hit in hits for source in (hit.record.source, *hit.record.sources)
    ]


def _read_grades(path: Path) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = {}
    for number, line in text_lines(path):
        cells = line.split("\t")
        try:
            query_id, document, grade = cells[0], cells[1], int(cells[2])
        except (IndexError, ValueError):
            if number == 1:
                continue
            raise UsageError(f"{path}, line {number}: not query, document, grade by tabs") from None
        if grade > 0:
            grades.setdefault(query_id, {})[document] = grade
    return grades


def _one_line(*parts: object) -> str:
    return " ".join(" ".join(str(part) for part in parts if part).split())


def _beir_id(path: Path, number: int, row: Mapping[str, Any]) -> str:
    if "_id" not in row:
        raise UsageError(f"{path}, line {number}: has no _id")
    return str(row["_id"])
