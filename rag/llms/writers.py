"""Writers: a prompt's way from evidence to draft text, with the local LLM or any other."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing

import numpy as np
from llama_index.core.llms import LLM, ChatMessage, MessageRole

from rag import prompts
from rag.answers import Evidence
from rag.conversation import Asked
from rag.llms.api import api_deltas
from rag.llms.local import LocalLLM
from rag.refusal import states_answer


def chat_messages(asked: Asked, evidence: Sequence[Evidence], task: str) -> list[ChatMessage]:
    user = prompts.user_message(asked, evidence, task)
    return [
        ChatMessage(role=MessageRole.SYSTEM, content=prompts.SYSTEM),
        ChatMessage(role=MessageRole.USER, content=user),
    ]


class ChatWriter:
    """Any LlamaIndex chat LLM; it says itself when the evidence does not hold the answer."""

    def __init__(self, llm: LLM, name: str) -> None:
        self.llm = llm
        self.name = name

    def write(
        self, asked: Asked, evidence: Sequence[Evidence], cancel: threading.Event
    ) -> Iterator[str]:
        messages = chat_messages(asked, evidence, prompts.ANSWER_OR_REFUSE)
        with closing(api_deltas(self.llm, messages)) as deltas:
            for delta in deltas:
                yield delta
                if cancel.is_set():
                    return


class LocalWriter:
    """The local LLM: asked first whether the evidence states the answer, then for the answer,
    in the form that a grammar gives. Both prompts begin alike and are read once."""

    def __init__(self, llm: LocalLLM, name: str = "local") -> None:
        self.llm = llm
        self.name = name

    def write(
        self, asked: Asked, evidence: Sequence[Evidence], cancel: threading.Event
    ) -> Iterator[str]:
        margin = self._margin(asked, evidence, cancel)
        if margin is None:
            return
        if not states_answer(margin, asked.standalone, evidence):
            yield prompts.REFUSAL
            return
        prompt = self.llm.chat_prompt(chat_messages(asked, evidence, prompts.ANSWER))
        responses = self.llm.stream_complete(
            prompt, True, grammar=prompts.answer_grammar(len(evidence)), cancel=cancel
        )
        with closing(responses):
            for response in responses:
                yield response.delta or ""

    def warm(self) -> None:
        """Load the model and evaluate the constant part of the prompt, ahead of a question."""
        self.llm.warm(
            self.llm.chat_prompt([ChatMessage(role=MessageRole.SYSTEM, content=prompts.SYSTEM)])
        )

    def _margin(
        self, asked: Asked, evidence: Sequence[Evidence], cancel: threading.Event
    ) -> float | None:
        """How much likelier "yes" is than "no", in log-probability; None when cancelled."""
        prompt = self.llm.chat_prompt(chat_messages(asked, evidence, prompts.CHECK))
        weighed = self.llm.next_token_logprobs(prompt, ("Yes", "yes", "No", "no"), cancel)
        if not weighed:
            return None
        yes, no = np.logaddexp(*weighed[:2]), np.logaddexp(*weighed[2:])
        return float(yes - no)
