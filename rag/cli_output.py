"""Results of a command on stdout, and its progress on stderr."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import click


def print_data(data: Any, as_json: bool, text: Callable[[Any], str]) -> None:
    if as_json:
        print_json(data)
    else:
        click.echo(text(data))


def print_json(data: Any) -> None:
    click.echo(json.dumps(data, ensure_ascii=False, indent=2).encode("utf-8", "replace"))


@contextlib.contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on stderr, in a terminal only: a function of stage, number done and number of all."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:.1f}/s" if task.speed else "")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=None)
        kind = ""

        def show(stage: str, done: int, total: int) -> None:
            nonlocal kind
            if stage.split()[0] != kind:
                # The rate of one stage says nothing about the next.
                bar.reset(task)
                kind = stage.split()[0]
            bar.update(task, description=escape(stage), completed=done, total=total)

        yield show
