"""Records as a bibliography, and conversations as a document with one.

    Record -> Reference (a key, a kind, its parts) -> BibTeX | RIS | CSL-JSON text
    (question, Answer)... -> answers numbered as one -> Markdown | JSON data

The readers in rag.sources give from each text the records that went in. Independent parsers
do too: bibtexparser, rispy and json; see the format's module for how it writes what its
grammar has no place for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from rag.errors import UsageError
from rag.exporting import bibtex, csl_json, ris
from rag.exporting.conversation import conversation_data, conversation_markdown
from rag.exporting.references import Reference, references
from rag.records import Record

__all__ = ["FORMATS", "conversation_data", "conversation_markdown", "export"]

_WRITERS: Mapping[str, Callable[[Sequence[Reference]], str]] = MappingProxyType(
    {"bibtex": bibtex.text, "ris": ris.text, "csl-json": csl_json.text}
)
FORMATS = tuple(_WRITERS)


def export(format: str, records: Iterable[Record]) -> str:
    """The records, each once, in their order, as text of one of FORMATS.

    Raises UsageError for another format.
    """
    writer = _WRITERS.get(format)
    if writer is None:
        raise UsageError(f"no export format {format!r}: choose one of {', '.join(FORMATS)}")
    return writer(references(records))
