"""The composition root: Assistant puts index, retriever and LLM together; `ask` is one call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from rag.answering import EXTRACTIVE, Options, last_of, stream_answer
from rag.answers import Answer, Hit
from rag.changes import IngestReport
from rag.conversation import Turn
from rag.embedding import SentenceEmbedding
from rag.errors import SetupError, UsageError
from rag.filters import Criteria, Filters
from rag.index import Index, discard
from rag.index import preview as preview_of
from rag.llms import Writer, default_llm
from rag.llms.model_file import assembled_model, checked_gguf
from rag.lock import IndexLock, refuse_if_busy
from rag.places import store_of
from rag.reading import is_there
from rag.records import Record
from rag.retrieval import retrieve
from rag.settings import Settings

# LlamaIndex takes seconds to import, which `rag search` and extractive answers need not wait
# for: it is imported by what builds an LLM or is asked for one of its interfaces.
if TYPE_CHECKING:
    from llama_index.core.llms import LLM

    from rag.llamaindex import AbstractEmbedding, AbstractQueryEngine, AbstractRetriever

_RETRIEVED = 10
_VERSIONS = (
    "abstract-qa",
    "llama-index-core",
    "chromadb",
    "tantivy",
    "onnxruntime",
    "sentence-transformers",
)
_IDS_NAMED = 3


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
        # One change of the index at a time; searching goes on meanwhile.
        self._changing = threading.Lock()
        self._window = IndexLock(index.folder, "window")

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
        what:   who changes the index, for the message that another writer gets meanwhile

        Raises IndexMissingError, IndexMismatchError, ServerError, UsageError.
        """
        named = llm is None or isinstance(llm, str)
        settings = Settings.load(index=index, llm=llm if named else None)
        writer = _writer(settings.llm if named else llm, settings)
        embedding = SentenceEmbedding(settings.embed_model)
        opened = Index.open(store_of(settings), embedding, what=what, create=create)
        return cls(opened, settings, writer)

    @property
    def llm_name(self) -> str:
        """Who writes the answers now: "extractive", "local" or the model's name."""
        return self._writer.name if self._writer else EXTRACTIVE

    @property
    def llm(self) -> LLM | None:
        """The LLM that writes the answers now, None when they are extractive."""
        llm: LLM | None = getattr(self._writer, "llm", None)
        return llm

    def use_llm(self, llm: str | LLM) -> None:
        """Let another LLM write from the next question on. Raises UsageError."""
        if isinstance(llm, str):
            llm = Settings.load(llm=llm).llm or llm
        self._writer = _writer(llm, self._settings)

    def warm(self) -> None:
        """Load what the first question would otherwise wait for."""
        self._index.embedding.embed_query("warm")
        if self._writer is None:
            return
        from rag.llms.writers import LocalWriter

        if isinstance(self._writer, LocalWriter):
            self._writer.warm()

    def ingest(
        self,
        paths: str | Path | Sequence[str | Path],
        *,
        progress: Callable[[str, int, int], None] | None = None,
        dry_run: bool = False,
        keep_missing: bool = False,
        titles_suffice: bool = False,
    ) -> IngestReport:
        """Bring the index in step with files and folders; see `Index.sync`.

        Searches, here and in other processes, find what was there before until it is done.
        Raises IndexBusyError at once when another process changes the index.
        """
        with self._changing:
            if not dry_run:
                self._index.embedding.prepare(progress)
            return self._index.sync(
                [Path(path) for path in _several(paths)],
                progress,
                dry_run=dry_run,
                keep_missing=keep_missing,
                titles_suffice=titles_suffice,
            )

    def remove(self, sources: str | Path | Sequence[str | Path]) -> IngestReport:
        """Remove what was read from these files or folders, and nowhere else.

        Raises UsageError, naming the near ones, for one from which nothing was read, and
        IndexBusyError when another process changes the index.
        """
        with self._changing:
            return self._index.forget([str(source) for source in _several(sources)])

    def search(self, query: str, k: int = 10, **filters: Unpack[Criteria]) -> list[Hit]:
        """The k best abstracts that the filters admit, best first.

        Filters: year=2021, "2019-2021", "2019-" or "-2021", venue, author, keyword, source;
        see `rag.filters.Filters`. Raises UsageError, IndexMissingError when empty.
        """
        self._index.refuse_empty()
        return list(retrieve(self._index, query, k, Filters.of(**filters)).hits)

    def ask(
        self, question: str, history: Sequence[Turn] = (), **filters: Unpack[Criteria]
    ) -> Answer:
        """The complete answer. `history`: earlier {"role", "content"} turns, oldest first.
        Filters as for `search`."""
        return last_of(self.stream(question, history, **filters))

    def stream(
        self, question: str, history: Sequence[Turn] = (), **filters: Unpack[Criteria]
    ) -> Iterator[Answer]:
        """Growing snapshots of the answer, the last complete; closing it stops the LLM."""
        self._index.refuse_empty()
        options = Options(_RETRIEVED, Filters.of(**filters), self._settings.unsupported)
        return stream_answer(self._index, self._writer, question, history, options)

    def records(self) -> Iterator[Record]:
        """Every abstract of the index, in no particular order."""
        return (entry.record for entry in self._index.catalogue.entries())

    def export(self, format: str, ids: Sequence[str] | None = None) -> str:
        """Abstracts as "bibtex", "ris" or "csl-json" text: those with these ids, in their
        order, else every one, in the order of their places.

        Raises UsageError, naming them, for ids that the index does not hold.
        """
        # Imported here: its parsers take most of a second, which no search need wait for.
        from rag.exporting import export

        if ids is None:
            every = sorted(self.records(), key=lambda r: (r.source.path, r.source.ordinal, r.id))
            return export(format, every)
        return export(format, self._records_of(ids))

    def _records_of(self, ids: Sequence[str]) -> list[Record]:
        found = self._index.catalogue.get(list(dict.fromkeys(ids)))
        if unknown := [id_ for id_ in dict.fromkeys(ids) if id_ not in found]:
            named = ", ".join(map(repr, unknown[:_IDS_NAMED]))
            more = len(unknown) - _IDS_NAMED
            raise UsageError(
                f"no abstract has the id {named}{f' and {more} more' if more > 0 else ''}: "
                "take ids from `rag search --json`"
            )
        return [found[id_].record for id_ in dict.fromkeys(ids)]

    @property
    def uploads(self) -> Path:
        """The folder for files that have no other place, inside the index."""
        return self._index.folder / "uploads"

    def retriever(self, k: int = _RETRIEVED) -> AbstractRetriever:
        """A LlamaIndex BaseRetriever over this index."""
        from rag.llamaindex import AbstractRetriever

        return AbstractRetriever(self._index, k)

    def embedding(self) -> AbstractEmbedding:
        """A LlamaIndex BaseEmbedding of this index's embedding model."""
        from rag.llamaindex import AbstractEmbedding

        return AbstractEmbedding(self._index.embedding)

    def query_engine(self, k: int = _RETRIEVED) -> AbstractQueryEngine:
        """A LlamaIndex BaseQueryEngine with this index and LLM."""
        from rag.llamaindex import AbstractQueryEngine

        return AbstractQueryEngine(self._index, self._writer, k)

    def status(self) -> dict[str, Any]:
        """Plain JSON data, in the layout of `rag status --json`."""
        index = self._index
        with index.pinned() as snapshot:
            counts = snapshot.sources
            return {
                "index": index.store.name,
                **index.store.facts(),
                "records": len(snapshot),
                "chunks": snapshot.vectors.count("passage"),
                "sentences": snapshot.vectors.count("sentence"),
                "sources": [
                    {"path": path, "records": counts[path], "missing": not is_there(path)}
                    for path in sorted(counts)
                ],
                "embed_model": index.embedding.model_name,
                "embed_engine": index.embedding.engine,
                "llm": self.llm_name,
                "versions": {name: version(name) for name in _VERSIONS},
                "health": "ok" if len(snapshot) else "empty",
            }

    def announce(self, url: str, token: str) -> None:
        """Tell other processes that this one is the window of the index, and where to ask it.

        Raises IndexBusyError when another window serves the index.
        """
        self._window.acquire("the chat window")
        self._window.announce(url, token)

    def close(self) -> None:
        self._window.release()
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


def preview(
    paths: Sequence[str | Path],
    index: str | Path | None = None,
    *,
    progress: Callable[[str, int, int], None] | None = None,
    titles_suffice: bool = False,
) -> IngestReport | None:
    """What an ingest would do where there is no index yet; None where there is one."""
    if store_of(Settings.load(index=index)).exists():
        return None
    found = [Path(path) for path in paths]
    return preview_of(found, titles_suffice=titles_suffice, progress=progress)


def rebuilt(index: str | Path | None = None) -> None:
    """Delete the index in a folder, so that the next ingest builds it anew.

    Raises IndexBusyError while a window serves it or another process changes it.
    """
    store = store_of(Settings.load(index=index))
    refuse_if_busy(store.folder, "window")
    discard(store)


def _several(paths: str | Path | Sequence[str | Path]) -> Sequence[str | Path]:
    # A string is a sequence too, of names of one character each; "/" is one of them.
    return [paths] if isinstance(paths, (str, Path)) else paths


def _writer(llm: str | LLM | None, settings: Settings) -> Writer | None:
    """The writer for an LLM or its name; None is the extractive one."""
    if llm is not None and not isinstance(llm, str):
        return _chat_writer(llm, llm.metadata.model_name)
    name = llm or default_llm()
    if name == EXTRACTIVE:
        return None
    if name == "local":
        return _local_writer(assembled_model(), name)
    if name.endswith(".gguf"):
        path = checked_gguf(Path(name))
        return _local_writer(path, path.name)
    from rag.llms.api import api_llm

    return _chat_writer(api_llm(name, settings), name.partition(":")[2])


def _chat_writer(llm: LLM, name: str) -> Writer:
    from rag.llms.writers import ChatWriter

    return ChatWriter(llm, name)


def _local_writer(model: Path, name: str) -> Writer:
    # Imported here: the engine is an extra, and all but the local LLM works without it.
    try:
        from rag.llms.local import LocalLLM
        from rag.llms.writers import LocalWriter
    except ImportError as error:
        raise SetupError(
            "the engine of the local LLM is not installed: run `rag install-local`, or choose "
            "another LLM, such as extractive"
        ) from error
    return LocalWriter(LocalLLM(model_path=model, name=name), name)
