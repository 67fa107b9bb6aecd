"""Writers: a prompt's way from evidence to draft text, with the local LLM or any other."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from llama_index.core.llms import LLM, ChatMessage, MessageRole

from rag import prompts
from rag.answers import Evidence
from rag.conversation import Asked
from rag.llms.api import api_deltas
from rag.refusal import states_answer

if TYPE_CHECKING:  # its engine may not be installed
    from rag.llms.local import LocalLLM

# What a unit of the evidence's score weighs against the model's judgement, in log-probability.
_RETRIEVAL_WEIGHT = 2.5
# How many sentences of an abstract it is judged by.
_JUDGED = 3
# How many sentences the abstract judged best, and the next when it is close, answer with.
_QUOTED = (4, 2)
_CLOSE = 0.5


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
    """The local LLM. It is asked first whether the evidence states the answer, then for the
    answer, in the form that a grammar gives; both prompts begin alike and are read once.

    A small model that is given keywords or a paraphrase echoes them. So it only judges which of
    the abstracts is meant, one by one, and these answer in their own sentences.
    """

    def __init__(self, llm: LocalLLM, name: str = "local") -> None:
        self.llm = llm
        self.name = name

    def write(
        self, asked: Asked, evidence: Sequence[Evidence], cancel: threading.Event
    ) -> Iterator[str]:
        if asked.seeks_papers:
            yield from self._quotes(asked, evidence, cancel)
            return
        margin = self._margin(chat_messages(asked, evidence, prompts.CHECK), cancel)
        if margin is None:
            return
        if not states_answer(margin, asked):
            yield prompts.REFUSAL
            return
        prompt = self.llm.chat_prompt(chat_messages(asked, evidence, prompts.ANSWER))
        responses = self.llm.stream_complete(
            prompt, True, grammar=prompts.answer_grammar(len(evidence)), cancel=cancel
        )
        with closing(responses):
            for response in responses:
                yield response.delta or ""

    def _quotes(
        self, asked: Asked, evidence: Sequence[Evidence], cancel: threading.Event
    ) -> Iterator[str]:
        """The sentences of the abstracts that the model takes for the ones meant."""
        judged = []
        for numbers in _by_abstract(evidence):
            items = [evidence[number - 1] for number in numbers[:_JUDGED]]
            margin = self._margin(chat_messages(asked, items, prompts.JUDGE), cancel)
            if margin is None:
                return
            if states_answer(margin, asked):
                judged.append((margin + _RETRIEVAL_WEIGHT * items[0].score, numbers))
        judged.sort(key=lambda pair: -pair[0])
        if not judged:
            yield prompts.REFUSAL
        for (score, numbers), most in zip(judged, _QUOTED, strict=False):
            if score < judged[0][0] - _CLOSE:
                return
            for number in sorted(numbers[:most], key=lambda n: evidence[n - 1].start):
                yield f"{_bare(evidence[number - 1].quote)} [{number}]. "

    def warm(self) -> None:
        """Load the model and evaluate the constant part of the prompt, ahead of a question."""
        self.llm.warm(
            self.llm.chat_prompt([ChatMessage(role=MessageRole.SYSTEM, content=prompts.SYSTEM)])
        )

    def _margin(self, messages: Sequence[ChatMessage], cancel: threading.Event) -> float | None:
        """How much likelier "yes" is than "no", in log-probability; None when cancelled."""
        prompt = self.llm.chat_prompt(messages)
        weighed = self.llm.next_token_logprobs(prompt, ("Yes", "yes", "No", "no"), cancel)
        if not weighed:
            return None
        yes, no = (math.log(sum(map(math.exp, pair))) for pair in (weighed[:2], weighed[2:]))
        return yes - no


def _by_abstract(evidence: Sequence[Evidence]) -> list[list[int]]:
    """The numbers of the evidence, from 1, one list an abstract, best first."""
    groups: dict[str, list[int]] = {}
    for number, item in enumerate(evidence, start=1):
        groups.setdefault(item.record.id, []).append(number)
    return list(groups.values())


def _bare(quote: str) -> str:
    """A sentence on one line, without its stop and without what would read as a marker."""
    return re.sub(r"\[\d[\d,\s-]*\]", "", " ".join(quote.split())).rstrip(" .")
