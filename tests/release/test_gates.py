"""The wheel as it is built passes every gate; a wheel with one thing wrong is noticed, whatever it is."""

from __future__ import annotations

import platform
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIB = "pyshim/_lib/"
LIBRARY, DRIVER = LIB + "liboverlap.so", LIB + "simgpu/libcuda.so.1"
HERE = platform.machine()
DRIVER_NAME = "-Wl,-soname,libcuda.so.1"
OK = "int cuInit(void) { return 0; }"

Change = Callable[..., Path]
Compile = Callable[..., bytes]


def test_the_wheel_passes(tools: ModuleType, wheel: Path) -> None:
    assert tools.gates.check(wheel) == []
    said, wrong = tools.gates.audited(wheel)
    assert wrong == [] and "manylinux_2_17" in said


def test_what_stands_in_for_the_library_is_right_but_for_what_is_planted(tools: ModuleType, compiled: Compile) -> None:
    """Else a plant could be found for another reason than its own."""
    machine = tools.shim_build.machine()
    assert list(tools.gates.check_object(DRIVER, compiled(OK, DRIVER_NAME), machine)) == []


@pytest.mark.parametrize(
    ("body", "flags", "says"),
    [
        ("return deflate();", ("{other}",), "needs libother.so.1, which is not"),
        ("return getrandom();", (), "getrandom@GLIBC_2.25: newer than glibc 2.17"),
        ("return _ZSt4cerr();", (), "_ZSt4cerr: a symbol of C++"),
        ("return __read_chk();", (), "of a fortified build"),
        ("return 0; } int stranger(void) { return 1;", (), "exports stranger: visible to every other object"),
        ("return 0;", ("-Wl,-rpath,/opt/lib",), "has a RUNPATH"),
        ("return 0;", ("-Wl,-soname,libother.so.1",), "calls itself libother.so.1"),
    ],
)
def test_an_object_file_that_would_not_load_everywhere_is_noticed(
    tools: ModuleType, compiled: Compile, tmp_path: Path, body: str, flags: tuple[str, ...], says: str
) -> None:
    if flags == ("{other}",):
        other = compiled("int deflate(void) { return 0; }", "-Wl,-soname,libother.so.1")
        (tmp_path / "libother.so").write_bytes(other)
        flags = (f"-L{tmp_path}", "-lother")
    data = compiled(f"int cuInit(void) {{ {body} }}", DRIVER_NAME, *flags)
    found = list(tools.gates.check_object(DRIVER, data, tools.shim_build.machine()))
    assert [line for line in found if says in line] and len(found) == 1, found


def test_an_object_file_for_another_processor_is_noticed(tools: ModuleType, compiled: Compile) -> None:
    machine = tools.shim_build.machine()
    other = {"x86_64": "aarch64", "aarch64": "x86_64"}[machine]
    found = list(tools.gates.check_object(DRIVER, compiled(OK, DRIVER_NAME), other))
    assert found == [f"is for {machine}, not for {other}"]


def test_a_file_with_its_symbols_left_in_is_noticed(tools: ModuleType) -> None:
    """As `make setup` builds it, for debuggers."""
    data = (ROOT / DRIVER).read_bytes()
    assert "is not stripped" in list(tools.gates.check_object(DRIVER, data, tools.shim_build.machine()))


def test_the_library_that_is_preloaded_exports_the_tables_and_needs_libc_alone(
    tools: ModuleType, compiled: Compile
) -> None:
    data = compiled("double cos(double); double f(double x) { return cos(x); }", "-lm", "-Wl,-soname,liboverlap.so")
    found = list(tools.gates.check_object(LIBRARY, data, tools.shim_build.machine()))
    for says in (
        "not libc.so.6 alone",
        "cuLaunchKernel, without a version, is not exported",
        "f is exported, and nobody",
    ):
        assert any(says in line for line in found), found


def test_an_object_file_without_a_rule_is_noticed(tools: ModuleType, compiled: Compile) -> None:
    found = list(tools.gates.check_object(LIB + "new.so", compiled(OK), tools.shim_build.machine()))
    assert found == ["an object file that no rule of tools/release/gates.py knows"]


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({LIBRARY: None}, f"{LIBRARY}: is not there"),
        ({DRIVER: b"\x7fELF\x02\x01 cut"}, f"{DRIVER}: cannot be read"),
        ({LIB + "shipped.json": None}, "shipped.json: is not there"),
        ({LIB + "abi.py": None}, "abi.py: is not there"),
        ({LIB + "reason.def": None}, "reason.def: is not shim/core/reason.def"),
        ({"pyshim/policies/h100.yaml": b"policy: 2\n"}, "h100.yaml: is not policies/h100.yaml"),
        ({LIB + ".build-x/a": b""}, ".build-x/a: belongs in no wheel"),
        ({"tests/test_a.py": b""}, "tests/test_a.py: belongs in no wheel"),
        ({"pyshim/__pycache__/a.pyc": b""}, "belongs in no wheel"),
        ({"pyshim/a.txt": f"made in {ROOT}/shim".encode()}, "pyshim/a.txt: names "),
        ({"pyshim/__init__.py": b"# other\n"}, "pyshim/__init__.py: RECORD says something else"),
        (
            {"{info}/WHEEL": b"Root-Is-Purelib: true\nTag: py3-none-any\n"},
            "WHEEL has other tags than the name: py3-none-any",
        ),
        ({"{info}/WHEEL": b"Root-Is-Purelib: true\n"}, "WHEEL says that there are no object files"),
        ({"{info}/licenses/LICENSE": b"all rights reserved\n"}, "is not the LICENSE of these sources"),
        ({"{info}/METADATA": b"Metadata-Version: 2.4\nName: overlap-run\n\n# Title\n"}, "METADATA: "),
        ({"{info}/METADATA": b"Metadata-Version: 2.4\nName: a\nVersion: 1\n\nno heading\n"}, "does not become a page"),
    ],
    ids=lambda value: value[:50].replace(" ", "-") if isinstance(value, str) else "",
)
def test_a_wrong_file_is_noticed(
    tools: ModuleType, wheel: Path, changed: Change, files: dict[str, bytes | None], says: str
) -> None:
    info = next(name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" in name)
    found = tools.gates.check(changed({name.replace("{info}", info): data for name, data in files.items()}))
    assert any(says in line for line in found), found


def test_names_modes_and_archives_that_are_wrong_are_noticed(
    tools: ModuleType, wheel: Path, changed: Change, tmp_path: Path
) -> None:
    assert any(
        "not that of manylinux2014" in line
        for line in tools.gates.check(changed({}, "overlap_run-0.1.0-py3-none-any.whl"))
    )
    demo = LIB + "demo/demo-stencil"
    data = zipfile.ZipFile(wheel).read(demo)
    assert f"{demo}: cannot be executed" in tools.gates.check(changed({demo: data}))
    assert f"{demo}: mode 4755, neither 644 nor 755" in tools.gates.check(changed({demo: data}, mode=0o4755))
    (tmp_path / "a-1-b.whl").write_bytes(b"no archive")
    assert "cannot be read" in tools.gates.check(tmp_path / "a-1-b.whl")[0]


def test_auditwheel_notices_what_it_would_copy_into_the_wheel(
    tools: ModuleType, changed: Change, compiled: Compile, tmp_path: Path
) -> None:
    other = compiled("int hipInit(void) { return 0; }", "-Wl,-soname,libamdhip64.so.7")
    (tmp_path / "libamdhip64.so").write_bytes(other)
    data = compiled("int hipInit(); int cuInit(void) { return hipInit(); }", DRIVER_NAME, f"-L{tmp_path}", "-lamdhip64")
    assert list(tools.gates.check_object(DRIVER, data, tools.shim_build.machine())) == [
        "needs libamdhip64.so.7, which is not of libc or not everywhere"
    ]
    _, wrong = tools.gates.audited(changed({DRIVER: data}))
    assert wrong


def test_as_a_script(wheel: Path, changed: Change, tools: ModuleType) -> None:
    def run(path: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tools.release.gates", str(path)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    done = run(wheel)
    assert done.returncode == 0 and done.stderr.count("\n") == 1, done.stderr
    done = run(changed({LIBRARY: None}))
    assert done.returncode == 1 and f"{LIBRARY}: is not there" in done.stderr
