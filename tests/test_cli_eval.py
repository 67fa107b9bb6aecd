"""`rag eval`, with an assistant that answers every question alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_cli import FakeAssistant, assistant, error_line, rag

from rag.records import Record, Source

__all__ = ["assistant"]  # a fixture


def test_eval_prints_metrics_and_every_answer(assistant: FakeAssistant, tmp_path: Path) -> None:
    questions = tmp_path / "q.jsonl"
    rows = [
        {"id": "1", "type": "fact", "question": "a", "gold": ["000-04"], "key_facts": ["HOT"]},
        {"id": "2", "type": "short", "question": "b", "gold": ["000-05"]},
    ]
    questions.write_text("\n".join(json.dumps(row) for row in rows))
    out = tmp_path / "out.jsonl"
    result = rag("eval", str(questions), "--json", "--out", str(out), "--llm", "local")
    report = json.loads(result.stdout)
    assert report["llm"] == "local"
    assert report["metrics"]["overall"]["hit_at_1"] == 0.5
    assert report["metrics"]["fact"]["key_fact_recall"] == 1.0
    assert [row["answer"] for row in report["questions"]] == ["Tea is hot [1]."] * 2
    assert len(out.read_text().splitlines()) == 2
    table = rag("eval", str(questions), "--only", "fact").stdout
    assert "…" not in table
    assert {"fact", "overall", "short"} & set(table.split()) == {"fact", "overall"}


def test_eval_of_retrieval_builds_an_index_of_its_own(
    assistant: FakeAssistant, tmp_path: Path
) -> None:
    (tmp_path / "corpus.jsonl").write_text(
        "".join(f'{{"_id": "d{n}", "text": "text {n}"}}\n' for n in range(1, 6))
    )
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "tea"}\n')
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\td4\t1\n")
    result = rag("--index", "mine", "eval", "--retrieval", str(tmp_path), "--json")
    report = json.loads(result.stdout)
    assert (report["documents"], report["queries"]) == (5, 1)
    assert report["metrics"]["ndcg_at_10"] == 1.0
    assert str(assistant.calls[0][1]) != "mine"
    assert "hit_at_1 1.000" in rag("eval", "--retrieval", str(tmp_path)).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "needs QUESTIONS.jsonl"),
        (("none.jsonl",), "none.jsonl: cannot be read"),
        (("q.jsonl", "--retrieval", "d"), "takes no QUESTIONS.jsonl"),
        (("q.jsonl", "--compare", "a", "b"), "takes no QUESTIONS.jsonl"),
        (("--compare", "a"), "--compare"),
        (("--make", "3"), "needs QUESTIONS.jsonl"),
        (("--make", "3", "--retrieval", "d"), "different tasks"),
        (("q.jsonl", "--make", "3", "--plot", "x.png"), "--plot means nothing with --make"),
        (("--compare", "a", "b", "--llm", "local"), "--llm means nothing with --compare"),
        (("q.jsonl", "--plot", "x.gif"), "name a .png or .svg"),
    ],
)
def test_wrong_usage_asks_nothing(
    assistant: FakeAssistant, arguments: tuple[str, ...], message: str
) -> None:
    result = rag("eval", *arguments)
    assert result.exit_code == 2
    assert message in error_line(result)
    assert assistant.calls == []


def question_file(folder: Path, *rows: dict[str, Any]) -> str:
    path = folder / "q.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_eval_reports_intervals_and_draws_them(assistant: FakeAssistant, tmp_path: Path) -> None:
    rows = [
        {"id": str(n), "question": "q", "gold": ["000-04"], "key_facts": ["hot", "x"][: n % 2 + 1]}
        for n in range(10)
    ]
    picture = tmp_path / "metrics.svg"
    questions = question_file(tmp_path, *rows)
    report = json.loads(rag("eval", questions, "--json", "--plot", str(picture)).stdout)
    low, high = report["intervals"]["overall"]["all_facts"]
    assert low < report["metrics"]["overall"]["all_facts"] < high
    assert "svg" in picture.read_text()[:200]
    assert (report["drafts"], report["unknown_gold"]) == (0, [])


def test_eval_says_what_is_draft_and_which_gold_is_unknown(
    assistant: FakeAssistant, tmp_path: Path
) -> None:
    questions = question_file(
        tmp_path,
        {"id": "1", "question": "q", "gold": ["000-04"], "draft": True},
        {"id": "2", "question": "q", "gold": ["000-05", "10.1/x"]},
    )
    result = rag("eval", questions, "--json")
    assert "1 of 2 questions are drafts" in result.stderr
    assert "2 gold ids name no abstract of the index, such as '000-05'" in result.stderr
    report = json.loads(result.stdout)
    assert (report["drafts"], report["unknown_gold"]) == (1, ["000-05", "10.1/x"])


def test_eval_compares_two_result_files(assistant: FakeAssistant, tmp_path: Path) -> None:
    questions = question_file(tmp_path, {"id": "1", "question": "q", "key_facts": ["hot"]})
    files = [str(tmp_path / name) for name in ("a.jsonl", "b.jsonl")]
    for file in files:
        rag("eval", questions, "--out", file)
    assistant.calls.clear()
    report = json.loads(rag("eval", "--compare", *files, "--json").stdout)
    assert report["paired"] == 1
    assert report["metrics"]["key_fact_recall"]["difference"] == 0.0
    assert report["a"]["file"] == files[0]
    assert "key facts" in rag("eval", "--compare", *files).stdout
    assert assistant.calls == []


def test_eval_drafts_questions_that_it_can_score(assistant: FakeAssistant, tmp_path: Path) -> None:
    path = tmp_path / "draft.jsonl"
    assistant.stored = [
        Record("tea", "We introduce TeaBench, which has 312 tea-tasting tasks.", Source("/d/0", 1))
    ]
    made = rag("eval", "--make", "3", str(path))
    assert "1 draft questions, 0 of them meant to have no answer" in made.stdout
    assert "not 3: the index holds no more sentences" in made.stdout
    assert "1 are sentences with a gap" in made.stdout
    assert rag("eval", str(path)).exit_code == 0
    again = rag("eval", "--make", "3", str(path), "--json")
    assert again.exit_code == 2
    assert "exists" in error_line(again)
    assistant.stored = []
    assert "no sentence" in error_line(rag("eval", "--make", "3", str(tmp_path / "x.jsonl")))
