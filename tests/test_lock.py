"""IndexLock: one owner at a time, and the second is told who."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rag.errors import IndexBusyError, IndexError_
from rag.lock import IndexLock

HOLD = """
import sys
from pathlib import Path
from rag.lock import IndexLock
lock = IndexLock(Path(sys.argv[1]))
lock.acquire("the chat window")
lock.announce("http://127.0.0.1:7860", "secret")
print("held", flush=True)
sys.stdin.read()
"""


def holder(index: Path) -> subprocess.Popen[str]:
    """Another process that owns the index until its stdin closes or it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(index)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_second_owner_in_this_process_is_told_who_holds_it(tmp_path: Path) -> None:
    first, second = IndexLock(tmp_path), IndexLock(tmp_path)
    first.acquire("a Python process")
    with pytest.raises(IndexBusyError, match=f"a Python process .process {os.getpid()}, since 2"):
        second.acquire("rag ask")
    with pytest.raises(IndexBusyError):
        first.acquire("rag ask")
    first.release()
    second.acquire("rag ask")
    second.release()


def test_a_window_in_another_process_hands_out_its_address(tmp_path: Path) -> None:
    process = holder(tmp_path)
    try:
        with pytest.raises(IndexBusyError) as caught:
            IndexLock(tmp_path).acquire("rag ask")
    finally:
        process.communicate("")
    assert f"the chat window (process {process.pid}, since " in str(caught.value)
    assert (caught.value.url, caught.value.token) == ("http://127.0.0.1:7860", "secret")
    assert "secret" not in str(caught.value)


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    process = holder(tmp_path)
    process.kill()
    process.communicate()
    lock = IndexLock(tmp_path)
    lock.acquire("rag ask")
    assert json.loads((tmp_path / "owner.json").read_text())["what"] == "rag ask"
    assert json.loads((tmp_path / "owner.json").read_text())["url"] == ""
    lock.release()


def test_the_folder_is_made_and_the_owner_is_private(tmp_path: Path) -> None:
    index = tmp_path / "a" / "b"
    lock = IndexLock(index)
    lock.acquire("the chat window")
    lock.announce("http://127.0.0.1:7860", "secret")
    assert stat.S_IMODE((index / "owner.json").stat().st_mode) == 0o600
    lock.release()
    assert sorted(path.name for path in index.iterdir()) == [".lock"]


def test_another_thread_may_release(tmp_path: Path) -> None:
    lock = IndexLock(tmp_path)
    lock.acquire("a Python process")
    thread = threading.Thread(target=lock.release)
    thread.start()
    thread.join()
    other = IndexLock(tmp_path)
    other.acquire("rag ask")
    other.release()


def test_releasing_twice_does_not_free_the_lock_of_another(tmp_path: Path) -> None:
    first, second, third = (IndexLock(tmp_path) for _ in range(3))
    first.acquire("one")
    first.release()
    second.acquire("two")
    first.release()
    with pytest.raises(IndexBusyError, match="in use by two"):
        third.acquire("three")
    second.release()


@pytest.mark.parametrize("content", ["", "[]", '{"pid": 1}', '{"pid":1,"what":"x","since":"x"}'])
def test_an_owner_that_cannot_be_read_is_another_process(tmp_path: Path, content: str) -> None:
    lock = IndexLock(tmp_path)
    lock.acquire("one")
    (tmp_path / "owner.json").write_text(content)
    with pytest.raises(IndexBusyError, match="in use by another process: wait or close it"):
        IndexLock(tmp_path).acquire("two")
    lock.release()


def test_a_folder_that_cannot_be_made_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(IndexError_, match=r"cannot use the index folder .*--index"):
        IndexLock(tmp_path / "file" / "index").acquire("rag ask")


def test_announcing_needs_the_lock(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        IndexLock(tmp_path).announce("http://127.0.0.1:7860", "secret")
