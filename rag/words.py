"""The words of a text as the catalogue, the evidence and the citations count them."""

from __future__ import annotations

import re

import tantivy

_STOP_WORDS = frozenset(
    "a about above after again all also am an and any are as at be because been before being "
    "below between both but by can could did do does doing done down during each few for from "
    "further get gets got had has have having he her here him his how i if in into is it its "
    "itself just let me more most my no nor not now of off on once only or other our out over "
    "own same she should so some such than that the their them then there these they this those "
    "through to too under until up us use used uses using very was way we were what when where "
    "which while who whom whose why will with would you your".split()
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def analyzer() -> tantivy.TextAnalyzer:
    """Words in lower case, without accents, stemmed as English."""
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.ascii_fold())
        .filter(tantivy.Filter.stemmer("english"))
        .build()
    )


_ANALYZER = analyzer()
_STOP_STEMS = _STOP_WORDS | {stem for word in _STOP_WORDS for stem in _ANALYZER.analyze(word)}


def terms(text: str) -> tuple[str, ...]:
    """The distinct stemmed words of `text` that carry meaning, in order."""
    return tuple(dict.fromkeys(word for word in _ANALYZER.analyze(text) if word not in _STOP_STEMS))


def numbers(text: str) -> frozenset[str]:
    """The numbers written in digits in `text`, without separators of thousands."""
    return frozenset(
        re.sub(r",(?=\d{3}(?!\d))", "", match.group()).rstrip(".,")
        for match in _NUMBER.finditer(text)
    )
