"""tests/compile_once.py: what is kept, and what is compiled again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ONCE = Path(__file__).resolve().parents[1] / "compile_once.py"
SOURCE = '#include "value.h"\nint main(void) { return VALUE; }\n'
COUNTED = '#!/bin/sh\ncase " $* " in *" -M "*) ;; *) echo >>{log} ;; esac\nexec {compiler} "$@"\n'

Compiled = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def compiler(tmp_path: Path) -> Path:
    """A compiler that counts its calls, without those that list what is included."""
    found = shutil.which("gcc") or shutil.which("clang")
    if not found:
        pytest.skip("needs gcc or clang: apt-get install gcc libc6-dev")
    program = tmp_path / "compiler"
    program.write_text(COUNTED.format(log=tmp_path / "calls", compiler=found))
    program.chmod(0o755)
    return program


@pytest.fixture
def calls(tmp_path: Path) -> Callable[[], int]:
    log = tmp_path / "calls"
    return lambda: log.read_text().count("\n") if log.exists() else 0


@pytest.fixture
def compiled(compiler: Path, tmp_path: Path) -> Compiled:
    (tmp_path / "cache").mkdir()

    def run(*arguments: object, **more: object) -> subprocess.CompletedProcess[str]:
        once = [sys.executable, "-I", "-S", str(ONCE), str(tmp_path / "cache"), str(compiler), "--"]
        words = [*once, *map(str, arguments)]
        return subprocess.run(words, text=True, capture_output=True, check=False, **more)  # type: ignore[call-overload,no-any-return]

    return run


def sources(folder: Path, value: int) -> Path:
    folder.mkdir()
    (folder / "value.h").write_text(f"#define VALUE {value}\n")
    (folder / "program.c").write_text(SOURCE)
    return folder / "program.c"


def status(program: Path) -> int:
    return subprocess.run([program], check=False).returncode


def test_the_same_content_is_compiled_once(compiled: Compiled, calls: Callable[[], int], tmp_path: Path) -> None:
    (tmp_path / "value.h").write_text("#define VALUE 3\n")
    for name in ("a", "b"):
        (tmp_path / f"{name}.c").write_text(SOURCE)
        assert compiled(tmp_path / f"{name}.c", "-o", tmp_path / name).returncode == 0
        assert status(tmp_path / name) == 3
    assert calls() == 1


def test_a_changed_header_is_seen(compiled: Compiled, calls: Callable[[], int], tmp_path: Path) -> None:
    source = sources(tmp_path / "one", 3)
    for value in (3, 4, 3):
        (source.parent / "value.h").write_text(f"#define VALUE {value}\n")
        assert compiled(source, "-o", tmp_path / "out").returncode == 0
        assert status(tmp_path / "out") == value
    assert calls() == 2


@pytest.mark.parametrize("changed", [("-O1", "-DVALUE=5"), ("-O1", "-g")])
def test_other_flags_are_another_program(
    changed: tuple[str, ...], compiled: Compiled, calls: Callable[[], int], tmp_path: Path
) -> None:
    (tmp_path / "p.c").write_text("#ifndef VALUE\n#define VALUE 6\n#endif\nint main(void) { return VALUE; }\n")
    for flags in (("-O1",), changed):
        assert compiled(*flags, tmp_path / "p.c", "-o", tmp_path / "out").returncode == 0
    assert status(tmp_path / "out") == (5 if "-DVALUE=5" in changed else 6)
    assert calls() == 2


def test_another_compiler_is_asked_itself(
    compiler: Path, compiled: Compiled, calls: Callable[[], int], tmp_path: Path
) -> None:
    source = sources(tmp_path / "one", 3)
    compiled(source, "-o", tmp_path / "out")
    os.utime(compiler, (1, 1))
    compiled(source, "-o", tmp_path / "out")
    assert calls() == 2


def test_a_library_that_is_linked_is_looked_at(compiled: Compiled, calls: Callable[[], int], tmp_path: Path) -> None:
    source = tmp_path / "p.c"
    source.write_text("int value(void);\nint main(void) { return value(); }\n")
    for value in (1, 2):
        compiled("-x", "c", "-c", "-", "-o", tmp_path / "value.o", input=f"int value(void) {{ return {value}; }}\n")
        compiled(source, tmp_path / "value.o", "-o", tmp_path / "out")
        assert status(tmp_path / "out") == value
    assert calls() == 4


def test_a_program_that_names_a_library_of_this_folder_is_not_kept(
    compiled: Compiled, calls: Callable[[], int], tmp_path: Path
) -> None:
    """A library without a soname: another folder's copy of it would not be found."""
    (tmp_path / "p.c").write_text("int value(void);\nint main(void) { return value(); }\n")
    library = tmp_path / "libvalue.so"
    compiled("-shared", "-fPIC", "-x", "c", "-", "-o", library, input="int value(void) { return 7; }\n")
    for _ in range(2):
        compiled(tmp_path / "p.c", library, "-o", tmp_path / "out")
        assert status(tmp_path / "out") == 7
    assert calls() == 3


@pytest.mark.parametrize(
    ("flags", "text", "words"), [((), "int main(void) {", "error"), (("-Wall",), "static int x;\n", "warning")]
)
def test_what_the_compiler_says_is_said_each_time(
    flags: tuple[str, ...], text: str, words: str, compiled: Compiled, calls: Callable[[], int], tmp_path: Path
) -> None:
    (tmp_path / "p.c").write_text(text)
    done = [compiled(*flags, "-c", tmp_path / "p.c", "-o", tmp_path / "out") for _ in range(2)]
    assert done[0].stderr == done[1].stderr and words in done[0].stderr
    assert done[0].returncode == done[1].returncode == (words == "error")
    assert calls() == 2


@pytest.mark.parametrize("flag", ["-E", "-S", "--coverage", "-MD", "-L/nowhere"])
def test_what_makes_more_than_one_file_is_passed_on(
    flag: str, compiled: Compiled, calls: Callable[[], int], tmp_path: Path
) -> None:
    (tmp_path / "p.c").write_text("int main(void) { return 0; }\n")
    for _ in range(2):
        assert compiled(flag, tmp_path / "p.c", "-o", tmp_path / "out", cwd=tmp_path).returncode == 0
    assert calls() == 2
