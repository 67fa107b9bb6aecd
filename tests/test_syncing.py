"""The index in step with what files hold: merging, edits, removal, filters.

On real stores, with vectors of counted words in place of a model, which would be slow.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from word_vectors import WordVectors

from rag.answering import Options, last_of, stream_answer
from rag.errors import UsageError
from rag.filters import Filters
from rag.index import Index, preview
from rag.retrieval import retrieve


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index.open(tmp_path / "i", WordVectors("words"), what="a test", create=True) as index:
        yield index


def embedded(index: Index) -> list[str]:
    """What was embedded since this was last asked."""
    assert isinstance(index.embedding, WordVectors)
    texts, index.embedding.texts = index.embedding.texts, []
    return texts


def paper(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "title": f"Title {number}",
        "abstract": f"Topic{number} is studied. It ends well{number}.",
        "authors": ["Wei Zhang", f"Jun Li{number}"],
        "year": 2000 + number,
        "venue": "ICLR",
        "keywords": ["graph theory"],
        **fields,
    }


def write(path: Path, *papers: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in papers), "utf-8")
    return path


def titles(index: Index, query: str = "studied", **criteria: Any) -> set[str]:
    return {hit.record.title for hit in retrieve(index, query, 100, Filters.of(**criteria)).hits}


def counts(report: Any) -> tuple[int, ...]:
    return (report.added, report.updated, report.unchanged, report.removed, report.records)


def is_sound(index: Index) -> bool:
    """Both stores hold the same chunks, and each passage is a slice of its abstract."""
    entries = list(index.catalogue.entries())
    for level, number in (("passage", "passages"), ("sentence", "sentences")):
        assert index.vectors.count(level) == sum(getattr(e, number) for e in entries)  # type: ignore[arg-type]
    for entry in entries:
        for sentence in index.sentences(entry.record):
            text = entry.record.abstract[sentence.start : sentence.end]
            np.testing.assert_allclose(sentence.vector, index.embedding.embed([text])[0], atol=1e-5)
    return index.manifest()["records"] == len(entries) == len(index)


def test_an_edit_under_the_same_doi_replaces_every_chunk(index: Index, tmp_path: Path) -> None:
    long = " ".join(f"Old sentence {n} about walruses lies here." for n in range(20))
    path = write(tmp_path / "a.jsonl", paper(1, doi="10.1/x", abstract=long), paper(2))
    index.sync([path])
    embedded(index)
    write(path, paper(1, doi="10.1/x", abstract="New words about otters."), paper(2))
    assert counts(index.sync([path])) == (0, 1, 1, 0, 2)
    assert embedded(index) == ["Title 1\nNew words about otters.", "New words about otters."]
    assert index.catalogue.search("walruses", 5) == []
    assert is_sound(index)


def test_an_edited_title_is_embedded_again_and_other_fields_are_not(
    index: Index, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", paper(1, doi="10.1/x"))
    index.sync([path])
    embedded(index)
    write(path, paper(1, doi="10.1/x", year=1999, venue="Nature", keywords=[]))
    assert counts(index.sync([path])) == (0, 1, 0, 0, 1)
    assert embedded(index) == []
    assert titles(index, year=1999, venue="nature") == {"Title 1"}
    assert titles(index, year=2001) == titles(index, venue="ICLR") == set()
    assert titles(index, keyword="graph") == set()
    embedded(index)
    write(path, paper(1, doi="10.1/x", title="Another"))
    assert index.sync([path]).updated == 1
    assert embedded(index)[0].startswith("Another\nTopic1")
    assert is_sound(index)


def test_entries_that_only_moved_are_unchanged(index: Index, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", paper(1), paper(2))
    index.sync([path])
    embedded(index)
    write(path, paper(3), paper(1), paper(2))
    assert counts(index.sync([path])) == (1, 0, 2, 0, 3)
    assert {text[:7] for text in embedded(index)} == {"Title 3", "Topic3 ", "It ends"}
    (hit,) = retrieve(index, "Topic2", 1).hits
    assert hit.record.source.ordinal == 3


def test_one_paper_of_two_files_is_merged_and_parts_when_they_differ_again(
    index: Index, tmp_path: Path
) -> None:
    a = write(tmp_path / "a.jsonl", paper(1, venue="", doi="10.1/x"), paper(2))
    b = write(tmp_path / "b.jsonl", paper(1, year=None, abstract="Short. Text.", keywords=[]))
    report = index.sync([a, b])
    assert (report.read, *counts(report)) == (3, 2, 0, 0, 0, 2)
    assert report.skipped[0].reason.startswith(f"the same paper as {a} entry 1; kept once")
    record = retrieve(index, "Topic1", 1).hits[0].record
    assert (record.venue, record.year, record.doi) == ("ICLR", 2001, "10.1/x")
    assert [s.path for s in (record.source, *record.sources)] == [str(a), str(b)]
    assert titles(index, source=b) == {"Title 1"}
    # The other file alone is read again: nothing of the first is lost.
    assert counts(index.sync([b])) == (0, 0, 1, 0, 2)
    write(a, paper(2))
    assert counts(index.sync([a])) == (0, 1, 1, 0, 2)
    record = retrieve(index, "Short text", 1).hits[0].record
    assert (record.abstract, record.year, record.source.path) == ("Short. Text.", None, str(b))
    assert is_sound(index)


def test_keep_missing_keeps_a_paper_whose_place_another_one_took(
    index: Index, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    write(path, paper(1), paper(2))
    index.sync([path])
    write(path, paper(1), paper(5))
    assert counts(index.sync([path], keep_missing=True)) == (1, 0, 1, 0, 3)


def test_what_is_missing_is_kept_on_request_and_edits_still_replace(
    index: Index, tmp_path: Path
) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    a, b = folder / "a.jsonl", folder / "b.jsonl"
    write(a, paper(1), paper(2), paper(3))
    write(b, paper(4))
    index.sync([folder])
    b.unlink()
    write(a, paper(2), paper(3, abstract="Edited."))
    assert counts(index.sync([folder], keep_missing=True)) == (0, 1, 1, 0, 4)
    write(a, paper(2), paper(3, abstract="Edited again."))
    assert counts(index.sync([folder], keep_missing=True)) == (0, 1, 1, 0, 4)
    assert counts(index.sync([folder])) == (0, 0, 2, 2, 2)
    assert is_sound(index)


def test_a_dry_run_tells_and_does_nothing(index: Index, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", paper(1, doi="10.1/x"), paper(2), paper(3))
    index.sync([path])
    before = index.manifest(), embedded(index) and titles(index)
    write(path, paper(1, doi="10.1/x", abstract="New."), paper(2), paper(4), paper(5))
    embedded(index)
    told = index.sync([path], dry_run=True)
    assert (index.manifest(), titles(index)) == before
    assert embedded(index) == ["studied"]
    assert index.sync([path]) == told
    assert counts(told) == (1, 2, 1, 0, 4)


def test_a_preview_makes_no_index(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", paper(1), paper(1), {"title": "Bare"})
    report = preview([path])
    assert (report.read, report.added, report.records, len(report.skipped)) == (2, 1, 1, 2)
    assert [each.name for each in tmp_path.iterdir()] == ["a.jsonl"]


def test_removing_a_source_removes_what_stands_nowhere_else(index: Index, tmp_path: Path) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    write(folder / "a.jsonl", paper(1), paper(2))
    b = write(tmp_path / "b.jsonl", paper(2), paper(3))
    index.sync([folder, b])
    embedded(index)
    with pytest.raises(
        UsageError, match=r"nothing was read from .*a\.json; its sources are .*a\.jsonl"
    ):
        index.forget([str(folder / "a.json")])
    assert counts(index.forget([str(folder)])) == (0, 0, 0, 1, 2)
    assert embedded(index) == []
    assert index.sources() == {str(b): 2}
    assert titles(index, source=folder) == set()
    assert is_sound(index)
    assert index.forget([str(b)]).records == 0
    assert index.vectors.count("passage") == 0


def test_an_archive_is_one_source_of_many_files(index: Index, tmp_path: Path) -> None:
    archive = tmp_path / "papers.zip"

    def pack(**files: list[dict[str, Any]]) -> None:
        with zipfile.ZipFile(archive, "w") as packed:
            for name, group in files.items():
                packed.writestr(f"{name}.jsonl", "".join(json.dumps(p) + "\n" for p in group))

    pack(a=[paper(1)], b=[paper(2)])
    index.sync([archive])
    assert index.sources() == {f"{archive}/a.jsonl": 1, f"{archive}/b.jsonl": 1}
    pack(a=[paper(1)])
    assert counts(index.sync([archive])) == (0, 0, 1, 1, 1)
    archive.write_bytes(archive.read_bytes()[:40])
    write(tmp_path / "c.jsonl", paper(3))
    report = index.sync([tmp_path])
    assert (report.records, report.removed) == (2, 0)
    assert any(str(archive) in skip.path for skip in report.skipped)
    assert counts(index.forget([str(archive)])) == (0, 0, 0, 1, 1)


def test_filters_are_part_of_the_search_in_both_stores(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = [
        paper(n % 20, title=f"Crowd {n}", abstract=f"Walrus {n} a{n * 7} b{n % 50}.")
        for n in range(300)
    ]
    far = paper(7, title="Far", abstract="Quite other words.", authors=["Émile Ünal"], year=1987)
    bare = {"title": "Bare", "abstract": "A walrus without a year."}
    index.sync([write(tmp_path / "a.jsonl", *crowd, far, bare)])
    assert titles(index, "walrus", author="unal") == {"Far"}
    assert titles(index, "walrus", year="-1990") == {"Far"}
    assert len(titles(index, "walrus", year="2003-2004")) == 30
    assert titles(index, "walrus", year="2003", author="W. Zhang", venue="iclr") == {
        f"Crowd {n}" for n in range(3, 300, 20)
    }
    assert titles(index, "walrus", source="other.jsonl") == set()
    assert "Bare" not in titles(index, "walrus year", keyword="graph theory")
    admitted = Filters.of(year="2003-2004")
    lexical = dict(index.catalogue.search("walrus", 400, admitted))
    plain = dict(index.catalogue.search("walrus", 400))
    assert len(lexical) == 30
    assert all(plain[id_] == pytest.approx(score) for id_, score in lexical.items())
    vector = index.embedding.embed(["walrus"])[0]
    with index.pinned() as snapshot:
        one_by_one = snapshot.nearest("passage", vector, 400, admitted)
        monkeypatch.setattr("rag.snapshot._FEW", 0)
        among_the_nearest = snapshot.nearest("passage", vector, 5, admitted)
        assert {id_ for id_, _ in one_by_one} == set(lexical)
        assert snapshot.nearest("passage", vector, 400, Filters.of(year="1900")) == []
    for found, expected in zip(among_the_nearest, one_by_one, strict=False):
        assert found[0] in lexical
        assert found[1] == pytest.approx(expected[1], abs=1e-5)
    assert len(among_the_nearest) == 5


def test_a_question_is_answered_from_what_the_filters_admit(index: Index, tmp_path: Path) -> None:
    index.sync([write(tmp_path / "a.jsonl", paper(1), paper(2))])
    question = "What is studied?"
    only = Options(filters=Filters.of(year=2002))
    answer = last_of(stream_answer(index, None, question, (), only))
    assert {hit.record.title for hit in answer.retrieved} == {"Title 2"}
    assert answer.warnings == ()
    only = Options(filters=Filters.of(venue="Nature"))
    answer = last_of(stream_answer(index, None, question, (), only))
    assert (answer.answerable, answer.retrieved) == (False, ())
    assert answer.warnings == ("no abstract fulfils the filters",)


def test_a_passage_is_embedded_under_its_title_within_the_window(
    index: Index, tmp_path: Path
) -> None:
    abstract = " ".join(f"Sentence {n} has five words." for n in range(30))
    index.sync([write(tmp_path / "a.jsonl", paper(1, title="Tall " * 60, abstract=abstract))])
    texts = embedded(index)
    assert max(index.embedding.count_tokens(texts)) <= index.embedding.window
    headed = [text for text in texts if "\n" in text]
    assert len(headed) == index.vectors.count("passage") > 4
    assert all(text.startswith("Tall Tall") for text in headed)
    assert is_sound(index)


def test_titles_alone_are_taken_on_request(index: Index, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", paper(1), {"title": "Only walruses", "year": 2020})
    assert index.sync([path]).records == 1
    assert index.sync([path], titles_suffice=True).records == 2
    assert titles(index, "walruses", year=2020) == {"Only walruses"}


def test_the_files_need_not_fit_into_memory_at_once(index: Index, tmp_path: Path) -> None:
    """Only a version's facts stay in memory; texts are put aside on disk and read back."""
    from rag.reading import Reading

    path = write(tmp_path / "a.jsonl", *(paper(n, abstract="x y. " * 4000) for n in range(50)))
    reading = Reading([path], None)
    reading.run()
    try:
        assert reading.record(reading.versions[49]).title == "Title 49"
        assert sum(len(repr(version)) for version in reading.versions) < 50 * 400
    finally:
        reading.close()
