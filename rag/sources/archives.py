"""Files inside .gz and .zip: opened one after another, never unpacked to disk or memory."""

from __future__ import annotations

import contextlib
import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from rag.errors import SourceError
from rag.sources.decoding import Opener
from rag.sources.entry import Bad

_GZIP = b"\x1f\x8b"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_HEAD = 4096
# Text packs to a tenth, seldom to a fiftieth; a bomb to a thousandth. Small files may pack
# better than any text and do no harm.
_MAX_RATIO = 200
_HARMLESS = 32 << 20
_MAX_UNPACKED = 8 << 30
_MAX_MEMBERS = 10_000
_OFFICE = (
    ("word/", "a Word document; save it as plain text"),
    ("ppt/", "a PowerPoint presentation; give an export in RIS, BibTeX, CSV or plain text"),
    ("mimetype", "an OpenDocument or e-book file; save it as XLSX, CSV or plain text"),
)
_DAMAGED = (OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError, RuntimeError)


@dataclass(slots=True)
class Blob:
    """One file's bytes: how to call it ("papers.zip/sub/a.ris") and how to open it.

    Bytes that cannot be unpacked are the end of the file; `damage` then says why they are.
    """

    name: str
    open: Opener
    is_workbook: bool = False
    damage: str = ""


def blobs(path: Path) -> Iterator[Blob | Bad]:
    """The file itself, or the files packed in it; a packed file that cannot be read is a Bad.

    Its `where` is then the packed file's name. Raises SourceError when the file or archive
    as a whole cannot be read. A Blob opens until the next one is asked for.
    """
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError as error:
        raise SourceError(f"cannot be read ({error.strerror or error})") from error
    if head.startswith(_ZIP):
        yield from _zipped(path)
    else:
        yield _unpacked(Blob(str(path), lambda: path.open("rb")), head)


def _unpacked(blob: Blob, head: bytes) -> Blob:
    """What a gzip file holds; any other file as it is."""
    if not head.startswith(_GZIP):
        return blob
    unpacked = Blob(blob.name, blob.open)

    def opened() -> BinaryIO:
        packed = blob.open()
        return io.BufferedReader(_Guarded(unpacked, gzip.GzipFile(fileobj=packed), packed))

    unpacked.open = opened
    return unpacked


def _zipped(path: Path) -> Iterator[Blob | Bad]:
    try:
        archive = zipfile.ZipFile(path)
    except _DAMAGED as error:
        raise SourceError(
            f"a damaged zip archive ({error}); make it again, or unpack what is left of it"
        ) from error
    with archive:
        members = archive.infolist()
        _refuse_bomb(members)
        names = {member.filename for member in members}
        if "xl/workbook.xml" in names:
            yield Blob(str(path), lambda: path.open("rb"), is_workbook=True)
            return
        for prefix, hint in _OFFICE:
            if any(name.startswith(prefix) for name in names) and (
                "[Content_Types].xml" in names or prefix in names
            ):
                raise SourceError(hint)
        for member in members:
            if _is_visible(member):
                yield _member(archive, member, path)


def _refuse_bomb(members: list[zipfile.ZipInfo]) -> None:
    size = sum(member.file_size for member in members)
    packed = sum(member.compress_size for member in members)
    if size > _HARMLESS and size > _MAX_RATIO * max(packed, 1):
        raise SourceError(_bomb(size, packed))
    if size > _MAX_UNPACKED or len(members) > _MAX_MEMBERS:
        raise SourceError(
            f"an archive of {len(members)} files and {size >> 20} MiB unpacked, which is more "
            "than is read from one archive; unpack it and ingest the folder"
        )


def _bomb(size: int, packed: int) -> str:
    return (
        f"an archive that unpacks to more than {size // max(packed, 1)} times its size, as no "
        "text does; unpack it yourself if you trust it"
    )


def _is_visible(member: zipfile.ZipInfo) -> bool:
    parts = PurePosixPath(member.filename).parts
    hidden = any(part.startswith(".") and part not in (".", "..") for part in parts)
    return not (member.is_dir() or hidden or "__MACOSX" in parts)


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path) -> Blob | Bad:
    parts = PurePosixPath(member.filename).parts
    name = "/".join([str(path), *(part for part in parts if part not in ("/", ".", ".."))])

    if member.flag_bits & 1:
        return Bad(name, "encrypted; unpack the archive with its password")

    def opened() -> BinaryIO:
        return io.BufferedReader(
            _Guarded(blob, cast(zipfile.ZipExtFile, archive.open(member)), None)
        )

    blob = Blob(name, opened, is_workbook=member.filename.lower().endswith(".xlsx"))
    try:
        with opened() as stream:
            head = stream.read(_HEAD)
    except _DAMAGED as error:
        return Bad(name, _cannot_unpack(error))
    if head.startswith(_ZIP):
        return blob if blob.is_workbook else Bad(name, "an archive in an archive; unpack it first")
    blob.is_workbook = False
    return _unpacked(blob, head)


def _cannot_unpack(error: BaseException) -> str:
    return f"cannot be unpacked ({' '.join(str(error).split()) or type(error).__name__})"


class _Guarded(io.RawIOBase):
    """A decompressing stream that stops bombs, and ends where the archive is damaged.

    `packed` is the compressed stream underneath, whose position tells how much was needed;
    without it the stream's length is known and has been judged.
    """

    def __init__(
        self, blob: Blob, stream: zipfile.ZipExtFile | gzip.GzipFile, packed: BinaryIO | None
    ) -> None:
        self._blob = blob
        self._stream = stream
        self._packed = packed

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._stream.seek(offset, whence)

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            data = self._stream.read1(len(buffer))  # `read` loses what precedes the damage
        except _DAMAGED as error:
            self._blob.damage = _cannot_unpack(error)
            return 0
        buffer[: len(data)] = data
        self._stop_bomb()
        return len(data)

    def _stop_bomb(self) -> None:
        if self._packed is None:
            return
        size, packed = self._stream.tell(), self._packed.tell()
        if size > _HARMLESS and size > _MAX_RATIO * max(packed, 1):
            raise SourceError(_bomb(size, packed))
        if size > _MAX_UNPACKED:
            raise SourceError(f"more than {_MAX_UNPACKED >> 30} GiB unpacked; unpack and split it")

    def close(self) -> None:
        if not self.closed:
            with contextlib.suppress(*_DAMAGED):
                self._stream.close()
            if self._packed:
                self._packed.close()
        super().close()
