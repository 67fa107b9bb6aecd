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
from rag.drafts import without_thoughts
from rag.llms.api import api_deltas
from rag.questions import parts_of
from rag.refusal import asks_for_a_thing, states_answer

if TYPE_CHECKING:
    from rag.evidence import Selected
    from rag.llms.local import LocalLLM  # its engine may not be installed

# A reply that grows past its tokens, at so many characters each, is cut.
_CHARACTERS_A_TOKEN = 6
# What a unit of an abstract's score weighs against the model's judgement, in log-probability.
_RETRIEVAL_WEIGHT = 5.0
# How many sentences of an abstract it is judged by.
_JUDGED = 3
# Of so many abstracts that a question compares, each is a part of the answer; of more than
# that, those which the model takes to be about the question.
_COMPARED = 2


def chat_messages(question: str, evidence: Sequence[Evidence], task: str) -> list[ChatMessage]:
    return _chat(prompts.user_message(question, evidence, task))


def _chat(message: str) -> list[ChatMessage]:
    return [
        ChatMessage(role=MessageRole.SYSTEM, content=prompts.SYSTEM),
        ChatMessage(role=MessageRole.USER, content=message),
    ]


class ChatWriter:
    """Any LlamaIndex chat LLM; it says itself when the evidence does not hold the answer."""

    def __init__(self, llm: LLM, name: str) -> None:
        self.llm = llm
        self.name = name

    def complete(self, message: str, max_tokens: int, cancel: threading.Event) -> str:
        reply = ""
        with closing(api_deltas(self.llm, _chat(message))) as deltas:
            for delta in deltas:
                reply += delta
                if cancel.is_set() or len(reply) > _CHARACTERS_A_TOKEN * max_tokens:
                    break
        return without_thoughts(reply)

    def write(self, question: str, selected: Selected, cancel: threading.Event) -> Iterator[str]:
        messages = chat_messages(question, selected.evidence, prompts.ANSWER_OR_REFUSE)
        with closing(api_deltas(self.llm, messages)) as deltas:
            for delta in deltas:
                yield delta
                if cancel.is_set():
                    return


class LocalWriter:
    """The local LLM. It is asked first whether the evidence states the answer, then for the
    answer, in the form that a grammar gives; the prompts begin alike and are read once.

    A small model that is given keywords, a paraphrase or two papers echoes or confuses them. So
    there it only judges which of the abstracts are meant, one by one, and these answer in
    their own sentences.
    """

    def __init__(self, llm: LocalLLM, name: str = "local") -> None:
        self.llm = llm
        self.name = name

    def complete(self, message: str, max_tokens: int, cancel: threading.Event) -> str:
        prompt = self.llm.chat_prompt(_chat(message))
        return self.llm.complete(prompt, True, max_tokens=max_tokens, cancel=cancel).text

    def write(self, question: str, selected: Selected, cancel: threading.Event) -> Iterator[str]:
        if selected.way == "find":
            return self._found(question, selected, cancel)
        if selected.way == "compare":
            return self._compared(question, selected.evidence, cancel)
        return self._answered(question, selected.evidence, cancel)

    def _answered(
        self, question: str, evidence: Sequence[Evidence], cancel: threading.Event
    ) -> Iterator[str]:
        """The parts of the question that the evidence states, then what it does not."""
        parts = parts_of(question)
        stated = []
        for part in parts:
            check = prompts.CHECK_PART.format(part=part) if len(parts) > 1 else prompts.CHECK
            margin = self._margin(chat_messages(question, evidence, check), cancel)
            if margin is None:
                return
            if states_answer(margin, "detail"):
                stated.append(part)
        if not stated:
            yield prompts.REFUSAL
            return
        if not asks_for_a_thing(question):
            yield from self._pointed(question, evidence, cancel)
            return
        for part in stated:
            task = prompts.ANSWER_PART.format(part=part) if len(parts) > 1 else prompts.ANSWER
            yield from self._completed(question, evidence, task, cancel)
            yield " "
        for part in parts:
            if part not in stated:
                yield f"\n{prompts.MISSING} {part}"

    def _pointed(
        self, question: str, evidence: Sequence[Evidence], cancel: threading.Event
    ) -> Iterator[str]:
        """The sentences that settle a question for yes or no: a "yes" of a small model is no
        more than a guess, and no quote can be compared with it."""
        prompt = self.llm.chat_prompt(chat_messages(question, evidence, prompts.POINT))
        grammar = prompts.pointing_grammar(len(evidence))
        reply = self.llm.complete(prompt, True, grammar=grammar, max_tokens=8, cancel=cancel).text
        # With the likeliest sentence by retrieval: the two do not miss the same.
        pointed = dict.fromkeys([1, *(int(number) for number in re.findall(r"\d+", reply))])
        yield from _quoted(evidence, [n for n in pointed if n <= len(evidence)])

    def _completed(
        self, question: str, evidence: Sequence[Evidence], task: str, cancel: threading.Event
    ) -> Iterator[str]:
        prompt = self.llm.chat_prompt(chat_messages(question, evidence, task))
        grammar = prompts.answer_grammar(len(evidence))
        responses = self.llm.stream_complete(prompt, True, grammar=grammar, cancel=cancel)
        with closing(responses):
            for response in responses:
                yield response.delta or ""

    def _found(self, question: str, selected: Selected, cancel: threading.Event) -> Iterator[str]:
        """The sentences of the abstract that the model takes for the one meant."""
        evidence, judged = selected.evidence, []
        for numbers in _by_abstract(evidence):
            margin = self._judgement(question, evidence, numbers, cancel)
            if margin is None:
                return
            if states_answer(margin, "find"):
                found = selected.scores.get(evidence[numbers[0] - 1].record.id, 0.0)
                judged.append((margin + _RETRIEVAL_WEIGHT * found, numbers))
        if judged:
            yield from _quoted(evidence, max(judged)[1])
        else:
            yield prompts.REFUSAL

    def _compared(
        self, question: str, evidence: Sequence[Evidence], cancel: threading.Event
    ) -> Iterator[str]:
        """A line for each abstract that is compared."""
        groups = _by_abstract(evidence)
        found = False
        for numbers in groups:
            if len(groups) > _COMPARED:
                margin = self._judgement(question, evidence, numbers, cancel)
                if margin is None:
                    return
                if not states_answer(margin, "compare"):
                    continue
            found = True
            yield "- "
            yield from _quoted(evidence, numbers)
            yield "\n"
        if not found:
            yield prompts.REFUSAL

    def _judgement(
        self,
        question: str,
        evidence: Sequence[Evidence],
        numbers: Sequence[int],
        cancel: threading.Event,
    ) -> float | None:
        """How much an abstract looks like what the question is about; None when cancelled."""
        items = [evidence[number - 1] for number in numbers[:_JUDGED]]
        return self._margin(chat_messages(question, items, prompts.JUDGE), cancel)

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


def _quoted(evidence: Sequence[Evidence], numbers: Sequence[int]) -> Iterator[str]:
    """Sentences of one abstract in the order they stand there."""
    for number in sorted(numbers, key=lambda n: evidence[n - 1].start):
        yield f"{_bare(evidence[number - 1].quote)} [{number}]. "


def _bare(quote: str) -> str:
    """A sentence on one line, without its stop and without what would read as a marker."""
    return re.sub(r"\[\d[\d,\s-]*\]", "", " ".join(quote.split())).rstrip(" .")
