"""What an answer says of itself: that the abstracts do not answer, or not all of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rag.answers import Evidence, Hit
from rag.languages import phrases
from rag.questions import Asked
from rag.refusal import is_off_topic


class ClosingWords:
    """What an answer says of itself: that something is not in the abstracts."""

    def __init__(self, asked: Asked, say: Callable[[str], str]) -> None:
        self.say = say
        self._asked = asked
        self._phrases = phrases(asked.language)

    def refusal(self, hits: Sequence[Hit], evidence: Sequence[Evidence]) -> str:
        """That the abstracts do not answer, and what the nearest one does cover."""
        if is_off_topic(hits) or not evidence:
            return self._phrases.unanswered
        name = evidence[0].record.label
        # Without a title or a name of its own an abstract is labelled by its first words.
        closest = self._phrases.closest if "…" in name else self._phrases.named.format(name)
        return f"{self._phrases.unanswered} {closest} “{' '.join(evidence[0].quote.split())}”"

    def with_missing(self, text: str, missing: Sequence[str]) -> str:
        if not missing:
            return text
        asked = "; ".join(part.rstrip(" ?？.") for part in missing)
        return f"{text}\n\n{self._phrases.missing.format(asked)}"
