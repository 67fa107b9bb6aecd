"""Draft questions, over the sample abstracts and a scripted LLM."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from llama_index.core.llms import MockLLM

from rag.errors import LLMError, UsageError
from rag.evaluation import Question, read_questions
from rag.evaluation.drafting import LLMWriter, draft_questions, write_draft
from rag.evaluation.gold import holds_fact, unknown_gold
from rag.records import Record, Source
from rag.sources import find_files, read_records

SAMPLE = Path(__file__).parent.parent / "data"


@pytest.fixture(scope="module")
def records() -> list[Record]:
    files, _ = find_files([SAMPLE])
    return [entry for path in files for entry in read_records(path) if isinstance(entry, Record)]


@dataclass
class Scripted:
    """Answers every prompt alike and keeps the prompts."""

    reply: str
    name: str = "scripted"
    prompts: list[str] = field(default_factory=list)

    def write(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return self.reply


def drafted(
    records: list[Record], wanted: int, writer: Scripted | None, folder: Path
) -> list[Question]:
    path = folder / "draft.jsonl"
    write_draft(path, draft_questions(records, wanted, writer))
    return read_questions(path)


def test_a_draft_can_be_scored_at_once(records: list[Record], tmp_path: Path) -> None:
    writer = Scripted("Which of them is meant, and why?")
    questions = drafted(records, 20, writer, tmp_path)
    assert len(questions) == 20
    assert all(question.draft for question in questions)
    facts = [q for q in questions if q.type == "fact"]
    near = [q for q in questions if q.type == "unanswerable_near"]
    assert (len(facts), len(near)) == (16, 4)
    assert len(writer.prompts) == 16
    abstracts = {record.id: record.abstract for record in records}
    for question in facts:
        (gold,), (sentence,) = question.gold, question.evidence
        assert sentence in abstracts[gold]
        assert question.question == "Which of them is meant, and why?"
        assert all(holds_fact(question.answer, fact) for fact in question.key_facts)
    assert not unknown_gold([gold for q in facts for gold in q.gold], records)
    assert not any(q.gold or q.evidence or q.key_facts for q in near)
    assert sum(bool(q.key_facts) for q in facts) > len(facts) / 2
    # All over the collection: no abstract twice while there are others.
    assert len({q.gold for q in facts}) == len(facts)


def test_a_draft_is_the_same_whatever_the_order_of_the_index(records: list[Record]) -> None:
    shuffled = random.Random(5).sample(records, len(records))
    assert draft_questions(records, 12, None) == draft_questions(shuffled, 12, None)


def test_without_an_llm_a_question_is_a_sentence_with_a_gap(
    records: list[Record], tmp_path: Path
) -> None:
    assert draft_questions(records, 10, None).by_template == 8
    for question in drafted(records, 10, None, tmp_path)[:8]:
        assert question.question.endswith("?")
        assert "…" in question.question
        if question.question.startswith("What belongs in the gap"):
            cut = question.question.split("“", 1)[1].removesuffix("”?")
            assert cut.replace("…", question.key_facts[0]) == question.answer


TEA = Record(
    "tea", "We introduce TeaBench, a benchmark of 312 tea-tasting tasks.", Source("/d/0.txt", 1)
)


@pytest.mark.parametrize(
    ("reply", "question"),
    [
        ("How many tasks does TeaBench have?", "How many tasks does TeaBench have?"),
        ('"How many tasks has TeaBench?"\nIt has 312.', "How many tasks has TeaBench?"),
        ("<think>Is it so?</think>\n**How many tasks are there?**", "How many tasks are there?"),
        ("I cannot write a question.", None),
        ("What?", None),
    ],
)
def test_only_a_question_is_taken_from_an_llm(reply: str, question: str | None) -> None:
    draft = draft_questions([TEA], 1, Scripted(reply))
    (row,) = draft.rows
    assert draft.by_template == (question is None)
    assert row["question"] == (
        question
        or "What belongs in the gap: “We introduce …, a benchmark of 312 tea-tasting tasks.”?"
    )
    # What the question gives away is no key fact.
    left = [fact for fact in ("TeaBench", "312") if fact not in row["question"]]
    assert row["key_facts"] == left


def test_the_prompt_holds_the_sentence_and_any_llm_will_do() -> None:
    writer = Scripted("no")
    draft_questions([TEA], 1, writer)
    assert TEA.abstract in writer.prompts[0]
    # MockLLM repeats the prompt, which holds no question.
    assert draft_questions([TEA], 1, LLMWriter(MockLLM(), "mock")).by_template == 1


def test_an_llm_that_fails_ends_the_drafting() -> None:
    class Failing(Scripted):
        def write(self, prompt: str) -> str:
            raise LLMError("the LLM does not answer")

    with pytest.raises(LLMError):
        draft_questions([TEA], 1, Failing(""))


def test_abstracts_that_state_nothing_specific_are_refused() -> None:
    vague = Record("v", "Some things are like other things in most ways.", Source("/d/0.txt", 1))
    with pytest.raises(UsageError, match="no sentence in the index"):
        draft_questions([vague], 3, None)
    assert len(draft_questions([TEA, vague], 3, None).rows) == 1


def test_a_file_that_exists_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text("mine")
    with pytest.raises(UsageError, match="exists, and may hold corrected questions"):
        write_draft(path, draft_questions([TEA], 1, None))
    assert path.read_text() == "mine"
    with pytest.raises(UsageError, match="there is no folder"):
        write_draft(tmp_path / "none" / "q.jsonl", draft_questions([TEA], 1, None))
