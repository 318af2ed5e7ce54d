"""What a program file is, as far as the dynamic loader cares: a small reader of ELF headers.

Every offset of the file is checked before it is followed; whatever is odd or unreadable makes the answer UNKNOWN, and
an unknown program is run as any other.
"""

from __future__ import annotations

import os
import struct
from typing import NamedTuple

UNKNOWN, ELF, SCRIPT = "unknown", "elf", "script"
MACHINES = {
    62: "x86_64",
    183: "aarch64",
    3: "i386",
    40: "arm",
    21: "ppc64",
    22: "s390x",
    243: "riscv64",
    258: "loongarch64",
}

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NULL, _DT_NEEDED, _DT_STRTAB, _DT_STRSZ = 0, 1, 5, 10
_SHORTEST = 52  # the smaller of the two file headers
_MOST_HEADERS, _MOST_DYNAMIC, _LONGEST = 256, 4096, 1 << 14


class Program(NamedTuple):
    kind: str = UNKNOWN
    bits: int = 0
    machine: str = ""
    interpreter: str = ""  # of ELF: the loader, empty where there is none; of a script: the program behind #!
    argument: str = ""  # of a script: what follows the interpreter on its line
    needed: tuple[str, ...] = ()

    @property
    def static(self) -> bool:
        return self.kind == ELF and not self.interpreter


class _Odd(Exception):
    """The file is not what its headers say."""


def inspect(path: str) -> Program:
    try:
        # Not blocking: a named pipe must not hold us up.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return Program()
    try:
        head = os.pread(descriptor, 256, 0)
        if head[:2] == b"#!":
            return _script(head)
        if head[:4] == b"\x7fELF" and len(head) >= _SHORTEST:
            return _elf(descriptor, head)
    except (OSError, OverflowError, struct.error, _Odd):
        pass
    finally:
        os.close(descriptor)
    return Program()


def _script(head: bytes) -> Program:
    line = head[2:].split(b"\n", 1)[0].strip(b" \t\r\0")
    interpreter, _, argument = line.replace(b"\t", b" ").partition(b" ")
    if not interpreter:
        return Program()
    return Program(SCRIPT, interpreter=os.fsdecode(interpreter), argument=os.fsdecode(argument.strip()))


def _elf(descriptor: int, head: bytes) -> Program:
    bits = {1: 32, 2: 64}.get(head[4])
    order = {1: "<", 2: ">"}.get(head[5])
    if bits is None or order is None:
        raise _Odd
    wide = bits == 64
    kind, machine = struct.unpack_from(order + "HH", head, 16)
    if kind not in (2, 3):  # neither an executable nor a position-independent one
        raise _Odd
    name = MACHINES.get(machine, f"machine {machine}")
    if order == ">":
        return Program(ELF, bits, name + " (big-endian)", interpreter="?")
    (offset,) = struct.unpack_from(order + ("Q" if wide else "I"), head, 32 if wide else 28)
    size, count = struct.unpack_from(order + "HH", head, 54 if wide else 42)
    if not 0 < count <= _MOST_HEADERS or size != (56 if wide else 32):
        raise _Odd
    table = _read(descriptor, offset, size * count)
    segments = [_segment(table, index * size, wide) for index in range(count)]
    interpreter = ""
    for kind_, where, _, length in segments:
        if kind_ == _PT_INTERP:
            interpreter = os.fsdecode(_read(descriptor, where, min(length, 4096)).split(b"\0", 1)[0])
    return Program(ELF, bits, name, interpreter, needed=_needed(descriptor, segments, wide))


def _segment(table: bytes, at: int, wide: bool) -> tuple[int, int, int, int]:
    """Type, file offset, address, bytes in the file."""
    if wide:
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", table, at)
    else:
        kind, offset, address, _, length = struct.unpack_from("<IIIII", table, at)
    return kind, offset, address, length


def _needed(descriptor: int, segments: list[tuple[int, int, int, int]], wide: bool) -> tuple[str, ...]:
    """Read the names of the libraries that the dynamic section asks for."""
    entry = struct.Struct("<qQ" if wide else "<iI")
    names: list[int] = []
    strings = length = 0
    for kind, where, _, size in segments:
        if kind != _PT_DYNAMIC:
            continue
        whole = min(size // entry.size, _MOST_DYNAMIC) * entry.size
        for tag, value in entry.iter_unpack(_read(descriptor, where, whole)):
            if tag == _DT_NULL:
                break
            if tag == _DT_NEEDED:
                names.append(value)
            elif tag == _DT_STRTAB:
                strings = value
            elif tag == _DT_STRSZ:
                length = value
    if not names:
        return ()
    for kind, where, address, size in segments:
        if kind == _PT_LOAD and address <= strings < address + size:
            room = min(length, address + size - strings)
            # One by one: the strings of a large library are many megabytes.
            return tuple(filter(None, (_string(descriptor, where + strings - address, name, room) for name in names)))
    raise _Odd


def _string(descriptor: int, table: int, at: int, room: int) -> str:
    if at >= room:
        return ""
    return os.fsdecode(_read(descriptor, table + at, min(room - at, _LONGEST)).split(b"\0", 1)[0])


def _read(descriptor: int, offset: int, size: int) -> bytes:
    if offset > 1 << 62:
        raise _Odd
    data = os.pread(descriptor, size, offset)
    if len(data) != size:
        raise _Odd
    return data
