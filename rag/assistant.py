"""The composition root: Assistant puts index, retriever and LLM together; `ask` is one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from llama_index.core.llms import LLM

from rag.answering import EXTRACTIVE, AbstractQueryEngine, last_of, stream_answer
from rag.answers import Answer, Hit
from rag.conversation import Turn, in_context
from rag.embedding import SentenceEmbedding
from rag.index import Index, IngestReport, discard
from rag.llms import Writer, default_llm
from rag.llms.api import api_llm
from rag.llms.local import LocalLLM
from rag.llms.model_file import assembled_model, checked_gguf
from rag.llms.writers import ChatWriter, LocalWriter
from rag.retrieval import AbstractRetriever, retrieve
from rag.settings import Settings

_RETRIEVED = 10
_VERSIONS = ("abstract-qa", "llama-index-core", "chromadb", "tantivy", "sentence-transformers")


class Assistant:
    """An open index with an LLM. Safe for several threads; close it when done.

    with Assistant.open("my-index") as assistant:
        assistant.ingest(["papers.txt"])
        print(assistant.ask("What is tau-bench?"))
    """

    def __init__(self, index: Index, settings: Settings, writer: Writer | None) -> None:
        self._index = index
        self._settings = settings
        self._writer = writer

    @classmethod
    def open(
        cls,
        index: str | Path | None = None,
        llm: str | LLM | None = None,
        *,
        what: str = "a Python process",
        create: bool = True,
    ) -> Self:
        """Open the index in a folder, made if there is none and `create` is set.

        index:  the folder; default RAG_INDEX, else one in the user's data directory
        llm:    "extractive", "local", a GGUF path, "openai:MODEL", "ollama:MODEL",
                "anthropic:MODEL" or a LlamaIndex LLM; default RAG_LLM, else the local LLM
                when it is installed, else extractive
        what:   who has the index, for the message that a second process gets

        Raises IndexMissingError, IndexBusyError, IndexMismatchError, UsageError.
        """
        named = llm if isinstance(llm, str) else None
        settings = Settings.load(index=index, llm=named)
        writer = _writer(llm if isinstance(llm, LLM) else settings.llm, settings)
        embedding = SentenceEmbedding(settings.embed_model)
        opened = Index.open(settings.index, embedding, what=what, create=create)
        return cls(opened, settings, writer)

    @property
    def llm_name(self) -> str:
        """Who writes the answers now: "extractive", "local" or the model's name."""
        return self._writer.name if self._writer else EXTRACTIVE

    def use_llm(self, llm: str | LLM) -> None:
        """Let another LLM write from the next question on. Raises UsageError."""
        if isinstance(llm, str):
            llm = Settings.load(llm=llm).llm or llm
        self._writer = _writer(llm, self._settings)

    def warm(self) -> None:
        """Load what the first question would otherwise wait for."""
        self._index.embedding.embed(["warm"])
        if isinstance(self._writer, LocalWriter):
            self._writer.warm()

    def ingest(
        self,
        paths: Sequence[str | Path],
        *,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> IngestReport:
        """Bring the index in step with files and folders; see `Index.sync`."""
        return self._index.sync([Path(path) for path in paths], progress)

    def search(self, query: str, k: int = 10) -> list[Hit]:
        """The k best abstracts, best first. Raises UsageError, IndexMissingError when empty."""
        self._index.refuse_empty()
        return list(retrieve(self._index, query, k).hits)

    def ask(self, question: str, history: Sequence[Turn] = ()) -> Answer:
        """The complete answer. `history`: earlier {"role", "content"} turns, oldest first."""
        return last_of(self.stream(question, history))

    def stream(self, question: str, history: Sequence[Turn] = ()) -> Iterator[Answer]:
        """Growing snapshots of the answer, the last complete; closing it stops the LLM."""
        self._index.refuse_empty()
        asked = in_context(question, history)
        return stream_answer(self._index, self._writer, asked, _RETRIEVED)

    def retriever(self, k: int = _RETRIEVED) -> AbstractRetriever:
        """A LlamaIndex BaseRetriever over this index."""
        return AbstractRetriever(self._index, k)

    def query_engine(self, k: int = _RETRIEVED) -> AbstractQueryEngine:
        """A LlamaIndex BaseQueryEngine with this index and LLM."""
        return AbstractQueryEngine(self._index, self._writer, k)

    def status(self) -> dict[str, Any]:
        """Plain JSON data, in the layout of `rag status --json`."""
        index = self._index
        entries = list(index.catalogue.entries())
        paths = [
            source.path
            for entry in entries
            for source in (entry.record.source, *entry.record.sources)
        ]
        return {
            "index": str(index.folder),
            "records": len(entries),
            "chunks": index.vectors.count("passage"),
            "sentences": index.vectors.count("sentence"),
            "sources": [
                {"path": path, "records": paths.count(path)} for path in sorted(set(paths))
            ],
            "embed_model": index.embedding.model_name,
            "llm": self.llm_name,
            "versions": {name: version(name) for name in _VERSIONS},
            "health": "ok" if entries else "empty",
        }

    def announce(self, url: str, token: str) -> None:
        """Write into the index's lock where this process can be asked, for other processes."""
        self._index.lock.announce(url, token)

    def close(self) -> None:
        self._index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def ask(
    question: str,
    index: str | Path | None = None,
    llm: str | LLM | None = None,
    history: Sequence[Turn] = (),
) -> Answer:
    """Answer one question from the abstracts in an index; arguments as for Assistant.

    Opens and closes the index; keep an Assistant open to ask several questions.
    """
    with closing(
        Assistant.open(index, llm, what="rag.ask in a Python process", create=False)
    ) as assistant:
        return assistant.ask(question, history)


def rebuilt(index: str | Path | None = None) -> None:
    """Delete the index in a folder, so that the next ingest builds it anew."""
    discard(Settings.load(index=index).index)


def _writer(llm: str | LLM | None, settings: Settings) -> Writer | None:
    """The writer for an LLM or its name; None is the extractive one."""
    if isinstance(llm, LocalLLM):
        return LocalWriter(llm)
    if isinstance(llm, LLM):
        return ChatWriter(llm, llm.metadata.model_name)
    name = llm or default_llm()
    if name == EXTRACTIVE:
        return None
    if name == "local":
        return LocalWriter(LocalLLM(model_path=assembled_model()))
    if name.endswith(".gguf"):
        path = checked_gguf(Path(name))
        return LocalWriter(LocalLLM(model_path=path, name=path.name), path.name)
    return ChatWriter(api_llm(name, settings), name.partition(":")[2])
