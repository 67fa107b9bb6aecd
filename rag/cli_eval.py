"""The command `rag eval`: scores answers or retrieval, compares two runs, drafts questions."""

# Heavy modules are imported inside the functions that need them, as in rag.cli.

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rag.cli_options import chosen_index, index_option, json_option, llm_option
from rag.cli_output import print_data, progress_bar
from rag.errors import UsageError

if TYPE_CHECKING:
    from rag.assistant import Assistant
    from rag.evaluation import Question

# What each way of calling the command takes besides --json.
_TAKES = {
    "QUESTIONS.jsonl": ("llm", "only", "limit", "out", "plot"),
    "--retrieval": (),
    "--compare": ("only",),
    "--make": ("llm",),
}


@click.command("eval")
@click.argument("questions", required=False, metavar="[QUESTIONS.jsonl]")
@llm_option
@click.option("--only", metavar="TYPES", help="Question types to score, separated by commas.")
@click.option("--limit", type=click.IntRange(min=1), help="Ask only the first so many.")
@click.option("--out", metavar="FILE", help="Keep results as JSONL; a second run goes on there.")
@click.option("--plot", metavar="FILE", help="Draw the metrics into a .png or .svg file.")
@click.option("--compare", nargs=2, metavar="A B", help="Compare two result files of --out.")
@click.option("--make", type=click.IntRange(min=1), metavar="N", help="Draft so many questions "
              "from the index into QUESTIONS.jsonl, to be corrected.")  # fmt: skip
@click.option("--retrieval", metavar="DIR", help="Score a test collection in BEIR layout instead.")
@json_option
@index_option
def eval_(
    questions: str | None,
    compare: tuple[str, str] | None,
    make: int | None,
    retrieval: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Score the answers to labelled questions, or the retrieval on a test collection."""
    _check_usage(questions, {"--retrieval": retrieval, "--compare": compare, "--make": make}, given)
    types = [name.strip() for name in given["only"].split(",")] if given["only"] else []
    if retrieval is not None:
        print_data(_evaluate_retrieval(Path(retrieval)), as_json, _retrieval_text)
    elif compare is not None:
        from rag.evaluation import compare_files
        from rag.evaluation.tables import comparison_text

        result = compare_files(Path(compare[0]), Path(compare[1]), types)
        print_data(result, as_json, comparison_text)
    elif make is not None:
        result = _make(Path(questions or ""), make, given["llm"])
        print_data(result, as_json, _made_text)
    else:
        from rag.evaluation.tables import evaluation_text

        result = _evaluate_answers(Path(questions or ""), types, **given)
        print_data(result, as_json, evaluation_text)


def _check_usage(
    questions: str | None, modes: Mapping[str, object], given: Mapping[str, object]
) -> None:
    chosen = [name for name, value in modes.items() if value is not None]
    if len(chosen) > 1:
        raise UsageError(f"{chosen[0]} and {chosen[1]} are different tasks: give one of them")
    mode = chosen[0] if chosen else "QUESTIONS.jsonl"
    if questions is None and mode in ("QUESTIONS.jsonl", "--make"):
        raise UsageError("rag eval needs QUESTIONS.jsonl, --retrieval DIR or --compare A B")
    if questions is not None and mode in ("--retrieval", "--compare"):
        raise UsageError(f"rag eval {mode} takes no QUESTIONS.jsonl: leave {questions} away")
    for name, value in given.items():
        if value is not None and name not in _TAKES[mode]:
            raise UsageError(f"--{name} means nothing with {mode}: leave it away")


def _evaluate_answers(
    path: Path,
    types: Sequence[str],
    *,
    llm: str | None,
    limit: int | None,
    out: str | None,
    plot: str | None,
    only: str | None,
) -> dict[str, Any]:
    from rag.assistant import Assistant
    from rag.evaluation import intervals, read_questions, run_questions, summarise
    from rag.evaluation.plotting import check_plot
    from rag.evaluation.plotting import plot as draw

    if plot:
        check_plot(Path(plot))
    questions = read_questions(path, types, limit)
    drafts = sum(question.draft for question in questions)
    if drafts:
        click.echo(
            f'{drafts} of {len(questions)} questions are drafts: correct them, then remove "draft"',
            err=True,
        )
    with Assistant.open(chosen_index(), llm, what="rag eval", create=False) as assistant:
        unknown = _unknown_gold(questions, assistant)
        with progress_bar() as progress:
            outcomes = run_questions(
                assistant,
                questions,
                Path(out) if out else None,
                lambda done, total, name: progress(f"asking {name}", done, total),
                assistant,
            )
        llm_name = assistant.llm_name
    result = {
        "llm": llm_name,
        "drafts": drafts,
        "unknown_gold": unknown,
        "metrics": summarise(outcomes),
        "intervals": intervals(outcomes),
        "questions": [outcome.as_dict() for outcome in outcomes],
    }
    if plot:
        draw(result, Path(plot))
    return result


def _unknown_gold(questions: Sequence[Question], assistant: Assistant) -> list[str]:
    """The gold ids that name no abstract of the index, also said on stderr."""
    from rag.evaluation.gold import unknown_gold

    gold = [gold_id for question in questions for gold_id in question.gold]
    unknown = unknown_gold(gold, assistant.records()) if gold else []
    if unknown:
        click.echo(
            f"{len(unknown)} gold ids name no abstract of the index, such as {unknown[0]!r}: "
            "ingest what they are from, or correct them",
            err=True,
        )
    return unknown


def _make(path: Path, wanted: int, llm: str | None) -> dict[str, Any]:
    from rag.assistant import Assistant
    from rag.evaluation.drafting import LLMWriter, draft_questions, refuse_existing, write_draft

    refuse_existing(path)
    with Assistant.open(chosen_index(), llm, what="rag eval --make", create=False) as assistant:
        writer = LLMWriter(assistant.llm, assistant.llm_name) if assistant.llm else None
        with progress_bar() as progress:
            draft = draft_questions(
                assistant.records(),
                wanted,
                writer,
                lambda done, total, name: progress("writing questions", done, total),
            )
        llm_name = assistant.llm_name
    write_draft(path, draft)
    return {
        "file": str(path),
        "llm": llm_name,
        "questions": len(draft.rows),
        "wanted": wanted,
        "by_template": draft.by_template,
        "unanswerable": sum(not row["gold"] for row in draft.rows),
    }


def _made_text(made: Mapping[str, Any]) -> str:
    lines = [
        f"{made['file']}: {made['questions']} draft questions, {made['unanswerable']} of them "
        "meant to have no answer"
    ]
    if made["questions"] < made["wanted"]:
        lines.append(f"not {made['wanted']}: the index holds no more sentences fit for a question")
    if made["by_template"]:
        why = "no LLM writes" if made["llm"] == "extractive" else "the LLM wrote no fit question"
        lines.append(f"{made['by_template']} are sentences with a gap, as {why}: reword them")
    lines.append('Correct each question, its key_facts and its gold, then remove "draft".')
    return "\n".join(lines)


def _evaluate_retrieval(folder: Path) -> dict[str, Any]:
    from rag.assistant import Assistant
    from rag.evaluation import read_collection, run_collection, write_corpus

    collection = read_collection(folder)
    with tempfile.TemporaryDirectory() as temporary:
        corpus = Path(temporary) / "corpus.txt"
        ids = write_corpus(collection, corpus)
        index = Path(temporary) / "index"
        with (
            Assistant.open(index=index, llm="extractive", what="rag eval") as assistant,
            progress_bar() as progress,
        ):
            report = assistant.ingest([corpus], progress=progress)
            metrics = run_collection(
                assistant,
                collection,
                ids,
                lambda done, total, name: progress(f"searching {name}", done, total),
            )
    return {
        "collection": str(folder),
        "documents": len(collection.documents),
        "records": report.as_dict()["records"],
        "queries": len(collection.queries),
        "metrics": metrics,
    }


def _retrieval_text(result: Mapping[str, Any]) -> str:
    metrics = ", ".join(f"{name} {value:.3f}" for name, value in result["metrics"].items())
    return (
        f"{result['collection']}: {result['documents']} documents "
        f"({result['records']} distinct), {result['queries']} queries\n{metrics}"
    )
