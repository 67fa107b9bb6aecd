"""Window: asks a running chat window, which owns the index, to do the work instead.

    POST {url}/rag/search  {"query", "k", "filters"}       -> as `rag search --json`
    POST {url}/rag/ask     {"question", "history", "llm", "filters"}
                                                           -> as `rag ask --json`
    POST {url}/rag/ingest  {"paths", "options"}, absolute  -> as `rag ingest --json`
    POST {url}/rag/remove  {"sources"}, absolute           -> as `rag remove --json`
    POST {url}/rag/export  {"format", "ids"}               -> the text of `rag export`
    GET  {url}/rag/status                                  -> as `rag status --json`

Every request carries `Authorization: Bearer TOKEN`. An error comes as {"error", "kind"} with
a status of 400 or above, where `kind` names a class of rag.errors, and is raised as that class.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from rag import errors
from rag.errors import IndexBusyError, RagError

_CONNECT_S = 5.0
_STATUS_S = 30.0
_SEARCH_S = 60.0
_EXPORT_S = 600.0
_ASK_S = 600.0
# A large collection takes hours to embed, and the window reports nothing in between.
_INGEST_S = None


class Window:
    """A client of the window at `url`; a context manager."""

    def __init__(
        self, url: str, token: str, *, transport: httpx.BaseTransport | None = None
    ) -> None:
        """Raises IndexBusyError when `url` is not on this machine: the token must not leave it."""
        self.url = url.rstrip("/")
        if not _is_loopback(self.url):
            raise IndexBusyError(
                f"the index is in use by a chat window at {self.url}, "
                "which is not an address of this machine: close it, or use it in the browser"
            )
        # trust_env would send even local requests through a proxy named in the environment.
        self._client = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {token}"},
            transport=transport,
            trust_env=False,
        )

    def search(self, query: str, k: int = 10, **filters: Any) -> list[dict[str, Any]]:
        """Hits as JSON data, best first."""
        body = {"query": query, "k": k, "filters": filters}
        hits: list[dict[str, Any]] = self._call("POST", "/rag/search", _SEARCH_S, list, body)
        return hits

    def ask(
        self,
        question: str,
        history: Sequence[Mapping[str, str]] = (),
        llm: str | None = None,
        **filters: Any,
    ) -> dict[str, Any]:
        """An answer as JSON data; `llm` None leaves the choice to the window."""
        body = {
            "question": question,
            "history": [dict(turn) for turn in history],
            "llm": llm,
            "filters": filters,
        }
        answer: dict[str, Any] = self._call("POST", "/rag/ask", _ASK_S, dict, body)
        return answer

    def ingest(self, paths: Sequence[str | Path], **options: bool) -> dict[str, Any]:
        """The report of an ingest as JSON data; relative paths are taken from here."""
        body = {"paths": _absolute(paths), "options": options}
        report: dict[str, Any] = self._call("POST", "/rag/ingest", _INGEST_S, dict, body)
        return report

    def remove(self, sources: Sequence[str | Path]) -> dict[str, Any]:
        """The report of a removal as JSON data; relative paths are taken from here."""
        body = {"sources": _absolute(sources)}
        report: dict[str, Any] = self._call("POST", "/rag/remove", _INGEST_S, dict, body)
        return report

    def export(self, format: str, ids: Sequence[str] | None = None) -> str:
        """Abstracts as text of a format; `ids` None is every one."""
        body = {"format": format, "ids": None if ids is None else list(ids)}
        text: str = self._call("POST", "/rag/export", _EXPORT_S, str, body)
        return text

    def status(self) -> dict[str, Any]:
        """The state of the window's index as JSON data."""
        status: dict[str, Any] = self._call("GET", "/rag/status", _STATUS_S, dict)
        return status

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _call(
        self, method: str, path: str, read_s: float | None, expected: type, body: Any = None
    ) -> Any:
        timeout = httpx.Timeout(_CONNECT_S, read=read_s)
        try:
            response = self._client.request(method, path, json=body, timeout=timeout)
        except httpx.TimeoutException:
            raise IndexBusyError(
                f"the chat window at {self.url}, which owns the index, did not answer in time: "
                "try again, or close it and repeat the command"
            ) from None
        except httpx.HTTPError as error:
            raise IndexBusyError(
                f"the chat window at {self.url}, which owns the index, cannot be reached "
                f"({error}): close it and repeat the command"
            ) from error
        return self._content(response, expected)

    def _content(self, response: httpx.Response, expected: type) -> Any:
        try:
            content = response.json()
        except ValueError:
            content = None
        if response.is_success and isinstance(content, expected):
            return content
        if isinstance(content, dict) and isinstance(content.get("error"), str):
            raise _error_class(content.get("kind"))(content["error"])
        raise RagError(
            f"the chat window at {self.url} gave no usable answer (HTTP {response.status_code}): "
            "close it, start it again with `rag chat`, and repeat the command"
        )


def _absolute(paths: Sequence[str | Path]) -> list[str]:
    return [str(Path(path).absolute()) for path in paths]


def _error_class(kind: object) -> type[RagError]:
    found = getattr(errors, kind, None) if isinstance(kind, str) else None
    return found if isinstance(found, type) and issubclass(found, RagError) else RagError


def _is_loopback(url: str) -> bool:
    try:
        host = httpx.URL(url).host
    except httpx.InvalidURL:
        return False
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
