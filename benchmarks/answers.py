"""Answers side by side: this project and LlamaIndex's CitationQueryEngine, in one run.

    .venv/bin/pip install -e '.[bench]'
    .venv/bin/python benchmarks/answers.py QUESTIONS.jsonl --out FOLDER

Both get the same abstracts, LLM, embedding model and questions, and are scored by the same code
(`rag eval`). The CitationQueryEngine has its default prompts, sources and number of abstracts (2),
over a VectorStoreIndex in Chroma with the default SentenceSplitter; it streams, so that its first
word can be timed. How its answers are read:

citations  each [n] of its text; the quote is the n-th source it was given, the slice of the
           abstract where that stands; a number without a source is a warning
refusal    an empty answer, "Empty Response", or a first sentence with one of the phrases that say
           that something is not there, such as "not mentioned" or "no information"; a refusal has
           no citations, as in this project
history    it has none: a follow-up is asked and searched alone

FOLDER keeps the outcomes of each, so that an interrupted run goes on where it stopped, and
`rag eval --compare` can look at them again.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import chromadb
from chromadb.config import Settings as ChromaSettings
from llama_index.core import Document, QueryBundle, StorageContext, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.schema import NodeWithScore

from rag.answers import Answer, Citation, Hit
from rag.assistant import Assistant
from rag.embedding import SentenceEmbedding
from rag.evaluation import Outcome, compare_files, read_questions, run_questions, summarise
from rag.evaluation.tables import aligned, comparison_text, head_of, value_text
from rag.llamaindex import AbstractEmbedding
from rag.records import Record
from rag.sentences import split_sentences
from rag.settings import Settings

ROOT = Path(__file__).parent.parent
COLUMNS = (
    "key_fact_recall", "citation_precision", "citation_recall", "exact_quotes", "quote_words",
    "refusal_precision", "refusal_recall", "wrongly_refused", "median_first_token_s",
    "median_total_s",
)  # fmt: skip

_MARKER = re.compile(r"\[(?:source\s*)?(\d+(?:\s*,\s*(?:source\s*)?\d+)*)\]", re.IGNORECASE)
_SOURCE_HEAD = re.compile(r"^Source \d+:\n")
_ABSENT = re.compile(
    r"\bnot (?:\w+ ){0,2}(?:provided|mentioned|specified|stated|given|included|available|found)\b"
    r"|\b(?:do|does|did) not (?:\w+ )?(?:mention|provide|specify|state|contain|include|give|"
    r"address|discuss|answer|say)\b"
    r"|\bno (?:\w+ ){0,2}(?:information|mention|answer|details?)\b"
    r"|\bnone of the\b|\b(?:cannot|can't) (?:be )?(?:determine|answer|find|found)|\bunable to\b",
    re.IGNORECASE,
)


class CitationAsker:
    """A CitationQueryEngine as an Asker and a Searcher of `rag.evaluation`."""

    def __init__(
        self, index: VectorStoreIndex, llm: LLM, llm_name: str, records: Sequence[Record]
    ) -> None:
        self.llm_name = llm_name
        self._index = index
        self._engine = CitationQueryEngine.from_args(index, llm=llm, streaming=True)
        self._records = {record.id: record for record in records}

    def ask(self, question: str, history: Sequence[Mapping[str, str]] = ()) -> Answer:
        """The engine's answer; it takes no history."""
        started = time.perf_counter()
        timings = {}
        found = self._engine.retrieve(QueryBundle(question))
        timings["retrieve_s"] = time.perf_counter() - started
        response = self._engine.synthesize(QueryBundle(question), found)
        text = ""
        # Without any source the answer comes whole.
        for delta in getattr(response, "response_gen", None) or [str(response)]:
            timings.setdefault("first_token_s", time.perf_counter() - started)
            text += delta
        timings["total_s"] = time.perf_counter() - started
        text = text.strip()
        refused = is_refusal(text)
        citations, warnings = self._citations(text, response.source_nodes)
        return Answer(
            question=question,
            standalone_question=question,
            text=text,
            citations=() if refused else citations,
            answerable=not refused,
            retrieved=tuple(self._hits(found)),
            warnings=warnings,
            timings={name: round(seconds, 4) for name, seconds in timings.items()},
            llm=self.llm_name,
        )

    def search(self, query: str, k: int = 10) -> list[Hit]:
        """The abstracts that the engine would find, if it looked for so many."""
        return self._hits(self._index.as_retriever(similarity_top_k=k).retrieve(query))

    def _hits(self, nodes: Sequence[NodeWithScore]) -> list[Hit]:
        hits: dict[str, Hit] = {}
        for node in nodes:
            record = self._record(node)
            hits.setdefault(record.id, Hit(record, node.score or 0.0))
        return list(hits.values())

    def _record(self, node: NodeWithScore) -> Record:
        id_ = node.node.ref_doc_id
        assert id_ is not None  # every node was cut from a document
        return self._records[id_]

    def _citations(
        self, text: str, sources: Sequence[NodeWithScore]
    ) -> tuple[tuple[Citation, ...], tuple[str, ...]]:
        citations, warnings = [], []
        for number in cited_numbers(text):
            if 1 <= number <= len(sources):
                citations.append(self._citation(number, sources[number - 1]))
            else:
                warnings.append(f"[{number}] stands for no source")
        return tuple(citations), tuple(warnings)

    def _citation(self, number: int, source: NodeWithScore) -> Citation:
        record = self._record(source)
        quote = _SOURCE_HEAD.sub("", source.node.get_content()).strip()
        start = record.abstract.find(quote)
        if start < 0:
            return Citation(number, record, quote, 0, 0, 0.0)
        return Citation(number, record, quote, start, start + len(quote), 0.0)


def cited_numbers(text: str) -> list[int]:
    """The numbers of the markers in a text, each once, in order."""
    listed = (re.findall(r"\d+", match.group(1)) for match in _MARKER.finditer(text))
    return list(dict.fromkeys(int(number) for numbers in listed for number in numbers))


def is_refusal(text: str) -> bool:
    """Whether an answer says that the sources do not hold it."""
    if not text or text == "Empty Response":
        return True
    spans = split_sentences(text)
    first = text[slice(*spans[0])] if spans else text
    return bool(_ABSENT.search(first))


def documents(records: Sequence[Record]) -> list[Document]:
    """The abstracts as LlamaIndex documents, with the title where there is one."""
    return [
        Document(
            id_=record.id,
            text=record.abstract,
            metadata={"title": record.title} if record.title else {},
        )
        for record in records
    ]


def chroma_index(records: Sequence[Record], embedding: BaseEmbedding) -> VectorStoreIndex:
    """The abstracts in LlamaIndex's own Chroma store, in memory."""
    try:
        from llama_index.vector_stores.chroma import ChromaVectorStore
    except ImportError:
        raise SystemExit("LlamaIndex's Chroma store is needed: pip install -e '.[bench]'") from None
    client = chromadb.EphemeralClient(settings=ChromaSettings(anonymized_telemetry=False))
    store = ChromaVectorStore(chroma_collection=client.create_collection("abstracts"))
    context = StorageContext.from_defaults(vector_store=store)
    return VectorStoreIndex.from_documents(
        documents(records), storage_context=context, embed_model=embedding
    )


def table(runs: Mapping[str, Sequence[Outcome]]) -> str:
    """The metrics of each engine by question type, the engines of a type one below the other."""
    metrics = {engine: summarise(outcomes) for engine, outcomes in runs.items()}
    heads = [head_of(name) for name in COLUMNS]
    rows = [["", *(head[0] for head in heads)], ["", *(head[1] for head in heads)]]
    for type_ in next(iter(metrics.values())):
        rows.append([type_, *("" for _ in COLUMNS)])
        for engine, of_types in metrics.items():
            cells = (value_text(name, of_types[type_][name]) for name in COLUMNS)
            rows.append([f"  {engine}", *cells])
    return "\n".join(aligned(rows))


def progress(engine: str) -> Callable[[int, int, str], None]:
    """Say on stderr which question an engine is at."""

    def show(done: int, total: int, id_: str) -> None:
        print(f"{engine}: {done} of {total} {id_}", file=sys.stderr, flush=True)

    return show


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("questions", type=Path, metavar="QUESTIONS.jsonl")
    parser.add_argument("--data", type=Path, default=ROOT / "data", help="the abstracts")
    parser.add_argument("--llm", default="local", help="any but extractive, as for rag ask")
    parser.add_argument("--only", default="", help="question types, separated by commas")
    parser.add_argument("--limit", type=int, help="ask only the first so many")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    options = parser.parse_args()
    only = [name.strip() for name in options.only.split(",") if name.strip()]
    questions = read_questions(options.questions, only, options.limit)
    options.out.mkdir(parents=True, exist_ok=True)
    files = [options.out / f"{name}.jsonl" for name in ("citation_query_engine", "assistant")]

    with (
        tempfile.TemporaryDirectory() as folder,
        Assistant.open(Path(folder) / "index", options.llm, what="a benchmark") as assistant,
    ):
        if assistant.llm is None:
            parser.error("the CitationQueryEngine needs an LLM: name another --llm")
        assistant.ingest([options.data])
        records = list(assistant.records())
        embedding = AbstractEmbedding(SentenceEmbedding(Settings.load().embed_model))
        index = chroma_index(records, embedding)
        other = CitationAsker(index, assistant.llm, assistant.llm_name, records)
        assistant.warm()
        embedding.get_text_embedding("warm")
        runs = [
            run_questions(asker, questions, file, progress(name), asker)
            for asker, file, name in (
                (other, files[0], "LlamaIndex"),
                (assistant, files[1], "abstract-qa"),
            )
        ]
    print(table({"LlamaIndex": runs[0], "abstract-qa": runs[1]}))
    print()
    print(comparison_text(compare_files(*files)))


if __name__ == "__main__":
    main()
