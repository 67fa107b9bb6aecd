"""The command line, with an assistant that remembers what it was asked."""

from __future__ import annotations

import importlib
import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar, Self

import pytest
from click.testing import CliRunner, Result

from rag.answers import Answer, Citation, Evidence, Hit
from rag.cli import main
from rag.errors import IndexBusyError, IndexMissingError, LLMError, UsageError
from rag.lock import IndexLock
from rag.records import Record, Source

RECORD = Record("ab12", "Tea is hot. Ice — 冰 — is cold.", Source("/d/000.txt", 4))
EVIDENCE = Evidence(RECORD, 0, 11, 1.0)
ANSWER = Answer(
    question="Is tea hot?",
    standalone_question="Is tea hot?",
    text="Tea is hot [1].",
    citations=(Citation(1, RECORD, "Tea is hot.", 0, 11, 1.0),),
    retrieved=(Hit(RECORD, 0.9),),
    evidence=(EVIDENCE,),
    timings={"retrieve_s": 0.01, "first_token_s": 0.1, "total_s": 2.0},
    llm="local",
)
REPORT = {
    "read": 2, "added": 2, "updated": 0, "unchanged": 0, "removed": 0, "records": 2,
    "skipped": [{"path": "b.pdf", "where": "", "reason": "a binary file"}],
}  # fmt: skip


class FakeAssistant:
    """Stands in for Assistant; `calls` keeps every call as (name, arguments...)."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.creates: bool | None = None
        self.error: BaseException | None = None
        self.open_error: BaseException | None = None
        self.report: dict[str, Any] = REPORT
        self.llm_name = "local"
        self.llm = None
        self.stored: Sequence[Record] = (RECORD,)
        self.snapshots: Sequence[Answer] = (ANSWER,)

    def open(
        self, index: Any = None, llm: Any = None, *, what: str = "", create: bool = True
    ) -> Self:
        self.calls.append(("open", index, llm, what))
        self.creates = create
        if self.open_error:
            raise self.open_error
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.calls.append(("close",))

    def _called(self, *call: Any) -> None:
        self.calls.append(call)
        if self.error:
            raise self.error

    def ingest(
        self,
        paths: Sequence[Path],
        *,
        progress: Callable[[str, int, int], None],
        **options: bool,
    ) -> SimpleNamespace:
        self._called("ingest", paths, *(name for name, on in options.items() if on))
        progress("embedding", 1, 2)
        return SimpleNamespace(as_dict=lambda: self.report)

    def search(self, query: str, k: int = 10, **filters: Any) -> list[Hit]:
        self._called("search", query, k, *([filters] if filters else []))
        return [Hit(RECORD, 0.9)]

    def remove(self, sources: Sequence[str]) -> SimpleNamespace:
        self._called("remove", sources)
        return SimpleNamespace(as_dict=lambda: {**REPORT, "removed": 3, "records": 5})

    def ask(self, question: str, history: Any = (), **filters: Any) -> Answer:
        self._called("ask", question, list(history), *([filters] if filters else []))
        return ANSWER

    def stream(self, question: str, history: Any = (), **filters: Any) -> Iterator[Answer]:
        self._called("stream", question, list(history))
        yield from self.snapshots

    def export(self, format: str, ids: Sequence[str] | None = None) -> str:
        self._called("export", format, ids)
        return "TY  - GEN\nTI  - 冰\nER  - \n"

    def records(self) -> Iterator[Record]:
        yield from self.stored

    def status(self) -> dict[str, Any]:
        self._called("status")
        return {"records": 2, "llm": "local"}


@pytest.fixture
def assistant(monkeypatch: pytest.MonkeyPatch) -> FakeAssistant:
    fake = FakeAssistant()
    module = ModuleType("rag.assistant")
    module.Assistant = fake  # type: ignore[attr-defined]
    module.preview = lambda paths, index, **options: None  # type: ignore[attr-defined]
    module.rebuilt = lambda index: fake.calls.append(("rebuilt", index))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "rag.assistant", module)
    return fake


def rag(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, arguments, input=stdin, catch_exceptions=False)


def error_line(result: Result) -> str:
    """The one line on stderr of a command that failed and printed nothing else."""
    assert result.stdout == ""
    assert result.stderr.startswith("rag: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("rag: ").rstrip("\n")


# --- ingest -----------------------------------------------------------------------------------


def test_ingest_says_what_it_did_and_what_it_skipped(assistant: FakeAssistant) -> None:
    result = rag("--index", "there", "ingest", "a.txt", "folder")
    assert result.exit_code == 0
    assert result.stdout.startswith("2 read, 2 added")
    assert "skipped b.pdf: a binary file" in result.stdout
    assert assistant.calls == [
        ("open", "there", None, "rag ingest"),
        ("ingest", [Path("a.txt"), Path("folder")]),
        ("close",),
    ]


def test_ingest_json_is_the_report_alone(assistant: FakeAssistant) -> None:
    result = rag("ingest", "a.txt", "--json")
    assert json.loads(result.stdout) == REPORT
    assert result.stderr == ""


def test_ingest_fails_when_nothing_could_be_read(assistant: FakeAssistant) -> None:
    assistant.report = {**REPORT, "read": 0}
    result = rag("ingest", "b.pdf", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["skipped"] == REPORT["skipped"]
    assert result.stderr == "rag: no abstract could be read in b.pdf; see what was skipped\n"


def test_only_ingest_makes_an_index(
    assistant: FakeAssistant, served: list[tuple[Any, ...]]
) -> None:
    rag("ingest", "a.txt")
    assert assistant.creates is True
    for arguments in (("ask", "q"), ("search", "q"), ("status",), ("chat",)):
        rag(*arguments)
        assert assistant.creates is False


def test_rebuild_deletes_the_index_first(assistant: FakeAssistant, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("We prove it.")
    assert rag("--index", "there", "ingest", "--rebuild", str(file)).exit_code == 0
    assert [call[0] for call in assistant.calls] == ["rebuilt", "open", "ingest", "close"]
    assert assistant.calls[0] == ("rebuilt", "there")


def test_rebuild_keeps_the_index_when_there_is_no_file(
    assistant: FakeAssistant, tmp_path: Path
) -> None:
    result = rag("ingest", "--rebuild", str(tmp_path / "none"))
    assert result.exit_code == 1
    assert "nothing could be read" in error_line(result)
    assert assistant.calls == []


def test_ingest_passes_its_options_on(assistant: FakeAssistant) -> None:
    assert rag("ingest", "a.txt", "--keep-missing", "--titles").exit_code == 0
    assert assistant.calls[1] == ("ingest", [Path("a.txt")], "keep_missing", "titles_suffice")


def test_a_dry_run_says_so(assistant: FakeAssistant) -> None:
    result = rag("ingest", "a.txt", "--dry-run")
    assert result.stdout.startswith("nothing was changed; an ingest would come to this:\n2 read")
    assert assistant.calls[1] == ("ingest", [Path("a.txt")], "dry_run")


@pytest.mark.parametrize(
    "options", [("--dry-run", "--rebuild"), ("--dry-run", "--watch"), ("--watch", "--json")]
)
def test_options_that_contradict_each_other_are_refused(
    assistant: FakeAssistant, options: tuple[str, ...]
) -> None:
    result = rag("ingest", "a.txt", *options)
    assert result.exit_code == 2
    assert "leave" in error_line(result)
    assert assistant.calls == []


def test_watch_ingests_again_when_something_changed(
    assistant: FakeAssistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching = importlib.import_module("rag.watching")
    monkeypatch.setattr(watching, "changes", lambda paths, index: iter([[Path("a.txt")]]))
    result = rag("ingest", "a.txt", "--watch")
    assert result.exit_code == 0
    assert result.stderr == "watching a.txt (Ctrl-C ends it)\n"
    assert [call[0] for call in assistant.calls] == ["open", "ingest", "close"] * 2


def test_remove_says_how_many_went(assistant: FakeAssistant) -> None:
    assert rag("remove", "a.txt", "b").stdout == "3 removed; 5 records in the index\n"
    assert assistant.calls[1] == ("remove", ("a.txt", "b"))
    assert assistant.creates is False


# --- search -----------------------------------------------------------------------------------


def test_filters_are_passed_on_and_a_path_is_made_absolute(
    assistant: FakeAssistant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.ris").touch()
    filters = {"year": "-2021", "author": "Li", "source": str(tmp_path / "a.ris")}
    rag("search", "tea", "--year", "-2021", "--author", "Li", "--source", "a.ris")
    rag("ask", "tea", "--json", "--year", "-2021", "--author", "Li", "--source", "a.ris")
    assert ("search", "tea", 10, filters) in assistant.calls
    assert ("ask", "tea", [], filters) in assistant.calls


def test_a_filter_that_makes_no_sense_is_refused_before_the_index_is_opened(
    assistant: FakeAssistant,
) -> None:
    result = rag("search", "tea", "--year", "soon")
    assert result.exit_code == 2
    assert "'soon' is no year" in error_line(result)
    assert assistant.calls == []


def test_search_json(assistant: FakeAssistant) -> None:
    result = rag("search", "tea", "-k", "3", "--json", "--index", "here")
    (hit,) = json.loads(result.stdout)
    assert (hit["id"], hit["score"], hit["text"]) == ("ab12", 0.9, RECORD.abstract)
    assert hit["source"] == {"path": "/d/000.txt", "ordinal": 4}
    assert "冰" in result.stdout
    assert assistant.calls[0][1] == "here"
    assert assistant.calls[1] == ("search", "tea", 3)


def test_search_text(assistant: FakeAssistant) -> None:
    result = rag("search", "tea")
    assert "/d/000.txt #4, id ab12" in result.stdout


# --- ask --------------------------------------------------------------------------------------


def test_ask_prints_the_answer_then_its_citations(assistant: FakeAssistant) -> None:
    result = rag("ask", "Is tea hot?", "--llm", "local")
    assert result.exit_code == 0
    answer, blank, *rest = result.stdout.splitlines()
    assert (answer, blank) == ("Tea is hot [1].", "")
    assert rest[0].startswith("[1] ")
    assert rest[0].endswith("— /d/000.txt #4: “Tea is hot.”")
    assert rest[1] == "answered by local in 2.0 s"
    assert assistant.calls[0] == ("open", None, "local", "rag ask")


def test_ask_json_is_the_answer_alone(assistant: FakeAssistant) -> None:
    result = rag("ask", "Is tea hot?", "--json")
    assert json.loads(result.stdout) == ANSWER.as_dict()
    assert result.stderr == ""


def test_ask_passes_the_history(assistant: FakeAssistant, tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
    file = tmp_path / "history.json"
    file.write_text(json.dumps(turns))
    rag("ask", "and now?", "--history", str(file), "--json")
    assert assistant.calls[1] == ("ask", "and now?", turns)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("{}", "not a list"),
        ('["x"]', "turn 1: not "),
        ('[{"role": "system", "content": "x"}]', "turn 1: role is not user or assistant"),
        ('[{"role": "user", "content": "x"}, {"role": "user"}]', "turn 2: content is not text"),
        (None, "cannot be read (No such file"),
    ],
)
def test_a_bad_history_is_refused(
    assistant: FakeAssistant, tmp_path: Path, content: str | None, message: str
) -> None:
    file = tmp_path / "history.json"
    if content is not None:
        file.write_text(content)
    result = rag("ask", "q", "--history", str(file))
    assert result.exit_code == 2
    assert f"--history {file}" in error_line(result)
    assert message in error_line(result)
    assert assistant.calls == []


def test_a_dash_reads_the_question_from_the_standard_input(assistant: FakeAssistant) -> None:
    rag("ask", "-", "--json", stdin="Is 冰 cold?\n")
    assert assistant.calls[1] == ("ask", "Is 冰 cold?", [])
    assert "not UTF-8" in error_line(rag("ask", "-", stdin=b"\xff"))


# --- export -----------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["bibtex", "ris", "csl-json"])
def test_export_prints_the_text_alone(assistant: FakeAssistant, format: str) -> None:
    result = rag("--index", "there", "export", format, "ab12", "cd34")
    assert result.exit_code == 0
    assert result.stdout == "TY  - GEN\nTI  - 冰\nER  - \n"
    assert result.stderr == ""
    assert assistant.creates is False
    assert assistant.calls[:2] == [
        ("open", "there", "extractive", "rag export"),
        ("export", format, ["ab12", "cd34"]),
    ]


def test_export_of_all_into_a_file(assistant: FakeAssistant, tmp_path: Path) -> None:
    file = tmp_path / "library.ris"
    result = rag("export", "ris", "--all", "--output", str(file))
    assert (result.exit_code, result.stdout) == (0, "")
    assert file.read_bytes().decode() == "TY  - GEN\nTI  - 冰\nER  - \n"
    assert ("export", "ris", None) in assistant.calls


def test_export_takes_ids_from_the_standard_input(assistant: FakeAssistant) -> None:
    assert rag("export", "ris", "-", stdin="ab12\ncd34\n").exit_code == 0
    assert ("export", "ris", ["ab12", "cd34"]) in assistant.calls


@pytest.mark.parametrize(
    "arguments", [("ris",), ("ris", "ab12", "--all"), ("word", "ab12"), ("ris", "-")]
)
def test_export_needs_a_format_and_ids_or_all(
    assistant: FakeAssistant, arguments: tuple[str, ...]
) -> None:
    result = rag("export", *arguments, stdin=" \n")
    assert result.exit_code == 2
    error_line(result)
    assert assistant.calls == []


def test_export_of_an_unknown_id_and_into_no_folder(
    assistant: FakeAssistant, tmp_path: Path
) -> None:
    nowhere = str(tmp_path / "none" / "x.bib")
    result = rag("export", "bibtex", "ab12", "--output", nowhere)
    assert result.exit_code == 1
    assert error_line(result) == f"{nowhere}: No such file or directory"
    assistant.error = UsageError("no abstract has the id 'x'")
    result = rag("export", "bibtex", "x")
    assert result.exit_code == 2
    assert error_line(result) == "no abstract has the id 'x'"


def test_export_asks_a_running_window(window: None) -> None:
    result = rag("export", "ris", "ab12", "cd34")
    assert result.exit_code == 0
    assert result.stdout == "ris of ['ab12', 'cd34']"
    assert rag("export", "ris", "--all").stdout == "ris of None"


# --- status, chat -------------------------------------------------------------------------------


def test_status(assistant: FakeAssistant) -> None:
    assert rag("status").stdout == "records: 2\nllm: local\n"
    assert json.loads(rag("status", "--json").stdout) == {"records": 2, "llm": "local"}


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = []
    module = ModuleType("ui.app")
    module.serve = (  # type: ignore[attr-defined]
        lambda assistant, host, port, prepare_local: calls.append((host, port, prepare_local))
    )
    monkeypatch.setitem(sys.modules, "ui.app", module)
    monkeypatch.delenv("PORT", raising=False)
    return calls


def test_chat_serves_this_machine(
    assistant: FakeAssistant, served: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rag("chat").exit_code == 0
    monkeypatch.setenv("PORT", "8123")
    rag("chat", "--host", "::1")
    rag("chat", "--port", "9000", "--host", "0.0.0.0", "--allow-remote")
    assert served == [
        ("127.0.0.1", 7860, False),
        ("::1", 8123, False),
        ("0.0.0.0", 9000, False),
    ]
    assert assistant.calls[:2] == [("open", None, None, "the chat window"), ("close",)]


@pytest.mark.parametrize(
    ("arguments", "ready", "opened", "prepared"),
    [
        ((), False, "extractive", True),
        ((), True, None, False),
        (("--llm", "local"), False, "extractive", True),
        (("--llm", "extractive"), False, "extractive", False),
        (("--llm", "ollama:m"), False, "ollama:m", False),
    ],
)
def test_chat_prepares_the_local_llm_unless_it_is_ready_or_another_was_chosen(
    assistant: FakeAssistant,
    served: list[tuple[Any, ...]],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    ready: bool,
    opened: str | None,
    prepared: bool,
) -> None:
    monkeypatch.setattr(importlib.import_module("rag.llms"), "ready_local", lambda: ready)
    rag("chat", "--prepare-local", *arguments)
    assert assistant.calls[0] == ("open", None, opened, "the chat window")
    assert served[0][2] is prepared


def test_chat_lets_nobody_else_in_unasked(
    assistant: FakeAssistant, served: list[tuple[Any, ...]]
) -> None:
    result = rag("chat", "--host", "0.0.0.0")
    assert result.exit_code == 2
    assert "--allow-remote" in error_line(result)
    assert served == []


def test_a_second_window_points_to_the_first(
    assistant: FakeAssistant, served: list[tuple[Any, ...]]
) -> None:
    assistant.open_error = IndexBusyError("busy", "http://127.0.0.1:7860", "secret")
    result = rag("chat")
    assert result.exit_code == 1
    assert "already runs at http://127.0.0.1:7860" in error_line(result)


# --- install-local --------------------------------------------------------------------------------


class FakeInstall:
    """Goes through `stages`, and says each."""

    stages: ClassVar[list[tuple[str, str]]] = []
    stopped: ClassVar[list[bool]] = []

    def __init__(self, *, echo: Callable[[str], None]) -> None:
        self.echo = echo
        self.state = SimpleNamespace(stage="waiting", message="")

    def start(self) -> None:
        for stage, message in self.stages:
            self.state = SimpleNamespace(stage=stage, message=message)
            self.echo(message)

    def status(self) -> SimpleNamespace:
        return self.state

    def stop(self) -> None:
        self.stopped.append(True)


@pytest.mark.parametrize(
    ("last", "status", "said"),
    [
        (("ready", "it is ready"), 0, "downloading\nit is ready\n"),
        (("failed", "part 3 is damaged"), 1, "downloading\nrag: part 3 is damaged\n"),
        (("unavailable", "no compiler"), 1, "downloading\nrag: no compiler\n"),
    ],
)
def test_install_local_waits_for_the_end(
    monkeypatch: pytest.MonkeyPatch, last: tuple[str, str], status: int, said: str
) -> None:
    module = ModuleType("rag.llms.install")
    module.LocalInstall = FakeInstall  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "rag.llms.install", module)
    monkeypatch.setattr(FakeInstall, "stages", [("installing", "downloading"), last])
    monkeypatch.setattr(FakeInstall, "stopped", [])
    result = rag("install-local")
    assert (result.exit_code, result.output) == (status, said)
    assert FakeInstall.stopped == [True]


# --- a window that serves the index ---------------------------------------------------------------


class FakeWindow:
    made: ClassVar[list[tuple[str, str]]] = []

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.made.append((url, token))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def search(self, query: str, k: int, **filters: str) -> list[dict[str, Any]]:
        return [{"query": query, "k": k, **filters}]

    def ask(self, question: str, history: Any, llm: Any, **filters: str) -> dict[str, Any]:
        return {**ANSWER.as_dict(), "llm": llm, **filters}

    def ingest(self, paths: Sequence[str], **options: bool) -> dict[str, Any]:
        return {**REPORT, "records": len(paths), **{k: v for k, v in options.items() if v}}

    def remove(self, sources: Sequence[str]) -> dict[str, Any]:
        return {**REPORT, "removed": len(sources)}

    def export(self, format: str, ids: Sequence[str] | None = None) -> str:
        return f"{format} of {ids}"

    def status(self) -> dict[str, Any]:
        return {"records": 57}


@pytest.fixture
def window(assistant: FakeAssistant, monkeypatch: pytest.MonkeyPatch) -> None:
    assistant.open_error = IndexBusyError("busy", "http://127.0.0.1:7860", "secret")
    monkeypatch.setattr(FakeWindow, "made", [])
    monkeypatch.setattr(importlib.import_module("rag.remote"), "Window", FakeWindow)


@pytest.mark.parametrize(
    ("arguments", "answered"),
    [
        (("search", "tea", "-k", "2"), [{"query": "tea", "k": 2}]),
        (("ask", "Is tea hot?", "--llm", "extractive"), {**ANSWER.as_dict(), "llm": "extractive"}),
        (("ask", "Is tea hot?"), {**ANSWER.as_dict(), "llm": None}),
        (("ingest", "a", "b"), {**REPORT, "records": 2}),
        (("ingest", "a", "--keep-missing"), {**REPORT, "records": 1, "keep_missing": True}),
        (("remove", "a", "b"), {**REPORT, "removed": 2}),
        (("ask", "q", "--author", "Li"), {**ANSWER.as_dict(), "llm": None, "author": "Li"}),
        (("status",), {"records": 57}),
    ],
)
def test_a_running_window_is_asked(window: None, arguments: tuple[str, ...], answered: Any) -> None:
    result = rag(*arguments, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == answered
    assert result.stderr == "asked the chat window at http://127.0.0.1:7860, which owns the index\n"
    assert FakeWindow.made == [("http://127.0.0.1:7860", "secret")]


def test_another_owner_is_an_error(assistant: FakeAssistant) -> None:
    assistant.open_error = IndexBusyError("the index is in use by rag ingest")
    result = rag("ask", "q")
    assert result.exit_code == 1
    assert error_line(result) == "the index is in use by rag ingest"


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (IndexMissingError("no index at X: run `rag ingest`"), 1),
        (LLMError("the LLM refuses"), 1),
        (UsageError("the question is empty"), 2),
    ],
)
def test_errors_of_the_library_are_one_line(
    assistant: FakeAssistant, error: Exception, status: int
) -> None:
    assistant.error = error
    result = rag("ask", "q")
    assert result.exit_code == status
    assert error_line(result) == str(error)
    assert assistant.calls[-1] == ("close",)


def test_a_message_of_several_lines_becomes_one(assistant: FakeAssistant) -> None:
    assistant.error = LLMError("first\n  second")
    assert error_line(rag("ask", "q")) == "first second"


def test_a_full_disk_is_one_line(assistant: FakeAssistant) -> None:
    assistant.error = OSError(28, "No space left on device", "/d/index")
    result = rag("ingest", "a.txt")
    assert result.exit_code == 1
    assert error_line(result) == "/d/index: No space left on device"


def test_an_interrupt_is_quiet(assistant: FakeAssistant) -> None:
    assistant.error = KeyboardInterrupt()
    result = rag("ask", "q")
    assert (result.exit_code, result.output) == (130, "")
    assert assistant.calls[-1] == ("close",)


@pytest.mark.parametrize(
    "arguments",
    [
        ("search",),
        ("search", "tea", "-k", "0"),
        ("search", "tea", "-k", "x"),
        ("nonsense",),
        ("--nonsense",),
    ],
)
def test_wrong_usage_is_one_line_and_2(
    assistant: FakeAssistant, arguments: tuple[str, ...]
) -> None:
    result = rag(*arguments)
    assert result.exit_code == 2
    assert error_line(result)
    assert assistant.calls == []


# --- the real process ---------------------------------------------------------------------------

RUN = "from rag.cli import main; main()"


def test_help_is_quick() -> None:
    fastest = min(_seconds([sys.executable, "-c", RUN, "--help"]) for _ in range(3))
    assert fastest < 0.5


def _seconds(command: list[str]) -> float:
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Commands:" in done.stdout
    return time.perf_counter() - started


def test_a_reader_that_went_away_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", RUN, "--help"], stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert done.stderr == b""


def in_a_terminal(program: str, *arguments: str) -> str:
    """What a command shows in a terminal, stdout and stderr together."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={
            **os.environ,
            "TERM": "xterm",
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
        },
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(leader)
    assert process.wait() == 0, shown
    return shown.decode()


STREAMING = """
import sys
from dataclasses import replace
from types import ModuleType
from test_cli import ANSWER, FakeAssistant
fake = FakeAssistant()
fake.snapshots = [
    replace(ANSWER, stage="reading", text="", citations=()),
    replace(ANSWER, stage="writing", text="Tea", citations=()),
    replace(ANSWER, stage="writing", text="Tea", citations=()),
    replace(ANSWER, stage="writing", text="Tea is \\x1b[31mhot", citations=()),
    replace(ANSWER, text=sys.argv.pop()),
]
module = ModuleType("rag.assistant")
module.Assistant = fake
sys.modules["rag.assistant"] = module
from rag.cli import main
main()
"""


def test_a_terminal_sees_the_answer_grow() -> None:
    shown = in_a_terminal(STREAMING, "ask", "q", "Tea is \x1b[31mhot [1].")
    assert "local is reading 1 sentences of 1 abstracts" in shown
    assert "Tea is �[31mhot [1].\r\n\r\n[1] " in shown
    assert shown.endswith("answered by local in 2.0 s\r\n")


def run(index: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, with an index and nothing else configured."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("RAG_")}
    return subprocess.run(
        [sys.executable, "-c", RUN, "--index", str(index), *arguments],
        capture_output=True,
        text=True,
        env={**known, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )


@pytest.mark.slow
def test_from_a_file_to_a_checked_answer(tmp_path: Path) -> None:
    index, file = tmp_path / "index", tmp_path / "papers.txt"
    file.write_text(
        "Some papers\n\n"
        "We introduce TeaBench, a benchmark of 312 tea-tasting tasks. Agents solve few of them.\n\n"
        "Glaciers lose mass faster than they did. We measure the loss with 17 satellites.\n"
    )
    missing = run(index, "ask", "How many tasks has TeaBench?")
    assert missing.returncode == 1
    assert missing.stderr.startswith(f"rag: no index at {index}: ")

    ingested = run(index, "ingest", str(file), "--json")
    assert json.loads(ingested.stdout)["added"] == 2

    asked = run(index, "ask", "How many tasks has TeaBench?", "--llm", "extractive", "--json")
    answer = json.loads(asked.stdout)
    assert answer["answerable"] is True
    assert "312" in answer["answer"]
    abstract = (
        "We introduce TeaBench, a benchmark of 312 tea-tasting tasks. Agents solve few of them."
    )
    citation = answer["citations"][0]
    assert citation["quote"] == abstract[citation["start"] : citation["end"]]
    assert citation["source"] == {"path": str(file), "ordinal": 1}

    lock = IndexLock(index)
    lock.acquire("a test")
    busy, free = run(index, "ingest", str(file)), run(index, "status")
    lock.release()
    assert (busy.returncode, free.returncode) == (1, 0)
    assert f"in use by a test (process {os.getpid()}" in busy.stderr
    assert busy.stderr.count("\n") == 1
