"""The library for aarch64, run by qemu-user: the stress program's launches are those on the machine that tests.

Needs ziglang, qemu-user and an aarch64 libc (Debian: qemu-user-static, libc6-arm64-cross); else skipped.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pyshim import _native

ROOT = Path(__file__).resolve().parents[2]
QEMU = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
SYSROOT = Path("/usr/aarch64-linux-gnu")
HERE = platform.machine()

pytestmark = pytest.mark.skipif(
    not (QEMU and SYSROOT.exists() and importlib.util.find_spec("ziglang")),
    reason="needs ziglang, qemu-user, an aarch64 libc: make setup; apt-get install qemu-user-static libc6-arm64-cross",
)


def sanitize() -> Any:
    """Its policy and its reading of pages."""
    spec = importlib.util.spec_from_file_location("sanitize", ROOT / "tools" / "sanitize.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Built(NamedTuple):
    library: Path
    program: Path


def stress(compiler: list[str], driver: Path, folder: Path) -> Path:
    """The program, with this driver."""
    flags = ["-D_GNU_SOURCE", "-O1", f"-Wl,-rpath,{driver.parent}", "-ldl", "-lpthread"]
    command = [*compiler, str(ROOT / "tests/fuzz/stress.c"), str(driver), *flags, "-o", str(folder / "stress")]
    subprocess.run(command, check=True)
    return folder / "stress"


def build(machine: str, folder: Path) -> Built:
    """On this machine the library that `make setup` has built; for another one it is built here."""
    folder.mkdir()
    if machine == HERE:
        compiler = shlex.split(os.environ.get("CC", "cc"))
        return Built(_native.SHIM, stress(compiler, _native.SIMULATED_DRIVER, folder))
    target = ["-target", f"{machine}-linux-gnu.2.17"]
    zig = [sys.executable, "-m", "ziglang", "cc", *target, "-fno-sanitize=undefined", "-w"]
    environment = {**os.environ, "CC": shlex.join(zig), "OVERLAP_MACHINE": machine}
    for only in ("shim", "simgpu"):
        command = [sys.executable, "shim/build.py", "--only", only, "--output", str(folder)]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    return Built(folder / "liboverlap.so", stress(zig, folder / "simgpu" / "libcuda.so.1", folder))


def run(machine: str, built: Built, folder: Path, preload: bool) -> tuple[str, list[dict[str, Any]], dict[str, int]]:
    """What the program printed, what the driver was asked to launch, what the pages say."""
    tools, report, log = sanitize(), folder / f"report-{preload}", folder / f"launches-{preload}"
    report.mkdir()
    variables = {
        "OVERLAP_TABLE": tools.table(),
        "OVERLAP_REPORT": str(report),
        "OVERLAP_RUN_ID": "stress",
        "SIMGPU": "h100",
        "SIMGPU_REFUSE": "refused*:50000",
        "SIMGPU_LAUNCHES": str(log),
        **({"LD_PRELOAD": str(built.library)} if preload else {}),
    }
    start = ["env", *(f"{name}={value}" for name, value in variables.items())]
    if machine != HERE:
        start = [
            str(QEMU),
            "-L",
            str(SYSROOT),
            *(part for name, value in variables.items() for part in ("-E", f"{name}={value}")),
        ]
    command = [*start, str(built.program), "1", "250"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    launches = [json.loads(line) for line in log.read_text().splitlines()]
    return done.stdout, [without_addresses(launch) for launch in launches], tools.totals(report) if preload else {}


def without_addresses(launch: dict[str, Any]) -> dict[str, Any]:
    return {name: launch[name] for name in ("kernel", "dynamic_shared", "result", "priority") if name in launch}


@pytest.mark.slow
def test_launches_are_those_of_this_machine(tmp_path: Path) -> None:
    seen = {}
    for machine in dict.fromkeys((HERE, "aarch64")):
        folder = tmp_path / machine
        built = build(machine, folder)
        seen[machine] = [run(machine, built, folder, preload) for preload in (False, True)]
    assert seen["aarch64"] == seen[HERE]
    (text, plain, _), (text_with, shaped, counted) = seen["aarch64"]
    assert text == text_with, "every answer is the same with and without the library"
    assert plain != shaped
    assert counted["launches"] == sum(int(line.split()[1]) for line in text.splitlines())
    assert min(counted.values()) > 0
