"""Following files and folders: when something there has changed and settled."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rag.sources import find_files

Snapshot = dict[Path, tuple[int, int]]


def changes(
    paths: Sequence[Path],
    leave_out: Path | None,
    every_s: float = 2.0,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[list[Path]]:
    """The files that appeared, changed or went, each time that there are any; without end.

    Looks every `every_s` seconds, which works on network drives too, and waits until two
    looks agree, so that a file is not read while it is being written.
    """
    known = _snapshot(paths, leave_out)
    before = known
    while True:
        sleep(every_s)
        now = _snapshot(paths, leave_out)
        if now == before and now != known:
            different = {path for path, _ in now.items() ^ known.items()}
            known = now
            yield sorted(different)
        before = now


def _snapshot(paths: Sequence[Path], leave_out: Path | None) -> Snapshot:
    found: Snapshot = {}
    for path in find_files(paths, leave_out)[0]:
        try:
            facts = path.stat()
        except OSError:  # gone since it was found
            continue
        found[path] = (facts.st_mtime_ns, facts.st_size)
    return found
