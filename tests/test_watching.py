"""Following a folder: a change is told once, when it has settled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rag.watching import changes


def test_a_change_is_told_once_it_has_settled(tmp_path: Path) -> None:
    a, b = tmp_path / "a.txt", tmp_path / "b.txt"
    a.write_text("one")
    index = tmp_path / "index"
    index.mkdir()
    looks: list[Callable[[], object]] = [
        lambda: (index / "manifest.json").write_text("{}"),
        lambda: b.write_text("t"),
        lambda: b.write_text("two"),
        lambda: None,
        lambda: a.unlink(),
        lambda: None,
    ]
    left = iter(looks)
    told = changes([tmp_path], index, sleep=lambda _: next(left)())  # type: ignore[func-returns-value]
    assert next(told) == [b]
    assert len(list(left)) == 2
