"""API LLMs against a real HTTP server that this test starts on a local port."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Generator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from llama_index.core.llms import ChatMessage

from rag.errors import LLMError, UsageError
from rag.llms.api import api_deltas, api_llm
from rag.settings import Settings

KEY = "sk-very-secret-key"
QUESTION = [ChatMessage(role="user", content="What is attention?")]


class Server(ThreadingHTTPServer):
    """Answers every chat request with `behave`, and keeps the requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.behave: Callable[[Handler], None] = stream_words
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, dict(self.headers), body))
        self.server.behave(self)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def begin(self, code: int, kind: str, **headers: str) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def event(self, text: str) -> None:
        choice = {"index": 0, "delta": {"role": "assistant", "content": text}}
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        self.wfile.write(f"data: {json.dumps({**chunk, 'choices': [choice]})}\n\n".encode())
        self.wfile.flush()


def stream_words(handler: Handler) -> None:
    handler.begin(200, "text/event-stream")
    for word in ("Attention ", "weighs ", "tokens [1]."):
        handler.event(word)
    handler.wfile.write(b"data: [DONE]\n\n")


def fail_with(code: int) -> Callable[[Handler], None]:
    def behave(handler: Handler) -> None:
        handler.begin(code, "application/json")
        handler.wfile.write(json.dumps({"error": {"message": f"no, {KEY}"}}).encode())

    return behave


def hang(handler: Handler) -> None:
    time.sleep(3)


def hang_in_the_middle(handler: Handler) -> None:
    handler.begin(200, "text/event-stream")
    handler.event("Attention ")
    time.sleep(3)


def die_in_the_middle(handler: Handler) -> None:
    # More is announced than is sent, which is how a killed server looks.
    handler.begin(200, "text/event-stream", Content_Length="100000")
    handler.event("Attention ")
    handler.connection.shutdown(socket.SHUT_RDWR)


def send_web_page(handler: Handler) -> None:
    handler.begin(200, "text/html")
    handler.wfile.write(b"<html><body>Welcome to my router</body></html>")


def send_broken_json(handler: Handler) -> None:
    handler.begin(200, "text/event-stream")
    handler.wfile.write(b"data: {not json\n\n")


def send_other_json(handler: Handler) -> None:
    handler.begin(200, "text/event-stream")
    handler.wfile.write(b'data: ["quite", "another", "protocol"]\n\n')


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "RAG_API_KEY", "RAG_API_BASE", "RAG_LLM"):
        monkeypatch.delenv(name, raising=False)


def answer(base: str, *, timeout: float = 20) -> Generator[str, None, None]:
    llm = api_llm("openai:m", Settings.load(api_base=base, api_key=KEY), timeout=timeout)
    return api_deltas(llm, QUESTION)


def test_an_answer_streams_from_one_request(server: Server) -> None:
    assert list(answer(server.base)) == ["Attention ", "weighs ", "tokens [1]."]
    [(path, headers, body)] = server.requests
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert body["model"] == "m"
    assert body["stream"] is True
    assert body["temperature"] == 0
    assert body["messages"] == [{"role": "user", "content": "What is attention?"}]


def test_closing_the_answer_ends_the_request(server: Server) -> None:
    broken: list[bool] = []

    def write_on(handler: Handler) -> None:
        handler.begin(200, "text/event-stream")
        try:
            for _ in range(500):
                handler.event("word ")
                time.sleep(0.01)
        except OSError:
            broken.append(True)

    server.behave = write_on
    stream = answer(server.base)
    assert next(stream) == "word "
    stream.close()
    deadline = time.monotonic() + 3
    while not broken and time.monotonic() < deadline:
        time.sleep(0.02)
    assert broken


@pytest.mark.parametrize(
    ("behave", "message"),
    [
        (fail_with(401), r"refuses the key \(HTTP 401\); set RAG_API_KEY"),
        (fail_with(404), r"does not know the model 'm' or this address"),
        (fail_with(400), r"rejects the request \(HTTP 400\)"),
        (fail_with(429), r"refuses more requests now \(HTTP 429\)"),
        (fail_with(500), r"failed \(HTTP 500\); ask again later"),
        (send_web_page, "sent an empty answer"),
        (send_broken_json, "does not answer like an OpenAI-compatible server"),
        (send_other_json, "does not answer like an OpenAI-compatible server"),
    ],
)
def test_a_failure_is_one_line_that_names_the_address(
    server: Server, behave: Callable[[Handler], None], message: str
) -> None:
    server.behave = behave
    with pytest.raises(LLMError, match=message) as caught:
        list(answer(server.base))
    text = str(caught.value)
    assert server.base in text
    assert "\n" not in text
    assert KEY not in text
    assert len(server.requests) == 1


def test_a_refused_connection_is_said(server: Server) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        with pytest.raises(LLMError, match=f"cannot reach {base}; start the server there"):
            list(answer(base))


@pytest.mark.parametrize("behave", [hang, hang_in_the_middle])
def test_silence_ends_in_time(server: Server, behave: Callable[[Handler], None]) -> None:
    server.behave = behave
    began = time.monotonic()
    with pytest.raises(LLMError, match="did not answer in time"):
        list(answer(server.base, timeout=0.5))
    assert time.monotonic() - began < 2.5


def test_a_server_that_dies_leaves_what_it_said(server: Server) -> None:
    server.behave = die_in_the_middle
    stream = answer(server.base)
    assert next(stream) == "Attention "
    with pytest.raises(LLMError, match="broke off its answer"):
        list(stream)


def test_a_password_in_the_address_is_not_shown() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(LLMError) as caught:
            list(answer(f"http://me:hidden@127.0.0.1:{port}/v1"))
    assert "hidden" not in str(caught.value)
    assert f"http://127.0.0.1:{port}/v1" in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "variable"), [("openai:m", "OPENAI_API_KEY"), ("anthropic:m", "ANTHROPIC_API_KEY")]
)
def test_a_provider_needs_its_key(
    spec: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=f"needs a key; set RAG_API_KEY or {variable}"):
        api_llm(spec, Settings.load())
    monkeypatch.setenv(variable, KEY)
    assert api_llm(spec, Settings.load()).metadata.model_name == "m"


def test_a_providers_key_goes_to_no_other_address(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    list(api_deltas(api_llm("openai:m", Settings.load(api_base=server.base)), QUESTION))
    assert KEY not in json.dumps(server.requests[0][1])


def test_ollama_needs_no_key_and_is_this_machine() -> None:
    llm = api_llm("ollama:qwen2.5:1.5b", Settings.load())
    assert llm.metadata.model_name == "qwen2.5:1.5b"
    assert llm.api_base == "http://127.0.0.1:11434/v1"  # type: ignore[attr-defined]


@pytest.mark.parametrize("spec", ["openai:", "mistral:large", "gpt-4"])
def test_an_unknown_llm_is_a_usage_error(spec: str) -> None:
    with pytest.raises(UsageError, match="unknown LLM"):
        api_llm(spec, Settings.load())
