"""Opening an assistant where the local LLM's engine is not installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rag.assistant import Assistant
from rag.errors import SetupError


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    for name in ("rag.assistant", "rag.llms.writers", "rag.llms.local", "rag.llms.engine"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.usefixtures("no_engine")
def test_everything_but_the_local_llm_works_without_its_engine(tmp_path: Path) -> None:
    from rag.assistant import Assistant as Fresh

    with Fresh.open(tmp_path / "index", llm="extractive") as assistant:
        assert assistant.llm_name == "extractive"


@pytest.mark.usefixtures("no_engine")
def test_the_local_llm_without_its_engine_is_one_line_on_what_to_do(tmp_path: Path) -> None:
    model = tmp_path / "m.gguf"
    model.write_bytes(b"GGUF" + bytes(64))
    with pytest.raises(SetupError, match="rag install-local"):
        Assistant.open(tmp_path / "index", llm=str(model))
