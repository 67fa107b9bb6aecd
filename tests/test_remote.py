"""Window: the client of a running chat window, against a real HTTP server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from rag.errors import IndexBusyError, IndexMissingError, LLMError, RagError, UsageError
from rag.remote import Window


class WindowServer(ThreadingHTTPServer):
    """Answers every request with `reply` = (status, body) and keeps what it was sent."""

    reply: tuple[int, bytes] = (200, b"{}")

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, str, str | None, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: WindowServer

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        self.server.requests.append(
            (self.command, self.path, self.headers.get("Authorization"), body)
        )
        status, content = self.server.reply
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[WindowServer]:
    server = WindowServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def window(server: WindowServer) -> Iterator[Window]:
    with Window(server.url, "secret") as window:
        yield window


def test_search(server: WindowServer, window: Window) -> None:
    server.reply = (200, '[{"id": "é"}]'.encode())
    assert window.search("water", k=3, year=2024) == [{"id": "é"}]
    body = {"query": "water", "k": 3, "filters": {"year": 2024}}
    assert server.requests == [("POST", "/rag/search", "Bearer secret", body)]


def test_ask(server: WindowServer, window: Window) -> None:
    server.reply = (200, b'{"answer": "x"}')
    turns = [{"role": "user", "content": "q"}]
    assert window.ask("why?", turns, "local") == {"answer": "x"}
    body = {"question": "why?", "history": turns, "llm": "local", "filters": {}}
    assert server.requests == [("POST", "/rag/ask", "Bearer secret", body)]


def test_ingest_sends_absolute_paths(
    server: WindowServer, window: Window, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    window.ingest(["data", Path("/elsewhere/a.txt")], keep_missing=True)
    body = {
        "paths": [str(tmp_path / "data"), "/elsewhere/a.txt"],
        "options": {"keep_missing": True},
    }
    assert server.requests == [("POST", "/rag/ingest", "Bearer secret", body)]


def test_remove_sends_absolute_paths(
    server: WindowServer, window: Window, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    window.remove(["data"])
    body = {"sources": [str(tmp_path / "data")]}
    assert server.requests == [("POST", "/rag/remove", "Bearer secret", body)]


def test_export(server: WindowServer, window: Window) -> None:
    server.reply = (200, '"TY  - JOUR\\né"'.encode())
    assert window.export("ris", ["a", "b"]) == "TY  - JOUR\né"
    window.export("ris")
    bodies = [body for _, _, _, body in server.requests]
    assert bodies == [{"format": "ris", "ids": ["a", "b"]}, {"format": "ris", "ids": None}]
    assert server.requests[0][:3] == ("POST", "/rag/export", "Bearer secret")


def test_status(server: WindowServer, window: Window) -> None:
    server.reply = (200, b'{"records": 57}')
    assert window.status() == {"records": 57}
    assert server.requests == [("GET", "/rag/status", "Bearer secret", None)]


@pytest.mark.parametrize(
    ("kind", "raised"),
    [
        ("UsageError", UsageError),
        ("LLMError", LLMError),
        ("IndexMissingError", IndexMissingError),
        ("RagError", RagError),
        ("annotations", RagError),
        ("ValueError", RagError),
        (None, RagError),
    ],
)
def test_an_error_comes_back_as_its_class(
    server: WindowServer, window: Window, kind: str | None, raised: type[RagError]
) -> None:
    server.reply = (400, json.dumps({"error": "the question is empty", "kind": kind}).encode())
    with pytest.raises(RagError, match=r"^the question is empty$") as caught:
        window.ask(" ")
    assert type(caught.value) is raised


@pytest.mark.parametrize(
    "reply", [(500, b"Internal Server Error"), (200, b"<html>"), (200, b"[1]"), (404, b"{}")]
)
def test_an_answer_that_is_none_is_one_error(
    server: WindowServer, window: Window, reply: tuple[int, bytes]
) -> None:
    server.reply = reply
    with pytest.raises(RagError, match=f"no usable answer .HTTP {reply[0]}"):
        window.status()


def test_a_window_that_is_gone() -> None:
    unreachable = pytest.raises(IndexBusyError, match=r"127.0.0.1:9, .* cannot be reached")
    with Window("http://127.0.0.1:9", "secret") as window, unreachable:
        window.status()


def test_a_window_that_does_not_answer_in_time() -> None:
    def slow(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("slow", request=request)

    transport = httpx.MockTransport(slow)
    late = pytest.raises(IndexBusyError, match="did not answer in time")
    with Window("http://localhost:7860", "secret", transport=transport) as window, late:
        window.ask("why?")


def test_a_proxy_in_the_environment_is_not_used(
    server: WindowServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with Window(server.url, "secret") as window:
        assert window.status() == {}


@pytest.mark.parametrize(
    "url", ["http://192.0.2.1:7860", "http://example.org", "nonsense", "http://"]
)
def test_the_token_goes_nowhere_else(url: str) -> None:
    with pytest.raises(IndexBusyError, match="not an address of this machine"):
        Window(url, "secret")
