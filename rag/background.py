"""Work in a thread of its own, given out piece by piece to a reader who may leave at any time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator

from rag.answers import Answer

# How often a silent stream repeats its last snapshot, so that whoever reads it can stop it.
_HEARTBEAT_S = 0.2


def watched(work: Callable[[], Iterator[Answer]], cancel: threading.Event) -> Iterator[Answer]:
    """The snapshots of work that is done in a thread of its own; the last again in silence.

    A generator can only be stopped between two values, and an LLM that reads a long prompt
    gives none: so the silence is given out, and closing this iterator sets `cancel`.
    """
    found: queue.Queue[Answer | BaseException | None] = queue.Queue()

    def run() -> None:
        try:
            for answer in work():
                found.put(answer)
                if cancel.is_set():
                    return
            found.put(None)
        except BaseException as error:  # given to the reader, who raises it
            found.put(error)

    threading.Thread(target=run, name="answer", daemon=True).start()
    last: Answer | None = None
    try:
        while True:
            try:
                item = found.get(timeout=_HEARTBEAT_S)
            except queue.Empty:
                if last is not None:
                    yield last
                continue
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            last = item
            yield item
    finally:
        cancel.set()
