"""Whether the local engine really runs on this machine, tried in a process of its own.

An engine that was compiled for another CPU ends its process at the first token, and must not
take the chat window with it. The outcome is kept beside the model:

    <models>/engine.stamp   JSON {engine, model, ok}: version, model SHA-256, whether it ran
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

from rag.errors import LLMError
from rag.llms.model_file import QWEN_CODER_1_5B, model_folder

_TIMEOUT_S = 300


def runs_here(model: Path) -> bool:
    """Load the model in a child process and evaluate some tokens; keeps the outcome."""
    command = [sys.executable, "-m", "rag.llms.probe", str(model)]
    try:
        child = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=False)
        ok = child.returncode == 0
    except subprocess.TimeoutExpired:
        ok = False
    stamp = model.parent / "engine.stamp"
    fresh = stamp.with_suffix(".stamp.new")
    fresh.write_text(json.dumps({**_subject(), "ok": ok}), encoding="utf-8")
    os.replace(fresh, stamp)
    return ok


def known_to_run(folder: Path | None = None) -> bool:
    """Whether the engine that is installed now ran the model before."""
    return _outcome(folder) is True


def known_to_fail(folder: Path | None = None) -> bool:
    """Whether the engine that is installed now was tried and failed."""
    return _outcome(folder) is False


def _outcome(folder: Path | None) -> bool | None:
    try:
        text = ((folder or model_folder()) / "engine.stamp").read_text(encoding="utf-8")
        stamp = json.loads(text)
    except (OSError, ValueError):
        return None
    outcomes = [ok for ok in (True, False) if stamp == {**_subject(), "ok": ok}]
    return outcomes[0] if outcomes else None


def _subject() -> dict[str, str]:
    try:
        version = importlib.metadata.version("llama-cpp-python")
    except importlib.metadata.PackageNotFoundError:
        version = "none"
    return {"engine": version, "model": QWEN_CODER_1_5B.sha256}


def main() -> int:
    """Try the model that the command line names; 0 when it runs."""
    # The parent must not load llama.cpp, and imports this module.
    from rag.llms.engine import Engine

    try:
        engine = Engine(Path(sys.argv[1]), context_window=512)
        engine.evaluate(engine.tokens("The engine reads these words, then one more token."))
        engine.close()
    except LLMError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
