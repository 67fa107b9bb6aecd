"""References as CSL-JSON, which Zotero, Pandoc and citation styles read.

CSL wants family and given names apart. Where putting them together again would not give the
name as the record has it ("Ann Müller"), `custom` keeps it, which CSL sets aside for others'
use.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rag.exporting.names import parts
from rag.exporting.references import Reference

_TYPES = {"article": "article-journal", "paper": "paper-conference", "other": "article"}

Item = dict[str, Any]


def text(references: Sequence[Reference]) -> str:
    """A JSON list of items, one a reference."""
    return json.dumps(list(map(item, references)), ensure_ascii=False, indent=2) + "\n"


def item(reference: Reference) -> Item:
    """One reference as a CSL item. Fields that a record lacks are left out."""
    record = reference.record
    people = list(map(_person, record.authors))
    respelt = tuple(map(_put_together, people)) != record.authors
    values = {
        "id": reference.key,
        # Readers know CSL-JSON from other JSON by it, even where a record has little else.
        "citation-key": reference.key,
        "type": _TYPES[reference.kind],
        "title": record.title,
        "author": people,
        "issued": {"date-parts": [[record.year]]} if record.year else {},
        "container-title": record.venue,
        "DOI": record.doi,
        "URL": record.url,
        "keyword": reference.keywords,
        "note": reference.note,
        # A line end stands for a paragraph; readers join lines that are merely wrapped.
        "abstract": record.abstract.replace("\n", "\n\n"),
        "custom": {"authors": list(record.authors)} if respelt else {},
    }
    return {name: value for name, value in values.items() if value}


def _person(name: str) -> dict[str, str]:
    found = parts(name)
    if found is None:
        return {"literal": name}
    person = {
        "non-dropping-particle": " ".join(found.von),
        "family": " ".join(found.last),
        "given": " ".join(found.first),
        "suffix": " ".join(found.jr),
    }
    return {part: value for part, value in person.items() if value}


def _put_together(person: dict[str, str]) -> str:
    family = " ".join(filter(None, (person.get("non-dropping-particle"), person.get("family"))))
    names = (family, person.get("given"), person.get("suffix"), person.get("literal"))
    return ", ".join(filter(None, names))
