"""A Chroma server: the connection to it, with its collections and its errors.

What cannot reach the server is tried again, with growing pauses; what still fails is a
ServerError in one line. Every call is one that may be made twice.
"""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import chromadb
import httpx
from chromadb.config import Settings as ChromaSettings
from chromadb.errors import ChromaError, NotFoundError
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from rag.errors import ServerError
from rag.settings import Settings

T = TypeVar("T")

_TIMEOUT = httpx.Timeout(60.0, connect=5.0)
_ATTEMPTS = 4


class ChromaServer:
    """A client of the server that the settings name; connects when it is first used."""

    def __init__(self, settings: Settings) -> None:
        assert settings.chroma_url
        self.url = settings.chroma_url
        self.prefix = settings.chroma_collection
        self._ca = str(settings.chroma_ca) if settings.chroma_ca else None
        self._headers = _headers(settings)
        self._connecting = threading.Lock()
        self._client: Any = None

    @property
    def most(self) -> int:
        """How many rows one call may write."""
        return int(self.call(lambda: self.client.get_max_batch_size()))

    @property
    def version(self) -> str:
        return str(self.call(lambda: self.client.get_version()))

    def now(self) -> int:
        """The server's clock, in nanoseconds: the clocks of its clients may differ."""
        return int(self.call(lambda: self.client.heartbeat()))

    def collection(self, name: str, **create: Any) -> Any:
        """The collection of this index called `name`; None when it is not there. Made, if it
        is not, when `create` says how."""
        full = f"{self.prefix}-{name}"

        def found() -> Any:
            if create:
                return self.client.get_or_create_collection(full, embedding_function=None, **create)
            try:
                return self.client.get_collection(full, embedding_function=None)
            except NotFoundError:
                return None

        return self.call(found)

    def drop(self, name: str) -> None:
        """Delete a collection with its rows."""

        def drop() -> None:
            with contextlib.suppress(NotFoundError):
                self.client.delete_collection(f"{self.prefix}-{name}")

        self.call(drop)

    def call(self, function: Callable[[], T]) -> T:
        """What a function of Chroma returns. Raises ServerError."""
        try:
            return _retrying(function)
        except (ChromaError, httpx.HTTPError, ValueError) as error:
            raise self._failed(error) from error
        except Exception as error:
            # Chroma's client raises bare Exceptions for answers that it does not understand.
            if type(error) is Exception:
                raise self._failed(error) from error
            raise

    @property
    def client(self) -> Any:
        """Chroma's client of the server, for use within `call`."""
        with self._connecting:
            if self._client is None:
                self._check()
                settings = ChromaSettings(
                    anonymized_telemetry=False, chroma_server_ssl_verify=self._ca
                )
                client = chromadb.HttpClient(
                    host=self.url, headers=dict(self._headers), settings=settings
                )
                # Chroma's client would wait without end for a server that hangs.
                client._server._session.timeout = _TIMEOUT  # type: ignore[attr-defined]
                self._client = client
            return self._client

    def _check(self) -> None:
        """Say what is wrong before Chroma's client, which is less clear about it."""
        response = httpx.get(
            f"{self.url}/api/v2/heartbeat",
            headers=self._headers,
            verify=ssl.create_default_context(cafile=self._ca) if self._ca else True,
            timeout=_TIMEOUT,
        )
        if response.status_code in (401, 403):
            raise ServerError(
                f"the Chroma server at {self.url} refuses this client (HTTP "
                f"{response.status_code}): set RAG_CHROMA_TOKEN, and RAG_CHROMA_TOKEN_HEADER if "
                "it is not read from Authorization"
            )
        if response.status_code in _PASSING:
            response.raise_for_status()
        if not response.is_success or "nanosecond heartbeat" not in response.text:
            raise ServerError(
                f"{self.url} does not answer like a Chroma server (HTTP {response.status_code}): "
                "set RAG_CHROMA_URL to the address of one, such as http://localhost:8000"
            )

    def _failed(self, error: Exception) -> ServerError:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        if isinstance(error, httpx.TransportError):
            return ServerError(
                f"the Chroma server at {self.url} cannot be reached ({reason}): start it, "
                "or unset RAG_CHROMA_URL to use the index of this machine"
            )
        return ServerError(f"the Chroma server at {self.url} failed: {reason}; see its log")


# Answers of a server, or of a proxy before it, that pass.
_PASSING = (429, 502, 503, 504)


def _passes(error: BaseException) -> bool:
    if type(error) is Exception and error.__context__ is not None:
        error = error.__context__  # Chroma's client wraps what it does not understand
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code in _PASSING
    return isinstance(error, httpx.TransportError) and not isinstance(
        error, httpx.UnsupportedProtocol
    )


_retrying = Retrying(
    retry=retry_if_exception(_passes),
    stop=stop_after_attempt(_ATTEMPTS),
    wait=wait_random_exponential(multiplier=0.1, max=2),
    reraise=True,
)


def _headers(settings: Settings) -> dict[str, str]:
    if settings.chroma_token is None:
        return {}
    token = settings.chroma_token.get_secret_value()
    header = settings.chroma_token_header
    return {header: f"Bearer {token}" if header.lower() == "authorization" else token}
