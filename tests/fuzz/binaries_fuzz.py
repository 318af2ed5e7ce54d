"""What overlap-run reads of the program that it starts: headers of ELF files, and the first line of scripts. Any bytes
are of some kind."""

from __future__ import annotations

import os
import tempfile

from pyshim.start import program as elf

SLOWEST, LONGEST = 10.0, 1 << 16
WORDS = (
    b"\x7fELF\x02\x01\x01", b"\x7fELF\x01\x01\x01", b"#!/bin/sh\n", b"#! /usr/bin/env -S python3 -u\n",
    b"\x02\0\0\0", b"\x08\0\0\0", b"\x07\0\0\0", b"\xff" * 8, b"\0" * 8,
)  # fmt: skip
_FOLDER = tempfile.mkdtemp(prefix="overlap-fuzz-")
_FILE = os.path.join(_FOLDER, "program")


def seeds() -> dict[str, bytes]:
    with open("/bin/true", "rb") as file:
        program = file.read(LONGEST)
    return {"program": program, "script": b"#!/usr/bin/env python3 -u\n"}


def one(data: bytes) -> bool:
    with open(_FILE, "wb") as file:
        file.write(data)
    found = elf.inspect(_FILE)
    assert found.kind in (elf.UNKNOWN, elf.ELF, elf.SCRIPT)
    return found.kind == elf.ELF
