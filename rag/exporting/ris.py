"""References as RIS, in UTF-8, written by rispy.

RIS has no escapes: a value is a line. An abstract of several lines goes on in lines that
begin with a blank, so that none of them can pass for a tag.
"""

from __future__ import annotations

from collections.abc import Sequence

import rispy

from rag.exporting.references import Reference

_TYPES = {"article": "JOUR", "paper": "CONF", "other": "GEN"}


class _Writer(rispy.RisWriter):  # type: ignore[misc]
    """Entries without a running number before them."""

    def set_header(self, count: int) -> str:
        return ""


def text(references: Sequence[Reference]) -> str:
    """One entry a reference. Tags for what a record lacks are left out."""
    entries = [_entry(reference) for reference in references]
    return str(rispy.dumps(entries, implementation=_Writer))


def _entry(reference: Reference) -> dict[str, str | list[str]]:
    record = reference.record
    values: dict[str, str | list[str]] = {
        "type_of_reference": _TYPES[reference.kind],
        "id": reference.key,
        "title": record.title,
        "authors": list(record.authors),
        "year": str(record.year or ""),
        "secondary_title": record.venue,
        "doi": record.doi,
        "urls": [record.url] if record.url else [],
        "keywords": list(record.keywords),
        "notes": [reference.note] if reference.note else [],
        "abstract": record.abstract.replace("\n", "\n\n "),
    }
    return {name: value for name, value in values.items() if value}
