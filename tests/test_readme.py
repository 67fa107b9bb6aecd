"""What the README shows works as shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from rag.cli import main
from rag.evaluation import read_questions
from rag.settings import Settings

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_python_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    out = capsys.readouterr().out
    assert "57 abstracts" in out
    assert "2.87% in AUROC" in out
    assert "benchmark with two domains" in out


def test_every_command_it_names_exists() -> None:
    named = set(re.findall(r"^    rag (\S+)", README, re.MULTILINE))
    assert named
    assert named <= set(main.commands)
    assert set(main.commands) <= named
    for command in named:
        assert CliRunner().invoke(main, [command, "--help"]).exit_code == 0


def test_the_example_question_can_be_read(tmp_path: Path) -> None:
    (line,) = re.findall(r'^    (\{"id".*\})$', README, re.MULTILINE)
    (tmp_path / "my.jsonl").write_text(line, encoding="utf-8")
    (question,) = read_questions(tmp_path / "my.jsonl")
    assert question.gold
    assert question.evidence
    assert question.key_facts


def test_every_setting_is_explained() -> None:
    explained = set(re.findall(r"`(RAG_\w+)`", README))
    known = {f"RAG_{name.upper()}" for name in Settings.model_fields}
    assert explained == known
