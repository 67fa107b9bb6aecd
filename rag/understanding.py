"""From what was typed to what is searched for: language, follow-ups, translation.

A question that stands by itself and is in English costs nothing here. A follow-up is rewritten
by the LLM, and a question in another language translated, each in one short call; without an
LLM, or with one that fails at it, the question is searched as it is, with its context.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rag import prompts
from rag.conversation import Context, Turn, context_of, faithful, with_topic
from rag.errors import LLMError
from rag.languages import ENGLISH, NAMES, language_of
from rag.llms import Writer
from rag.questions import Asked, names_in
from rag.words import terms

_MOST_TOKENS = 120
_MARKERS = re.compile(r"\s*[\[［【]\s*\d[\d\s,，;–-]*[\]］】]")
_DIGITS = re.compile(r"\d+")
_LONGEST = 8  # times its original, at most, for a translation: Chinese is written densely


@dataclass(frozen=True, slots=True)
class Understood:
    """A question, and what a reader should know of how it was taken."""

    asked: Asked
    warnings: tuple[str, ...] = ()


def needs_llm(
    question: str, history: Sequence[Turn], knows: Callable[[str], bool] = lambda term: True
) -> bool:
    """Whether an LLM would be asked before anything is searched."""
    language = language_of(question)
    return language != ENGLISH or _context(question, history, language, knows) is not None


def understand(
    question: str,
    history: Sequence[Turn],
    writer: Writer | None,
    cancel: threading.Event,
    knows: Callable[[str], bool] = lambda term: True,
) -> Understood:
    """How to take a question. `knows` tells whether a stem stands in any abstract.

    Raises UsageError for a history in another form.
    """
    language = language_of(question)
    context = _context(question, history, language, knows)
    warnings: list[str] = []
    standalone = question
    if context:
        standalone = _rewritten(question, context, writer, cancel)
    english = standalone
    if language != ENGLISH:
        english = _in_english(standalone, writer, cancel)
        if english == standalone:
            warnings.append(
                f"the question, in {NAMES[language]}, was searched as it is: an LLM that "
                "translates it finds more"
            )
    searched = " ".join([english, *_further(standalone, english, context)])
    return Understood(Asked(question, standalone, english, searched, language), tuple(warnings))


def translator(
    language: str, writer: Writer | None, cancel: threading.Event
) -> Callable[[str], str]:
    """Puts sentences of ours from English into a language; leaves them when it cannot."""
    said: dict[str, str] = {}

    def say(text: str) -> str:
        if text not in said:
            message = prompts.FROM_ENGLISH.format(language=NAMES[language], text=text)
            reply = _reply(writer, message, cancel)
            reply = _MARKERS.sub("", reply)
            said[text] = reply if _same_facts(reply, text) else text
        return said[text]

    return str if language == ENGLISH or writer is None else say


def _context(
    question: str, history: Sequence[Turn], language: str, knows: Callable[[str], bool]
) -> Context | None:
    """What a question leans on; nothing when most of its words stand in no abstract.

    "Is it raining in Paris?" is about something else, whatever was said before, and the
    conversation must not lend it a topic.
    """
    context = context_of(question, history, language)
    if context is None or language != ENGLISH:
        return context
    words = terms(question)
    strange = sum(not knows(word) for word in words)
    return None if strange > 0 and 2 * strange >= len(words) else context


def _rewritten(
    question: str, context: Context, writer: Writer | None, cancel: threading.Event
) -> str:
    reply = _reply(writer, prompts.rewrite_message(question, context), cancel)
    return reply if faithful(reply, question, context) else with_topic(question, context)


def _in_english(question: str, writer: Writer | None, cancel: threading.Event) -> str:
    message = prompts.TO_ENGLISH.format(question=prompts.one_line(question))
    reply = _reply(writer, message, cancel)
    fits = 0 < len(reply) <= max(_LONGEST * len(question), 80)
    return reply if fits and _mostly_latin(reply) and reply != question else question


def _mostly_latin(text: str) -> bool:
    """Whether most of a text's letters are; a small model leaves a word untranslated at times."""
    letters = [char for char in text if char.isalpha()]
    return 2 * sum(char < "\u0250" for char in letters) > len(letters)


def _further(standalone: str, english: str, context: Context | None) -> list[str]:
    """What to search for besides: names that a translation lost, and the context."""
    lost = [name for name in names_in(standalone) if name not in english]
    if context is None:
        return lost
    english_context = language_of(context.text) == ENGLISH
    return [*lost, context.text if english_context else " ".join(names_in(context.text))]


def _same_facts(translated: str, text: str) -> bool:
    """Whether a translation kept the numbers, and so most likely the facts."""
    return bool(translated) and set(_DIGITS.findall(text)) <= set(_DIGITS.findall(translated))


def _reply(writer: Writer | None, message: str, cancel: threading.Event) -> str:
    if writer is None:
        return ""
    try:
        reply = writer.complete(message, _MOST_TOKENS, cancel)
    except LLMError:
        return ""
    line = next((line for line in reply.splitlines() if line.strip()), "")
    return line.strip().strip('"“”')
