"""What exports add to an abstract, taken off again: markup, headings, copyright notes.

`abstract` and `line` change only what is certainly not the authors' text. "a<b", LaTeX,
Markdown and chemical names are theirs; "<jats:p>", "&lt;", "Abstract:" and "© 2020 Elsevier
B.V. All rights reserved." are not.
"""

from __future__ import annotations

import html
import re
import unicodedata

# --- Characters -----------------------------------------------------------------------------

# Everything a text can hold that is no plain character: controls, odd spaces, soft hyphens,
# halves of surrogate pairs. Joiners (U+200C, U+200D) stay: Persian and Hindi spell with them.
_ODD = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u1680\u180e\u2000-\u200b\u200e\u200f\u2028-\u202f"
    "\u205f-\u2064\u2066-\u206f\u3000\ufeff\ufffe\uffff\ud800-\udfff]"
)
_BLANKS = re.compile(r"[ \t]{2,}|\t")
_EMPTY_LINES = re.compile(r" ?\n ?(?:\n ?)+")


def _plain_character(match: re.Match[str]) -> str:
    char = match.group()
    code = ord(char)
    if code in (0x0D, 0x0B, 0x0C, 0x85, 0x2028, 0x2029):
        return "\n"
    if 0x80 <= code < 0xA0:  # Windows-1252 that was read as Latin-1: dashes and quotes
        return bytes([code]).decode("cp1252", "ignore")
    if unicodedata.category(char) == "Zs":
        return " "
    if unicodedata.category(char) == "Cs":
        return "\ufffd"
    return ""


def _characters(text: str) -> str:
    """Plain characters; a run of blanks as one space, of empty lines as one."""
    if not text.isprintable():  # as most texts are
        text = _ODD.sub(_plain_character, text.replace("\r\n", "\n"))
        text = _EMPTY_LINES.sub("\n\n", _BLANKS.sub(" ", text))
    return _BLANKS.sub(" ", text) if "  " in text else text


# --- Tags and entities ----------------------------------------------------------------------

_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_LINE_TAGS = "p|br|div|li|ul|ol|sec|section|abstract|tr|table|list|list-item|disp-formula|h[1-6]"
_INLINE_TAGS = (
    "italic|bold|strong|em|span|sub|sup|small|sc|underline|font|a|b|i|u|td|th|label|title|"
    "inline-formula|inline-graphic|alternatives|tex-math|ext-link|xref|named-content|monospace|"
    "styled-content|roman|sans-serif|abstracttext|copyrightinformation|math|mrow|mi|mn|mo|msub|"
    "msup|msubsup|mfrac|msqrt|mtext|mover|munder|mstyle|semantics|annotation"
)
_ATTRIBUTES = r"""(?:\s+[\w:.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'|[^\s"'<>=]+))*"""
_TAG = re.compile(
    rf"<(?P<close>/?)(?:(?P<prefix>jats:|mml:|ce:)(?P<any>[\w-]+)|"
    rf"(?P<name>{_LINE_TAGS}|{_INLINE_TAGS}))(?P<rest>{_ATTRIBUTES}\s*/?)>",
    re.IGNORECASE,
)
_IS_LINE_TAG = re.compile(_LINE_TAGS)
# Tags that stand alone; all others come in pairs: in "if a<b>c" nothing is bold.
_UNPAIRED = frozenset({"br", "p"})
_HEADING = re.compile(
    rf"<(?:jats:)?(?P<name>title|label|h[1-6]){_ATTRIBUTES}\s*>(?P<text>[^<]{{1,200}})"
    r"</(?:jats:)?(?P=name)\s*>",
    re.IGNORECASE,
)
_RAISED = re.compile(r"<(?:jats:)?sup>([^<]{1,20})</(?:jats:)?sup>", re.IGNORECASE)
_SUPERSCRIPTS = str.maketrans("0123456789+-−–()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻⁽⁾ⁿ")
_NO_TEXT = re.compile(
    r"<!--.{0,9999}?-->|<(?P<name>script|style)\b[^>]*>.{0,9999}?</(?P=name)\s*>|<!\[CDATA\[|\]\]>|"
    r"<\?[a-z][^>]*\?>",
    re.IGNORECASE | re.DOTALL,
)
_MATHML = re.compile(r"<mml:math\b.{0,9999}?</mml:math\s*>", re.IGNORECASE | re.DOTALL)
_TEX_DOCUMENT = re.compile(
    r"\\documentclass.{0,9999}?\\begin\{document\}(.{0,9999}?)\\end\{document\}", re.DOTALL
)


def _without_markup(text: str) -> str:
    """The text of HTML or JATS; entities are read twice, as some exports write them twice."""
    for _ in range(2):
        if "<" in text and ">" in text:
            text = _without_tags(text)
        if "&" not in text:
            return text
        text = _ENTITY.sub(lambda match: html.unescape(match.group()), text)
    return _without_tags(text) if "<" in text and ">" in text else text


def _without_tags(text: str) -> str:
    text = _NO_TEXT.sub("", text)
    if "tex-math" in text:  # the same formula twice, once in each notation
        text = _TEX_DOCUMENT.sub(r"\1", _MATHML.sub("", text))
    text = _RAISED.sub(_raised, text)
    text = _HEADING.sub(_section_heading, text)
    tags = list(_TAG.finditer(text))
    closed = {_name(tag) for tag in tags if tag["close"]}
    paired = closed & {_name(tag) for tag in tags if not tag["close"]}
    return _TAG.sub(lambda tag: _tag_text(tag, paired), text)


def _name(tag: re.Match[str]) -> str:
    return (tag["any"] or tag["name"]).lower()


def _tag_text(tag: re.Match[str], paired: set[str]) -> str:
    name = _name(tag)
    alone = name in _UNPAIRED and (tag["close"] or tag.start() == 0 or len(name) > 1)
    if tag["prefix"] or tag["rest"] or name in paired or alone:
        return "\n" if _IS_LINE_TAG.fullmatch(name) else ""
    return tag.group()


def _raised(match: re.Match[str]) -> str:
    """10<sup>-3</sup> is no 10-3: digits and signs have characters of their own."""
    inner = match.group(1).strip()
    raised = inner.translate(_SUPERSCRIPTS)
    return raised if not set(raised) & set(inner) else inner


def _section_heading(match: re.Match[str]) -> str:
    return f"\n{match['text'].strip().rstrip(':.')}: "


# --- Headings, line ends, copyright ---------------------------------------------------------

_PREFIX = re.compile(
    r"\W{0,3}(?:abstract|résumé|resumen|riassunto|resumo|zusammenfassung|摘\s*要)\W{0,3}?"
    r"(?:\s*[:：.—–]\s*|\s+-\s+|\s*\n\s*)(?=\S)",
    re.IGNORECASE,
)
_BARE_PREFIX = re.compile(
    r"ABSTRACT\s+(?=[A-Z])|Abstract\s+(?=(?:Background|Objectives?|Introduction|Purpose|Aims?|"
    r"Context|Importance|Motivation|Rationale|Significance|BACKGROUND|OBJECTIVES?|INTRODUCTION|"
    r"PURPOSE|AIMS?|CONTEXT|IMPORTANCE)\b)"
)
# A line end that stands for one: before a blank line, a list item or a labelled section.
_LINE_START = re.compile(r"[-*•‣▪]\s|\(?\d{1,2}[.)]\s|[A-Z][A-Za-z /&,-]{2,48}:\s")

_YEARS = r"(?:19|20)\d\d"
# A note starts where a sentence or a line does.
_NOTE_START = re.compile(
    rf"(?:^|(?<=[.!?;:)\]\"'”’])|(?<=\n))\s*"
    rf"(?:(?:Crown\s+)?(?:Copyright\s*)?©|"
    rf"(?:Crown\s+)?(?:Copyright|COPYRIGHT)\s*(?:\([cC]\)|{_YEARS}|of\s|by\s|held\s|The\s)|"
    rf"\([cC]\)\s*(?:Copyright\s*)?{_YEARS}(?=\s*(?:[A-Z,.;]|by\s|$))|{_YEARS},?\s+(?:The\s+)?(?:Authors?\b|Author\(s\))|"
    r"All\s+[rR]ights\s+[rR]eserved|Published\s+(?:by|under)\s[^.]{0,80}"
    r"(?:Elsevier|Springer|Wiley|Ltd|Inc|LLC|GmbH|B\.V|Press|Publish|icen[cs]e|behalf|Society)|"
    r"This\s+article\s+is\s+protected\s+by\s|\[ABSTRACT\s+FROM|\(PsycI)"
)
_NOTE_HINT = re.compile(r"©|rights|\([cC]\)|Copyr|Publ|Author|\[ABS|PsycI|protected by")
# What the further sentences of a note talk of.
_LEGAL = re.compile(
    r"rights\s+reserved|licen[cs]e|published\s+(?:by|under|in)|open[ -]access|\bCC[- ]?BY|"
    r"creative\s+commons|copyright|©|\(c\)\s*\d|the\s+authors?\b\W*$|elsevier|springer|wiley|"
    r"https?:|\bLtd\b|\bInc\b|\bLLC\b|GmbH|\bB\.\s?V\b|KGaA|property\s+of|copied|e-?mailed|"
    r"permission|abridged|warranty|on\s+behalf\s+of|abstract\s+from|public\s+domain|"
    r"original\s+published",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[A-Z©(\[\d])")
_LONGEST_NOTE = 700
_LONGEST_SENTENCE = 60
_SHORTEST_REST = 20
_OPENING_NOTE = re.compile(
    rf"\s*(?:Copyright\s*)?(?:©|\(c\))\s*(?:Copyright\s*)?{_YEARS}(?:\s*[,-]\s*{_YEARS})?"
    r"[^.\n]{0,80}?(?:\b(?:B\.\s?V|Inc|Ltd|Co|S\.A))?\.\s*(?:All rights reserved\.\s*)?(?=\S)",
    re.IGNORECASE,
)
_NO_ABSTRACT = re.compile(
    r"\W*(?:(?:no|an)?\s*abstract(?:\s+(?:is|was))?\s*(?:not\s+)?(?:available|provided|supplied|"
    r"found|present)?|n\s*/?\s*a|nan|none|null|nil|not\s+available|unavailable|tbd|undefined)\W*",
    re.IGNORECASE,
)


def abstract(raw: str) -> str:
    """An abstract without what the export added. Empty when it only says that there is none."""
    text = _without_markup(_characters(raw))
    text = text.strip()
    prefix = _PREFIX.match(text) or _BARE_PREFIX.match(text)
    text = _joined_lines(text[prefix.end() :] if prefix else text)
    text = _without_copyright(text)
    return "" if _NO_ABSTRACT.fullmatch(text) else text


def line(raw: str) -> str:
    """A title, name or keyword without markup, on one line."""
    return " ".join(_without_markup(_characters(raw)).split())


def _joined_lines(text: str) -> str:
    """Wrapped lines joined; paragraphs, list items and labelled sections keep their lines."""
    if "\n" not in text:
        return text
    paragraphs = []
    for paragraph in _EMPTY_LINES.split(text):
        lines = [line for line in (line.strip() for line in paragraph.split("\n")) if line]
        joined = lines[:1]
        for line in lines[1:]:
            if _LINE_START.match(line):
                joined.append(line)
            else:
                joined[-1] += " " + line
        paragraphs.append("\n".join(joined))
    joined_text = "\n".join(paragraph for paragraph in paragraphs if paragraph)
    return _BLANKS.sub(" ", joined_text)


def _without_copyright(text: str) -> str:
    opening = _OPENING_NOTE.match(text)
    if opening and len(text) - opening.end() >= _SHORTEST_REST:
        text = text[opening.end() :]
    tail = max(0, len(text) - _LONGEST_NOTE)
    if not _NOTE_HINT.search(text, tail):
        return text
    for start in _NOTE_START.finditer(text, tail):
        rest, note = text[: start.start()].rstrip(), text[start.start() :].strip()
        if _is_copyright(note):
            return rest
    return text


def _is_copyright(note: str) -> bool:
    first, *further = _SENTENCES.split(note)
    return len(first.split()) <= _LONGEST_SENTENCE and all(
        _LEGAL.search(sentence) or len(sentence.split()) <= 3 for sentence in further
    )
