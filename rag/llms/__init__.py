"""LLMs: what writes an answer from evidence.

    Writer         the port: evidence to text, implemented by the extractive and LLM writers
    model_file     the local model's file, assembled from packages
    engine, local  a GGUF model in this process: llama.cpp, and LlamaIndex over it
    api            OpenAI-compatible servers
    install        preparing the local LLM behind a running window; probe, its last check

Importing this package loads no LLM and no LlamaIndex.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, Protocol

from rag.llms.model_file import finished_model, model_parts_installed
from rag.llms.probe import known_to_fail

if TYPE_CHECKING:  # it brings the vector store
    from rag.evidence import Selected


class Writer(Protocol):
    """Turns evidence into a draft."""

    @property
    def name(self) -> str:
        """Who writes: "extractive", "local" or the model's name; it becomes `Answer.llm`."""

    def complete(self, message: str, max_tokens: int, cancel: threading.Event) -> str:
        """The reply to one message, at most about so many tokens; what there is of it when
        `cancel` is set. LLMError: the LLM fails."""

    def write(self, question: str, selected: Selected, cancel: threading.Event) -> Iterator[str]:
        """The draft, piece by piece; `[n]` in it means evidence item n, counted from 1.

        A draft that is NOT FOUND refuses; a line that begins with MISSING: names what the
        evidence does not state. Ends early once `cancel` is set. LLMError: the LLM fails.
        """


def local_available() -> bool:
    """Whether the local LLM can be used here, going by what is installed. Loads nothing."""
    return (
        importlib.util.find_spec("llama_cpp") is not None
        and (finished_model() is not None or model_parts_installed())
        and not known_to_fail()
    )


def ready_local() -> bool:
    """Whether the local LLM can write at once: installed, and its file assembled."""
    return local_available() and finished_model() is not None


def default_llm() -> Literal["local", "extractive"]:
    """The LLM used when the user names none."""
    return "local" if local_available() else "extractive"
