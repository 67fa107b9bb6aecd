"""The metrics by question type as a picture: a panel a metric, a line a type, 95% intervals.

Matplotlib is an extra, imported here alone and without its global state.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag.errors import SetupError, UsageError
from rag.evaluation.metrics import OVERALL
from rag.evaluation.tables import name_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Json = Mapping[str, Any]

# Shares, so that all panels have one scale; those of which less is better are marked.
_PANELS = (
    "hit_at_1", "recall_at_5", "key_fact_recall", "all_facts",
    "citation_precision", "citation_recall", "evidence_precision", "evidence_recall",
    "exact_quotes", "support_auc", "refusal_recall", "wrongly_refused",
)  # fmt: skip
_LESS_IS_BETTER = ("wrongly_refused",)
_COLUMNS = 4
_PANEL_WIDTH, _LINE_HEIGHT, _PANEL_MARGIN, _NAMES_WIDTH = 2.6, 0.24, 0.75, 1.3  # inches
_DOTS_A_INCH = 150
_TYPE, _ALL, _GRID = "#4477aa", "#222222", "#dddddd"
_SUFFIXES = (".png", ".svg")


def check_plot(path: Path) -> None:
    """Raise UsageError for a file that cannot become a plot, SetupError without Matplotlib."""
    if path.suffix.lower() not in _SUFFIXES:
        raise UsageError(f"--plot {path}: name a .png or .svg file")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"--plot {path}: there is no folder {path.parent}; make it first")
    if importlib.util.find_spec("matplotlib") is None:
        raise SetupError(
            "--plot needs Matplotlib, which is not installed: pip install 'abstract-qa[plot]'"
        )


def plot(result: Json, path: Path) -> None:
    """Draw the metrics of `rag eval --json` that have a value into a PNG or SVG file."""
    from matplotlib.figure import Figure

    metrics = result["metrics"]
    panels = [n for n in _PANELS if any(row.get(n) is not None for row in metrics.values())]
    columns = min(_COLUMNS, len(panels)) or 1
    lines = -(-len(panels) // columns) or 1
    figure = Figure(
        figsize=(
            _NAMES_WIDTH + _PANEL_WIDTH * columns,
            0.6 + lines * (_PANEL_MARGIN + _LINE_HEIGHT * len(metrics)),
        ),
        layout="constrained",
    )
    figure.suptitle(
        f"LLM: {result['llm']}, {metrics[OVERALL]['questions']} questions, 95% intervals",
        fontsize=11,
    )
    grid = figure.subplots(lines, columns, sharey=True, squeeze=False)
    for axes, name in zip(grid.flat, panels, strict=False):
        _panel(axes, name, result)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    figure.savefig(path, dpi=_DOTS_A_INCH, metadata={"Date": None} if _is_svg(path) else None)


def _panel(axes: Axes, name: str, result: Json) -> None:
    types = list(result["metrics"])
    for line, type_ in enumerate(types):
        value = result["metrics"][type_].get(name)
        if value is None:
            continue
        colour = _ALL if type_ == OVERALL else _TYPE
        if edges := result["intervals"][type_].get(name):
            axes.plot(edges, (line, line), color=colour, linewidth=2, alpha=0.5)
        marker = "D" if type_ == OVERALL else "o"
        axes.plot(value, line, marker=marker, markersize=5, color=colour, clip_on=False)
    less = " (less is better)" if name in _LESS_IS_BETTER else ""
    axes.set_title(name_of(name) + less, fontsize=9)
    axes.set_yticks(
        range(len(types)),
        [f"{type_} ({result['metrics'][type_]['questions']})" for type_ in types],
        fontsize=8,
    )
    axes.set_ylim(len(types) - 0.4, -0.6)
    axes.set_xlim(0, 1)
    axes.set_xticks((0, 0.25, 0.5, 0.75, 1), ("0", "", ".5", "", "1"), fontsize=8)
    axes.grid(color=_GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def _is_svg(path: Path) -> bool:
    return path.suffix.lower() == ".svg"
