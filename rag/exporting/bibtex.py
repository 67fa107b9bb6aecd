"""References as BibTeX, in UTF-8. bibtexparser writes the entries; values are escaped here.

Line ends of an abstract become blank lines, which are paragraphs to LaTeX. `doi` and `url`
are written as they are, because styles and biblatex print them verbatim; only what would end
the field is percent-encoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bibtexparser.entrypoint import write_string
from bibtexparser.library import Library
from bibtexparser.middlewares.parsestack import default_unparse_stack
from bibtexparser.model import Entry, Field
from bibtexparser.writer import BibtexFormat

from rag.exporting.names import parts
from rag.exporting.references import Reference
from rag.exporting.tex import encoded

_TYPES = {"article": "article", "paper": "inproceedings", "other": "misc"}
_VENUES = {"article": "journal", "paper": "booktitle"}
_VERBATIM = str.maketrans({"{": "%7B", "}": "%7D", "\\": "%5C"})


def text(references: Sequence[Reference]) -> str:
    """One entry a reference. Fields that a record lacks are left out."""
    library = Library([_entry(reference) for reference in references])
    stack = default_unparse_stack(allow_inplace_modification=True)
    return str(write_string(library, unparse_stack=stack, bibtex_format=_layout()))


def _layout() -> BibtexFormat:
    layout = BibtexFormat()  # type: ignore[no-untyped-call]
    layout.indent = "  "
    layout.block_separator = "\n"
    layout.trailing_comma = True
    return layout


def _entry(reference: Reference) -> Entry:
    values = ((name, value) for name, value in _values(reference) if value)
    written = [Field(name, value) for name, value in values]
    return Entry(_TYPES[reference.kind], reference.key, written)


def _values(reference: Reference) -> Iterator[tuple[str, str]]:
    record = reference.record
    yield "title", encoded(record.title, keep_case=True)
    yield "author", " and ".join(map(_author, record.authors))
    yield "year", str(record.year or "")
    if reference.kind != "other":
        yield _VENUES[reference.kind], encoded(record.venue)
    yield "doi", record.doi.translate(_VERBATIM)
    yield "url", record.url.translate(_VERBATIM)
    if reference.arxiv_id:
        yield "eprint", reference.arxiv_id
        yield "archiveprefix", "arXiv"
    yield "keywords", encoded(reference.keywords)
    yield "note", encoded(reference.note)
    # Indented, no line of it can pass for the start of an entry of this or another format.
    yield "abstract", encoded(record.abstract).replace("\n", "\n\n    ")


def _author(name: str) -> str:
    return encoded(name) if parts(name) else f"{{{encoded(name)}}}"
