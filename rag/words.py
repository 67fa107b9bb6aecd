"""The words of a text as the catalogue, the evidence and the citations count them."""

from __future__ import annotations

import re
import unicodedata

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

# What TeX commands stand for in running text; Greek letters are written out, and any other
# command only says how its argument looks.
_TEX_SYMBOLS = {
    "times": "×", "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "lt": "<", "gt": ">", "pm": "±",
    "sqrt": "√", "approx": "~", "sim": "~", "cdot": "·", "infty": "∞", "ell": "l", "dots": "…",
    "ldots": "…", "to": "→", "rightarrow": "→", "quad": " ", "newline": " ",
}  # fmt: skip
_GREEK = frozenset(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho "
    "sigma tau upsilon phi chi psi omega".split()
)
_TEX_COMMAND = re.compile(r"\\([A-Za-z]+)\s*|\\([^A-Za-z])")
_MARK_UP = re.compile(r"[{}$*_^`]")
_GREEK_SIGN = re.compile(r"[\u0370-\u03ff\u2206]")
_HYPHENS = re.compile(r"[\u2010-\u2013\u2212]")
_THOUSANDS = re.compile(r"(?<=\d)[,'’\u00a0\u2009\u202f](?=\d{3}(?!\d))")


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
    return tuple(dict.fromkeys(word for word in _ANALYZER.analyze(text) if carries_meaning(word)))


def stems(text: str) -> list[str]:
    """Every word of `text`, stemmed, in order."""
    return list(_ANALYZER.analyze(text))


def carries_meaning(stem: str) -> bool:
    """Whether a stem is more than a function word."""
    return stem not in _STOP_STEMS


def plain(text: str) -> str:
    r"""`text` in one spelling, so that two ways to write the same thing compare equal.

    TeX and Markdown are read, Greek letters written out, accents dropped, hyphens and
    separators of thousands made one: `$\tau$-bench` and `τ‑bench` both give "tau-bench",
    `25\%` gives "25%", and `2{,}864` gives "2864". For comparing, not for showing.
    """
    if "\\" in text:
        text = _TEX_COMMAND.sub(_tex_symbol, text)
    text = _THOUSANDS.sub("", _MARK_UP.sub("", text))
    if text.isascii():
        return text.replace("--", " - ")
    text = _HYPHENS.sub("-", text).replace("—", " - ").replace("’", "'")
    text = unicodedata.normalize("NFKC", _GREEK_SIGN.sub(_greek_name, text))
    # Kana and Hangul come apart as well, and are put together again.
    bare = (sign for sign in unicodedata.normalize("NFD", text) if not _is_accent(sign))
    return unicodedata.normalize("NFC", "".join(bare)).replace("--", " - ")


def _is_accent(sign: str) -> bool:
    return "\u0300" <= sign <= "\u036f"


def _tex_symbol(match: re.Match[str]) -> str:
    name, sign = match.groups()
    if sign is not None:
        return sign if sign in "%&$#_{}" else " "
    letter = name.casefold().removeprefix("var")
    # An author's own macro in capitals, such as \KSD, stands for what it spells.
    own = name if name.isupper() and len(name) > 1 else ""
    return letter if letter in _GREEK else _TEX_SYMBOLS.get(name, own)


def _greek_name(match: re.Match[str]) -> str:
    if match.group() == "\u2206":  # the increment sign, written for a capital delta
        return "delta"
    words = unicodedata.name(match.group(), "").casefold().split()
    names = [word for word in words if word.replace("lamda", "lambda") in _GREEK]
    return names[0].replace("lamda", "lambda") if names else match.group()
