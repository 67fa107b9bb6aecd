"""LocalLLM: a GGUF model as a LlamaIndex LLM, in this process, on the CPU.

Calls from several threads take turns in the order they came. The model is loaded by the
first call and stays; what one call evaluated is the next call's head start, as far as their
prompts agree from the beginning (see `engine.py`).
"""

from __future__ import annotations

import codecs
import re
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from llama_index.core.llms import (
    ChatMessage,
    ChatResponse,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseGen,
    CustomLLM,
    LLMMetadata,
    MessageRole,
)
from pydantic import PrivateAttr

from rag.errors import LLMError
from rag.llms.engine import Cancelled, Engine, chat_prompt

_TURN_POLL_S = 0.1
# A text that spells a control token must not act as one.
_CONTROL = re.compile(r"<\|(\w+)\|>")


class LocalLLM(CustomLLM):
    """An LLM from a GGUF file; greedy, so the same prompt gives the same answer.

    Every method that evaluates takes `cancel`: once it is set, the method ends within a
    second, whether it waits its turn, reads the prompt or writes.
    """

    model_path: Path
    name: str = "local"
    context_window: int = 4096
    max_tokens: int = 256

    _engine: Engine | None = PrivateAttr(default=None)
    _template: bytes | None = PrivateAttr(default=None)
    _turns: _Turns = PrivateAttr(default_factory=lambda: _Turns())

    @classmethod
    def class_name(cls) -> str:
        """LlamaIndex's name for the kind of LLM."""
        return "abstract_qa_local"

    @property
    def metadata(self) -> LLMMetadata:
        """What LlamaIndex needs to know of the model. Does not load it."""
        return LLMMetadata(
            context_window=self.context_window,
            num_output=self.max_tokens,
            is_chat_model=True,
            model_name=self.name,
        )

    def load(self) -> None:
        """Load the model now rather than at the first question. LLMError: it cannot be."""
        with self._turn(None):
            pass

    def close(self) -> None:
        """Free the model once the calls before are done; a later call loads it again."""
        with self._turns.taken(None):
            if self._engine is not None:
                self._engine.close()
                self._engine = None

    def chat_prompt(self, messages: Sequence[ChatMessage]) -> str:
        """The messages in the model's chat template, up to where its answer begins.

        Control tokens that a message spells out are broken up.
        """
        pairs = [(m.role.value, _CONTROL.sub(r"<| \1 |>", m.content or "")) for m in messages]
        if self._template is None:
            self.load()
        assert self._template is not None
        return chat_prompt(self._template, pairs)

    def warm(self, prefix: str, cancel: threading.Event | None = None) -> None:
        """Evaluate the constant beginning of coming prompts, a formatted text."""
        try:
            with self._turn(cancel) as engine:
                engine.evaluate(engine.tokens(prefix), cancel)
        except Cancelled:
            return

    def next_token_logprobs(
        self, prompt: str, options: Sequence[str], cancel: threading.Event | None = None
    ) -> list[float]:
        """The log-probability of each option's first token right after a formatted prompt.

        A `stream_complete` of the same prompt after it starts to write at once. Empty when
        cancelled. LLMError: as `stream_complete`.
        """
        try:
            with self._turn(cancel) as engine:
                firsts = [_first_token(engine, option) for option in options]
                logits = engine.evaluate(engine.tokens(prompt), cancel).astype(np.float64)
        except Cancelled:
            return []
        top = logits.max()
        total = top + np.log(np.exp(logits - top).sum())
        return [float(logits[token] - total) for token in firsts]

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """The whole answer to a prompt; keyword arguments as for `stream_complete`."""
        text = ""
        for response in self.stream_complete(prompt, formatted, **kwargs):
            text = response.text
        return CompletionResponse(text=text)

    def stream_complete(
        self,
        prompt: str,
        formatted: bool = False,
        *,
        grammar: str | None = None,
        stop: Sequence[str] = (),
        max_tokens: int | None = None,
        cancel: threading.Event | None = None,
        **kwargs: Any,
    ) -> CompletionResponseGen:
        """Stream the answer to a prompt: growing texts, each with its delta.

        formatted:   the prompt is in the chat template already, else it is a user's message
        grammar:     GBNF with the rule `root`; the answer is one of its sentences, unless
                     max_tokens, stop or cancel cut it
        stop:        the answer ends before the first of these strings
        max_tokens:  at most so many tokens, and at most what the context window leaves

        Closing the generator ends the evaluation and gives up the turn.
        LLMError: the model cannot be loaded, the prompt is longer than the context window,
        or the grammar is none.
        """
        if not formatted:
            prompt = self.chat_prompt([ChatMessage(role=MessageRole.USER, content=prompt)])
        deltas = self._deltas(prompt, grammar, stop, max_tokens or self.max_tokens, cancel)
        return _growing(deltas)

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """The whole answer to a chat; keyword arguments as for `stream_complete`."""
        answer = self.complete(self.chat_prompt(messages), True, **kwargs)
        return ChatResponse(
            message=ChatMessage(role=MessageRole.ASSISTANT, content=answer.text), raw=None
        )

    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        """Stream the answer to a chat; keyword arguments as for `stream_complete`."""
        return _as_chat(self.stream_complete(self.chat_prompt(messages), True, **kwargs))

    @contextmanager
    def _turn(self, cancel: threading.Event | None) -> Iterator[Engine]:
        with self._turns.taken(cancel):
            if self._engine is None:
                self._engine = Engine(self.model_path, self.context_window)
                self._template = self._engine.template
            yield self._engine

    def _deltas(
        self,
        prompt: str,
        grammar: str | None,
        stop: Sequence[str],
        max_tokens: int,
        cancel: threading.Event | None,
    ) -> Generator[str, None, None]:
        try:
            with self._turn(cancel) as engine:
                pieces = _pieces(engine, engine.tokens(prompt), grammar, max_tokens, cancel)
                with closing(pieces):
                    yield from _until(stop, _decoded(pieces))
        except Cancelled:
            return


class _Turns:
    """A lock that is given in the order it was asked for."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queue: deque[object] = deque()

    @contextmanager
    def taken(self, cancel: threading.Event | None) -> Iterator[None]:
        """Hold the lock. Cancelled: `cancel` was set before it was this caller's turn."""
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
        try:
            with self._changed:
                while self._queue[0] is not ticket:
                    if cancel is not None and cancel.is_set():
                        raise Cancelled
                    self._changed.wait(_TURN_POLL_S)
            yield
        finally:
            with self._changed:
                self._queue.remove(ticket)
                self._changed.notify_all()


def _pieces(
    engine: Engine,
    prompt: list[int],
    grammar_text: str | None,
    max_tokens: int,
    cancel: threading.Event | None,
) -> Generator[bytes, None, None]:
    """The bytes of one token after another, greedily."""
    grammar = engine.grammar(grammar_text) if grammar_text else None
    try:
        tokens = list(prompt)
        room = min(len(prompt) + max_tokens, engine.context_window)
        while True:
            logits = engine.evaluate(tokens, cancel)
            token = grammar.best(logits) if grammar else int(np.argmax(logits))
            if engine.ends(token):
                return
            yield engine.piece(token)
            tokens.append(token)
            if len(tokens) >= room:
                return
            if grammar:
                grammar.accept(token)
    finally:
        if grammar:
            grammar.close()


def _decoded(pieces: Iterator[bytes]) -> Iterator[str]:
    """Whole characters of a UTF-8 stream that may be cut within one."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:
        if text := decoder.decode(piece):
            yield text


def _until(stop: Sequence[str], texts: Iterator[str]) -> Iterator[str]:
    """The texts up to the first stop string; the start of a possible one is held back."""
    held = ""
    for text in texts:
        held += text
        ends = [held.index(s) for s in stop if s in held]
        if ends:
            if held[: min(ends)]:
                yield held[: min(ends)]
            return
        safe = len(held) - max((_overlap(held, s) for s in stop), default=0)
        if safe:
            yield held[:safe]
            held = held[safe:]
    if held:
        yield held


def _overlap(text: str, stop: str) -> int:
    """How many last characters of `text` are the first of `stop`."""
    for size in range(min(len(stop) - 1, len(text)), 0, -1):
        if text.endswith(stop[:size]):
            return size
    return 0


def _growing(deltas: Generator[str, None, None]) -> CompletionResponseGen:
    text = ""
    with closing(deltas):
        for delta in deltas:
            text += delta
            yield CompletionResponse(text=text, delta=delta)


def _as_chat(responses: CompletionResponseGen) -> ChatResponseGen:
    with closing(responses):
        for response in responses:
            message = ChatMessage(role=MessageRole.ASSISTANT, content=response.text)
            yield ChatResponse(message=message, delta=response.delta)


def _first_token(engine: Engine, option: str) -> int:
    tokens = engine.tokens(option, special=False)
    if not tokens:
        raise LLMError("an option to weigh is empty")
    return tokens[0]
