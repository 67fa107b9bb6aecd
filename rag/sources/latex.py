"""Reading the LaTeX of bibliographies: accents, escapes and grouping braces become text.

Mathematics stays as written, and so do commands that have no plain reading, such as
`\\cite{key}`: nothing is dropped. A percent sign is text here, not a comment, because many
programs do not escape it.
"""

from __future__ import annotations

import re
import unicodedata

_ACCENTS = {
    "`": "\u0300",
    "'": "\u0301",
    "^": "\u0302",
    "~": "\u0303",
    "=": "\u0304",
    "u": "\u0306",
    ".": "\u0307",
    '"': "\u0308",
    "r": "\u030a",
    "H": "\u030b",
    "v": "\u030c",
    "d": "\u0323",
    "c": "\u0327",
    "k": "\u0328",
    "b": "\u0331",
}
# An accent over nothing is the sign itself: `\~{}` is a tilde.
_BARE_ACCENTS = {"`": "`", "'": "'", "^": "^", "~": "~", "=": "¯", '"': '"', ".": "."}
_SYMBOLS = {
    "AA": "Å", "aa": "å", "AE": "Æ", "ae": "æ", "OE": "Œ", "oe": "œ", "O": "Ø", "o": "ø",
    "L": "Ł", "l": "ł", "DH": "Ð", "dh": "ð", "DJ": "Đ", "dj": "đ", "NG": "Ŋ", "ng": "ŋ",
    "TH": "Þ", "th": "þ", "SS": "ẞ", "ss": "ß", "i": "ı", "j": "ȷ",
    "S": "§", "P": "¶", "dag": "†", "ddag": "‡", "copyright": "©", "pounds": "£", "euro": "€",
    "ldots": "…", "dots": "…", "slash": "/", "lq": "‘", "rq": "’", "pm": "±", "times": "×",
    "guillemotleft": "«", "guillemotright": "»", "quotesinglbase": "‚", "quotedblbase": "„",
    "textbackslash": "\\", "textbraceleft": "{", "textbraceright": "}", "textdollar": "$",
    "textunderscore": "_", "textasciitilde": "~", "textasciicircum": "^", "textasciigrave": "`",
    "textless": "<", "textgreater": ">", "textbar": "|", "textbardbl": "‖", "textquotesingle": "'",
    "textquotedbl": '"', "textquoteleft": "‘", "textquoteright": "’", "textquotedblleft": "“",
    "textquotedblright": "”", "textendash": "–", "textemdash": "—", "textellipsis": "…",
    "textbullet": "•", "textperiodcentered": "·", "textdegree": "°", "textmu": "µ",
    "textpm": "±", "texttimes": "×", "textdiv": "÷", "textminus": "−", "textonehalf": "½",
    "textonequarter": "¼", "textthreequarters": "¾", "textonesuperior": "¹",
    "texttwosuperior": "²", "textthreesuperior": "³", "textcopyright": "©",
    "textregistered": "®", "texttrademark": "™", "textsection": "§", "textparagraph": "¶",
    "textdagger": "†", "textdaggerdbl": "‡", "texteuro": "€", "textsterling": "£",
    "textyen": "¥", "textcent": "¢", "textexclamdown": "¡", "textquestiondown": "¿",
    "textordfeminine": "ª", "textordmasculine": "º", "textohm": "Ω", "textcelsius": "°C",
    "textnumero": "№", "textperthousand": "‰", "textleftarrow": "←", "textrightarrow": "→",
    "textasteriskcentered": "*", "textnospace": "", "TeX": "TeX", "LaTeX": "LaTeX",
    "quad": " ", "qquad": " ", "space": " ", "nobreakspace": " ", "newline": " ",
    "lbrace": "{", "rbrace": "}", "relax": "", "protect": "", "noopsort": "", "leavevmode": "",
}  # fmt: skip
# Commands and switches that only say how their text looks.
_LOOKS = frozenset(
    "emph text textit textbf textsc texttt textrm textsf textsl textup textmd textnormal mbox hbox "
    "underline uline url path nolinkurl mkbibemph mkbibitalic mkbibbold textsubscript".split()
)
_SWITCHES = frozenset(
    "em it bf sc tt rm sf sl itshape bfseries scshape ttfamily rmfamily sffamily slshape upshape "
    "normalfont small footnotesize".split()
)
_QUOTES = {"enquote": ("“", "”"), "mkbibquote": ("“", "”")}
_ESCAPED = frozenset("&%$#_{}")
_SPACES = {" ": " ", "\n": " ", "\t": " ", ",": " ", ";": " ", ":": " ", "\\": " ",
           "-": "", "/": "", "!": "", "@": ""}  # fmt: skip
_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho "
    "sigma tau upsilon phi chi psi omega"
).split()
for _name in _GREEK:
    _small = unicodedata.lookup(f"GREEK SMALL LETTER {_name.replace('lambda', 'lamda')}")
    _SYMBOLS |= {_name: _small, f"text{_name}": _small, _name.capitalize(): _small.upper()}

_SPECIAL = re.compile(r"[\\{}$]")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_LETTERS = re.compile(r"[A-Za-z]+")
_OPTION = re.compile(r"\[[^\[\]{}]{0,80}\]")
# As Pandoc reads dollars: mathematics touches its dollar signs and no digit follows, so that
# "from $5 to $10" is money.
DOLLAR_MATHS = re.compile(
    r"\$\$(?:[^$\\]|\\.)+\$\$|\$(?!\s)(?:[^$\\]|\\.)*(?<!\s)\$(?!\d)", re.DOTALL
)
MATHS_ENVIRONMENT = re.compile(
    r"\\begin\{(?P<environment>"
    r"(?:equation|align|gather|multline|eqnarray|math|displaymath)\*?)\}"
)
_MAXIMAL_DEPTH = 40


def decoded(text: str) -> str:
    """The text that LaTeX source stands for, its mathematics as written."""
    if not _SPECIAL.search(text):
        return text
    return _Source(text).span(0, len(text), 0)


class _Source:
    """One LaTeX text. Its methods read a part and give what it stands for and where it ends."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.closing = _closing_braces(text)

    def span(self, start: int, end: int, depth: int) -> str:
        """What stands between two places, groups within it opened up to a sane depth."""
        if depth > _MAXIMAL_DEPTH:
            return self.text[start:end]
        parts: list[str] = []
        while special := _SPECIAL.search(self.text, start, end):
            parts.append(self.text[start : special.start()])
            piece, start = self._piece(special.start(), end, depth)
            parts.append(piece)
        parts.append(self.text[start:end])
        return "".join(parts)

    def _piece(self, at: int, end: int, depth: int) -> tuple[str, int]:
        match self.text[at]:
            case "$":
                maths = DOLLAR_MATHS.match(self.text, at, end)
                return (maths.group(), maths.end()) if maths else ("$", at + 1)
            case "{":
                return self._group(at, depth)
            case "}":
                return "}", at + 1
            case _:
                return self._command(at, end, depth)

    def _group(self, at: int, depth: int) -> tuple[str, int]:
        close = self.closing.get(at)
        if close is None:
            return "{", at + 1
        # Outside of mathematics too, "x^{n+1}" needs its braces.
        if at and self.text[at - 1] in "_^":
            return self.text[at : close + 1], close + 1
        return self.span(at + 1, close, depth + 1), close + 1

    def _command(self, at: int, end: int, depth: int) -> tuple[str, int]:
        if at + 1 >= end:
            return "\\", at + 1
        sign = self.text[at + 1]
        if name := _LETTERS.match(self.text, at + 1, end):
            return self._named(at, name.group(), name.end(), end, depth)
        if sign in "([":
            return self._until({"(": "\\)", "[": "\\]"}[sign], at, end)
        if sign in _ACCENTS:
            return self._accented(sign, at, at + 2, end, depth)
        if sign in _ESCAPED:
            return sign, at + 2
        return _SPACES.get(sign, self.text[at : at + 2]), at + 2

    def _named(self, at: int, name: str, after: int, end: int, depth: int) -> tuple[str, int]:
        if name in _ACCENTS:
            return self._accented(name, at, self._past_blanks(after, end), end, depth)
        if name in _SYMBOLS or name in _SWITCHES:
            return _SYMBOLS.get(name, ""), self._after_name(after, end)
        if name == "begin" and (environment := MATHS_ENVIRONMENT.match(self.text, at, end)):
            return self._until(f"\\end{{{environment['environment']}}}", at, end)
        close = self.closing.get(after)
        if close is not None:
            if name in _LOOKS:
                return self.span(after + 1, close, depth + 1), close + 1
            if name == "textsuperscript":
                # Cleaning reads HTML and writes raised digits: 10⁵ is not 105.
                return f"<sup>{self.span(after + 1, close, depth + 1)}</sup>", close + 1
            if name in _QUOTES:
                left, right = _QUOTES[name]
                return left + self.span(after + 1, close, depth + 1) + right, close + 1
            if name == "href" and (second := self.closing.get(close + 1)) is not None:
                return self.span(close + 2, second, depth + 1), second + 1
        return self._verbatim(at, after, end)

    def _accented(
        self, accent: str, at: int, base_at: int, end: int, depth: int
    ) -> tuple[str, int]:
        close = self.closing.get(base_at)
        if close is not None:
            base = self.span(base_at + 1, close, depth + 1)
            after = close + 1
            if not base.strip():
                return _BARE_ACCENTS.get(accent, base), after
        elif base_at < end and self.text[base_at].isalpha():
            base, after = self.text[base_at], base_at + 1
        elif (name := _LETTERS.match(self.text, base_at + 1, end)) and name.group() in _SYMBOLS:
            base, after = _SYMBOLS[name.group()], self._after_name(name.end(), end)
        else:
            return self.text[at:base_at], base_at
        base = base.replace("ı", "i", 1).replace("ȷ", "j", 1)
        letter = unicodedata.normalize("NFC", base[0] + _ACCENTS[accent])
        # "don\'t" in a file that is not quite LaTeX has no accent.
        if close is None and len(letter) > 1:
            return self.text[at:after], after
        return letter + base[1:], after

    def _after_name(self, after: int, end: int) -> int:
        if self.text.startswith("{}", after, end):
            return after + 2
        return self._past_blanks(after, end)

    def _past_blanks(self, at: int, end: int) -> int:
        while at < end and self.text[at].isspace():
            at += 1
        return at

    def _until(self, mark: str, at: int, end: int) -> tuple[str, int]:
        """Mathematics as written, from a place to its closing mark."""
        close = self.text.find(mark, at + 2, end)
        close = at + 2 if close < 0 else close + len(mark)
        return self.text[at:close], close

    def _verbatim(self, at: int, after: int, end: int) -> tuple[str, int]:
        """A command without a plain reading, with all its arguments."""
        after += self.text.startswith("*", after, end)
        while True:
            if option := _OPTION.match(self.text, after, end):
                after = option.end()
            elif (close := self.closing.get(after)) is not None:
                after = close + 1
            else:
                return self.text[at:after], after


def _closing_braces(text: str) -> dict[int, int]:
    """For each opening brace that is closed, where."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for brace in _BRACE.finditer(text):
        if brace.group() == "{":
            opened.append(brace.start())
        elif brace.group() == "}" and opened:
            closing[opened.pop()] = brace.start()
    return closing
