"""Bytes to text: which encoding a file is in, and which files hold no text at all.

A byte order mark decides; else UTF-8 when the whole file is UTF-8; else UTF-8 with each
byte that does not fit read as Windows-1252, which reads Latin-1 and Windows-1252 files, and
UTF-8 files with a few lines pasted from elsewhere. Only a text that is mostly bytes beyond
ASCII, and not UTF-8, is a guess among a few encodings (charset-normalizer's).
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable
from typing import BinaryIO, TextIO

from charset_normalizer import from_bytes

from rag.errors import SourceError

Opener = Callable[[], BinaryIO]

_CHUNK = 1 << 20
_HEAD = 1 << 16
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16: its mark starts with UTF-16's
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Guessed only where the text is mostly in another script; never a Western code page.
_OTHER_SCRIPTS = ["gb18030", "big5", "shift_jis", "euc_jp", "euc_kr", "cp1251", "koi8_r"]
_OTHER_SCRIPT_SHARE = 0.25
_UTF8_SEQUENCE = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_HIGH_BYTE = re.compile(rb"[\x80-\xff]")
_CONTROL_BYTE = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_CONTROL_SHARE = 0.02
_FALLBACK = "windows-1252-for-what-is-not-utf-8"

# How files that are no text begin, what they are, and what to do with them.
_REFUSED: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "a PDF; export its reference from a reference manager (RIS, BibTeX, CSV)"),
    (
        b"SQLite format 3\x00",
        "an SQLite database; export the library from the program that keeps it (RIS, BibTeX, CSV)",
    ),
    (b"\xd0\xcf\x11\xe0", "an old Excel or Word file; save it as XLSX, CSV or plain text"),
    (b"{\\rtf", "a rich text document; save it as plain text"),
    (b"PAR1", "a Parquet file; convert it to CSV or JSON Lines"),
    (b"ARROW1", "an Arrow file; convert it to CSV or JSON Lines"),
    (b"BZh", "a bzip2 archive; unpack it first, or use .zip or .gz"),
    (b"\xfd7zXZ\x00", "an xz archive; unpack it first, or use .zip or .gz"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it first, or use .zip or .gz"),
    (b"Rar!\x1a\x07", "a RAR archive; unpack it first, or use .zip or .gz"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive; unpack it first, or use .zip or .gz"),
)
_BINARY = "a binary file, not text; give an export in RIS, BibTeX, CSV, JSON or plain UTF-8 text"
_WEB_PAGE = re.compile(rb"\s*<(?:!doctype html|html[\s>])", re.IGNORECASE)


def open_text(opener: Opener) -> TextIO:
    """The text behind `opener`, decoded as it is read, line ends as "\\n", from its start.

    `opener` is called more than once. Raises SourceError for what is no text.
    """
    with opener() as stream:
        head = stream.read(_HEAD)
    refuse_binary(head)
    encoding, errors = _encoding(head, opener)
    return io.TextIOWrapper(opener(), encoding=encoding, errors=errors)


def refuse_binary(head: bytes) -> None:
    """Raise SourceError, saying what to do, when a file that begins so is no text."""
    for magic, hint in _REFUSED:
        if head.startswith(magic):
            raise SourceError(hint)
    if head[257:262] == b"ustar":
        raise SourceError("a tar archive; unpack it first, or use .zip or .gz")
    if _WEB_PAGE.match(head):
        raise SourceError("a web page; give an export in RIS, BibTeX, CSV, JSON or plain text")
    if _marked(head) or _unmarked_utf16(head):
        return
    controls = len(_CONTROL_BYTE.findall(head))
    if b"\x00" in head[:8192] or controls > _CONTROL_SHARE * len(head):
        raise SourceError(_BINARY)


def _encoding(head: bytes, opener: Opener) -> tuple[str, str]:
    """An encoding and how to treat what does not fit it, as `open` takes them."""
    if marked := _marked(head):
        return marked, _FALLBACK if marked == "utf-8-sig" else "replace"
    if unmarked := _unmarked_utf16(head):
        return unmarked, "replace"
    misfit = _first_chunk_not_utf8(opener)
    if misfit and (guessed := _other_script(misfit)):
        return guessed, "replace"
    return "utf-8", _FALLBACK


def _marked(head: bytes) -> str:
    return next((name for mark, name in _BYTE_ORDER_MARKS if head.startswith(mark)), "")


def _unmarked_utf16(head: bytes) -> str:
    """UTF-16 without a mark shows as a zero in every second byte of mostly Latin text."""
    pairs = len(head) // 2
    if pairs >= 4:
        even, odd = head[0 : 2 * pairs : 2].count(0), head[1 : 2 * pairs : 2].count(0)
        if even == 0 and odd > 0.4 * pairs:
            return "utf-16-le"
        if odd == 0 and even > 0.4 * pairs:
            return "utf-16-be"
    return ""


def _first_chunk_not_utf8(opener: Opener) -> bytes:
    """The first part of the file that is not UTF-8; empty when all of it is."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with opener() as stream:
        chunk = b""
        try:
            while chunk := stream.read(_CHUNK):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            return chunk or bytes(error.object)
        except SourceError:
            # A damaged archive: the reading that follows meets it again, after its good part.
            return b""
    return b""


def _other_script(sample: bytes) -> str:
    high = len(_HIGH_BYTE.findall(sample))
    as_utf8 = sum(len(match) for match in _UTF8_SEQUENCE.findall(sample))
    if high < _OTHER_SCRIPT_SHARE * len(sample) or 2 * as_utf8 > high:
        return ""
    guess = from_bytes(sample[:_HEAD], cp_isolation=_OTHER_SCRIPTS).best()
    return guess.encoding if guess else ""


def _as_windows_1252(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    misfit = error.object[error.start : error.end]
    text = "".join(
        bytes([byte]).decode("cp1252", "ignore") or bytes([byte]).decode("latin-1")
        for byte in misfit
    )
    return text, error.end


codecs.register_error(_FALLBACK, _as_windows_1252)
