"""What files and folders hold now, read once and put aside on disk.

Only a few facts a record stay in memory: which records are one paper, and which are new, is
known when everything has been read, and a file may be larger than the memory.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path, PurePath

from rag.errors import SourceError
from rag.papers import Version, record_from
from rag.records import Record
from rag.sources import Skip, find_files, read_records

Progress = Callable[[str, int, int], None]

# Records between two calls of a progress function.
_STEP = 500


class Reading:
    """The records of files and folders, and what these say about places read before.

    versions:  one for each record read
    skips:     what could not be read
    read:      the number of records read, merged ones counted each
    """

    def __init__(
        self, paths: Sequence[Path], index_folder: Path | None, titles_suffice: bool = False
    ) -> None:
        """What is below the folder of the index is left out, unless a path leads right there;
        records are put aside there."""
        inside = index_folder and all(_is_below(path, index_folder) for path in paths)
        self._files, self.skips = find_files(paths, leave_out=None if inside else index_folder)
        self._folders = tuple(path.resolve() for path in paths if path.is_dir())
        self._read: set[str] = set()
        self._broken: set[str] = set()
        self._titles_suffice = titles_suffice
        self._aside = tempfile.TemporaryFile(dir=index_folder)  # noqa: SIM115 (see close)
        self.versions: list[Version] = []

    @property
    def read(self) -> int:
        return len(self.versions)

    def run(self, progress: Progress | None = None) -> None:
        """Read every file."""
        for done, path in enumerate(self._files):
            self._tell(progress, path, done)
            try:
                self._take(path, lambda p=path, d=done: self._tell(progress, p, d))  # type: ignore[misc]
            except SourceError as error:
                self._broken.add(str(path))
                self.skips.append(Skip(str(path), "", str(error).removeprefix(f"{path}: ")))

    def refuse_nothing(self) -> None:
        """Raise SourceError when nothing could be read."""
        if self.versions or self._read:
            return
        reasons = "; ".join(f"{skip.path}: {skip.reason}" for skip in self.skips[:3])
        folders = ", ".join(str(folder) for folder in self._folders)
        raise SourceError(
            f"nothing could be read: {reasons or f'no files in {folders}'}; give files of "
            "abstracts, or use 'rag remove' for sources that are gone"
        )

    def close(self) -> None:
        self._aside.close()

    def record(self, version: Version) -> Record:
        """The whole record of a version read here."""
        self._aside.seek(version.offset)
        return record_from(json.loads(self._aside.readline()))

    def covers(self, path: str) -> bool:
        """Whether this reading says what is now at `path`: read, or gone from a folder."""
        place = PurePath(path)
        # A file in an archive lies below the archive's path.
        above = [path, *(str(parent) for parent in place.parents)]
        if any(item in self._read for item in above):
            return True
        below = any(place.is_relative_to(folder) for folder in self._folders)
        return below and not is_there(path)

    def is_broken(self, path: str) -> bool:
        """Whether only a part of what is at `path` could be read."""
        return path in self._broken

    def _take(self, path: Path, tell: Callable[[], None]) -> None:
        count = 0
        for count, entry in enumerate(
            read_records(path, titles_suffice=self._titles_suffice), start=1
        ):
            if isinstance(entry, Skip):
                self.skips.append(entry)
                if not entry.where or entry.where.startswith("after "):
                    self._broken.add(entry.path)
                continue
            self.versions.append(Version.of(entry, offset=self._put_aside(entry)))
            if count % _STEP == 0:
                tell()
        self._read.add(str(path))
        if not count:
            self.skips.append(Skip(str(path), "", "no abstracts in it"))

    def _put_aside(self, record: Record) -> int:
        offset = self._aside.seek(0, 2)
        self._aside.write(json.dumps(asdict(record)).encode() + b"\n")
        return offset

    def _tell(self, progress: Progress | None, path: Path, done: int) -> None:
        if progress:
            progress(f"reading {path.name}, {self.read:,} records", done, len(self._files))


def _is_below(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def is_there(path: str) -> bool:
    """Whether a source still exists; a file in an archive does while its archive does."""
    return any(place.is_file() for place in chain([Path(path)], Path(path).parents))
