"""overlap_abi.h: the compiler, cffi and the frozen layout of this version agree."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

from pyshim import _native
from pyshim.pages.page import sentences
from tools.checks import shim_build

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "shim" / "overlap_abi.h"
FROZEN = Path(__file__).parent / "abi"  # abi/N.txt: the layout of version N, which replaces that of the version before


def structs() -> list[str]:
    return re.findall(r"^struct (\w+) \{", HEADER.read_text(), re.M)


def layout_by_cffi() -> list[str]:
    _native.header()
    ffi, lines = _native.ffi, []
    for name in structs():
        lines.append(f"{name} {ffi.sizeof(f'struct {name}')}")
        for field, what in ffi.typeof(f"struct {name}").fields:
            lines.append(f"{name}.{field} {what.offset} {ffi.sizeof(what.type)}")
    return lines


def constants() -> dict[str, int]:
    """Every define and every member of an enum, by the header's text and cffi's word for it."""
    text, lib = HEADER.read_text(), _native.header()
    names = re.findall(r"^#define (OVERLAP_\w+) ", text, re.M) + re.findall(r"(OVERLAP_[A-Z_]+) =\s+\d+", text)
    return {name: getattr(lib, name) for name in names}


def frozen_text() -> str:
    lines = layout_by_cffi() + [
        f"{name} = {value}" for name, value in constants().items() if name != "OVERLAP_ABI_VERSION"
    ]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def printed(compile_c: Any, run_program: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    fields = tmp_path_factory.mktemp("abi") / "abi_fields.h"
    lines = []
    for line in layout_by_cffi():
        name, _, field = line.split()[0].partition(".")
        lines.append(f"FIELD({name}, {field})" if field else f"STRUCT({name})")
    fields.write_text("\n".join(lines) + "\n")
    return run_program(compile_c("abi_print.c", flags=(f'-DABI_FIELDS="{fields}"',))).splitlines()


def test_the_compiler_and_cffi_agree(printed: list[str]) -> None:
    assert [line for line in printed if not line.startswith("reasons")] == layout_by_cffi()


def test_what_the_build_made_of_the_header_is_of_this_header(tmp_path: Path) -> None:
    """Commands read _lib/abi.py, so a stale one would read tables and pages at wrong offsets."""
    (made,) = shim_build.load().keep_header(tmp_path)
    assert (_native.DIRECTORY / "abi.py").read_bytes() == made.read_bytes(), "make setup"


def test_no_command_parses_the_header() -> None:
    command = [sys.executable, "-X", "importtime", "-c", "from pyshim._native import library; library()"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "pyshim._lib.abi" in done.stderr and "pycparser" not in done.stderr


def test_while_the_package_is_built_the_header_itself_is_read(tmp_path: Path) -> None:
    """A build from an archive compiles the shipped policies before there is any pyshim/_lib."""
    for name in ("pyshim", "shim", "policies"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("_lib", "__pycache__"))
    program = "from pyshim import _native; print(_native.header().OVERLAP_ABI_VERSION, _native.__file__)"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(_native.header().OVERLAP_ABI_VERSION), str(tmp_path / "pyshim/_native.py")]


def test_no_padding_and_a_multiple_of_eight() -> None:
    sizes = {line.split()[0]: list(map(int, line.split()[1:])) for line in layout_by_cffi()}
    for name in structs():
        fields = [value for key, value in sizes.items() if key.startswith(f"{name}.")]
        at = 0
        for offset, size in fields:
            assert offset == at, name
            at += size
        assert sizes[name] == [at], name
        assert at % 8 == 0, name


def test_the_page_has_room(printed: list[str]) -> None:
    _, used, room = printed[-1].split()
    assert 0 < int(used) <= int(room) <= 64, "six bits of a row's key hold a reason"


def test_the_arrays_have_the_sizes_that_the_defines_say() -> None:
    lib, ffi = _native.header(), _native.ffi
    shard = dict(ffi.typeof("struct overlap_shard").fields)
    page = dict(ffi.typeof("struct overlap_page").fields)
    assert shard["launches"].type.length == lib.OVERLAP_ROWS
    for array, length in (("rules", lib.OVERLAP_RULES), ("rows", lib.OVERLAP_ROWS)):
        assert page[array].type.length == length
    assert shard["counters"].type.length == lib.OVERLAP_COUNTERS
    assert (page["devices"].type.length, page["shards"].type.length) == (lib.OVERLAP_DEVICES, lib.OVERLAP_SHARDS)
    assert ffi.sizeof("struct overlap_shard") % 64 == 0, "shards of two threads share no cache line"


def test_frozen() -> None:
    """Another layout or constant under the same version: raise OVERLAP_ABI_VERSION and write abi/VERSION.txt."""
    version = _native.header().OVERLAP_ABI_VERSION
    assert frozen_text() == (FROZEN / f"{version}.txt").read_text(), (
        f"abi/{version}.txt does not describe the header any more"
    )
    assert not (FROZEN / f"{version + 1}.txt").exists()


def test_names_are_lists_without_gaps(library: Any, printed: list[str]) -> None:
    null = _native.ffi.NULL
    reasons = int(printed[-1].split()[1])
    assert all(library.overlap_reason_name(i) != null for i in range(reasons))
    for index in (reasons, 10**6, 2**32 - 1):
        assert library.overlap_reason_name(max(index, reasons)) == null
        assert library.overlap_reason_shapes(max(index, reasons)) == 0
    names = [_native.text(library.overlap_reason_name(i)) for i in range(reasons)]
    assert list(sentences()) == names and all(sentences().values())
    assert len(set(names)) == reasons
    assert [name for i, name in enumerate(names) if library.overlap_reason_shapes(i)] == [
        "shaped",
        "capped_without_room",
    ]


def test_the_header_is_what_its_first_lines_promise() -> None:
    code = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    assert not re.search(r"#\s*(include|if|ifdef|ifndef|pragma)\b", code)
    for kind in re.findall(r"^\s+((?:struct )?\w+) \w+(?:\[\d+\])*;", code, re.M):
        assert re.fullmatch(r"u?int(8|16|32|64)_t|struct overlap_\w+", kind), kind


def test_threads_that_need_the_header_at_once_all_get_it() -> None:
    program = (
        "import sys, threading; from pyshim import _native; sys.setswitchinterval(1e-6); failed = []\n"
        "threading.excepthook = failed.append\n"
        "threads = [threading.Thread(target=_native.library) for _ in range(8)]\n"
        "[thread.start() for thread in threads]; [thread.join() for thread in threads]; sys.exit(len(failed))"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
