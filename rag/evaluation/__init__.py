"""How good the answers and the retrieval are, measured on labelled questions.

labelled.py     a JSONL file of questions -> Outcome a question -> metrics by type
collections.py  a test collection in BEIR layout -> metrics of its rankings
jsonl.py        the lines of their files
"""

from __future__ import annotations

from rag.evaluation.collections import (
    Collection,
    ranking_metrics,
    read_collection,
    run_collection,
    write_corpus,
)
from rag.evaluation.labelled import (
    Outcome,
    Question,
    read_questions,
    run_questions,
    score,
    summarise,
)

__all__ = [
    "Collection", "Outcome", "Question", "ranking_metrics", "read_collection", "read_questions",
    "run_collection", "run_questions", "score", "summarise", "write_corpus",
]  # fmt: skip
