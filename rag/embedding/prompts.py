"""Prompts: the words that an embedding model wants before a query and before a passage."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prompts:
    """What is put before a query and before a passage; empty for most models."""

    query: str = ""
    passage: str = ""


# Families that state their prompts in the description of the model alone, by a model's name.
_FAMILIES = (
    (re.compile(r"\be5-(small|base|large)(?!.*instruct)"), Prompts("query: ", "passage: ")),
    (
        re.compile(r"\bbge-(small|base|large)-en\b"),
        Prompts("Represent this sentence for searching relevant passages: "),
    ),
)
_PASSAGE_NAMES = ("document", "passage", "corpus")


def prompts_of(stated: Mapping[str, str | None], name: str) -> Prompts:
    """The prompts of a model: those it states in its configuration, else those of its family."""
    if any(stated.values()):
        passage = next((prompt for key in _PASSAGE_NAMES if (prompt := stated.get(key))), "")
        return Prompts(stated.get("query") or "", passage)
    plain = name.replace("_", "-").lower()
    return next((prompts for pattern, prompts in _FAMILIES if pattern.search(plain)), Prompts())
