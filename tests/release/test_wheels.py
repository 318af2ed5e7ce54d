"""How a release is made: of what is committed, the same bytes twice; and that the trials of a wheel can fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

LIB = "pyshim/_lib/"
INIT = "pyshim/__init__.py"

Change = Callable[..., Path]
Install = Callable[[Path], Path]


def test_of_what_is_committed_alone(tools: ModuleType, tmp_path: Path) -> None:
    tools.committed(tmp_path)  # an unpacked source archive: nobody to ask
    assert tools.taken(tmp_path, tmp_path / "copied") == tmp_path

    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    (tmp_path / "file").write_text("1")
    with pytest.raises(tools.Failed, match="1 files are not as committed: commit them, or add --dirty"):
        tools.committed(tmp_path)
    git("add", ".")
    git("commit", "-m", "first")
    tools.committed(tmp_path)
    (tmp_path / "file").write_text("2")
    with pytest.raises(tools.Failed):
        tools.committed(tmp_path)
    (tmp_path / ".gitignore").write_text("built\n")
    (tmp_path / ".git" / "info" / "exclude").write_text("/mine/\n")
    for name in ("built", "mine/secret", "folder/new", "gone"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("3")
    git("add", "gone")
    (tmp_path / "gone").unlink()
    copied = tools.taken(tmp_path, tmp_path.with_name("copied"))
    names = sorted(str(path.relative_to(copied)) for path in copied.rglob("*") if path.is_file())
    assert names == [".gitignore", "file", "folder/new"] and (copied / "file").read_text() == "2"


def test_two_source_archives_are_the_same_and_a_difference_is_noticed(
    tools: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of wheels `make wheels ARGS=--check` says it: compiling everything twice takes minutes."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")  # of somebody's shell: not taken
    made = tools.first((), tmp_path)
    before = os.umask(0o022), os.sched_getaffinity(0)
    assert list(tools.compared(made, ())) == []
    monkeypatch.setattr(tools, "OTHERWISE", {**tools.OTHERWISE, "SOURCE_DATE_EPOCH": "1800000000"})
    assert list(tools.compared(made, ())) == [f"{made[0].name}: other bytes the second time"]
    assert (os.umask(before[0]), os.sched_getaffinity(0)) == (0o022, before[1])


def test_a_python_that_makes_no_environments_is_passed_over(
    tools: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tools.installed
    minor = sys.version_info[1]
    monkeypatch.setattr(installed, "PLACES", ("{pyenv}/versions/3.{minor}.*/bin/python3.{minor}",))
    monkeypatch.setattr(installed, "MINORS", (minor,))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    shims = [tmp_path / "versions" / f"3.{minor}.{patch}" / "bin" / f"python3.{minor}" for patch in (1, 2)]
    for shim, script in zip(shims, ("exit 1", f'exec "{sys.executable}" "$@"')):
        shim.parent.mkdir(parents=True)
        shim.write_text(f"#!/bin/sh\n{script}\n")
        shim.chmod(0o755)
    assert installed.pythons() == {f"3.{minor}": str(shims[1])}
    shims[1].unlink()
    assert installed.pythons() == {f"3.{minor}": ""}
    found = list(installed.check(tmp_path / "no.whl", lambda line: None))
    assert found == ["no Python from 3.9 to 3.13 was found that can make virtual environments"]


@pytest.fixture
def unpacked(tools: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Without an index: the wheel unpacked as pip would, with the dependencies of the Python that runs this."""

    def install(wheel: Path, python: str, oldest: bool, folder: Path) -> tuple[Path, str]:
        venv.create(folder / "venv", symlinks=True)
        (site,) = (folder / "venv").glob("lib/python3*/site-packages")
        programs = folder / "venv" / "bin"
        with zipfile.ZipFile(wheel) as archive:
            for info in archive.infolist():
                Path(archive.extract(info, site)).chmod(info.external_attr >> 16 & 0o777)
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        for script in site.glob("*.data/scripts/*"):
            script.replace(programs / script.name)
        header, _, body = (programs / ".overlap-run.py").read_text().partition("\n")
        assert header == "#!python"
        (programs / ".overlap-run.py").write_text(f"#!{programs}/python\n{body}")
        return programs, ""

    monkeypatch.setattr(tools.installed, "install", install)
    yield


def trial(tools: ModuleType, wheel: Path) -> list[str]:
    return list(tools.installed.check(wheel, lambda line: None, {"here": sys.executable}))


def test_the_wheel_works_where_nothing_can_be_written(tools: ModuleType, wheel: Path, unpacked: None) -> None:
    assert trial(tools, wheel) == []


@pytest.mark.parametrize(
    ("member", "data", "says"),
    [
        (LIB + "shipped.json", None, "shipped.json is not of this wheel"),
        (LIB + "liboverlap.so", b"\x7fELF\x02\x01\x01", "exit status"),
        ("pyshim/policies/h100.yaml", b"policy: 1\nrules: [{}]\n", "exit status"),
        (INIT, b"\nopen(__file__ + '.cache', 'w')\n", "Read-only|Permission denied"),
    ],
)
def test_a_wheel_that_does_not_work_is_noticed(
    tools: ModuleType, wheel: Path, changed: Change, unpacked: None, member: str, data: bytes | None, says: str
) -> None:
    if member == INIT and data:
        data = zipfile.ZipFile(wheel).read(INIT) + data
    found = trial(tools, changed({member: data}))
    assert found, "nothing was noticed"
    assert re.search(says, found[0]), found
