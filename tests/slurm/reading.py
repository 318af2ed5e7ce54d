"""What Slurm takes from a TaskProlog, and what may be in it."""

from __future__ import annotations

import re

# Of Slurm 22.05: a line counts if it begins with one of its words, and a value goes to the end of its line.
_LINE = re.compile(r"export ([A-Z_][A-Z0-9_]*)=([A-Za-z0-9._/+:=@%~,-]*)")
# The task's own LD_PRELOAD is kept with what the loader replaces.
_PRELOAD = re.compile(r"export (LD_PRELOAD)=([A-Za-z0-9._/+:=@%~,${}-]+)")


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
