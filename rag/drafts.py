"""From what an LLM wrote, finished or not, to statements and the evidence numbers they cite.

A draft is read from left to right, and nothing that was read is taken back: the statements of
a draft's beginning are the first statements of the whole draft. So whatever could still turn
out otherwise (a bracket that may become a marker, maths that is not closed, a tag) holds back
what follows it until it is decided. The one exception is `</think>` without a `<think>`, by
which a model says that all it wrote so far was no answer.

Markers                                            stand for
`[1]` `[1, 2]` `[1][2]` `[1-3]` `【1】` `^1^`        evidence by number
`[S1]` `[source 1]` `[Sentence 2]` `([1])`         the same
`(1)`                                              the same before or after a sentence's end; not
                                                   within a sentence, as in "(1) first, (2) second",
                                                   nor after "Eq." and the like, nor from 100 up
`(Ishikawa and Hashimoto, 2011)` `[Smith, 2020]`   nothing: removed
brackets within TeX maths                          no marker: an interval

A reply in JSON gives the strings under keys such as "answer" or "text" with the numbers under
keys such as "citations"; malformed JSON is read as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from rag.sentences import Span, split_sentences

Place = Literal["text", "item", "inside"]


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of a draft and the evidence it cites, numbered from 1; none when it cites none.

    place: "item" when it opens an item of a list, "inside" further on in one, else "text"
    """

    text: str
    numbers: tuple[int, ...]
    place: Place = "text"


@dataclass(frozen=True, slots=True)
class Parsed:
    """What is settled of a draft, and the sentence that is still being written."""

    statements: tuple[Statement, ...]
    pending: str = ""


def parse(draft: str, final: bool = True) -> Parsed:
    """The statements of a draft.

    Unless `final`, a sentence is settled once the text of the next one has begun, since its
    markers may follow its stop; what comes after is `pending`, without an unfinished marker.
    """
    statements: list[Statement] = []
    draft = draft.translate(_NARROW)
    for kind, text, closed in _segments(_answer_part(draft, final), final):
        if kind == "json":
            statements.extend(_from_json(text))
        else:
            parsed = _from_text(text, closed)
            statements.extend(parsed.statements)
            if not closed:
                return Parsed(tuple(statements), parsed.pending)
    return Parsed(tuple(statements))


# Brackets as Chinese and Japanese texts write them.
_NARROW = {ord("［"): "[", ord("］"): "]"}

# --- what is no answer ------------------------------------------------------------------------

_THINKING = re.compile(r"<(think|thinking)>.*?(?:</\1>|$)", re.IGNORECASE | re.DOTALL)
_END_OF_THINKING = re.compile(r"</(?:think|thinking)>", re.IGNORECASE)
_TAG = re.compile(r"</?(?:answer|response|output|final)>|<\|[^|<>]{1,30}\|>", re.IGNORECASE)
_CUT_TAG = re.compile(r"<(?:/?[A-Za-z]{0,9}|\|[^|<>]{0,30}\|?)$")


def without_thoughts(reply: str) -> str:
    """A reply without what the model thinks to itself, finished or not."""
    reply = _THINKING.sub("", reply)
    ends = list(_END_OF_THINKING.finditer(reply))
    return reply[ends[-1].end() :] if ends else reply


def _answer_part(draft: str, final: bool) -> str:
    """The draft without what a model thinks to itself and without tags around its answer."""
    draft = _TAG.sub("", without_thoughts(draft))
    return draft if final else _CUT_TAG.sub("", draft)


_FENCE = re.compile(r"```[A-Za-z]*[ \t]*\n?")
_CUT_FENCE = re.compile(r"`{1,2}$|```[A-Za-z]*[ \t]*$")
_JSON_OPENS = re.compile(r"\s*(?:\{|\[\s*[{\"])")
_MAY_OPEN_JSON = re.compile(r"\s*\[?\s*$")


def _segments(draft: str, final: bool) -> Iterator[tuple[str, str, bool]]:
    """Parts of a draft as (kind, text, whether it is complete); JSON only once it is complete."""
    if not final:
        draft = _CUT_FENCE.sub("", draft)
    parts = _FENCE.split(draft)
    for position, part in enumerate(parts):
        closed = final or position + 1 < len(parts)
        may_be_json = position == 0 or position % 2 == 1
        if may_be_json and not closed and _MAY_OPEN_JSON.match(part):
            return
        if may_be_json and _JSON_OPENS.match(part):
            end = _end_of_json(part)
            if end is None and not closed:
                return
            yield ("json", part[:end], True) if end else ("text", _without_braces(part), closed)
            part = part[end:] if end else ""
        if part.strip():
            yield "text", part, closed


# --- JSON -------------------------------------------------------------------------------------

_TEXTS = frozenset(
    "answer answers text texts sentence sentences statement statements claim claims content "
    "final_answer response summary result results point points item items".split()
)
_CITED = frozenset(
    "citation citations source sources evidence marker markers number numbers reference "
    "references ref refs cite cites id ids sentence_id sentence_ids source_id source_ids".split()
)


def _end_of_json(text: str) -> int | None:
    start = len(text) - len(text.lstrip())
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return None


def _from_json(text: str) -> Iterator[Statement]:
    yield from _statements(json.loads(text, strict=False), ())


def _statements(value: Any, cited: tuple[int, ...]) -> Iterator[Statement]:
    if isinstance(value, str):
        for statement in _from_text(value, closed=True).statements:
            yield statement if statement.numbers else replace(statement, numbers=cited)
    elif isinstance(value, list):
        for item in value:
            yield from _statements(item, cited)
    elif isinstance(value, dict):
        keys = {str(key): str(key).casefold() for key in value}
        own = tuple(n for k, low in keys.items() if low in _CITED for n in _numbers_in(value[k]))
        for key, low in keys.items():
            # {"answer": …, "sources": ["a sentence", …]}: what is cited is no part of the answer.
            if low in _TEXTS and not isinstance(value[key], int):
                yield from _statements(value[key], own or cited)


def _numbers_in(value: Any) -> Iterator[int]:
    if isinstance(value, list):
        for item in value:
            yield from _numbers_in(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if str(key).casefold() in _CITED:
                yield from _numbers_in(item)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield value
    elif isinstance(value, str) and (match := _CITED_STRING.fullmatch(value.strip())):
        yield from _expanded(match["list"])


def _without_braces(text: str) -> str:
    """Malformed JSON as text: its keys, braces and quotation marks left out."""
    text = re.sub(r"[\"']?\b\w+[\"']?\s*:\s*(?=[\"'\[{\d])", " ", text)
    text = re.sub(r"\\[nt]", " ", text).replace('\\"', "'")
    return re.sub(r"[{}\"]|\[(?!\s*\d)|(?<!\d)\s*\]|(?<=\")\s*,|^\s*,", " ", text).strip(" ,")


# --- text -------------------------------------------------------------------------------------

_WORD = (
    r"(?:sentences?|sources?|refs?|references?|evidence|citations?|abstracts?|passages?|docs?|s)"
)
_LIST = rf"\d{{1,9}}(?:\s*(?:[,，、;–—-]|and|&|to)\s*(?:{_WORD}\s*)?\d{{1,9}})*"
_ITEM = rf"(?:{_WORD}\s*[.:#]?\s*)?#?(?P<list>{_LIST})(?:†[^\]】]*)?"
_CITED_STRING = re.compile(rf"[\[(【]?\s*{_ITEM}\s*[\])】]?", re.IGNORECASE)
_BRACKETED = re.compile(rf"\\?[\[【]{{1,2}}\s*\^?{_ITEM}\s*\\?[\]】]{{1,2}}", re.IGNORECASE)
_RAISED = re.compile(
    r"\^(?P<list>\d{1,3}(?:,\s?\d{1,3})*)\^|<sup>(?P<sup>\d{1,3}(?:,\s?\d{1,3})*)</sup>"
)
_CUT_RAISED = re.compile(r"\^[\d, ]{0,12}$|<sup>[\d, ]{0,12}(?:<(?:/(?:s(?:up?)?)?)?)?$")
# (see [1], [2])  (source 3): brackets around markers go with them.
_WRAPPED = re.compile(
    rf"\(\s*(?:see|cf\.?)?\s*(?:(?:{_WORD})\s*[.:]?\s*(?P<list>{_LIST})"
    rf"|(?:{_WORD}\s*:?\s*)?(?P<many>[\[【][^()]*[\]】]))\s*\)",
    re.IGNORECASE,
)
_CUT_MARKER = re.compile(rf"[\[【]\s*(?:{_WORD}\s*)?[\d\s,;–-]*", re.IGNORECASE)
_PARENTHESES = re.compile(r"\(\s*(?P<list>\d{1,2}(?:\s*[,;–-]\s*\d{1,2})*)\s*\)")
_NAME = r"[^\W\d_][\w'’.-]*"
_AUTHOR_YEAR = re.compile(
    rf"[\[(](?:see |e\.g\.,? |cf\.? )?(?:{_NAME}(?:,? (?:and|&) {_NAME}|,? et al\.?)?"
    rf",?\s(?:19|20)\d\d[a-z]?(?:\s*;\s*)?)+[\])]"
)
_LONE_YEAR = re.compile(r"\((?:19|20)\d\d[a-z]?\)")
_NOT_CITED_BEFORE = re.compile(
    r"\b(?:eqs?|equations?|secs?|sections?|figs?|figures?|tables?|theorems?|lemmas?|steps?|"
    r"algorithms?|definitions?|chapters?|parts?|level|case|class)\.?$",
    re.IGNORECASE,
)
_RANGE = re.compile(r"(\d+)\s*(?:[–—-]|to)\s*(\d+)")
_LONGEST_RANGE = 20


# Where something begins that needs a decision.
_OPENER = re.compile(r"\$|\\[(\[]|\\$|[\[【(]|\^(?=\d|$)|<sup>|\n")
_CLOSED_BY = {"[": "]】", "【": "]】", "(": ")"}
_MATHS_CLOSED_BY = {"$$": "$$", "$": "$", "\\(": "\\)", "\\[": "\\]"}
# "$5 to train and $10 to run" holds no maths.
_AMOUNT = re.compile(r"\$\d[\d.,]*[kKMB]?\s+(?:[A-Za-z]{2}|[\[(【])")
_LONGEST_MARKER, _LONGEST_MATHS = 120, 400  # characters
_STOPS = ".!?。！？"
_ENDS = tuple(_STOPS + "\"'”’»)]}*_」』）")  # of a sentence, quotation marks included
_SEPARATOR = re.compile(r"\s*(?:[,;&]|and)?\s*")
_LIST_ITEM = re.compile(r"[ \t]*(?:•[ \t]*|(?:[-*+–]|\d{1,2}[.)]|\(\d{1,2}\))[ \t]+)(?=\S)")
_MAY_OPEN_LINE = re.compile(r"[ \t]*(?:[-*•+–]|\(?\d{0,2}[.)]?|\(\d{1,2}\)|#{1,6})?[ \t]*")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]")
_LINK = re.compile(r"\((?:#|https?:)[^()\s]*\)")
_MARKERS_IN_SIGHT = re.compile(r"\s*[\[【][^\]】]*[\]】]?")

# What is left of a sentence that named its source: "According to [1], the method …".
_NAMED_SOURCE = re.compile(
    r"(?:(?:final )?answer:|(?:according to|as (?:shown|stated|noted|reported|described) (?:in|by)"
    r"|in|from|per)(?=\s*,))\s*,?\s*",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _Block:
    """A paragraph or an item of a list, without its markers.

    marks: places in `text`, each with the numbers cited there; maths: spans of TeX maths
    """

    place: Place
    text: str = ""
    marks: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    maths: list[Span] = field(default_factory=list)

    def statements(self) -> list[Statement]:
        """The sentences with what they cite.

        A marker after a full stop belongs to the sentence before it, unless the block opens
        with one: then each stands before its sentence.
        """
        spans = split_sentences(self.text, self.maths)
        leads = bool(self.marks) and not self.text[: self.marks[0][0]].strip()
        cited: list[list[int]] = [[] for _ in spans]
        for at, numbers in self.marks:
            begun = [i for i, (start, _) in enumerate(spans) if start < at]
            owner = begun[-1] if begun else 0
            between = bool(begun) and at >= spans[owner][1]
            if leads and between and owner + 1 < len(spans):
                owner += 1
            if spans:
                cited[owner].extend(numbers)
        return [
            Statement(
                self.text[start:end],
                tuple(dict.fromkeys(numbers)),
                "inside" if i and self.place == "item" else self.place,
            )
            for i, ((start, end), numbers) in enumerate(zip(spans, cited, strict=True))
        ]


class _Scanner:
    """Reads a text into blocks, as far as it is decided; `rest` is what is not."""

    def __init__(self, text: str, closed: bool) -> None:
        self.text = text
        self.closed = closed
        self.blocks = [_Block("text")]
        self.rest = ""
        at = self._line(0, 0)
        while at is not None and at < len(text):
            at = self._next(at)
        if not closed:
            # White space may yet be eaten by a marker.
            self.blocks[-1].text = self.blocks[-1].text.rstrip()

    def _next(self, at: int) -> int | None:
        """Read up to and over the next opener; the place after it, None to wait for more."""
        opener = _OPENER.search(self.text, at)
        if opener is None:
            self._keep(self.text[at:])
            return len(self.text)
        self._keep(self.text[at : opener.start()])
        at, sign = opener.start(), opener.group()
        if sign == "\n":
            return self._newline(at)
        if sign[0] in "$\\":
            return self._maths(at)
        return self._bracket(at)

    def _keep(self, text: str) -> None:
        self.blocks[-1].text += text

    def _wait(self, at: int) -> int | None:
        """Leave what follows undecided."""
        self.rest = self.text[at:]
        return None

    # A line

    def _newline(self, at: int) -> int | None:
        end = at + len(self.text[at:]) - len(self.text[at:].lstrip())
        run = self.text[at:end]
        after = self._line(at + run.rindex("\n") + 1, at)
        if after is None or after != at:
            return after
        if run.count("\n") > 1:
            indented = not run.endswith("\n") and self.blocks[-1].place != "text"
            self.blocks.append(_Block("inside" if indented else "text"))
        else:
            self._keep(" ")
        return end

    def _line(self, start: int, before: int) -> int | None:
        """Read the sign that opens a line; `before` when there is none."""
        line = self.text[start:]
        if not self.closed and _MAY_OPEN_LINE.fullmatch(line):
            return self._wait(before)
        if _HEADING.match(line):
            end = self.text.find("\n", start)
            if end < 0 and not self.closed:
                return self._wait(before)
            self.blocks.append(_Block("text"))
            return end if end >= 0 else len(self.text)
        if item := _LIST_ITEM.match(line):
            self.blocks.append(_Block("item"))
            return start + item.end()
        return before

    # Maths

    def _maths(self, at: int) -> int | None:
        text = self.text
        if text.startswith("\\[", at) and (escaped := _BRACKETED.match(text, at)):
            return self._mark(at, escaped.end(), _expanded(escaped["list"]))
        sign = text[at : at + 2] if text[at : at + 2] in _MATHS_CLOSED_BY else text[at]
        close = _MATHS_CLOSED_BY.get(sign)
        if close is None or (sign == "$" and at + 1 == len(text)):
            return self._undecided(at, sign, True)
        end = text.find(close, at + len(sign))
        while end > 0 and close == "$" and text[end - 1] == "\\":
            end = text.find(close, end + 1)
        within = text[at : end if end >= 0 else len(text)]
        if sign == "$" and _AMOUNT.match(within):
            return self._undecided(at, sign, False)
        fits = len(within) <= _LONGEST_MATHS and not (close == "$" and "\n" in within)
        if end < 0 or not fits:
            return self._undecided(at, sign, fits and end < 0)
        block, end = self.blocks[-1], end + len(close)
        block.maths.append((len(block.text), len(block.text) + end - at))
        self._keep(text[at:end].replace("\n", " "))
        return end

    def _undecided(self, at: int, sign: str, may_close: bool) -> int | None:
        if may_close and not self.closed:
            return self._wait(at)
        self._keep(sign)
        return at + len(sign)

    # Markers

    def _bracket(self, at: int) -> int | None:
        text, sign = self.text, self.text[at]
        if sign in "^<":
            raised = _RAISED.match(text, at)
            if raised:
                return self._mark(at, raised.end(), _expanded(raised["list"] or raised["sup"]))
            return self._undecided(at, sign, bool(_CUT_RAISED.match(text, at)))
        window = text[at : at + _LONGEST_MARKER].split("\n")[0]
        if not any(close in window for close in _CLOSED_BY[sign]):
            open_still = at + len(window) == len(text) and len(window) < _LONGEST_MARKER
            if open_still and self.closed and _CUT_MARKER.fullmatch(window):
                return len(text)
            return self._undecided(at, sign, open_still)
        if sign == "(":
            return self._parenthesis(at)
        if match := _BRACKETED.match(text, at):
            numbers = _expanded(match["list"])
            if 0 not in numbers:  # [0, 1] is an interval
                return self._mark(at, match.end(), numbers)
        if match := _AUTHOR_YEAR.match(text, at):
            return self._mark(at, match.end(), [])
        return self._undecided(at, sign, False)

    def _parenthesis(self, at: int) -> int | None:
        text, before = self.text, self.blocks[-1].text.rstrip()
        if match := _WRAPPED.match(text, at):
            listed = match["list"] or " ".join(re.findall(_LIST, match["many"]))
            return self._mark(at, match.end(), _expanded(listed))
        if match := _AUTHOR_YEAR.match(text, at):
            return self._mark(at, match.end(), [])
        if (match := _LONE_YEAR.match(text, at)) and before.endswith("al."):
            return self._mark(at, match.end(), [])
        match = _PARENTHESES.match(text, at)
        apart = before != self.blocks[-1].text or before.endswith(tuple(_STOPS))
        if not match or not before or not apart or _NOT_CITED_BEFORE.search(before):
            return self._undecided(at, "(", False)
        after = text[match.end() :].lstrip(" \t")
        if not after and not self.closed:
            return self._wait(at)
        if before.endswith(tuple(_STOPS)) or not after or after[0] in _STOPS + "\n([【":
            return self._mark(at, match.end(), _expanded(match["list"]))
        return self._undecided(at, "(", False)

    def _mark(self, at: int, end: int, numbers: list[int]) -> int | None:
        """Take a marker out of the text; a link that it carries goes with it."""
        text = self.text
        after = text[end:].lstrip(" \t")
        if not after and not self.closed:
            return self._wait(at)
        if text.startswith("(", end):
            if link := _LINK.match(text, end):
                end = link.end()
            elif not self.closed and ")" not in text[end:] and len(text) - end < _LONGEST_MARKER:
                return self._wait(at)
        block = self.blocks[-1]
        opens = not block.text.strip()
        if opens and len(self.blocks) > 1 and after[:1] in ("", "\n"):
            # Alone on its line: it belongs to what stands above.
            block = self.blocks[-2]
        elif not opens and after[:1] not in ("", "\n") and _opens_line(text, at):
            block = _Block("text")
            self.blocks.append(block)
        bare = block.text.rstrip()
        if block.marks:
            last = min(block.marks[-1][0], len(bare))
            joins = _SEPARATOR.fullmatch(bare, last)
            if joins and not (joins.group().strip() == "and" and bare[:last].endswith(_ENDS)):
                bare = bare[:last]
        block.text = bare
        block.marks.append((len(bare), tuple(numbers)))
        if bare.endswith((".", "!", "?")) and end < len(text) and not text[end].isspace():
            block.text += " "
        return end


def _opens_line(text: str, at: int) -> bool:
    return not text[text.rfind("\n", 0, at) + 1 : at].strip()


def _from_text(text: str, closed: bool) -> Parsed:
    scanner = _Scanner(text, closed)
    found = [statement for block in scanner.blocks for statement in block.statements()]
    if closed:
        return Parsed(tuple(_shown(found)))
    # The next sentence must have begun with a word: its markers may still come before that.
    begun = [i for i, statement in enumerate(found) if re.search(r"\w", statement.text)]
    settled = begun[-1] if begun else 0
    rest = scanner.rest if scanner.rest[:1] in ("$", "\\") else ""
    pending = " ".join(statement.text for statement in found[settled:])
    pending += " " * bool(rest) + _MARKERS_IN_SIGHT.sub("", rest)
    return Parsed(tuple(_shown(found[:settled])), pending.replace("**", "").strip())


def _shown(found: Iterable[Statement]) -> Iterator[Statement]:
    for statement in found:
        text = statement.text.replace("**", "").lstrip(" ,;&")
        if named := _NAMED_SOURCE.match(text):
            text = text[named.end() :]
            text = text[:1].upper() + text[1:]
        if re.search(r"\w", text):
            yield replace(statement, text=text)


def _expanded(listed: str) -> list[int]:
    found: list[int] = []
    for part in re.split(r"[,，、;&]|\band\b", listed):
        numbers = [int(number) for number in re.findall(r"\d+", part)]
        if _RANGE.search(part) and len(numbers) == 2:
            first, last = numbers
            found.extend(range(first, min(last, first + _LONGEST_RANGE) + 1))
        else:
            found.extend(numbers)
    return found
