"""Writers: a prompt's way from evidence to draft text, with the local LLM or any other."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing

from llama_index.core.llms import LLM, ChatMessage, MessageRole

from rag import prompts
from rag.answers import Evidence
from rag.conversation import Asked
from rag.llms.api import api_deltas
from rag.llms.local import LocalLLM


def chat_messages(asked: Asked, evidence: Sequence[Evidence]) -> list[ChatMessage]:
    """The conversation sent to an LLM: the constant instructions, then evidence and question."""
    return [
        ChatMessage(role=MessageRole.SYSTEM, content=prompts.SYSTEM),
        ChatMessage(role=MessageRole.USER, content=prompts.user_message(asked, evidence)),
    ]


class ChatWriter:
    """Any LlamaIndex chat LLM."""

    def __init__(self, llm: LLM, name: str) -> None:
        self.llm = llm
        self.name = name

    def write(
        self, asked: Asked, evidence: Sequence[Evidence], cancel: threading.Event
    ) -> Iterator[str]:
        with closing(api_deltas(self.llm, chat_messages(asked, evidence))) as deltas:
            for delta in deltas:
                yield delta
                if cancel.is_set():
                    return


class LocalWriter:
    """The local LLM, held to the form of an answer by a grammar."""

    def __init__(self, llm: LocalLLM, name: str = "local") -> None:
        self.llm = llm
        self.name = name

    def write(
        self, asked: Asked, evidence: Sequence[Evidence], cancel: threading.Event
    ) -> Iterator[str]:
        prompt = self.llm.chat_prompt(chat_messages(asked, evidence))
        responses = self.llm.stream_complete(
            prompt, True, grammar=prompts.answer_grammar(len(evidence)), cancel=cancel
        )
        with closing(responses):
            for response in responses:
                yield response.delta or ""

    def warm(self) -> None:
        """Load the model and evaluate the constant part of the prompt, ahead of a question."""
        prompt = self.llm.chat_prompt(
            [ChatMessage(role=MessageRole.SYSTEM, content=prompts.SYSTEM)]
        )
        self.llm.warm(prompt)
