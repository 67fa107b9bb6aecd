"""The window in a real browser, and its server: a scripted assistant behind the real page."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rag.answers import Answer, Citation, Evidence, Hit
from rag.errors import IndexMissingError, LLMError, UsageError
from rag.filters import Criteria, Filters
from rag.index import IngestReport
from rag.llms.install import InstallStatus
from rag.records import Record, Source
from rag.sources import Skip
from ui.app import build_app, serve

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox", "--headless", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
SHOTS = Path(__file__).parent.parent / "test-artifacts"
TOKEN = "let-me-in"
DATA = Path(__file__).parent.parent / "data"

QUOTE = "We propose Ada-Bench, which tests twelve tools at a rate of $O(n^2)$."
PLAIN = "It costs between $5 and $10, so a<b holds."
ABSTRACT = f"Tools are rarely rated. {QUOTE} {PLAIN}"
HOSTILE = (
    '<script>window.pwned=1</script><img src="http://evil.test/a.png" onerror="window.pwned=1">'
    "![x](http://evil.test/b.png)<style>textarea{display:none}</style>"
    '<form action="http://evil.test"><button>Go</button></form>'
)


@dataclass
class Scripted:
    """Answers by the first word of the question; counts what it streams.

    A question that starts with "Held" waits for `gate` before its first word and half way.
    """

    llm_name: str = "local"
    gate: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    sent: int = 0
    closed: int = 0
    uploads: Path = Path()
    added: int = 0
    filtered: list[Criteria] = field(default_factory=list)

    def status(self) -> dict[str, Any]:
        return {"records": 57 + self.added, "sources": 3}

    def ingest(self, paths: Sequence[Path], **_: Any) -> IngestReport:
        self.added += len(paths)
        skips = tuple(Skip(str(path), "entry 2", "no abstract") for path in paths)
        return IngestReport(read=2, added=len(paths), skipped=skips, records=57 + self.added)

    def search(self, query: str, k: int = 10, **filters: Any) -> list[Hit]:
        if query == "missing":
            raise IndexMissingError("no index at /x: run `rag ingest PATH`")
        return [Hit(_record(ABSTRACT), 1.0)][:k]

    def stream(
        self,
        question: str,
        history: Sequence[Mapping[str, str]] = (),
        **filters: Unpack[Criteria],
    ) -> Iterator[Answer]:
        Filters.of(**filters)  # as the real one: raises UsageError
        self.filtered.append(filters)
        kind = question.split()[0].lower()
        record = _record(f"{HOSTILE} {ABSTRACT} {HOSTILE}" if kind == "hostile" else ABSTRACT)
        text = f"{HOSTILE if kind == 'hostile' else 'Ada-Bench'} tests twelve tools"
        try:
            for snapshot in self._script(question, kind, record, text, len(history)):
                self.sent += 1
                yield snapshot
        finally:
            self.closed += 1

    def _script(
        self, question: str, kind: str, record: Record, text: str, heard: int
    ) -> Iterator[Answer]:
        start = record.abstract.index(QUOTE)
        end = start + len(QUOTE)
        evidence = (Evidence(record, start, end, 1.0),)
        reading = Answer(
            question, question, retrieved=(Hit(record, 1.0), Hit(_record("Another one."), 0.5)),
            evidence=evidence, stage="reading", llm=self.llm_name, timings={"total_s": 1.2},
        )  # fmt: skip
        yield reading
        if kind == "held":
            yield from self._until_open(reading)
        if kind == "fail":
            raise LLMError("the LLM went away: start it again")
        words = "on and on " * 200 if kind == "long" else f"after {heard} messages [1], twelve"
        for word in words.split():
            text += f" {word}"
            yield replace(reading, text=text, stage="writing")
            time.sleep(0.05)
            if kind == "held" and word == "[1],":
                yield from self._until_open(replace(reading, text=text, stage="writing"))
        citation = Citation(1, record, QUOTE, start, end, 0.9)
        yield replace(reading, text=f"{text} [1].", citations=(citation,), stage="done")

    def _until_open(self, snapshot: Answer) -> Iterator[Answer]:
        while not self.gate.acquire(timeout=0.1):
            yield snapshot


def _record(abstract: str) -> Record:
    return Record(str(hash(abstract)), abstract, Source("/home/me/papers.txt", 4))


class Running:
    """A window on a free port of this machine, in a thread."""

    def __init__(self, app: FastAPI) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([listener],), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"no browser at {CHROMIUM}: install Debian's chromium")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def assistant() -> Scripted:
    return Scripted()


@pytest.fixture(scope="module")
def window(assistant: Scripted) -> Iterator[str]:
    running = Running(build_app(assistant, TOKEN, host="127.0.0.1"))  # type: ignore[arg-type]
    yield running.url
    running.stop()


class Visit:
    """One browser session on the window, with what went wrong in it."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        options.setdefault("viewport", {"width": 1280, "height": 860})
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(10_000)
        self.page = self.context.new_page()
        self.foreign: list[str] = []
        self.errors: list[str] = []
        self.page.on("request", lambda r: self._note(r.url, url))
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        self.page.goto(url)
        self.page.wait_for_selector("#aq-ask textarea")

    def _note(self, requested: str, own: str) -> None:
        if not requested.startswith((own, "data:", "blob:")):
            self.foreign.append(requested)

    def ask(self, question: str) -> None:
        self.page.get_by_label("Question").fill(question)
        self.page.keyboard.press("Enter")

    def answered(self, turns: int = 1) -> None:
        self.page.locator(".aq-foot").nth(turns - 1).wait_for()
        self.page.get_by_role("button", name="Ask", exact=True).wait_for()

    def shot(self, name: str) -> None:
        SHOTS.mkdir(exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{name}.png")


@pytest.fixture
def visit(browser: Any, window: str) -> Iterator[Visit]:
    visit = Visit(browser, window)
    yield visit
    visit.context.close()
    assert visit.foreign == []
    assert visit.errors == []


def _words(element: Any) -> str:
    """The text of an element; maths as its TeX, which KaTeX keeps beside what it draws."""
    script = """element => {
        const copy = element.cloneNode(true);
        for (const maths of copy.querySelectorAll(".aq-math"))
            maths.textContent = `$${maths.querySelector("annotation").textContent}$`;
        return copy.textContent;
    }"""
    return str(element.evaluate(script))


# --- in the browser --------------------------------------------------------------------------


@pytest.mark.browser
def test_ask_watch_it_grow_and_open_the_source(visit: Visit, assistant: Scripted) -> None:
    page = visit.page
    visit.ask("Held back: what does it test?")
    page.get_by_text("Evidence found").wait_for()
    assert page.locator(".aq-answer").count() == 0  # evidence comes before the first word
    assistant.gate.release()
    page.locator(".aq-growing", has_text="after 0 messages").wait_for()
    early = page.locator(".aq-answer").inner_text()
    assistant.gate.release()
    visit.answered()
    assert len(page.locator(".aq-answer").inner_text()) > len(early)

    page.locator("a.aq-marker").first.click()
    card = page.locator("details.aq-card[open]")
    card.wait_for()
    assert card.get_attribute("id") == "aq-t1-s1"
    assert card.locator("summary").evaluate("e => e === document.activeElement")
    assert _words(card.locator("mark")) == QUOTE
    assert _words(card.locator(".aq-abstract")) == ABSTRACT
    visit.shot("window-card")

    card.get_by_text("Back to the answer").click()
    assert page.evaluate("document.activeElement.id") == "aq-t1-m1"


@pytest.mark.browser
def test_markers_work_by_keyboard_and_in_earlier_turns(visit: Visit) -> None:
    for turn in (1, 2):
        visit.ask("What does it test?")
        visit.answered(turn)
    assert "after 2 messages" in visit.page.locator(".aq-answer").last.inner_text()
    visit.page.locator("#aq-t1-m1").focus()
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_selector("#aq-t1-s1[open]")
    assert visit.page.locator("#aq-t2-s1[open]").count() == 0
    hint = visit.page.locator("#aq-t1-m1").get_attribute("title") or ""
    assert QUOTE in hint


@pytest.mark.browser
def test_maths_is_drawn_and_dollars_and_signs_stay(visit: Visit) -> None:
    visit.ask("What does it test?")
    visit.answered()
    visit.page.locator("a.aq-marker").first.click()
    abstract = visit.page.locator("#aq-t1-s1 .aq-abstract")
    assert abstract.locator(".katex").count() == 1
    assert PLAIN in abstract.inner_text()


@pytest.mark.browser
def test_an_abstract_and_a_model_cannot_act_on_the_page(visit: Visit) -> None:
    visit.ask(f"Hostile {HOSTILE}")
    visit.answered()
    visit.page.locator("a.aq-marker").first.click()
    talk = visit.page.locator("#aq-talk")
    assert visit.page.evaluate("window.pwned") is None
    assert talk.locator(".md").locator("img, script, style, form, iframe").count() == 0
    assert visit.page.locator("#aq-ask textarea").is_visible()
    assert talk.inner_text().count("<script>window.pwned=1</script>") == 4
    assert _words(talk.locator("mark")) == QUOTE


@pytest.mark.browser
def test_the_policy_of_the_page_holds_against_what_is_not_escaped(
    browser: Any, window: str
) -> None:
    visit = Visit(browser, window)
    visit.page.evaluate("document.body.insertAdjacentHTML('beforeend', "
                        "'<img src=\"http://127.0.0.1:9/x.png\">')")  # fmt: skip
    visit.page.wait_for_timeout(300)
    assert any("Content Security Policy" in error for error in visit.errors)
    visit.context.close()


@pytest.mark.browser
def test_stop_ends_the_stream_and_the_next_question_works(
    visit: Visit, assistant: Scripted
) -> None:
    closed = assistant.closed
    visit.ask("Long story?")
    visit.page.locator(".aq-growing", has_text="on and on").wait_for()
    visit.page.get_by_role("button", name="Stop").click()
    deadline = time.monotonic() + 1.0
    while assistant.closed == closed and time.monotonic() < deadline:
        visit.page.wait_for_timeout(20)
    assert assistant.closed == closed + 1
    sent = assistant.sent
    visit.page.wait_for_selector("text=Stopped before")
    kept = visit.page.locator(".aq-answer").inner_text()
    visit.page.wait_for_timeout(300)
    assert assistant.sent == sent
    assert "on and on" in kept
    assert kept == visit.page.locator(".aq-answer").inner_text()
    visit.ask("What does it test?")
    visit.answered(2)


@pytest.mark.browser
def test_leaving_the_page_stops_the_llm(browser: Any, window: str, assistant: Scripted) -> None:
    closed = assistant.closed
    visit = Visit(browser, window)
    visit.ask("Long story?")
    visit.page.wait_for_selector(".aq-growing")
    visit.context.close()
    deadline = time.monotonic() + 3.0
    while assistant.closed == closed and time.monotonic() < deadline:
        time.sleep(0.05)
    assert assistant.closed == closed + 1


@pytest.mark.browser
def test_an_error_is_told_and_the_box_stays_usable(visit: Visit) -> None:
    visit.ask("Fail now?")
    visit.page.get_by_text("the LLM went away: start it again").wait_for()
    assert visit.page.get_by_text("Evidence found").count() == 1
    visit.ask("What does it test?")
    visit.answered(2)


@pytest.mark.browser
def test_two_sessions_share_nothing(visit: Visit, browser: Any, window: str) -> None:
    visit.ask("What does it test, Alice?")
    visit.answered()
    other = Visit(browser, window)
    assert "Alice" not in other.page.inner_text("body")
    other.ask("What does it test?")
    other.answered()
    assert "after 0 messages" in other.page.locator(".aq-answer").inner_text()
    other.context.close()


@pytest.mark.browser
@pytest.mark.slow
def test_eight_questions_at_once_all_start(browser: Any, window: str) -> None:
    visits = [Visit(browser, window) for _ in range(8)]
    for visit in visits:
        visit.ask("Long story?")
    for visit in visits:
        visit.page.wait_for_selector(".aq-growing", timeout=10_000)
    for visit in visits:
        visit.context.close()


@pytest.mark.browser
def test_examples_clear_and_blank_questions(visit: Visit) -> None:
    page = visit.page
    visit.ask("   ")
    page.wait_for_timeout(300)
    assert page.locator(".aq-question").count() == 0
    page.locator("#aq-talk .examples button").first.click()
    visit.answered()
    page.get_by_role("button", name="Clear", exact=True).last.click()
    page.wait_for_selector(".aq-welcome")
    assert page.locator(".aq-question").count() == 0


@pytest.mark.browser
def test_a_long_answer_does_not_move_a_reader_who_scrolled_up(visit: Visit) -> None:
    page = visit.page
    for turn in (1, 2, 3):
        visit.ask("What does it test?")
        visit.answered(turn)
    visit.ask("Long story?")
    page.wait_for_selector(".aq-growing")
    log = page.locator("#aq-talk [role=log]")
    log.hover()
    page.mouse.wheel(0, -4000)
    page.wait_for_timeout(400)
    assert log.evaluate("e => e.scrollTop") < 50
    page.wait_for_timeout(600)
    assert log.evaluate("e => e.scrollTop") < 50
    page.get_by_role("button", name="Stop").click()


@pytest.mark.browser
def test_the_answer_can_be_copied(browser: Any, window: str) -> None:
    visit = Visit(browser, window, permissions=["clipboard-read", "clipboard-write"])
    visit.ask("What does it test?")
    visit.answered()
    visit.page.get_by_role("button", name="Copy").click()
    visit.page.get_by_role("button", name="Copied").wait_for()
    copied = visit.page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("Ada-Bench tests twelve tools")
    assert f"“{QUOTE}”" in copied
    visit.context.close()


@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_it_fits_the_screen_and_can_be_read(
    browser: Any, window: str, scheme: str, width: int
) -> None:
    visit = Visit(browser, window, color_scheme=scheme, viewport={"width": width, "height": 844})
    visit.shot(f"window-{scheme}-start")
    visit.ask("What does it test?")
    visit.answered()
    visit.shot(f"window-{scheme}-answer")
    overflow = "document.documentElement.scrollWidth - innerWidth"
    assert visit.page.evaluate(overflow) <= 0
    for selector in (".aq-answer", ".aq-marker", ".aq-place", ".aq-foot span", ".aq-size"):
        assert _contrast(visit.page.locator(selector).first) >= 4.5, selector
    buttons = visit.page.locator("button:visible, textarea:visible")
    names = buttons.evaluate_all(
        "all => all.map(e => e.ariaLabel || e.innerText || e.labels?.[0]?.innerText || '')"
    )
    assert all(name.strip() for name in names)
    assert visit.page.locator("[aria-label*='<div']").count() == 0
    visit.context.close()


def _contrast(element: Any) -> float:
    """WCAG contrast of an element's text with what lies behind it."""
    script = """element => {
        const light = colour => {
            const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map(Number).map(v => v / 255)
                .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        let behind = element;
        while (/rgba\\(.*, 0\\)/.test(getComputedStyle(behind).backgroundColor))
            behind = behind.parentElement;
        const a = light(getComputedStyle(element).color);
        const b = light(getComputedStyle(behind).backgroundColor);
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    }"""
    return float(element.evaluate(script))


class Install:
    """A preparation whose step the test sets."""

    def __init__(self) -> None:
        self.step = InstallStatus("engine", "building the engine", 0.4)

    def status(self) -> InstallStatus:
        return self.step


@pytest.mark.browser
def test_preparation_is_shown_and_its_end_too(browser: Any) -> None:
    preparing, assistant = Install(), Scripted(llm_name="extractive")
    running = Running(build_app(assistant, TOKEN, preparing))  # type: ignore[arg-type]
    visit = Visit(browser, running.url)
    line = visit.page.locator("#aq-writer")
    visit.page.get_by_text("building the engine").wait_for()
    assert "extractive until it is ready" in line.inner_text()
    visit.shot("window-preparing")
    preparing.step, assistant.llm_name = InstallStatus("ready", "the local LLM is ready"), "local"
    visit.page.get_by_text("the local LLM is ready").wait_for(timeout=6000)
    assert "Answers: the local LLM" in line.inner_text()
    assert visit.errors == []
    visit.context.close()
    running.stop()


@pytest.mark.browser
@pytest.mark.slow
def test_the_real_assistant_end_to_end(browser: Any, tmp_path: Path) -> None:
    assistants = pytest.importorskip("rag.assistant", exc_type=ImportError)
    with assistants.Assistant.open(index=tmp_path / "index", llm="extractive") as assistant:
        assistant.ingest([DATA])
        question = "How much memory does SVDQuant save on FLUX.1?"
        expected = assistant.ask(question)
        running = Running(build_app(assistant, TOKEN, host="127.0.0.1"))
        visit = Visit(browser, running.url)
        visit.page.locator("#aq-head").get_by_text("57 abstracts from 3 files").wait_for()
        visit.ask(question)
        visit.answered()
        cards = visit.page.locator("details.aq-card[id*='-s']")
        assert cards.count() == len(expected.citations) > 0
        for citation in expected.citations:
            visit.page.locator(f"a.aq-marker[href='#aq-t1-s{citation.marker}']").first.click()
            mark = visit.page.locator(f"#aq-t1-s{citation.marker}[open] mark")
            assert _words(mark) == " ".join(citation.quote.split()).replace("*", "")
        visit.shot("window-real")
        visit.ask("How is the weather in Paris today?")
        visit.answered(2)
        assert visit.page.locator(".aq-refusal").count() == 1
        assert visit.foreign == []
        assert visit.errors == []
        visit.context.close()
        running.stop()


@pytest.mark.browser
def test_files_are_added_and_the_outcome_is_shown(
    assistant: Scripted, visit: Visit, tmp_path: Path
) -> None:
    assistant.uploads = tmp_path / "uploads"
    file = tmp_path / "my papers.ris"
    file.write_text("TY  - JOUR")
    page = visit.page
    page.locator("#aq-collection", has_text="57 abstracts").wait_for()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Add papers").click()
    chooser.value.set_files(file)
    outcome = page.locator("#aq-added .aq-outcome")
    outcome.wait_for()
    assert "my papers.ris, entry 2: no abstract" in outcome.inner_text()
    page.locator("#aq-collection", has_text="58 abstracts").wait_for()
    assert [each.name for each in assistant.uploads.iterdir()] == ["my papers.ris"]
    visit.shot("upload")
    assistant.added = 0


@pytest.mark.browser
def test_filters_restrict_each_question_until_they_are_emptied(
    visit: Visit, assistant: Scripted
) -> None:
    page, filtered = visit.page, assistant.filtered
    filtered.clear()
    row = page.locator("#aq-filters")
    fold = row.get_by_role("button", name="Filters")
    assert not page.get_by_label("Author").is_visible()
    assert fold.get_attribute("aria-expanded") == "false"
    fold.focus()
    page.keyboard.press("Enter")
    row.locator("button[aria-expanded=true]").wait_for()
    page.get_by_label("Year or range").fill("2019-2021")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type("Smith")
    page.keyboard.press("Tab")
    row.get_by_text("Filters: year 2019-2021, author Smith").wait_for()
    visit.shot("window-filters")
    fold.click()
    page.get_by_label("Author").wait_for(state="hidden")
    assert fold.get_attribute("aria-expanded") == "false"
    visit.ask("What does it test?")
    visit.answered()
    only = page.locator(".aq-only")
    assert only.inner_text() == "Only: year 2019-2021, author Smith"
    assert _contrast(only) >= 4.5
    assert filtered == [{"year": "2019-2021", "author": "Smith"}]
    visit.shot("window-filtered")

    page.get_by_role("button", name="Clear", exact=True).last.click()
    page.wait_for_selector(".aq-welcome")
    fold.click()
    assert page.get_by_label("Author").input_value() == "Smith"
    page.get_by_label("Year or range").fill("20x")
    visit.ask("What does it test?")
    page.locator(".aq-error", has_text="'20x' is no year or range").wait_for()
    page.get_by_label("Year or range").fill("")
    page.get_by_label("Author").fill("")
    page.get_by_label("Question").fill("What does it test?")
    page.get_by_label("Venue").press("Enter")
    visit.answered()
    assert filtered[1:] == [{}]
    row.get_by_role("button", name="Filters", exact=True).wait_for()


# --- the server ------------------------------------------------------------------------------


@pytest.fixture
def client(assistant: Scripted) -> TestClient:
    return TestClient(build_app(assistant, TOKEN))  # type: ignore[arg-type]


KEY = {"Authorization": f"Bearer {TOKEN}"}


def test_routes_answer_with_the_contracts_json(client: TestClient) -> None:
    hits = client.post("/rag/search", json={"query": "tools", "k": 1}, headers=KEY).json()
    assert hits[0]["text"] == ABSTRACT
    assert hits[0]["source"]["ordinal"] == 4
    history = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    body = {"question": "What?", "history": history, "llm": None}
    answer = client.post("/rag/ask", json=body, headers=KEY).json()
    assert answer["citations"][0]["quote"] == QUOTE
    assert "after 2 messages" in answer["answer"]
    assert client.get("/rag/status", headers=KEY).json()["records"] == 57


def test_routes_need_the_token(client: TestClient) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}):
        response = client.get("/rag/status", headers=headers)
        assert response.status_code == 403
        assert "token" in response.json()["error"]
        assert client.post("/rag/ask", json={"question": "q"}, headers=headers).status_code == 403


def test_route_errors_name_their_kind(client: TestClient) -> None:
    missing = client.post("/rag/search", json={"query": "missing"}, headers=KEY)
    assert missing.status_code == 400
    assert missing.json() == {"error": "no index at /x: run `rag ingest PATH`",
                              "kind": "IndexMissingError"}  # fmt: skip
    failed = client.post("/rag/ask", json={"question": "Fail now?"}, headers=KEY)
    assert failed.json()["kind"] == "LLMError"
    other = client.post("/rag/ask", json={"question": "q", "llm": "openai:x"}, headers=KEY)
    assert other.json()["kind"] == "UsageError"
    assert "openai:x" in other.json()["error"]
    unreadable = client.post("/rag/ask", json={}, headers=KEY)
    assert unreadable.status_code == 422
    assert unreadable.json()["kind"] == "UsageError"


def test_the_page_carries_its_policy_and_refuses_foreign_names(assistant: Scripted) -> None:
    local = TestClient(build_app(assistant, TOKEN, host="127.0.0.1"),  # type: ignore[arg-type]
                       base_url="http://127.0.0.1:7860")  # fmt: skip
    page = local.get("/")
    assert page.status_code == 200
    assert "img-src 'self' data: blob:" in page.headers["content-security-policy"]
    assert "googleapis" not in page.text
    assert "aq-marker" in page.text
    assert local.get("/", headers={"Host": "evil.test"}).status_code == 400


def test_a_port_in_use_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=rf"^port {port} on 127.0.0.1 is in use: .*PORT=\d+.*"):
            serve(Scripted(), port=port)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="not a port"):
        serve(Scripted(), port=70_000)  # type: ignore[arg-type]
