"""Files given to the window: kept in the index's folder, ingested, and reported.

Nothing here knows Gradio, and nothing raises: what went wrong becomes part of the message.
"""

from __future__ import annotations

import filecmp
import logging
import os
import queue
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from rag.errors import RagError, SourceError
from ui.inline import to_html
from ui.render import error_html

log = logging.getLogger(__name__)

MOST_BYTES = 200 * 1024 * 1024
# Bytes, and characters: file systems take names of 255 bytes, and a number may be added.
_LONGEST_STEM = 160
_LONGEST_SUFFIX = 20
_SKIPS_SHOWN = 20
_COUNTS = ("read", "added", "updated", "unchanged", "removed")
_UNEXPECTED = "Something went wrong with these files; the terminal shows the details."

Progress = Callable[[str, int, int], None]


class Collecting(Protocol):
    """What an upload needs of an assistant."""

    @property
    def uploads(self) -> Path:
        """The folder to keep the files in."""
        ...

    def ingest(self, paths: Sequence[Path], *, progress: Progress) -> Any:
        """Bring the index in step with the files; an IngestReport."""
        ...


def add_files(assistant: Collecting, files: Sequence[str | Path]) -> Iterator[str]:
    """Messages, as HTML, while files are taken in; the last says what came of it.

    Leaving early does not stop the work.
    """
    told: queue.Queue[str | None] = queue.Queue()

    def work() -> None:
        try:
            told.put(_taken_in(assistant, [Path(file) for file in files], told.put))
        except RagError as error:
            told.put(error_html(str(error)))
        except OSError as error:
            told.put(error_html(f"the files cannot be kept: {error.strerror or error}"))
        except Exception:  # the boundary to the page, which would say nothing
            log.exception("the upload of %d files failed", len(files))
            told.put(error_html(_UNEXPECTED))
        finally:
            told.put(None)

    threading.Thread(target=work, name="uploads", daemon=True).start()
    while (message := told.get()) is not None:
        yield message


def kept(file: Path, folder: Path) -> Path:
    """A file copied into a folder under a safe name, whole or not at all.

    The same file is kept once; another one of the same name gets a number.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in _names(safe_name(file.name)):
        place = folder / name
        if not place.exists():
            partial = folder / f".{name}.part"
            shutil.copyfile(file, partial)
            os.replace(partial, place)
            return place
        if filecmp.cmp(file, place, shallow=False):
            return place
    raise AssertionError("unreachable: the names never end")


def safe_name(name: str) -> str:
    """A file name without what a file system or a terminal could trip over; never hidden."""
    clean = re.sub(r'[\x00-\x1f\x7f<>:"/\\|?*]+', "_", name).strip(" .") or "upload"
    stem, suffix = Path(clean).stem, Path(clean).suffix
    return stem.encode()[:_LONGEST_STEM].decode(errors="ignore") + suffix[:_LONGEST_SUFFIX]


def report_html(report: Mapping[str, Any]) -> str:
    """What an ingest did: the counts as a table, and what was left out and why."""
    heads = "".join(f"<th>{name}</th>" for name in (*_COUNTS, "skipped"))
    skips = report["skipped"]
    cells = "".join(f"<td>{n:,}</td>" for n in (*(report[c] for c in _COUNTS), len(skips)))
    items = "".join(f"<li>{_skip(skip)}</li>" for skip in skips[:_SKIPS_SHOWN])
    more = len(skips) - _SKIPS_SHOWN
    items += f"<li>and {more:,} more</li>" if more > 0 else ""
    return (
        '<details class="aq-outcome" open><summary>'
        f"{report['records']:,} abstracts in the collection</summary>"
        f"<table><tr>{heads}</tr><tr>{cells}</tr></table>"
        f"{f'<ul>{items}</ul>' if items else ''}</details>"
    )


def _taken_in(assistant: Collecting, files: Sequence[Path], tell: Callable[[str], None]) -> str:
    large = [file for file in files if file.stat().st_size > MOST_BYTES]
    if large:
        raise SourceError(
            f"{large[0].name} is larger than {MOST_BYTES >> 20} MB: ingest it with "
            "`rag ingest`, which reads files of any size"
        )
    before = set(assistant.uploads.glob("*"))
    paths = [kept(file, assistant.uploads) for file in files]
    try:
        report = assistant.ingest(
            paths,
            progress=lambda stage, done, total: tell(_progress_html(stage, done, total)),
        )
    except SourceError:
        for path in set(paths) - before:
            path.unlink(missing_ok=True)
        raise
    return report_html(report.as_dict())


def _progress_html(stage: str, done: int, total: int) -> str:
    value = f' value="{done / total:.3f}"' if total else ""
    count = f": {done:,} of {total:,}" if total > 1 else ""
    words = to_html(f"{stage[:1].upper()}{stage[1:]}{count}")
    return f'<div class="aq-prepare"><progress max="1"{value}></progress><span>{words}</span></div>'


def _skip(skip: Mapping[str, str]) -> str:
    where = f", {skip['where']}" if skip["where"] else ""
    return to_html(f"{Path(skip['path']).name}{where}: {skip['reason']}")


def _names(name: str) -> Iterator[str]:
    yield name
    path = Path(name)
    number = 2
    while True:
        yield f"{path.stem} ({number}){path.suffix}"
        number += 1
