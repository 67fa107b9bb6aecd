from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rag.chunking import chunk_record
from rag.records import Record, Source

WINDOW = 8


def words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def characters(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


def record(abstract: str) -> Record:
    return Record("r1", abstract, Source("a.txt", 1))


def test_passages_break_between_sentences_and_are_balanced() -> None:
    text = "One two three four. Five six seven. Eight nine ten. Eleven twelve. Thirteen it is."
    chunks = chunk_record(record(text), words, WINDOW)
    passages = [chunk.text for chunk in chunks if chunk.level == "passage"]
    assert passages == [
        "One two three four. Five six seven.",
        "Eight nine ten. Eleven twelve. Thirteen it is.",
    ]
    assert [c.ordinal for c in chunks if c.level == "sentence"] == list(range(5))


def test_a_sentence_longer_than_the_window_is_cut_between_words() -> None:
    text = " ".join(f"word{n}" for n in range(30)) + "."
    sentences = [c for c in chunk_record(record(text), words, WINDOW) if c.level == "sentence"]
    assert " ".join(chunk.text for chunk in sentences) == text
    assert max(words([chunk.text for chunk in sentences])) <= WINDOW


@given(st.text(alphabet=st.sampled_from("ab C.\n。?"), min_size=1, max_size=200))
def test_every_level_covers_the_abstract_with_exact_slices_that_fit(text: str) -> None:
    chunks = chunk_record(record(text), characters, WINDOW)
    for level in ("passage", "sentence"):
        spans = [(c.start, c.end) for c in chunks if c.level == level]
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
        covered = {i for start, end in spans for i in range(start, end)}
        assert all(text[i].isspace() for i in range(len(text)) if i not in covered)
    assert all(chunk.text == text[chunk.start : chunk.end] for chunk in chunks)
    assert all(len(c.text) <= WINDOW for c in chunks if c.level == "sentence")
