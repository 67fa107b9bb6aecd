"""Text of an abstract, a question or a model as inert HTML that still reads well.

Everything is escaped, so no tag, link or image of the text survives. Clear LaTeX maths
(`$…$`, `$$…$$`, `\\(…\\)`, `\\[…\\]`) comes out between the delimiters that the page's
KaTeX looks for, `\\(…\\)` and `\\[…\\]`; a lone `$` stays a dollar sign. Simple Markdown
emphasis becomes `<em>`, `<strong>` and `<code>`. The result holds no line break, because a
blank line would end the HTML block that it is put into.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable

# One `$` opens maths when no word, dollar or backslash precedes it (or a sub- or superscript
# follows, as in H$_2$O) and closes it when no digit follows: "$5 and $10" stays text.
_SPECIAL = re.compile(
    r"\$\$(?P<display>[^$]+?)\$\$"
    r"|\\\[(?P<bracket>.+?)\\\]"
    r"|\\\((?P<paren>.+?)\\\)"
    r"|(?:(?<![\w$\\])|(?<=\w)(?=\$[_^\\{]))\$(?P<inline>(?=\S)(?:\\.|[^$\\]){1,400}?(?<=\S))\$(?!\d)"
    r"|(?<!`)`(?P<code>[^`']+)`(?!`)"
    r"|\s*\[(?P<marker>\d{1,3})\]",
    re.DOTALL,
)
_AMOUNT = re.compile(r"[\d.,]+\s*(?:[A-Za-z]{2,}|[-–—])")
_DELIMITER = re.compile(r"\\[()\[\]]")
_UNKNOWN_COMMAND = re.compile(r"\\([A-Z]{2,})(?![A-Za-z])")
_BARE_PERCENT = re.compile(r"(?<!\\)%")

_STRONG = re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*")
_EMPHASIS = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*<]+?)(?<=[^\s*])\*(?![\w*])")

# Stands for a finished piece of HTML while the text around it is escaped; both characters
# are private ones, taken out of the text first.
_OPEN, _CLOSE = "\ue000", "\ue001"
_HELD = re.compile(_OPEN + r"(\d+)" + _CLOSE)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f" + _OPEN + _CLOSE + "]")
_PARAGRAPH = re.compile(r"\s*\n\s*\n\s*")


def no_marker(number: int) -> str | None:
    """For text in which `[n]` is only text."""
    return None


def to_html(text: str, marker: Callable[[int], str | None] = no_marker) -> str:
    """`text` as inert HTML on one line.

    `marker(n)` is the HTML in place of `[n]`, or None where that is only text.
    """
    held: list[str] = []

    def hold(match: re.Match[str]) -> str:
        piece = _special_html(match, marker)
        if piece is None:
            return match.group()
        held.append(piece)
        return f"{_OPEN}{len(held) - 1}{_CLOSE}"

    body = _SPECIAL.sub(hold, _CONTROL.sub("\ufffd", text))
    paragraphs = (re.sub(r"\s+", " ", p) for p in _PARAGRAPH.split(body))
    page = "<br><br>".join(_emphasis(_escaped(p)) for p in paragraphs)
    return _HELD.sub(lambda match: held[int(match.group(1))], page)


def attribute(text: str) -> str:
    """`text` escaped for an attribute; line breaks are kept, as character references."""
    # A backslash as a reference keeps the page from reading delimiters of maths in it.
    escaped = html.escape(text).replace("%%%", "&#37;&#37;&#37;").replace("\n", "&#10;")
    return escaped.replace("\\", "&#92;")


def _escaped(text: str) -> str:
    # A stray delimiter would pair up with the next real one; a tag between its characters
    # keeps KaTeX from seeing it.
    return re.sub(r"&#92;([()\[\]])", r"&#92;<wbr>\1", attribute(text))


def _special_html(match: re.Match[str], marker: Callable[[int], str | None]) -> str | None:
    if match["marker"]:
        return marker(int(match["marker"]))
    if match["code"]:
        return f"<code>{_escaped(' '.join(match['code'].split()))}</code>"
    display = match["display"] or match["bracket"]
    body = display or match["paren"] or match["inline"]
    if _DELIMITER.search(body) or (match["inline"] and _AMOUNT.match(body)):
        return None
    tex = html.escape(_known_tex(" ".join(body.split())))
    left, right = (r"\[", r"\]") if display else (r"\(", r"\)")
    return f'<span class="aq-math">{left}{tex}{right}</span>'


def _known_tex(body: str) -> str:
    # A bare % starts a TeX comment, and an author's own macro such as \KSD would come out
    # red; its name is the best reading of it.
    return _UNKNOWN_COMMAND.sub(r"\\operatorname{\1}", _BARE_PERCENT.sub(r"\\%", body))


def _emphasis(page: str) -> str:
    page = _STRONG.sub(r"<strong>\1</strong>", page)
    return _EMPHASIS.sub(r"<em>\1</em>", page)
