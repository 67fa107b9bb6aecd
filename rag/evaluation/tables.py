"""Metrics and comparisons as text for a terminal of 120 columns, from their JSON data. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rag.terminal import printable

Json = Mapping[str, Any]

# One table a group, with two lines of head for each metric.
_TABLES: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Retrieval": {
        "hit_at_1": ("", "hit@1"),
        "recall_at_5": ("", "recall@5"),
        "recall_at_10": ("", "recall@10"),
        "ndcg_at_10": ("", "nDCG@10"),
    },
    "Follow-ups, recall@5": {
        "followup_recall_at_5": ("as", "searched"),
        "standalone_recall_at_5": ("rewritten", "by hand"),
        "followup_difference": ("", "difference"),
    },
    "Answers and refusals": {
        "key_fact_recall": ("key", "facts"),
        "all_facts": ("all", "facts"),
        "support_auc": ("support", "AUC"),
        "wrongly_refused": ("wrongly", "refused"),
        "refusal_precision": ("refusal", "precision"),
        "refusal_recall": ("refusal", "recall"),
    },
    "Citations": {
        "citation_precision": ("citation", "precision"),
        "citation_recall": ("citation", "recall"),
        "evidence_precision": ("evidence", "precision"),
        "evidence_recall": ("evidence", "recall"),
        "exact_quotes": ("exact", "quotes"),
        "quote_words": ("words", "a quote"),
    },
    "Seconds": {
        "median_retrieve_s": ("retrieval", "median"),
        "p90_retrieve_s": ("retrieval", "p90"),
        "median_first_token_s": ("first word", "median"),
        "p90_first_token_s": ("first word", "p90"),
        "median_total_s": ("total", "median"),
        "p90_total_s": ("total", "p90"),
    },
}
# Names in one line for metrics whose heads say too little outside their table.
_NAMES = {
    "recall_at_1": "recall@1",
    "followup_recall_at_5": "follow-up recall@5",
    "standalone_recall_at_5": "the same by hand",
    "followup_difference": "follow-up difference",
}
# Metrics that are no shares.
_AMOUNTS = ("_s", "_words")
# Metrics that are shown without their interval, for want of room.
_BARE = "p90_"
_NONE = "–"
_LEADING_ZERO = re.compile(r"^(-?)0\.")
_IDS_A_LINE = 8


def evaluation_text(result: Json) -> str:
    """The metrics in a few tables, a line a question type, each with its 95% interval.

    What has no value anywhere is left out.
    """
    tables = [_table(title, heads, result) for title, heads in _TABLES.items()]
    first = f"LLM: {result['llm']}"
    last = (
        "[low,high]: 95% of bootstrap resamples of the questions; none where the questions do "
        "not differ."
    )
    return printable("\n\n".join([first, *filter(None, tables), last]))


def comparison_text(result: Json) -> str:
    """The metrics of two runs side by side, what is not comparable, and what changed."""
    runs = [
        f"{name.upper()}: {run['file']} ({run['llm']}, {run['questions']} questions)"
        for name, run in (("a", result["a"]), ("b", result["b"]))
    ]
    if result["a"]["llm"] != result["b"]["llm"]:
        runs.append("The two runs are of different LLMs.")
    lines = [*runs, *_unpaired(result), "", *_differences(result["metrics"])]
    return printable("\n".join([*lines, *_changes(result["changed"])]))


def head_of(metric: str) -> tuple[str, str]:
    """What a reader calls a metric, in two lines of which the first may be empty."""
    found = (table[metric] for table in _TABLES.values() if metric in table)
    return next(found, ("", metric.replace("_", " ")))


def name_of(metric: str) -> str:
    """What a reader calls a metric, in one line."""
    return _NAMES.get(metric) or " ".join(filter(None, head_of(metric)))


def value_text(metric: str, value: float | None, edges: Sequence[float] | None = None) -> str:
    """A value with its interval, as in `0.86 [.79,.92]`."""
    if value is None:
        return _NONE
    if metric.endswith(_AMOUNTS):
        return _amount(value) + _range(edges, lambda edge: _short(_amount(edge)))
    return f"{value:.2f}" + _range(edges, lambda edge: _short(f"{edge:.2f}"))


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines, the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = ([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in rows)
    return ["  ".join(row).rstrip() for row in cells]


def _table(title: str, heads: Mapping[str, tuple[str, str]], result: Json) -> str:
    metrics, intervals = result["metrics"], result["intervals"]
    names = [n for n in heads if any(row.get(n) is not None for row in metrics.values())]
    types = [t for t in metrics if any(metrics[t].get(n) is not None for n in names)]
    if not names:
        return ""
    if len(types) == 2 < len(metrics):
        # Overall says no more than the one type, and seems to be over more questions.
        types = types[:1]
    rows = [
        [title, "", *(heads[name][0] for name in names)],
        ["type", "n", *(heads[name][1] for name in names)],
    ]
    for type_ in types:
        ranges = {n: e for n, e in intervals[type_].items() if not n.startswith(_BARE)}
        cells = (value_text(n, metrics[type_].get(n), ranges.get(n)) for n in names)
        rows.append([type_, str(metrics[type_]["questions"]), *cells])
    return "\n".join(aligned(rows))


def _unpaired(result: Json) -> list[str]:
    notes = (
        ("only_a", "Only A holds"),
        ("only_b", "Only B holds"),
        ("relabelled", "Labelled differently"),
    )
    lines = []
    for name, note in notes:
        if ids := result[name]:
            lines.append(f"{note}, left out: {len(ids)} ({_several(ids)})")
    return lines


def _differences(metrics: Json) -> list[str]:
    rows = [["metric", "A", "B", "B - A", "95%"]]
    for name, row in metrics.items():
        interval = _range(row["interval"], _signed).strip()
        rows.append(
            [
                name_of(name),
                value_text(name, row["a"]),
                value_text(name, row["b"]),
                _NONE if row["difference"] is None else f"{row['difference']:+.2f}",
                interval or _NONE,
            ]
        )
    return aligned(rows)


def _changes(changed: Sequence[Json]) -> list[str]:
    lines = []
    groups: tuple[tuple[str, Callable[[Json], bool]], ...] = (
        ("Better in B", lambda row: row["better"]),
        ("Worse in B", lambda row: row["worse"]),
        ("Otherwise changed", lambda row: not row["better"] and not row["worse"]),
    )
    for title, belongs in groups:
        if rows := [row for row in changed if belongs(row)]:
            lines += ["", f"{title}: {len(rows)}"]
            lines += [f"  {row['id']} ({row['type']}): {row['a']} -> {row['b']}" for row in rows]
    return lines


def _several(ids: Sequence[str]) -> str:
    shown = ", ".join(ids[:_IDS_A_LINE])
    return shown if len(ids) <= _IDS_A_LINE else f"{shown}, …"


def _range(edges: Sequence[float] | None, text: Callable[[float], str]) -> str:
    return f" [{text(edges[0])},{text(edges[1])}]" if edges else ""


def _short(number: str) -> str:
    """.79 for 0.79, 1 for 1.00: intervals should take few characters."""
    if set(number) <= set("-01.") and float(number) in (-1, 0, 1):
        return str(round(float(number)))
    return _LEADING_ZERO.sub(r"\1.", number)


def _signed(value: float) -> str:
    return f"{value:+.2f}"


def _amount(value: float) -> str:
    if value >= 10:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"
