"""Where an embedding model's files are, and the digest that stands for what they hold."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
from pathlib import Path

# What a model consists of; the rest of its folder describes it, or is another form of it.
_SUFFIXES = {".json", ".txt", ".model", ".safetensors", ".bin"}
_OTHER_FORMS = {"onnx", "openvino"}


def local_folder(name: str) -> Path | None:
    """The folder of a model given as a path or as the name of an installed package."""
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    try:
        spec = importlib.util.find_spec(name.replace("-", "_"))
    except (ImportError, ValueError):
        return None
    for root in (spec.submodule_search_locations or ()) if spec else ():
        for modules in sorted(Path(root).rglob("modules.json")):
            return modules.parent
    return None


def hub_folder(name: str) -> Path | None:
    """The folder of a model given by its hub name, when it was downloaded before."""
    # Imported here: it takes a while, and a packaged model does not need it.
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    for repository in (name, f"sentence-transformers/{name}"):
        with contextlib.suppress(HFValidationError):
            found = try_to_load_from_cache(repository, "modules.json")
            if isinstance(found, str):
                return Path(found).parent
    return None


def digest(folder: Path, cache: Path) -> str:
    """32 hexadecimal digits for the names and contents of a model's files.

    Reading the weights takes a second and more, so the digest is kept in `cache`, and holds as
    long as every file has the size and time that it had.
    """
    files = {
        str(path.relative_to(folder)): [path.stat().st_size, path.stat().st_mtime_ns]
        for path in sorted(folder.rglob("*"))
        if path.suffix in _SUFFIXES and not _OTHER_FORMS.intersection(path.parts)
    }
    stamp = cache / f"{hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]}.digest"
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(stamp.read_text(encoding="utf-8"))
        if known["files"] == files:
            return str(known["digest"])
    total = hashlib.sha256()
    for name in files:
        with (folder / name).open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        total.update(f"{name}\n{content}\n".encode())
    found = total.hexdigest()[:32]
    with contextlib.suppress(OSError):  # a cache that cannot be written only costs time
        cache.mkdir(parents=True, exist_ok=True)
        fresh = stamp.with_suffix(f".{os.getpid()}.new")
        fresh.write_text(json.dumps({"files": files, "digest": found}), encoding="utf-8")
        os.replace(fresh, stamp)
    return found
