"""JSON routes of a running window, for commands that find the index in its hands.

    POST /rag/search  {"query", "k", "filters"}       as `rag search --json`
    POST /rag/ask     {"question", "history", "llm", "filters"}
                                                      as `rag ask --json`
    POST /rag/ingest  {"paths", "options"}            as `rag ingest --json`
    POST /rag/remove  {"sources"}                     as `rag remove --json`
    POST /rag/export  {"format", "ids"}               the text of `rag export`; "ids" null: all
    GET  /rag/status                                  as `rag status --json`

Each needs `Authorization: Bearer TOKEN`, the token that the window announced in the lock
of its index, which only its user can read. An error is {"error": line, "kind": class name}.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, cast

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool

from rag.answers import Answer, hit_dict
from rag.errors import LLMError, RagError, UsageError
from rag.filters import Criteria

if TYPE_CHECKING:
    from rag.assistant import Assistant


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class FiltersBody(_Body):
    """The filters of `Assistant.search`."""

    year: int | str | None = None
    venue: str | None = None
    author: str | None = None
    keyword: str | None = None
    source: str | None = None

    def criteria(self) -> Criteria:
        return cast(Criteria, self.model_dump(exclude_none=True))


class SearchBody(_Body):
    """What to search for."""

    query: str
    k: int = 10
    filters: FiltersBody = Field(default_factory=FiltersBody)


class AskBody(_Body):
    """What to ask; `llm` None is the window's own."""

    question: str
    history: list[dict[str, str]] = Field(default_factory=list)
    llm: str | None = None
    filters: FiltersBody = Field(default_factory=FiltersBody)


class IngestOptions(_Body):
    """The options of `Assistant.ingest`."""

    dry_run: bool = False
    keep_missing: bool = False
    titles_suffice: bool = False


class IngestBody(_Body):
    """Absolute paths of files and folders to read."""

    paths: list[str]
    options: IngestOptions = Field(default_factory=IngestOptions)


class RemoveBody(_Body):
    """Absolute paths of files and folders to forget."""

    sources: list[str]


class ExportBody(_Body):
    """Which abstracts to export, and as what; `ids` None is every one."""

    format: str
    ids: list[str] | None = None


class _Forbidden(RagError):
    """The request did not carry the window's token."""


def add_routes(app: FastAPI, assistant: Assistant, token: str) -> None:
    """Serve `assistant` to whoever holds `token`."""

    def authorised(request: Request) -> None:
        sent = request.headers.get("authorization", "")
        if not secrets.compare_digest(sent.encode(), f"Bearer {token}".encode()):
            raise _Forbidden("this request does not carry the window's token")

    guarded = [Depends(authorised)]

    @app.post("/rag/search", dependencies=guarded)
    def search(body: SearchBody) -> list[dict[str, Any]]:
        hits = assistant.search(body.query, body.k, **body.filters.criteria())
        return [hit_dict(hit) for hit in hits]

    @app.post("/rag/ask", dependencies=guarded)
    async def ask(body: AskBody, request: Request) -> dict[str, Any]:
        _refuse_other_llm(body.llm, assistant.llm_name)
        answer = await _answer(assistant, body, request)
        if answer is None:
            raise LLMError("the question was given up before it was answered: ask again")
        return answer.as_dict()

    @app.post("/rag/ingest", dependencies=guarded)
    def ingest(body: IngestBody) -> dict[str, Any]:
        return assistant.ingest(body.paths, **body.options.model_dump()).as_dict()

    @app.post("/rag/remove", dependencies=guarded)
    def remove(body: RemoveBody) -> dict[str, Any]:
        return assistant.remove(body.sources).as_dict()

    @app.post("/rag/export", dependencies=guarded)
    def export(body: ExportBody) -> str:
        return assistant.export(body.format, body.ids)

    @app.get("/rag/status", dependencies=guarded)
    def status() -> dict[str, Any]:
        return assistant.status()

    app.add_exception_handler(RagError, _rag_error)
    app.add_exception_handler(RequestValidationError, _bad_body)


async def _answer(assistant: Assistant, body: AskBody, request: Request) -> Answer | None:
    """The last snapshot; a client that hangs up stops the LLM."""
    stream = assistant.stream(body.question, body.history, **body.filters.criteria())
    answer = None
    try:
        async for snapshot in iterate_in_threadpool(stream):
            answer = snapshot
            if await request.is_disconnected():
                return None
    finally:
        if isinstance(stream, Generator):
            await run_in_threadpool(stream.close)
    return answer


def _refuse_other_llm(wanted: str | None, own: str) -> None:
    if wanted is not None and wanted != own:
        raise UsageError(
            f"the running window answers with {own!r}, not {wanted!r}: leave --llm away, "
            "or close the window first"
        )


async def _rag_error(request: Request, error: Exception) -> JSONResponse:
    forbidden = isinstance(error, _Forbidden)
    kind = "UsageError" if forbidden else type(error).__name__
    return JSONResponse({"error": str(error), "kind": kind}, 403 if forbidden else 400)


async def _bad_body(request: Request, error: Exception) -> JSONResponse:
    line = " ".join(str(error).split())[:300]
    return JSONResponse({"error": f"the request cannot be read: {line}", "kind": "UsageError"}, 422)
