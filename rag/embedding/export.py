"""The exports of embedding models in the user's cache: found, and made when there is none.

    <user cache>/abstract-qa/embedders/
        FOLDER.digest       what a model's folder held; see `folders.digest`
        KEY/                an export; KEY stands for the model, its files and the versions in use
            model.onnx      the optimised graph
            model.data      its weights, which are mapped into memory, not read
            tokenizer.json  the tokenizer as sentence-transformers set it up
            export.json     the other facts, and the size and time of each file above
        KEY.refused         why this model has no export
        KEY.lock            held by the process that makes it

An export was compared with the model when it was made. It is moved into place as a whole, and
one whose files are not as they were then does not count.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import platformdirs
from filelock import FileLock, Timeout

from rag.embedding.folders import digest, hub_folder, local_folder
from rag.embedding.prompts import Prompts

GRAPH, WEIGHTS, TOKENIZER = "model.onnx", "model.data", "tokenizer.json"
FACTS, REFUSED = "export.json", "refused"

_FORMAT = 1
_PACKAGES = ("onnxruntime", "sentence-transformers", "tokenizers", "transformers")
_TIMEOUT_S = 1800


@dataclass(frozen=True, slots=True)
class Export:
    """An export on disk. `window` leaves special tokens out, `pad` is the padding token's
    number, `inputs` are the names of the graph's inputs."""

    folder: Path
    dimension: int
    window: int
    pad: int
    inputs: tuple[str, ...]
    prompts: Prompts

    def write_facts(self) -> None:
        facts = asdict(self) | {"folder": "", "files": _stamps(self.folder)}
        (self.folder / FACTS).write_text(json.dumps(facts), encoding="utf-8")


class NoExportError(Exception):
    """A model without an export; sentence-transformers runs it. The message is one line."""


def exports_folder() -> Path:
    """Where exports live; not created here."""
    return platformdirs.user_cache_path("abstract-qa", appauthor=False) / "embedders"


def find(name: str, cache: Path | None = None) -> Export | None:
    """The export of a model as it is now, if there is one."""
    place = _place(name, cache or exports_folder())
    return _read(place.folder) if place else None


def make(
    name: str,
    cache: Path | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> None:
    """Make the export of a model unless it is there, or was refused before.

    A model that was never downloaded has none yet. Two processes do not make one at once; the
    second waits for the first. Raises NoExportError when there can be none.
    """
    place = _place(name, cache or exports_folder())
    if place is None or place.refused.exists() or _read(place.folder):
        return
    if importlib.util.find_spec("onnx") is None:
        raise NoExportError(_message(name, "the package onnx is not installed"))
    try:
        place.folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(place.folder.with_suffix(".lock"), timeout=_TIMEOUT_S):
            if not place.refused.exists() and not _read(place.folder):
                _make(place, progress or (lambda stage, done, total: None))
    except Timeout as error:
        raise NoExportError(_message(name, "another process has been at it for long")) from error
    except OSError as error:
        raise NoExportError(_message(name, error.strerror or str(error))) from error


def discard(export: Export) -> None:
    """Let an export not count any more, so that it is made anew."""
    (export.folder / FACTS).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class _Place:
    """A model, and where its export is or would be."""

    name: str
    model: Path
    folder: Path

    @property
    def refused(self) -> Path:
        return self.folder.with_suffix(".refused")


def _place(name: str, cache: Path) -> _Place | None:
    model = local_folder(name) or hub_folder(name)
    if model is None:
        return None
    versions = [importlib.metadata.version(package) for package in _PACKAGES]
    subject = [_FORMAT, Path(name).name, digest(model.resolve(), cache), *versions]
    key = hashlib.sha256(json.dumps(subject).encode()).hexdigest()[:32]
    return _Place(name, model.resolve(), cache / key)


def _make(place: _Place, progress: Callable[[str, int, int], None]) -> None:
    for stale in place.folder.parent.glob(f"{place.folder.name}.*/"):  # of a killed process
        shutil.rmtree(stale, ignore_errors=True)
    progress("preparing the embedding model, once", 0, 1)
    with tempfile.TemporaryDirectory(
        dir=place.folder.parent, prefix=f"{place.folder.name}."
    ) as temporary:
        made = Path(temporary) / "export"
        made.mkdir()
        error = _run(place, made)
        if (made / REFUSED).exists():
            reason = (made / REFUSED).read_text(encoding="utf-8")
            os.replace(made / REFUSED, place.refused)
            raise NoExportError(_message(place.name, reason))
        if _read(made) is None:
            raise NoExportError(_message(place.name, error))
        shutil.rmtree(place.folder, ignore_errors=True)
        made.rename(place.folder)
    progress("preparing the embedding model, once", 1, 1)


def _run(place: _Place, made: Path) -> str:
    """Export in a child process, which gives the memory of torch back; the last error line."""
    command = [sys.executable, "-P", "-m", "rag.embedding.exporting"]
    try:
        child = subprocess.run(
            [*command, str(place.model), place.name, str(made)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "it took too long"
    lines = child.stderr.strip().splitlines()
    return lines[-1] if lines else f"it ended with status {child.returncode}"


def _read(folder: Path) -> Export | None:
    try:
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        if facts.pop("files") != _stamps(folder):
            return None
    except (OSError, ValueError):
        return None
    prompts, inputs = Prompts(**facts.pop("prompts")), tuple(facts.pop("inputs"))
    return Export(**facts | {"folder": folder, "prompts": prompts, "inputs": inputs})


def _stamps(folder: Path) -> dict[str, list[int]]:
    stats = {name: (folder / name).stat() for name in (GRAPH, WEIGHTS, TOKENIZER)}
    return {name: [stat.st_size, stat.st_mtime_ns] for name, stat in stats.items()}


def _message(name: str, reason: str) -> str:
    return (
        f"the embedding model {name} is run by sentence-transformers, which takes seconds "
        f"to start: it could not be exported ({reason})"
    )
