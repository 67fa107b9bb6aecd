"""Shared fixtures. Tests that use `embedding` load real weights: mark them slow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rag.assistant import Assistant
from rag.embedding import SentenceEmbedding
from rag.settings import DEFAULT_EMBED_MODEL

SAMPLE = Path(__file__).parent.parent / "data"


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test sees the settings, the keys or the index of whoever runs it."""
    import os

    for name in list(os.environ):
        if name.startswith("RAG_") or name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("RAG_INDEX", str(tmp_path / "default-index"))


@pytest.fixture(scope="session")
def embedding() -> SentenceEmbedding:
    """The packaged embedding model, loaded once."""
    return SentenceEmbedding(DEFAULT_EMBED_MODEL)


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Assistant]:
    """An extractive assistant over the 57 sample abstracts. Not to be changed by tests."""
    folder = tmp_path_factory.mktemp("sample") / "index"
    with Assistant.open(folder, llm="extractive") as assistant:
        assistant.ingest([SAMPLE])
        yield assistant
