"""Lmod and Environment Modules, as they are, side by side: the packages exclude each other, so they are unpacked."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import debian

# What Lmod needs; installed, as it looks for them in the places of the system.
LUA = ("lua5.3", "lua-posix", "lua-filesystem", "lua-term", "lua-json")
# What the systems keep for themselves, and the shell.
BOOKKEEPING = ("MODULE", "_Module", "__MODULE", "LMOD", "__LMOD", "_LMFILES_", "LOADEDMODULES", "OLDPWD")


def commands() -> dict[str, tuple[str, ...]]:
    """What each of them is called by, in front of the name of a shell; or debian.Missing."""
    debian.install([*LUA, "tcl"], ["lua5.3", "tclsh"])
    root = debian.fetch(debian.codename(), ["lmod", "environment-modules"])
    return {
        "lmod": ("lua5.3", str(root / "usr/share/lmod/lmod/libexec/lmod")),
        "tcl": ("tclsh", str(next(root.glob("usr/lib/*/modulecmd.tcl")))),
    }


class Step(NamedTuple):
    """After a line of the shell."""

    status: int
    stdout: str
    stderr: str
    environment: dict[str, str]  # without what the module system keeps there


@dataclass
class System:
    """One of the two, in a shell whose `module` it is."""

    name: str
    command: tuple[str, ...]
    clean: Mapping[str, str]
    folder: Path

    def said_to(self, shell: str, *words: str, env: Mapping[str, str]) -> str:
        """What the shell would be told to evaluate, without the backslashes."""
        command = [*self.command, shell, *words]
        done = subprocess.run(command, env={**self.clean, **env}, capture_output=True, text=True, check=False)
        return done.stdout.replace("\\", "")

    def __call__(self, *lines: str, env: Mapping[str, str] | None = None, shell: str = "sh") -> list[Step]:
        """Runs lines in one shell, and says what was there after each."""
        script = [f'module() {{ eval "$({shlex.join(self.command)} {shell} "$@")"; }}']
        for number, line in enumerate(lines):
            at = self.folder / str(number)
            script += [f"{{ {line}", f"}} >{at}.out 2>{at}.err", f"echo $? >{at}.status", f"env -0 >{at}.env"]
        subprocess.run(
            [shell],
            input="\n".join(script) + "\n",
            env={**self.clean, **(env or {})},
            stdout=subprocess.DEVNULL,
            text=True,
            check=True,
            timeout=300,
        )
        return [self._step(self.folder / f"{number}.env") for number in range(len(lines))]

    @staticmethod
    def _step(path: Path) -> Step:
        status, out, err = (path.with_suffix(suffix).read_text() for suffix in (".status", ".out", ".err"))
        pairs = (pair.partition("=") for pair in path.read_text().split("\0") if pair)
        kept = {name: value for name, _, value in pairs if name != "_" and not name.startswith(BOOKKEEPING)}
        return Step(int(status), out, err, kept)
