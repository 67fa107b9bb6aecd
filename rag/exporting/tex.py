"""Writing text as LaTeX that decodes to the same text; its mathematics stays mathematics.

The counterpart of rag.sources.latex. Letters stay as they are, in UTF-8; signs that LaTeX
gives a meaning are escaped. What looks like mathematics but is none to LaTeX, as an
unfinished formula or "costs $5% of $x$", is escaped like other text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import accumulate

from pylatexenc.latexwalker import (
    LatexEnvironmentNode,
    LatexMathNode,
    LatexWalker,
    LatexWalkerError,
)

from rag.sources.latex import DOLLAR_MATHS, MATHS_ENVIRONMENT

MATHS = re.compile(
    rf"{DOLLAR_MATHS.pattern}|\\\(.*?\\\)|\\\[.*?\\\]|"
    rf"{MATHS_ENVIRONMENT.pattern}.*?\\end\{{(?P=environment)\}}",
    re.DOTALL,
)
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: "\\" + sign for sign in "$&%#_{}"},
}
# BibTeX counts braces even when they are escaped: where they do not pair, they are spelt out.
_BRACE_NAMES = {"{": r"\lbrace{}", "}": r"\rbrace{}"}
# Signs, the first characters of ligatures ("--" is a dash), and an "@" that opens a line,
# where BibTeX would see an entry begin.
_SIGN = re.compile(r"[\\~^$&%#_{}]|-(?=-)|`(?=`)|'(?=')|[!?](?=`)|(?<=\n)[ \t]*@")


def encoded(text: str, keep_case: bool = False) -> str:
    """LaTeX source of a text, its braces balanced.

    With `keep_case`, words with capitals inside are put in braces: "{BERT}" stays so in
    bibliography styles that write titles in lower case.
    """
    escapes = _ESCAPES if _balanced(text) else _ESCAPES | _BRACE_NAMES
    parts: list[str] = []
    at = 0
    for maths in MATHS.finditer(text):
        if not _stays(maths.group()):
            continue
        parts.append(_plain(text[at : maths.start()], escapes, keep_case))
        # Two formulas that touch would read as one in display style.
        touching = at and at == maths.start()
        parts.append("{}" * touching + maths.group())
        at = maths.end()
    parts.append(_plain(text[at:], escapes, keep_case))
    return "".join(parts)


def _plain(text: str, escapes: dict[str, str], keep_case: bool) -> str:
    def escaped(sign: re.Match[str]) -> str:
        found = sign.group()
        if found.endswith("@"):
            return found[:-1] + "{@}"
        return escapes.get(found, found + "{}")

    if not keep_case:
        return _SIGN.sub(escaped, text)
    words = re.split(r"(\s+)", text)
    return "".join(_kept(word, _SIGN.sub(escaped, word)) for word in words)


def _kept(word: str, source: str) -> str:
    capitals = any(char.isupper() for char in word[1:])
    return f"{{{source}}}" if capitals and not re.search(r"[{}\\]", word) else source


@lru_cache(maxsize=4096)
def _stays(maths: str) -> bool:
    """Whether this is one formula to LaTeX, on one line, that BibTeX can hold."""
    if "\n" in maths or not _balanced(maths):
        return False
    try:
        nodes, _, length = LatexWalker(maths, tolerant_parsing=False).get_latex_nodes()
    except LatexWalkerError:
        return False
    formula = len(nodes) == 1 and isinstance(nodes[0], LatexMathNode | LatexEnvironmentNode)
    return formula and length == len(maths)


def _balanced(text: str) -> bool:
    depths = list(accumulate((char == "{") - (char == "}") for char in text))
    return not depths or (depths[-1] == 0 and min(depths) == 0)
