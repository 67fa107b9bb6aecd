"""Readers and a writer of one index, in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from word_vectors import WordVectors

from rag.errors import IndexBusyError
from rag.index import Index
from rag.retrieval import retrieve
from rag.snapshot import Snapshot

HERE = Path(__file__).parent

# Prints what it finds, over and over, as long as the index is there.
READER = """
import json, sys
from pathlib import Path
from rag.index import Index
from rag.retrieval import retrieve
from word_vectors import WordVectors

with Index.open(Path(sys.argv[1]), WordVectors("words"), what="a reader") as index:
    while not Path(sys.argv[2]).exists():
        hits = retrieve(index, "studied", 100).hits
        print(json.dumps(sorted(hit.record.abstract for hit in hits)), flush=True)
"""

# Ingests, and waits for a line on its standard input when it has embedded two records.
WRITER = """
import sys
from pathlib import Path
import rag.changes
from rag.index import Index
from word_vectors import WordVectors

rag.changes._BATCH = 1

def wait(stage, done, total):
    if stage == "embedding" and done == 2:
        print("waiting", flush=True)
        sys.stdin.readline()

with Index.open(Path(sys.argv[1]), WordVectors("words"), what="a slow writer") as index:
    index.sync([Path(sys.argv[2])], wait)
"""


def started(script: str, *arguments: Path | str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(HERE)!r})\n{script}"]
        + [str(argument) for argument in arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@contextmanager
def running(script: str, *arguments: Path | str) -> Iterator[subprocess.Popen[str]]:
    process = started(script, *arguments)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    found = process.stdout.readline().strip()
    assert found, f"the process ended with {process.wait()}"
    return found


def opened(folder: Path) -> Index:
    return Index.open(folder, WordVectors("words"), what="a test", create=True)


def write(path: Path, word: str, numbers: range) -> set[str]:
    """A file of abstracts with this word, each under its own DOI; the abstracts."""
    texts = {n: f"Topic{n} is studied with {word}. It ends well." for n in numbers}
    lines = (
        json.dumps({"title": f"Paper {n}", "abstract": text, "doi": f"10.1/{n}"}) + "\n"
        for n, text in texts.items()
    )
    path.write_text("".join(lines), "utf-8")
    return set(texts.values())


def found(index: Index | Snapshot) -> set[str]:
    return {hit.record.abstract for hit in retrieve(index, "studied", 100).hits}


def generations(folder: Path) -> list[str]:
    return [path.name for path in (folder / "generations").iterdir()]


def until(process: subprocess.Popen[str], wanted: set[str], seen: Callable[[Any], None]) -> None:
    """Read what a reader finds up to where it finds just this."""
    while True:
        texts = set(json.loads(line(process)))
        seen(texts)
        if texts == wanted:
            return


@pytest.mark.slow
def test_readers_see_the_old_or_the_new_corpus_and_nothing_else(tmp_path: Path) -> None:
    folder, end = tmp_path / "i", tmp_path / "end"
    path = tmp_path / "a.jsonl"
    old = write(path, "alpha", range(30))
    with opened(folder) as index:
        index.sync([path])
        with running(READER, folder, end) as one, running(READER, folder, end) as other:
            corpora: list[set[str]] = []
            for reader in (one, other):
                until(reader, old, corpora.append)
            new = write(path, "beta", range(15, 45))
            index.sync([path])
            for reader in (one, other):
                until(reader, new, corpora.append)
            newest = write(path, "gamma", range(40, 60))
            index.sync([path])
            for reader in (one, other):
                until(reader, newest, corpora.append)
            end.touch()
            for reader in (one, other):
                rest, _ = reader.communicate()
                corpora += [set(json.loads(texts)) for texts in rest.splitlines()]
                assert reader.returncode == 0
    assert all(corpus in (old, new, newest) for corpus in corpora)


@pytest.mark.slow
def test_a_second_writer_is_refused_and_readers_go_on(tmp_path: Path) -> None:
    folder, path = tmp_path / "i", tmp_path / "a.jsonl"
    old = write(path, "alpha", range(3))
    with opened(folder) as index:
        index.sync([path])
        new = write(path, "beta", range(2, 8))
        with running(WRITER, folder, path) as writer:
            assert line(writer) == "waiting"
            with pytest.raises(
                IndexBusyError, match=rf"a slow writer \(process {writer.pid}, sinc"
            ):
                index.sync([path])
            with pytest.raises(IndexBusyError, match="a slow writer"):
                index.forget([str(path)])
            assert index.sync([path], dry_run=True).records == 6
            assert found(index) == old
            writer.communicate("\n")
            assert writer.returncode == 0
        assert found(index) == new
        assert len(generations(folder)) <= 2
        assert index.sync([path]).unchanged == 6
        assert len(generations(folder)) == 1


@pytest.mark.slow
def test_a_killed_writer_leaves_readers_alone_and_its_work_is_taken_up(tmp_path: Path) -> None:
    folder, papers = tmp_path / "i", tmp_path / "papers"
    papers.mkdir()
    old = write(papers / "a.jsonl", "alpha", range(2))
    with opened(folder) as index:
        index.sync([papers])
        new = old | write(papers / "b.jsonl", "beta", range(2, 7))
        with running(WRITER, folder, papers) as writer:
            assert line(writer) == "waiting"
        assert found(index) == old
        assert isinstance(index.embedding, WordVectors)
        index.embedding.texts = []
        report = index.sync([papers])
        assert (report.added, report.unchanged, report.records) == (5, 2, 7)
        embedded = " ".join(index.embedding.texts)
        assert [f"Topic{n} " in embedded for n in range(7)] == [False] * 4 + [True] * 3
        assert found(index) == new
        assert len(generations(folder)) == 1


def test_a_pinned_corpus_stays_until_it_is_let_go(tmp_path: Path) -> None:
    folder, path = tmp_path / "i", tmp_path / "a.jsonl"
    old = write(path, "alpha", range(5))
    with opened(folder) as reader, opened(folder) as writer:
        writer.sync([path])
        with reader.pinned() as pinned:
            for word in ("beta", "gamma"):
                new = write(path, word, range(3, 9))
                writer.sync([path])
            assert found(pinned) == old
            record = retrieve(pinned, "Topic1", 1).hits[0].record
            assert len(pinned.sentences(record)) == 2
            assert len(generations(folder)) == 2
        assert found(reader) == new
        writer.sync([path])
        assert len(generations(folder)) == 1


def test_a_sync_that_changes_nothing_copies_nothing(tmp_path: Path) -> None:
    folder, path = tmp_path / "i", tmp_path / "a.jsonl"
    write(path, "alpha", range(5))
    with opened(folder) as index:
        index.sync([path])
        before = generations(folder)
        index.sync([path])
        assert generations(folder) == before
