"""What Slurm takes from a TaskProlog, what may be in it, and what must not get there."""

from __future__ import annotations

import os
import re

# Of Slurm 22.05: a line counts if it begins with one of its words, and a value goes to the end of its line.
_LINE = re.compile(r"export ([A-Z_][A-Z0-9_]*)=([A-Za-z0-9._/+:=@%~,-]*)")
# The task's own LD_PRELOAD is kept with what the loader replaces.
_PRELOAD = re.compile(r"export (LD_PRELOAD)=([A-Za-z0-9._/+:=@%~,${}-]+)")

# Values that would set another variable, run a command or lead to another file, were they used as they are.
EVIL = [
    "a\nexport EVIL=1",
    "a\\nexport EVIL=1",
    "a\rexport EVIL=1",
    "a\nprint EVIL",
    "$(touch evil)",
    "`touch evil`",
    "a;touch evil",
    "a b",
    "*",
    "a'b",
    'a"b',
    "../env/observe",
    "\x1b[2J",
    "é",
    "a[$(touch evil)]",
    "-n",
]


def exports(output: str) -> dict[str, str]:
    """Of stdout and stderr together; every line must be an export of plain characters."""
    found = {}
    for line in output.split("\n")[:-1]:
        match = _LINE.fullmatch(line) or _PRELOAD.fullmatch(line)
        assert match, f"not a plain export: {line!r}"
        assert match[1] not in found, f"twice: {line!r}"
        found[match[1]] = match[2]
    assert not output or output.endswith("\n")
    return found


def elf(machine: int, bits: int = 2, order: int = 1) -> bytes:
    """The beginning of a library, which is what is looked at."""
    return b"\x7fELF" + bytes([bits, order, 1]) + bytes(9) + b"\3\0" + machine.to_bytes(2, "little") + bytes(100)


OWN, FOREIGN = (62, 183) if os.uname().machine == "x86_64" else (183, 62)
