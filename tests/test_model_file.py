"""The local model's file: assembly from small parts, and everything that may go wrong."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from collections import namedtuple
from pathlib import Path

import pytest

from rag.errors import LLMError, SetupError
from rag.llms import model_file
from rag.llms.model_file import (
    ModelSpec,
    assembled_model,
    checked_gguf,
    finished_model,
    missing_parts,
    model_parts_installed,
)

PARTS = (b"GGUF" + b"a" * 5000, b"b" * 5000, b"c" * 1234)
WHOLE = b"".join(PARTS)
SPEC = ModelSpec(
    file_name="small.gguf",
    size=len(WHOLE),
    sha256=hashlib.sha256(WHOLE).hexdigest(),
    package="aqa_test_part",
    parts=len(PARTS),
)


def install_part(site: Path, number: int, content: bytes, recorded: bytes | None = None) -> Path:
    """A package with one part, as pip leaves it; `recorded` is what its RECORD vouches for."""
    package = f"{SPEC.package}{number}"
    path = site / package / "data" / f"part{number:02d}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    (site / package / "__init__.py").write_text("raise AssertionError('a part was imported')")
    path.write_bytes(content)
    info = site / f"{package}-0.1.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.1\n")
    digest = hashlib.sha256(content if recorded is None else recorded).digest()
    value = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    relative = path.relative_to(site).as_posix()
    (info / "RECORD").write_text(f"{relative},sha256={value},{len(content)}\n")
    return path


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages holding all three parts."""
    site = tmp_path / "site"
    for number, content in enumerate(PARTS, 1):
        install_part(site, number, content)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setattr(model_file, "_BLOCK", 1000)
    return site


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "models"


def assemble(folder: Path) -> Path:
    return assembled_model(spec=SPEC, folder=folder)


def test_the_parts_make_the_model_in_number_order(site: Path, folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    path = assembled_model(lambda *done: seen.append(done), spec=SPEC, folder=folder)
    assert path.read_bytes() == WHOLE
    assert seen[-1] == (SPEC.size, SPEC.size)
    assert seen == sorted(seen)
    assert not list(folder.glob("*.partial"))
    assert finished_model(SPEC, folder) == path


def test_a_finished_model_is_not_read_again(site: Path, folder: Path) -> None:
    path = assemble(folder)
    shutil.rmtree(site)
    seen: list[int] = []
    assert assembled_model(lambda done, _: seen.append(done), spec=SPEC, folder=folder) == path
    assert seen == []


def test_a_touched_model_is_verified_again(site: Path, folder: Path) -> None:
    path = assemble(folder)
    os.utime(path, (1, 1))
    assert finished_model(SPEC, folder) is None
    seen: list[int] = []
    assembled_model(lambda done, _: seen.append(done), spec=SPEC, folder=folder)
    assert seen[-1] == SPEC.size
    assert finished_model(SPEC, folder) == path


def test_a_wrong_model_file_is_named_and_kept(site: Path, folder: Path) -> None:
    path = assemble(folder)
    path.write_bytes(b"x" * SPEC.size)
    with pytest.raises(SetupError, match=r"small\.gguf is not the expected model.*move or delete"):
        assemble(folder)
    assert path.read_bytes() == b"x" * SPEC.size


def test_a_damaged_part_is_named(site: Path, folder: Path) -> None:
    part = install_part(site, 2, b"B" + PARTS[1][1:], recorded=PARTS[1])
    with pytest.raises(SetupError, match=r"part 2 of 3.*damaged.*aqa-test-part2") as caught:
        assemble(folder)
    assert str(part) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sorted(p.name for p in folder.iterdir()) == ["small.gguf.lock"]


def test_parts_of_another_model_are_told_apart_from_damage(site: Path, folder: Path) -> None:
    install_part(site, 3, b"another version's end")
    with pytest.raises(SetupError, match="as installed, but together are not the expected model"):
        assemble(folder)


def test_missing_parts_are_listed(site: Path, folder: Path) -> None:
    assert model_parts_installed(SPEC)
    shutil.rmtree(site / f"{SPEC.package}1")
    (site / f"{SPEC.package}3" / "data" / "part03.bin").unlink()
    assert missing_parts(SPEC) == (1, 3)
    with pytest.raises(SetupError, match=r"parts 1, 3 of 3 .*`rag install-local`"):
        assemble(folder)


@pytest.mark.parametrize("left", [0, 1, 4999, 5004, 5500, 10004, len(WHOLE)])
def test_an_interrupted_assembly_goes_on(site: Path, folder: Path, left: int) -> None:
    folder.mkdir()
    (folder / "small.gguf.partial").write_bytes(WHOLE[:left])
    assert assemble(folder).read_bytes() == WHOLE


def test_wrong_bytes_of_an_earlier_assembly_are_replaced(site: Path, folder: Path) -> None:
    folder.mkdir()
    (folder / "small.gguf.partial").write_bytes(WHOLE[:3000] + b"?" * 9000)
    assert assemble(folder).read_bytes() == WHOLE


def test_stopping_leaves_what_a_later_run_continues(site: Path, folder: Path) -> None:
    stopped = threading.Event()

    def stop_soon(done: int, total: int) -> None:
        if done >= 6000:
            stopped.set()

    with pytest.raises(SetupError, match="stopped; run again"):
        assembled_model(stop_soon, spec=SPEC, folder=folder, stopped=stopped)
    assert (folder / "small.gguf.partial").read_bytes() == WHOLE[: 5004 + 1000]
    assert assemble(folder).read_bytes() == WHOLE


def test_too_little_space_is_said_before_anything_is_written(
    site: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10, 5, 5))
    with pytest.raises(SetupError, match=r"needs 0\.1 GB in .* 0\.0 GB are free; free some space"):
        assemble(folder)
    assert not list(folder.glob("small.gguf*[!k]"))


def test_an_unwritable_folder_is_said(site: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SetupError, match="cannot write the local model to"):
        assemble(tmp_path / "file" / "models")


def test_two_processes_do_not_assemble_at_once(site: Path, folder: Path) -> None:
    program = textwrap.dedent(f"""
        import sys, time
        from pathlib import Path
        from rag.llms import model_file
        from rag.llms.model_file import ModelSpec, assembled_model
        sys.path.insert(0, {str(site)!r})
        model_file._BLOCK = 1000
        worked = []
        def report(done, total):
            worked.append(done)
            time.sleep(0.05)
        spec = ModelSpec(*{(SPEC.file_name, SPEC.size, SPEC.sha256, SPEC.package, SPEC.parts)!r})
        assembled_model(report, spec=spec, folder=Path({str(folder)!r}))
        print(len(worked))
    """)
    children = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    blocks = sorted(int(child.communicate(timeout=60)[0]) for child in children)
    assert [child.returncode for child in children] == [0, 0]
    assert (folder / "small.gguf").read_bytes() == WHOLE
    assert blocks[0] == 0
    assert blocks[1] > 10


def test_a_broken_stamp_only_costs_a_check(site: Path, folder: Path) -> None:
    path = assemble(folder)
    stamp = folder / "small.gguf.stamp"
    stamp.write_text("{")
    assert assemble(folder) == path
    assert json.loads(stamp.read_text())["sha256"] == SPEC.sha256


def test_a_users_gguf_is_checked_by_its_beginning(tmp_path: Path) -> None:
    good = tmp_path / "my.gguf"
    good.write_bytes(b"GGUF\x03\x00")
    assert checked_gguf(good) == good
    bad = tmp_path / "notes.gguf"
    bad.write_text("notes")
    with pytest.raises(LLMError, match=r"notes\.gguf is not a GGUF model file"):
        checked_gguf(bad)
    with pytest.raises(LLMError, match=r"cannot read the model file .*absent\.gguf"):
        checked_gguf(tmp_path / "absent.gguf")
