"""Names of authors in parts, where they are persons and tell their parts."""

from __future__ import annotations

import re

from bibtexparser.middlewares.names import (
    InvalidNameError,
    NameParts,
    parse_single_name_into_parts,
)

from rag.records import GENERATION, is_initials

_INSTITUTION = re.compile(
    r"\b(?:universit\w+|institut\w*|college|school|department|hospital|centre|center|"
    r"laborator\w+|labs?|consortium|collaboration|committee|commission|council|association|"
    r"society|foundation|organi[sz]ation|agency|ministry|federation|academy|group|team|network|"
    r"initiative|investigators|inc|ltd|llc|gmbh|corporation|company|project)\b|"
    r"大学|研究|学院|医院|协会|中心|委员会",
    re.IGNORECASE,
)
# "and" parts names in BibTeX; no person's name holds digits or these signs. Those among them
# that LaTeX escapes must not open a name outside of braces: bibtexparser would lose the name.
_NO_PERSON = re.compile(r"\band\b|[\d&{}\\/:$%#^~_]", re.IGNORECASE)


def parts(name: str) -> NameParts | None:
    """First, von, last and jr as BibTeX parts a person's name.

    None for one that must stand as it is: an institution, or a name whose last word BibTeX
    would wrongly take for the family name, as in "Wilson LN" and "Luther King Jr.".
    """
    if _INSTITUTION.search(name) or _NO_PERSON.search(name) or _ends_in_no_family(name):
        return None
    try:
        found = parse_single_name_into_parts(name)
    except InvalidNameError:
        return None
    return found if found.last else None


def _ends_in_no_family(name: str) -> bool:
    *before, last = name.split() or [""]
    if "," in name or not before:
        return False
    return is_initials(last) or bool(GENERATION.fullmatch(last.strip(".")))
