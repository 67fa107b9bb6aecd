"""Text that Markdown shows as it is. Mathematics stays as written."""

from __future__ import annotations

import re
from collections.abc import Collection

from rag.exporting.tex import MATHS

# Brackets and backslashes become entities: "\[" and "\(" would open mathematics where a page
# draws it, and "[1](address)" is a link, "[1]: address" the address of one.
_ENTITIES = {
    "\\": "&#92;", "[": "&#91;", "]": "&#93;", "(": "&#40;", ":": "&#58;",
    "&": "&amp;", "<": "&lt;", ">": "&gt;",
}  # fmt: skip
_SIGN = re.compile(
    rf"(?P<maths>{MATHS.pattern})|\[(?P<marker>\d{{1,4}})\]|[\\`*_\[\]<>&~$|]|(?<=\])[(:]|"
    r"(?P<opening>^[ \t]*(?:[-+#=]|\d{1,9}[.)]))",
    re.DOTALL,
)
# A page that draws no formulas would see a tag or a link in these.
_TAG_OR_LINK = re.compile(r"<(?=[A-Za-z/!?])|\](?=[(\[:])")


def escaped(text: str, markers: Collection[int] = ()) -> str:
    """One line of text as Markdown. `[n]` stays where n is one of `markers`."""
    return _SIGN.sub(lambda match: _written(match, markers), text)


def _written(match: re.Match[str], markers: Collection[int]) -> str:
    found = match.group()
    if match["maths"]:
        return _TAG_OR_LINK.sub(r"\g<0> ", found)
    if match["marker"]:
        return found if int(match["marker"]) in markers else f"&#91;{match['marker']}&#93;"
    if match["opening"]:
        # A dash, a hash or a number that would make the line a list or a heading.
        return f"{found[:-1]}\\{found[-1]}"
    return _ENTITIES.get(found, f"\\{found}")
