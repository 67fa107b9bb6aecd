"""Lease: one machine writes the index on a Chroma server at a time; others learn who.

Chroma has no locks, but adding a row whose id is there already changes nothing. A lease is a
row with a number; whoever adds the next number first has it, once the one before has ended.

    lease-7  {"lease": 7, "token", "holder", "since", "expires"}   expires: the server's clock, ns

A lease ends when it is given back, or when it has not been renewed for a minute.
"""

from __future__ import annotations

import os
import socket
import threading
import uuid
from datetime import UTC, datetime
from typing import Any

from rag.errors import IndexBusyError, ServerError
from rag.server import ChromaServer

_LASTS_NS = 60_000_000_000
_RENEWED_S = 15.0
# Chroma wants a vector for each row; these rows are never searched.
NO_VECTOR = [1.0, 0.0]


class Lease:
    """The right to write. Raises IndexBusyError at once, naming the holder, when another has it."""

    def __init__(self, server: ChromaServer, rows: Any, what: str) -> None:
        self._server = server
        self._rows = rows
        self._token = uuid.uuid4().hex
        self._number = self._taken(what)
        self._ended = threading.Event()
        self._renewing = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._renewing.start()

    def check(self) -> None:
        """Raise IndexBusyError when it has been lost, as this machine was asleep or cut off."""
        last = self._last()
        if last is None or last["token"] != self._token:
            raise IndexBusyError(
                f"the right to write the index at {self._server.url} was lost, as this process was "
                "stopped or cut off for a minute: run the command again, it continues"
            )

    def release(self) -> None:
        self._ended.set()
        self._renewing.join()
        self._set_end(0)

    def _taken(self, what: str) -> int:
        last = self._last()
        now = self._server.now()
        if last is not None and last["expires"] > now:
            raise self._busy(last)
        number = last["lease"] + 1 if last else 1
        facts = {
            "lease": number,
            "token": self._token,
            "holder": f"{what} (process {os.getpid()} on {socket.gethostname()})",
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
            "expires": now + _LASTS_NS,
        }
        self._server.call(
            lambda: self._rows.add(ids=[_id(number)], embeddings=[NO_VECTOR], metadatas=[facts])
        )
        last = self._last()
        if last is None or last["token"] != self._token:
            raise self._busy(last)
        older = [_id(n) for n in self._numbers() if n < number]
        if older:
            self._server.call(lambda: self._rows.delete(ids=older))
        return number

    def _last(self) -> dict[str, Any] | None:
        leases = self._leases()
        return max(leases, key=lambda lease: int(lease["lease"]), default=None)

    def _numbers(self) -> list[int]:
        return [int(lease["lease"]) for lease in self._leases()]

    def _leases(self) -> list[dict[str, Any]]:
        found = self._server.call(
            lambda: self._rows.get(where={"lease": {"$gt": 0}}, include=["metadatas"])
        )
        return list(found["metadatas"])

    def _renew(self) -> None:
        while not self._ended.wait(_RENEWED_S):
            try:
                self._set_end(self._server.now() + _LASTS_NS)
            except ServerError:
                continue  # the next call of the writer says so

    def _set_end(self, when: int) -> None:
        self._server.call(
            lambda: self._rows.update(ids=[_id(self._number)], metadatas=[{"expires": when}])
        )

    def _busy(self, lease: dict[str, Any] | None) -> IndexBusyError:
        holder = lease["holder"] if lease else "another client"
        since = f", since {lease['since']}" if lease else ""
        return IndexBusyError(
            f"the index at {self._server.url} ({self._server.prefix}) is being written by "
            f"{holder}{since}: wait until it is done"
        )


def _id(number: int) -> str:
    return f"lease-{number}"
