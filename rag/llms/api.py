"""API LLMs: any server that speaks OpenAI's chat protocol, and its failures as our errors.

    openai:MODEL      RAG_API_BASE, else api.openai.com;     RAG_API_KEY or OPENAI_API_KEY
    ollama:MODEL      RAG_API_BASE, else this machine;       no key
    anthropic:MODEL   RAG_API_BASE, else api.anthropic.com;  RAG_API_KEY or ANTHROPIC_API_KEY

Nothing is called before a question is asked.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
import openai
from llama_index.core.llms import LLM, ChatMessage
from llama_index.llms.openai_like import OpenAILike

from rag.errors import LLMError, UsageError
from rag.settings import Settings

_TIMEOUT_S = 120.0
_CONTEXT_WINDOW = 8192
_MAX_TOKENS = 512


@dataclass(frozen=True, slots=True)
class _Provider:
    """Where a provider listens by default, and the variable that holds its key, if any."""

    base: str
    key_variable: str | None


_PROVIDERS = {
    "openai": _Provider("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "ollama": _Provider("http://127.0.0.1:11434/v1", None),
    "anthropic": _Provider("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
}


def api_llm(spec: str, settings: Settings, *, timeout: float = _TIMEOUT_S) -> LLM:
    """The LLM that `spec`, PROVIDER:MODEL, names. `timeout` is in seconds of silence.

    UsageError: an unknown provider, no model, or no key where the provider needs one.
    """
    name, _, model = spec.partition(":")
    provider = _PROVIDERS.get(name)
    if provider is None or not model.strip():
        raise UsageError(
            f"unknown LLM {spec!r}; use openai:MODEL, ollama:MODEL, anthropic:MODEL, "
            "local, extractive, or the path of a GGUF file"
        )
    client = openai.DefaultHttpxClient(
        event_hooks={"response": [_remember]},
        # Without retries, a connection that the server dropped meanwhile would cost an answer.
        limits=httpx.Limits(max_keepalive_connections=0),
    )
    llm: LLM = OpenAILike(
        model=model.strip(),
        api_base=settings.api_base or provider.base,
        api_key=_key(name, provider, settings),
        is_chat_model=True,
        context_window=_CONTEXT_WINDOW,
        max_tokens=_MAX_TOKENS,
        temperature=0.0,
        # The client's own retries multiply with LlamaIndex's into minutes of silence.
        max_retries=0,
        timeout=timeout,
        http_client=client,
    )
    return llm


def _key(name: str, provider: _Provider, settings: Settings) -> str:
    if settings.api_key is not None and settings.api_key.get_secret_value():
        return settings.api_key.get_secret_value()
    own_address = settings.api_base in (None, provider.base)
    # A key of the provider's goes to the provider alone, not to whatever RAG_API_BASE names.
    if provider.key_variable and own_address:
        key = os.environ.get(provider.key_variable, "")
        if not key:
            raise UsageError(f"{name} needs a key; set RAG_API_KEY or {provider.key_variable}")
        return key
    return "x"


@contextmanager
def api_errors(llm: LLM) -> Iterator[None]:
    """Turn what an API call inside raises into LLMError, one line, without the key."""
    model = llm.metadata.model_name
    base = _address(llm)
    try:
        yield
    except openai.APITimeoutError as error:
        raise LLMError(_timed_out(base)) from error
    except openai.APIConnectionError as error:
        raise LLMError(
            f"cannot reach {base}; start the server there, or correct RAG_API_BASE"
        ) from error
    except openai.APIStatusError as error:
        raise LLMError(_status(error.status_code, base, model)) from error
    except httpx.TimeoutException as error:
        raise LLMError(_timed_out(base)) from error
    except (httpx.TransportError, openai.APIError) as error:
        raise LLMError(f"{base} broke off its answer; ask again") from error
    except (json.JSONDecodeError, UnicodeDecodeError, AttributeError, TypeError) as error:
        # The client trusts the server's fields to be there and trips over their absence.
        raise LLMError(
            f"{base} does not answer like an OpenAI-compatible server; correct RAG_API_BASE "
            "(it often ends in /v1)"
        ) from error


def api_deltas(llm: LLM, messages: Sequence[ChatMessage]) -> Generator[str, None, None]:
    """The answer to a chat, piece by piece as it arrives. Closing it ends the request.

    LLMError: as `api_errors` says, also after some pieces, or there was no answer at all.
    """
    silent = True
    reply: httpx.Response | None = None
    _take_latest()
    try:
        with api_errors(llm), closing(llm.stream_chat(messages)) as stream:
            for response in stream:
                reply = reply or _take_latest()
                if response.delta:
                    silent = False
                    yield response.delta
    finally:
        # The client's stream refers to itself, so dropping it would end the request only
        # when the garbage collector comes by.
        reply = reply or _take_latest()
        if reply is not None:
            reply.close()
    if silent:
        raise LLMError(
            f"{_address(llm)} sent an empty answer; check RAG_LLM {llm.metadata.model_name!r} "
            "and RAG_API_BASE (it often ends in /v1)"
        )


class _Latest(threading.local):
    """The last reply that began in this thread."""

    reply: httpx.Response | None = None


_latest = _Latest()


def _remember(reply: httpx.Response) -> None:
    _latest.reply = reply


def _take_latest() -> httpx.Response | None:
    reply, _latest.reply = _latest.reply, None
    return reply


def _address(llm: LLM) -> str:
    return _shown(getattr(llm, "api_base", None) or "the API")


def _timed_out(base: str) -> str:
    return f"{base} did not answer in time; ask again, or use a faster model"


def _status(code: int, base: str, model: str) -> str:
    if code in (401, 403):
        return f"{base} refuses the key (HTTP {code}); set RAG_API_KEY to a valid one"
    if code in (404, 405, 501):
        return (
            f"{base} does not know the model {model!r} or this address (HTTP {code}); "
            "correct RAG_LLM or RAG_API_BASE"
        )
    if code == 429:
        return f"{base} refuses more requests now (HTTP 429); wait, or check your quota there"
    if code >= 500:
        return f"{base} failed (HTTP {code}); ask again later"
    return f"{base} rejects the request (HTTP {code}); check RAG_LLM {model!r} and RAG_API_BASE"


def _shown(address: str) -> str:
    """An address without a user name or password in it."""
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
