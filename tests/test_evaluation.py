"""The metrics against cases worked out by hand, and the runners against small fakes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rag.answers import Answer, Citation, Claim, Hit
from rag.errors import LLMError, UsageError
from rag.evaluation import (
    Outcome,
    Question,
    ranking_metrics,
    read_collection,
    read_questions,
    run_collection,
    run_questions,
    score,
    summarise,
    write_corpus,
)
from rag.evaluation.gold import holds_fact, is_exact, is_gold, located, shows, unknown_gold
from rag.records import Record, Source


def record(ordinal: int, file: str = "000_abc.txt", **known: Any) -> Record:
    known.setdefault("id", f"id{ordinal}")
    return Record(abstract=f"Text {ordinal}.", source=Source(f"/d/{file}", ordinal), **known)


def cite(record: Record, marker: int = 1) -> Citation:
    return Citation(marker, record, record.abstract, 0, len(record.abstract), 1.0)


def answer(text: str = "", **known: Any) -> Answer:
    return Answer(question="q", standalone_question="q", text=text, **known)


# --- gold, facts and quotes ------------------------------------------------------------------


def test_a_place_names_the_file_and_the_ordinal() -> None:
    assert is_gold("000-04", record(4))
    assert not is_gold("000-04", record(5))
    assert not is_gold("001-04", record(4))
    assert is_gold("000-104", record(104))


def test_a_place_may_be_a_further_source_of_a_merged_record() -> None:
    merged = record(4, sources=(Source("/e/003_x.txt", 9),))
    assert is_gold("003-09", merged)
    assert is_gold("000-04", merged)
    assert not is_gold("003-04", merged)


def test_gold_may_be_a_record_id_or_a_doi() -> None:
    assert is_gold("id4", record(4))
    assert is_gold("https://doi.org/10.1/ABC", record(4, doi="10.1/abc"))
    assert not is_gold("", record(4))


@pytest.mark.parametrize(
    ("fact", "held"),
    [
        ("pubchemqh", True),
        ("QM9|PubChemQH", True),
        ("QM9 | PubChem", True),
        ("QM9", False),
        ("|", False),
    ],
)
def test_a_fact_is_any_of_its_variants_in_any_case(fact: str, held: bool) -> None:
    assert holds_fact("They used PubChemQH [1].", fact) is held


def test_a_quote_must_be_the_slice_that_it_claims() -> None:
    assert is_exact(Citation(1, record(1), "Text", 0, 4, 1.0))
    assert not is_exact(Citation(1, record(1), "text", 0, 4, 1.0))
    assert not is_exact(Citation(1, record(1), "", 2, 2, 1.0))


def test_gold_that_no_record_has_is_told() -> None:
    records = [record(1), record(2, doi="10.1/AB")]
    gold = ["000-01", "10.1/ab", "000-03", "id2", "000-03"]
    assert unknown_gold(gold, records) == ["000-03"]


ABSTRACT = Record(
    "z", "We study  tea.\nTea-Bench has 312 tasks. Few are solved.", Source("/d/0", 1)
)


def quoting(quote: str) -> Citation:
    start = ABSTRACT.abstract.find(quote)
    return Citation(1, ABSTRACT, quote, start, start + len(quote), 1.0)


@pytest.mark.parametrize(
    ("passage", "found"),
    [
        ("We study tea.", "We study  tea"),
        ("TEA BENCH has 312", "Tea-Bench has 312"),
        ("312 tasks; few", "312 tasks. Few"),
        ("Coffee", None),
        ("...", None),
    ],
)
def test_a_passage_is_found_by_its_letters(passage: str, found: str | None) -> None:
    span = located(passage, ABSTRACT.abstract)
    assert (span and ABSTRACT.abstract[slice(*span)]) == found


@pytest.mark.parametrize(
    ("quote", "shown"),
    [
        ("Tea-Bench has 312 tasks.", True),
        ("312 tasks.", True),
        (ABSTRACT.abstract, True),
        ("tasks. Few are solved.", False),
        ("We study  tea.", False),
    ],
)
def test_a_quote_shows_a_sentence_that_it_shares_half_with(quote: str, shown: bool) -> None:
    assert shows(quoting(quote), "Tea-Bench has 312 tasks.") is shown


def test_a_quote_that_is_no_slice_is_looked_for() -> None:
    assert shows(Citation(1, ABSTRACT, "tea bench has 312 tasks", 0, 0, 1.0), "has 312 tasks.")
    assert not shows(Citation(1, ABSTRACT, "coffee", 0, 0, 1.0), "has 312 tasks.")


# --- scoring and summing up ------------------------------------------------------------------


def outcomes() -> list[Outcome]:
    """Three questions with gold, one of them refused, and one without gold, answered."""
    a, b, c = record(1), record(2), record(3)
    timings = {"retrieve_s": 0.1, "first_token_s": 1.0, "total_s": 2.0}
    return [
        score(
            Question(
                "1", "fact", "q", ("000-01",), ("red", "blue|azure"), evidence=("Text 1.", "Ah.")
            ),
            answer(
                "Red [1] and azure [2][3].",
                claims=(Claim("Red and azure.", (1, 2, 3), 0.9), Claim("Azure.", (2,), 0.7)),
                retrieved=(Hit(a, 1.0), Hit(b, 0.5)),
                citations=(cite(a), cite(b, 2), Citation(3, a, "no slice", 0, 4, 1.0)),
                timings=timings,
            ),
            "local",
        ),
        score(
            Question(
                "2", "compare", "q", ("000-01", "000-03"), ("red", "blue"), evidence=("Text 1.",)
            ),
            answer(
                "Red [1].",
                claims=(Claim("Red.", (1,), 0.4),),
                retrieved=tuple(Hit(record(n), 1.0) for n in (2, 1, 4, 5, 6, 3)),
                citations=(cite(c),),
                timings={**timings, "total_s": 4.0},
            ),
            "local",
        ),
        score(
            Question("3", "fact", "q", gold=("000-02",), key_facts=("red",)),
            answer("The abstracts do not say.", answerable=False, retrieved=(Hit(b, 1.0),)),
            "local",
        ),
        score(
            Question("4", "unanswerable_far", "q"),
            answer("Red [1].", citations=(cite(a),)),
            "local",
        ),
    ]


def test_the_overall_metrics() -> None:
    overall = summarise(outcomes())["overall"]
    assert overall == {
        "questions": 4,
        "hit_at_1": pytest.approx(2 / 3),
        "recall_at_1": pytest.approx((1 + 0 + 1) / 3),
        "recall_at_5": pytest.approx((1 + 1 / 2 + 1) / 3),
        "recall_at_10": 1.0,
        "ndcg_at_10": pytest.approx(
            (1 + (1 / math.log2(3) + 1 / math.log2(7)) / (1 + 1 / math.log2(3)) + 1) / 3
        ),
        "key_fact_recall": pytest.approx(3 / 5),
        "all_facts": pytest.approx(1 / 3),
        "support_auc": 1.0,
        "answered": pytest.approx(3 / 4),
        "wrongly_refused": pytest.approx(1 / 3),
        "refusal_precision": 0.0,
        "refusal_recall": 0.0,
        "exact_quotes": pytest.approx(4 / 5),
        "citation_precision": pytest.approx((1 / 2 + 1) / 2),
        "citation_recall": pytest.approx((1 + 1 / 2 + 0) / 3),
        "evidence_precision": pytest.approx((1 / 2 + 0) / 2),
        "evidence_recall": pytest.approx((1 / 2 + 0) / 2),
        "quote_words": 2.0,
        "followup_recall_at_5": None,
        "standalone_recall_at_5": None,
        "followup_difference": None,
        "median_retrieve_s": 0.1,
        "median_first_token_s": 1.0,
        "median_total_s": 3.0,
        "p90_retrieve_s": pytest.approx(0.1),
        "p90_first_token_s": 1.0,
        "p90_total_s": pytest.approx(3.8),
    }


def test_the_metrics_by_type_and_those_that_do_not_apply() -> None:
    metrics = summarise(outcomes())
    assert list(metrics) == ["fact", "compare", "unanswerable_far", "overall"]
    assert metrics["fact"]["questions"] == 2
    assert metrics["fact"]["wrongly_refused"] == 0.5
    assert metrics["fact"]["refusal_recall"] is None
    assert metrics["unanswerable_far"]["hit_at_1"] is None
    assert metrics["unanswerable_far"]["citation_precision"] is None
    assert metrics["unanswerable_far"]["median_total_s"] is None


def test_an_outcome_survives_its_json_line() -> None:
    for outcome in outcomes():
        assert Outcome.from_dict(json.loads(json.dumps(outcome.as_dict()))) == outcome


def test_refusals_are_judged_over_both_kinds_of_questions() -> None:
    def asked(id_: str, gold: tuple[str, ...], refused: bool) -> Outcome:
        return score(Question(id_, "t", "q", gold), answer("a", answerable=not refused), "local")

    runs = [asked("1", (), True), asked("2", (), True), asked("3", (), False)]
    assert summarise(runs)["overall"]["refusal_precision"] is None
    runs += [asked("4", ("000-01",), True), asked("5", ("000-01",), False)]
    overall = summarise(runs)["overall"]
    assert overall["refusal_precision"] == pytest.approx(2 / 3)
    assert overall["refusal_recall"] == pytest.approx(2 / 3)
    assert overall["wrongly_refused"] == 0.5


def test_an_engine_without_claims_has_no_support() -> None:
    run = score(
        Question("1", "t", "q", ("id1",), ("a",)), answer("a", citations=(cite(record(1)),)), "x"
    )
    assert run.support is None
    assert summarise([run])["overall"]["support_auc"] is None


# --- the run over labelled questions -----------------------------------------------------------


class FakeAsker:
    """Answers with the question's own words and keeps what it was asked."""

    def __init__(self, llm_name: str = "local", fail_at: int = 99) -> None:
        self.llm_name = llm_name
        self.fail_at = fail_at
        self.asked: list[tuple[str, Sequence[Mapping[str, str]]]] = []

    def ask(self, question: str, history: Sequence[Mapping[str, str]] = ()) -> Answer:
        if len(self.asked) == self.fail_at:
            raise LLMError("the LLM does not answer")
        self.asked.append((question, history))
        return answer(question)


def test_a_follow_up_is_asked_with_its_history() -> None:
    turns = ({"role": "user", "content": "before"},)
    asker = FakeAsker()
    run_questions(asker, [Question("1", "followup", "and then?", history=turns)])
    assert asker.asked == [("and then?", turns)]


class OneWording:
    """Finds the gold abstract, record 1, for one wording only."""

    def search(self, query: str, k: int = 10) -> list[Hit]:
        return [Hit(record(1 if query == "What came after tea?" else 2), 1.0)][:k]


def test_a_follow_up_is_searched_as_asked_and_as_rewritten_by_hand() -> None:
    follow_up = Question(
        "1", "followup", "and then?", ("000-01",), standalone="What came after tea?"
    )
    plain = Question("2", "fact", "What is tea?", ("000-01",))
    runs = run_questions(FakeAsker(), [follow_up, plain], searcher=OneWording())
    metrics = summarise(runs)["overall"]
    assert metrics["followup_recall_at_5"] == 0.0
    assert metrics["standalone_recall_at_5"] == 1.0
    assert metrics["followup_difference"] == -1.0


def test_a_question_that_was_labelled_anew_is_asked_again(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    run_questions(FakeAsker(), [Question("1", "fact", "tea", key_facts=("ice",))], out)
    asker = FakeAsker()
    corrected = [Question("1", "fact", "tea", key_facts=("tea",), answer="a note changes nothing")]
    assert run_questions(asker, corrected, out)[0].facts_found == 1
    assert len(asker.asked) == 1
    assert run_questions(FakeAsker(fail_at=0), corrected, out)[0].facts_found == 1


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    questions = [Question(str(n), "fact", f"q{n}", key_facts=(f"Q{n}",)) for n in range(4)]
    out = tmp_path / "out.jsonl"
    with pytest.raises(LLMError):
        run_questions(FakeAsker(fail_at=2), questions, out)
    asker = FakeAsker()
    seen: list[tuple[int, int, str]] = []
    results = run_questions(asker, questions, out, lambda *step: seen.append(step))
    assert [question for question, _ in asker.asked] == ["q2", "q3"]
    assert [outcome.answer for outcome in results] == ["q0", "q1", "q2", "q3"]
    assert summarise(results)["overall"]["key_fact_recall"] == 1.0
    assert seen == [(0, 4, "0"), (1, 4, "1"), (2, 4, "2"), (3, 4, "3"), (4, 4, "")]
    assert len(out.read_text().splitlines()) == 4


def test_results_of_another_llm_are_not_mixed_in(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    questions = [Question("1", "fact", "q")]
    run_questions(FakeAsker("extractive"), questions, out)
    with pytest.raises(UsageError, match="holds answers of extractive, not local"):
        run_questions(FakeAsker("local"), questions, out)


def test_a_result_file_of_something_else_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text('{"id": "1"}\n')
    with pytest.raises(UsageError, match=r"out.jsonl, line 1: no result of .*lacks type, "):
        run_questions(FakeAsker(), [Question("1", "fact", "q")], out)


def write_lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_questions_are_read_with_what_they_have(tmp_path: Path) -> None:
    turn = {"role": "user", "content": "x"}
    path = write_lines(
        tmp_path / "q.jsonl",
        {"id": "1", "type": "fact", "question": "a", "gold": ["000-01"], "key_facts": ["k"]},
        {"id": "2", "type": "followup", "question": "b", "history": [turn], "evidence": ["E."],
         "standalone": "s", "answer": "an", "draft": True, "further": 1},
    )  # fmt: skip
    assert read_questions(path) == [
        Question("1", "fact", "a", ("000-01",), ("k",)),
        Question("2", "followup", "b", (), (), (turn,), ("E.",), "s", "an", draft=True),
    ]
    assert [q.id for q in read_questions(path, only=["followup"])] == ["2"]
    assert [q.id for q in read_questions(path, limit=1)] == ["1"]
    with pytest.raises(UsageError, match=r"type 'facts' in .*: use fact, followup"):
        read_questions(path, only=["facts"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no questions"),
        ('\n\n{"id": 1', "line 3: not a JSON object"),
        ("[1]", "line 1: not a JSON object"),
        ('{"id": "1", "question": " "}', "line 1: question is missing"),
        ('{"question": "q"}', "line 1: id is missing"),
        ('{"id": "1", "question": "q", "gold": "000-01"}', "line 1: gold is no list"),
        ('{"id": "1", "question": "q", "evidence": [1]}', "line 1: evidence holds something"),
        ('{"id": "1", "question": "q", "history": ["a"]}', "line 1: history holds something"),
        ('{"id": "1", "question": "q", "standalone": 1}', "line 1: standalone is no text"),
        ('{"id": "1", "question": "q"}\n' * 2, "line 2: id '1' was used before"),
    ],
)
def test_a_bad_file_of_questions_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(content)
    with pytest.raises(UsageError, match=message):
        read_questions(path)


def test_a_missing_file_of_questions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none.jsonl: cannot be read .No such file"):
        read_questions(tmp_path / "none.jsonl")


# --- retrieval on a test collection --------------------------------------------------------------


def test_the_metrics_of_a_ranking() -> None:
    metrics = ranking_metrics(["x", "a", "y", "b"], {"a": 1, "b": 2, "c": 1})
    gained = 1 / math.log2(3) + 2 / math.log2(5)
    ideal = 2 / math.log2(2) + 1 / math.log2(3) + 1 / math.log2(4)
    assert metrics == {
        "ndcg_at_10": pytest.approx(gained / ideal),
        "recall_at_5": pytest.approx(2 / 3),
        "recall_at_10": pytest.approx(2 / 3),
        "mrr": 0.5,
        "hit_at_1": 0.0,
    }


def test_a_perfect_and_a_hopeless_ranking() -> None:
    grades = {f"d{n}": 1 for n in range(12)}
    perfect = ranking_metrics([f"d{n}" for n in range(12)], grades)
    assert (perfect["ndcg_at_10"], perfect["mrr"], perfect["hit_at_1"]) == (1.0, 1.0, 1.0)
    assert perfect["recall_at_10"] == pytest.approx(10 / 12)
    assert set(ranking_metrics(["x"], grades).values()) == {0.0}
    assert set(ranking_metrics([], grades).values()) == {0.0}


def write_collection(folder: Path) -> Path:
    write_lines(
        folder / "corpus.jsonl",
        {"_id": "a", "title": "Wings", "text": "of\n\naircraft."},
        {"_id": "empty", "title": "", "text": " "},
        {"_id": "b", "title": "", "text": "Water."},
        {"_id": "c", "text": "Fire."},
    )
    write_lines(
        folder / "queries.jsonl",
        {"_id": "q1", "text": "flight"},
        {"_id": "q2", "text": "no relevant one"},
        {"_id": "q3", "text": "heat"},
    )
    (folder / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\ta\t1\nq2\ta\t0\nq3\tb\t2\nq3\tc\t1\n"
    )
    return folder


class FakeSearcher:
    """Finds record 1 for flight; else a record that stands for ordinals 3 and 2."""

    def search(self, query: str, k: int = 10) -> list[Hit]:
        assert k == 10
        if query == "flight":
            return [Hit(record(1), 1.0)]
        return [Hit(record(1), 1.0), Hit(record(3, sources=(Source("/d/000_abc.txt", 2),)), 0.5)]


def test_a_collection_is_read_written_and_scored(tmp_path: Path) -> None:
    collection = read_collection(write_collection(tmp_path))
    assert collection.documents == {"a": "Wings of aircraft.", "b": "Water.", "c": "Fire."}
    assert collection.queries == {"q1": "flight", "q3": "heat"}
    ids = write_corpus(collection, tmp_path / "corpus.txt")
    assert ids == {1: "a", 2: "b", 3: "c"}
    blocks = (tmp_path / "corpus.txt").read_text().strip().split("\n\n")
    assert blocks[1:] == ["Wings of aircraft.", "Water.", "Fire."]
    metrics = run_collection(FakeSearcher(), collection, ids)
    assert metrics["hit_at_1"] == 0.5
    assert metrics["mrr"] == pytest.approx((1 + 1 / 2) / 2)
    assert metrics["recall_at_5"] == 1.0


def test_a_bad_collection_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"corpus.jsonl: cannot be read"):
        read_collection(tmp_path)
    write_collection(tmp_path)
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1 a 1\n")
    with pytest.raises(UsageError, match=r"qrels.tsv, line 2: not query, document, grade"):
        read_collection(tmp_path)
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t0\n")
    with pytest.raises(UsageError, match="no queries with relevant documents"):
        read_collection(tmp_path)
    write_lines(tmp_path / "corpus.jsonl", {"text": "x"})
    with pytest.raises(UsageError, match=r"corpus.jsonl, line 1: has no _id"):
        read_collection(tmp_path)
