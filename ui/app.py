"""The window as a server: the page, the JSON routes, the port, and the local LLM behind it."""

from __future__ import annotations

import errno
import secrets
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import gradio as gr
import uvicorn
from fastapi import FastAPI
from starlette.middleware.trustedhost import TrustedHostMiddleware

from rag.errors import RagError, UsageError
from rag.llms.install import LocalInstall
from ui.page import Preparation, build_page
from ui.policy import ContentPolicy
from ui.routes import add_routes
from ui.uploads import MOST_BYTES

if TYPE_CHECKING:
    from rag.assistant import Assistant

_HERE = Path(__file__).parent
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SANS = ["Inter", "ui-sans-serif", "system-ui", "Segoe UI", "Roboto", "sans-serif"]
_MONO = ["ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace"]


def serve(
    assistant: Assistant,
    host: str = "127.0.0.1",
    port: int = 7860,
    prepare_local: bool = False,
    echo: Callable[[str], object] = print,
) -> None:
    """Serve the window until Ctrl-C; `echo` gets the lines for the terminal.

    With `prepare_local` the local LLM is installed behind a window whose answers are
    extractive, and writes them from when it is ready. Raises UsageError when the port is taken.
    """
    listener = _listen(host, port)
    url = f"http://{'127.0.0.1' if host in ('', '0.0.0.0', '::') else host}:{port}"
    token = secrets.token_urlsafe(32)

    def started() -> None:
        assistant.announce(url, token)
        echo(f"The chat is at {url} (Ctrl-C ends it)")
        threading.Thread(target=_warm, args=(assistant, echo), daemon=True).start()

    preparation = _prepare(assistant, echo) if prepare_local else None
    app = build_app(assistant, token, preparation, host)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2)
    try:
        _Server(config, started).run(sockets=[listener])
    except KeyboardInterrupt:
        pass
    finally:
        listener.close()
        if preparation is not None:
            preparation.stop()


def build_app(
    assistant: Assistant, token: str, preparation: Preparation | None = None, host: str = ""
) -> FastAPI:
    """The page at `/` and the JSON routes under `/rag`, as one ASGI application.

    A loopback `host` admits only this machine's names in the Host header, so that no other
    site can reach the window through a name of its own that points here.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(ContentPolicy)
    if host in _LOOPBACK:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost", "[::1]"])
    add_routes(app, assistant, token)
    gr.mount_gradio_app(
        app,
        build_page(assistant, preparation),
        path="/",
        theme=gr.themes.Base(font=_SANS, font_mono=_MONO),
        css_paths=[_HERE / "style.css"],
        head=f"<script>{(_HERE / 'markers.js').read_text(encoding='utf-8')}</script>",
        footer_links=[],
        run_history=False,
        show_error=False,
        ssr_mode=False,
        max_file_size=MOST_BYTES,
    )
    return app


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise UsageError(f"{port} is not a port: choose one from 1 to 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        why = "is in use" if taken else f"cannot be opened ({error.strerror})"
        raise UsageError(
            f"port {port} on {host} {why}: "
            "choose another, as in `make chat PORT=7861` or `rag chat --port 7861`"
        ) from None


def _prepare(assistant: Assistant, echo: Callable[[str], object]) -> LocalInstall:
    def ready() -> None:
        assistant.use_llm("local")
        assistant.warm()

    preparation = LocalInstall(on_ready=ready, echo=echo)
    preparation.start()
    return preparation


def _warm(assistant: Assistant, echo: Callable[[str], object]) -> None:
    """Load ahead what the first question needs; a failure is told again when one is asked."""
    try:
        assistant.warm()
    except RagError as error:
        echo(str(error))


class _Server(uvicorn.Server):
    """Says when it serves."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._started()
