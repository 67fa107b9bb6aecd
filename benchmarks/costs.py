"""What answering costs, each figure beside the raw cost it rests on, measured in one run.

.venv/bin/python benchmarks/costs.py [--llm local|FILE.gguf]

ingest       a fresh ingest of data/, and the embedding in it, against a bare
             SentenceTransformer.encode of the same chunks at its best batch size, in turns
retrieval    retrieval and evidence, against the embedding model's encoding of the question
first word   from question to first word, against the bare model's prefill of the same prompt
memory       peak resident size of this process with the embedding model and the LLM in use
start        whole processes: `rag --help`, and `rag search` in a fresh process
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rag import prompts
from rag.assistant import Assistant
from rag.chunking import chunk_record
from rag.embedding import SentenceEmbedding, torch_engine
from rag.evidence import Selected, select_evidence
from rag.index import Index
from rag.llms.local import LocalLLM
from rag.llms.model_file import assembled_model, checked_gguf
from rag.llms.writers import LocalWriter, chat_messages
from rag.records import Record
from rag.retrieval import retrieve
from rag.settings import DEFAULT_EMBED_MODEL
from rag.sources import find_files, read_records

ROOT = Path(__file__).parent.parent
RAG = Path(sys.executable).parent / "rag"
QUESTIONS = (
    "By how much does UniMatch improve AUROC?",
    "What is SOREL?",
    "Which graph networks fight over-squashing?",
    "is there a way to slim down a chatbot?",
    "How many images does A-Bench sample?",
)


def seconds(run: Callable[[], object], repeat: int = 1) -> float:
    """The median time of a call."""
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def sample_records() -> list[Record]:
    files, _ = find_files([ROOT / "data"])
    return [entry for path in files for entry in read_records(path) if isinstance(entry, Record)]


def ingest(embedding: SentenceEmbedding) -> None:
    records = sample_records()
    chunks = [
        chunk.embedded
        for record in records
        for chunk in chunk_record(record, embedding.count_tokens, embedding.window)
    ]
    model = torch_engine.load(embedding.model_name).model

    def fresh() -> None:
        with tempfile.TemporaryDirectory() as folder, Index.open(
            Path(folder), embedding, what="a benchmark", create=True
        ) as index:  # fmt: skip
            index.sync([ROOT / "data"])

    runs: dict[str, Callable[[], object]] = {
        f"bare encode, {size} at a time": lambda n=size: model.encode(  # type: ignore[misc]
            chunks, batch_size=n, normalize_embeddings=True, show_progress_bar=False
        )
        for size in (8, 16, 32, 64)
    }
    runs |= {"embedding": lambda: embedding.embed(chunks), "ingest": fresh}
    # The least of each, in turns: other work on the machine only ever adds.
    rounds = [{name: seconds(run) for name, run in runs.items()} for _ in range(3)]
    least = {name: min(times[name] for times in rounds) for name in runs}
    best = min((name for name in runs if name.startswith("bare")), key=least.__getitem__)
    bare = least[best]
    print(
        f"ingest        {least['ingest']:.2f} s for {len(records)} abstracts ({len(chunks)} "
        f"chunks), embedding them by {embedding.engine} {least['embedding']:.2f} s; {best} "
        f"{bare:.2f} s; throughput {bare / least['ingest']:.2f} and "
        f"{bare / least['embedding']:.2f} of it"
    )


def retrieval(index: Index) -> None:
    embedding = index.embedding
    encode = [seconds(lambda q=q: embedding.embed_query(q), 9) for q in QUESTIONS]
    whole = [
        seconds(lambda q=q: select_evidence(index, retrieve(index, q, 10)), 9) for q in QUESTIONS
    ]
    own = [all_ - bare for all_, bare in zip(whole, encode, strict=True)]
    print(
        f"retrieval     median {statistics.median(whole) * 1e3:.0f} ms with evidence; "
        f"encoding the question {statistics.median(encode) * 1e3:.0f} ms; "
        f"beyond it {statistics.median(own) * 1e3:.0f} ms"
    )


def first_word(index: Index, llm: LocalLLM) -> None:
    writer = LocalWriter(llm)
    writer.warm()
    ours, bare = [], []
    for question in QUESTIONS:
        selected = select_evidence(index, retrieve(index, question, 10))
        prompt = llm.chat_prompt(chat_messages(question, selected.evidence, prompts.ANSWER))
        writer.warm()  # forget the question before, keep the constant prefix
        bare.append(seconds(lambda p=prompt: llm.next_token_logprobs(p, ("Yes",))))
        writer.warm()
        ours.append(seconds(lambda q=question, s=selected: next(words(writer, q, s))))
    ratios = [a / b for a, b in zip(ours, bare, strict=True)]
    print(
        f"first word    median {statistics.median(ours):.2f} s; bare prefill of the same prompt "
        f"{statistics.median(bare):.2f} s; ratio {statistics.median(ratios):.2f}"
    )


def words(writer: LocalWriter, question: str, selected: Selected) -> Iterator[str]:
    return (delta for delta in writer.write(question, selected, threading.Event()) if delta)


def start(index: Path) -> None:
    quiet = subprocess.DEVNULL
    help_ = seconds(lambda: subprocess.run([RAG, "--help"], stdout=quiet, check=True), 5)
    search = [RAG, "--index", index, "search", QUESTIONS[0]]
    cold = seconds(lambda: subprocess.run(search, stdout=quiet, check=True), 3)
    print(f"start         rag --help {help_:.2f} s; rag search in a fresh process {cold:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--llm", default="local", help="local, or the path of a GGUF file")
    llm_name = parser.parse_args().llm
    path = assembled_model() if llm_name == "local" else checked_gguf(Path(llm_name))
    embedding = SentenceEmbedding(DEFAULT_EMBED_MODEL)
    with tempfile.TemporaryDirectory() as folder:
        with Assistant.open(folder, llm="extractive") as assistant:
            assistant.ingest([ROOT / "data"])
        start(Path(folder))
        ingest(embedding)
        with Index.open(Path(folder), embedding, what="a benchmark") as index:
            retrieval(index)
            first_word(index, LocalLLM(model_path=path))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"memory        peak {peak:.2f} GiB with the embedding model and the LLM")


if __name__ == "__main__":
    main()
