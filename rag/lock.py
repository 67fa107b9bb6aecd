"""IndexLock: one process writes an index at a time, and whoever comes second learns who.

One window serves it at a time, too, and says there where it can be asked. Readers need no lock.
The operating system drops a lock when its process dies.

    <index>/.lock        held by the process that writes, else free
    <index>/owner.json   0600: {"pid", "what", "since", "url", "token"}; stale when not held
    <index>/.window.lock, window.json   the same of the window
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import filelock

from rag.errors import IndexBusyError, IndexError_

Role = Literal["writer", "window"]
_LOCK: dict[Role, str] = {"writer": ".lock", "window": ".window.lock"}
_OWNER: dict[Role, str] = {"writer": "owner.json", "window": "window.json"}


@dataclass(frozen=True, slots=True)
class _Owner:
    """Who holds the lock. `since` is UTC in ISO 8601; `url` and `token` may be empty."""

    pid: int
    what: str
    since: str
    url: str = ""
    token: str = ""


class IndexLock:
    """The right to write the index in a folder, or to serve it as the window. Not re-entrant;
    any thread may release it."""

    def __init__(self, index: Path, role: Role = "writer") -> None:
        self._index = index
        self._file = index / _OWNER[role]
        # Not thread-local: the window closes the index from another thread than it opened it.
        self._lock = filelock.FileLock(index / _LOCK[role], timeout=0, thread_local=False)
        self._owner: _Owner | None = None

    def acquire(self, what: str) -> None:
        """Take the lock for `what`, such as "rag ingest", creating the folder if need be.

        Raises IndexBusyError at once when it is held, by this process too, and IndexError_
        when the folder cannot be written.
        """
        if self._owner is not None:
            raise _busy(self._index, self._owner)
        owner = _Owner(os.getpid(), what, datetime.now(UTC).isoformat(timespec="seconds"))
        try:
            self._index.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
        except filelock.Timeout:
            raise _busy(self._index, _read_owner(self._file)) from None
        except OSError as error:
            raise _unwritable(self._index, error) from error
        try:
            self._write_owner(owner)
        except IndexError_:
            self._lock.release()
            raise

    def announce(self, url: str, token: str) -> None:
        """Tell others that this process answers for the index at `url`, given `token`."""
        if self._owner is None:
            raise RuntimeError("announce() needs an acquired lock")
        self._write_owner(replace(self._owner, url=url, token=token))

    def release(self) -> None:
        """Give the lock up; does nothing when it is not held."""
        if self._owner is None:
            return
        self._owner = None
        self._file.unlink(missing_ok=True)
        self._lock.release()

    def _write_owner(self, owner: _Owner) -> None:
        try:
            _replace_file(self._file, json.dumps(asdict(owner)))
        except OSError as error:
            raise _unwritable(self._index, error) from error
        self._owner = owner


def refuse_if_busy(index: Path, role: Role = "writer") -> None:
    """Raise IndexBusyError when a process writes the index in this folder, or serves it as a
    window that can be asked. Makes no folder, and does not take the lock from anyone."""
    file = index / _OWNER[role]
    owner = _read_owner(file)
    if owner is None or (role == "window" and not owner.url):
        return
    lock = filelock.FileLock(index / _LOCK[role], timeout=0, thread_local=False)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise _busy(index, owner) from None
    except OSError as error:
        raise _unwritable(index, error) from error
    file.unlink(missing_ok=True)  # left by a process that was killed
    lock.release()


def _replace_file(path: Path, text: str) -> None:
    # mkstemp makes the file 0600 from the start, so the token is never readable by others.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name + ".")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def _read_owner(file: Path) -> _Owner | None:
    """The owner on record; None when it has not written itself down yet."""
    try:
        owner = _Owner(**json.loads(file.read_text(encoding="utf-8")))
        datetime.fromisoformat(owner.since)
    except (OSError, ValueError, TypeError):
        return None
    return owner


def _busy(index: Path, owner: _Owner | None) -> IndexBusyError:
    advice = "wait or close it, or choose another folder with --index"
    if owner is None:
        return IndexBusyError(f"the index at {index} is in use by another process: {advice}")
    since = datetime.fromisoformat(owner.since).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    return IndexBusyError(
        f"the index at {index} is in use by {owner.what} (process {owner.pid}, since {since}): "
        + advice,
        owner.url,
        owner.token,
    )


def _unwritable(index: Path, error: OSError) -> IndexError_:
    reason = error.strerror or str(error)
    return IndexError_(
        f"cannot use the index folder {index}: {reason}; "
        "make it writable, or choose another with --index"
    )
