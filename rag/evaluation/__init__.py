"""How good the answers and the retrieval are, measured on labelled questions.

    questions.jsonl -> Question -> (Asker) Answer -> Outcome -> metrics, intervals -> table, plot

questions.py    a labelled question, and the file of them
gold.py         what agrees with the labels
outcomes.py     Answer against Question: an Outcome, and the file of them
running.py      the run: resumable, over anything that gives Answers
bootstrap.py    estimates and their intervals
metrics.py      the metrics, by question type
comparing.py    two runs
tables.py       metrics and comparisons as text
plotting.py     metrics as a picture
drafting.py     questions drafted from one's own abstracts, for a person to correct
collections.py  a test collection in BEIR layout -> metrics of its rankings
jsonl.py        the lines of their files
"""

from __future__ import annotations

from rag.evaluation.collections import (
    Collection,
    Searcher,
    ranking_metrics,
    read_collection,
    run_collection,
    write_corpus,
)
from rag.evaluation.comparing import compare, compare_files
from rag.evaluation.metrics import intervals, summarise
from rag.evaluation.outcomes import FollowUp, Outcome, read_outcomes, score
from rag.evaluation.questions import Question, read_questions
from rag.evaluation.running import Asker, run_questions

__all__ = [
    "Asker", "Collection", "FollowUp", "Outcome", "Question", "Searcher", "compare",
    "compare_files", "intervals", "ranking_metrics", "read_collection", "read_outcomes",
    "read_questions", "run_collection", "run_questions", "score", "summarise", "write_corpus",
]  # fmt: skip
