"""ELF kinds: real programs where a compiler makes them here, crafted headers for the others."""

from __future__ import annotations

import os
import platform
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyshim.start import program

HERE = {"x86_64": 62, "aarch64": 183}.get(platform.machine(), 62)


def crafted(
    bits: int = 64,
    machine: int = HERE,
    interpreter: bytes | None = b"/lib64/ld-linux-x86-64.so.2",
    needed: tuple[bytes, ...] = (),
    kind: int = 3,
    order: str = "<",
) -> bytes:
    """A file with headers, PT_INTERP, PT_LOAD and PT_DYNAMIC, and no code."""
    wide = bits == 64
    head, each = (64, 56) if wide else (52, 32)
    count = 2 + (interpreter is not None)
    at = head + each * count
    strings = b"\0" + b"".join(name + b"\0" for name in needed)
    path = (interpreter or b"") + b"\0"
    strings_at, path_at = at, at + len(strings)
    dynamic_at = (path_at + len(path) + 15) // 16 * 16
    offsets = [1 + sum(len(name) + 1 for name in needed[:index]) for index in range(len(needed))]
    entry = struct.Struct(order + ("qQ" if wide else "iI"))
    tags = [(1, offset) for offset in offsets] + [(5, strings_at), (10, len(strings)), (0, 0)]
    dynamic = b"".join(entry.pack(*tag) for tag in tags)
    size = dynamic_at + len(dynamic)

    def segment(kind: int, offset: int, length: int) -> bytes:
        if wide:
            return struct.pack(order + "IIQQQQQQ", kind, 4, offset, offset, offset, length, length, 8)
        return struct.pack(order + "IIIIIIII", kind, offset, offset, offset, length, length, 4, 4)

    segments = segment(1, 0, size) + segment(2, dynamic_at, len(dynamic))
    if interpreter is not None:
        segments += segment(3, path_at, len(path))
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    word = "Q" if wide else "I"
    header = ident + struct.pack(
        order + "HHI" + word * 3 + "IHHHHHH", kind, machine, 1, 0, head, 0, 0, head, each, count, 0, 0, 0
    )
    body = header + segments + strings + path
    return body + bytes(dynamic_at - len(body)) + dynamic


def write(folder: Path, data: bytes, name: str = "program", mode: int = 0o755) -> str:
    path = folder / name
    path.write_bytes(data)
    path.chmod(mode)
    return str(path)


def sentence(path: str, **environment: str) -> str | None:
    found = program.obstacle(path, environment)
    return found and found.sentence


def test_a_dynamic_program_is_no_obstacle(tmp_path: Path) -> None:
    path = write(tmp_path, crafted(needed=(b"libm.so.6", b"libc.so.6")))
    assert program.inspect(path).needed == ("libm.so.6", "libc.so.6")
    assert sentence(path) is None


@pytest.mark.parametrize("name", ["/bin/true", "/bin/sh", os.path.realpath("/proc/self/exe")])
def test_real_programs_are_no_obstacle(name: str) -> None:
    assert program.inspect(name).kind == program.ELF
    assert any(library.startswith("libc.so") for library in program.inspect(name).needed)
    assert sentence(name) is None


OTHER = 183 if HERE == 62 else 62


@pytest.mark.parametrize(
    ("data", "words", "harmful"),
    [
        pytest.param(crafted(bits=32, machine=3), "is a 32-bit program", True, id="32 bits"),
        pytest.param(crafted(machine=OTHER), f"for {program.MACHINES[OTHER]}, not", True, id="another processor"),
        pytest.param(crafted(interpreter=None), "statically linked", False, id="static"),
        pytest.param(crafted(interpreter=b"/lib/ld-musl-x86_64.so.1"), "linked to musl", True, id="musl"),
        pytest.param(crafted(needed=(b"libasan.so.8",)), "linked to libasan.so.8", True, id="address sanitizer"),
        pytest.param(crafted(needed=(b"libc.so.6", b"libtsan.so.2")), "linked to libtsan.so.2", True, id="threads"),
        pytest.param(crafted(order=">", machine=22), "s390x (big-endian)", True, id="another byte order"),
    ],
)
def test_what_keeps_the_library_out(tmp_path: Path, data: bytes, words: str, harmful: bool) -> None:
    found = program.obstacle(write(tmp_path, data), {})
    assert found is not None
    assert words in found.sentence
    assert found.harmful is harmful


@pytest.mark.parametrize("name", ["ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "ld-2.31.so"])
def test_a_loader_as_the_program_is_no_static_program(tmp_path: Path, name: str) -> None:
    assert sentence(write(tmp_path, crafted(interpreter=None), name)) is None
    assert sentence(write(tmp_path, crafted(interpreter=None), f"my-{name}")) is not None


def test_a_sanitizer_that_is_preloaded_already_is_no_obstacle(tmp_path: Path) -> None:
    path = write(tmp_path, crafted(needed=(b"libasan.so.8",)))
    assert sentence(path, LD_PRELOAD="/usr/lib/libasan.so.8") is None


def test_a_script_is_judged_by_its_interpreter_and_through_env(tmp_path: Path) -> None:
    static = write(tmp_path, crafted(interpreter=None), "static")
    script = write(tmp_path, f"#! {static} -x\n".encode(), "script")
    outer = write(tmp_path, f"#!{script}\n".encode(), "outer")
    by_env = write(tmp_path, b"#!/usr/bin/env static\n", "by_env")
    split = write(tmp_path, b"#!/usr/bin/env -S static --fast\n", "split")
    assert sentence(outer) == "static is statically linked: nothing is done in it, only in programs that it starts"
    assert sentence(by_env, PATH=str(tmp_path)) == sentence(outer)
    assert sentence(split, PATH=str(tmp_path)) == sentence(outer)


def test_what_env_is_to_set_is_no_program_that_is_missing(tmp_path: Path) -> None:
    write(tmp_path, b"", "data", 0o644)
    environment = {"PATH": f"/usr/bin:/bin:{tmp_path}"}
    for words, missing in (("A=1 sh", ""), ("-i sh", ""), ("sh -e", ""), ("none-such -e", "none-such"), ("data", "")):
        script = write(tmp_path, f"#!/usr/bin/env -S {words}\n".encode(), "script")
        assert program.missing(script, environment) == missing


def test_a_script_that_runs_itself_ends(tmp_path: Path) -> None:
    path = tmp_path / "loop"
    write(tmp_path, f"#!{path}\n".encode(), "loop")
    assert sentence(str(path)) is None


def test_a_setuid_program_of_another_user(tmp_path: Path) -> None:
    if os.getuid():
        pytest.skip("only root can make one: run as root")
    path = write(tmp_path, crafted())
    os.chown(path, 1, 1)
    for mode in (0o4755, 0o2755):
        os.chmod(path, mode)
        found = program.obstacle(path, {})
        assert found is not None
        assert "runs with other privileges" in found.sentence
    os.chmod(path, 0o2745)
    assert sentence(path) is None, "setgid without group execution is mandatory locking, not privileges"
    os.chown(path, 0, 0)
    os.chmod(path, 0o4755)
    assert sentence(path) is None, "our own user's programs gain nothing"


NO_PLACE = crafted()[:32] + b"\xff" * 8 + crafted()[40:]  # its program headers are behind what a file may have


@pytest.mark.parametrize(
    "data",
    [b"", b"#", b"#!", b"#! \n", b"\x7fELF", b"\x7fELF" + bytes(300), crafted(kind=1), crafted()[:100], b"text\n"]
    + [crafted()[:55], NO_PLACE],
)
def test_what_is_odd_is_unknown_and_run(tmp_path: Path, data: bytes) -> None:
    path = write(tmp_path, data)
    assert program.inspect(path) == program.Program()
    assert sentence(path) is None


def test_what_is_no_file_is_unknown(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "missing", Path("a\0b")):
        assert program.inspect(str(path)) == program.Program()


@given(data=st.data())
def test_damage_never_raises(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    whole = bytearray(crafted(needed=(b"libc.so.6",)))
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(16, len(whole) - 1))
        whole[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(whole[:cut])
    program.inspect(str(path))
    program.obstacle(str(path), {})
