"""Ask a collection of research-paper abstracts, and get answers with checkable citations.

from rag import ask
print(ask("What is tau-bench?"))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rag.answers import Answer, Citation, Evidence, Hit
from rag.errors import RagError
from rag.records import Record, Source

if TYPE_CHECKING:
    from rag.assistant import Assistant, ask

__all__ = [
    "Answer", "Assistant", "Citation", "Evidence", "Hit", "RagError", "Record", "Source", "ask",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # LlamaIndex and Chroma take seconds to import, so `import rag` and `rag --help` wait
    # for them only when the assistant itself is wanted.
    if name in ("Assistant", "ask"):
        return getattr(import_module("rag.assistant"), name)
    raise AttributeError(f"module 'rag' has no attribute {name!r}")
