"""The SPANK plugin behind a double of Slurm's functions (spank_steps.c), under sanitizers."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import spank

SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
INHERITED = "SLURM_SPANK__SLURM_SPANK_OPTION_overlap_comm_overlap"
BATCH = 0xFFFFFFFB
PLAIN = {"LD_PRELOAD": "/lib/libmine.so", "TORCH_MINE": "1"}


class Done(NamedTuple):
    status: int
    variables: dict[str, str]
    said: str

    @property
    def table(self) -> str | None:
        return self.variables.get("OVERLAP_TABLE")


class Double(NamedTuple):
    prefix: Path
    home: Path
    tables: dict[str, str]
    program: Path

    @property
    def library(self) -> str:
        return str(self.prefix / "lib" / spank.NAME)

    def task(
        self,
        option: str = "-",
        step: int = 0,
        command: str = "python",
        arguments: tuple[str, ...] = (),
        home_of_user: str = "",
        **environment: str,
    ) -> Done:
        base = {"HOME": str(self.home), **environment}
        given = "".join(f"{name}={value}\0" for name, value in base.items())
        words = ["remote", str(step), option, command, f"prefix={self.prefix}", *arguments]
        done = self._run(words, given, HOME_OF_USER=home_of_user)
        after = dict(entry.split("=", 1) for entry in done.stdout.split("\0") if entry)
        return Done(done.returncode, {name: after[name] for name in after if name != "HOME"}, done.stderr)

    def submit(self, option: str, context: str = "local", **environment: str) -> Done:
        done = self._run([context, option, f"prefix={self.prefix}"], "", **environment)
        return Done(done.returncode, {}, done.stderr)

    def _run(self, words: list[str], given: str, **environment: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(self.program), *words],
            input=given,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            errors="surrogateescape",
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        return done


def compile_c(sources: list[Path], program: Path) -> None:
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", *SANITIZED]
    subprocess.run([*spank.compiler(), *flags, *map(str, sources), "-o", str(program)], check=True)


# All that a task gets where the option's policy is not there: a TaskProlog chooses none, either.
IN_VAIN = {"OVERLAP_POLICY": "off", "OVERLAP_ADDED_OVERLAP_POLICY": "off"}


Change = Callable[[Double], object]


def users(double: Double, text: str) -> None:
    (double.home / ".config" / "overlap-run" / "policy").write_text(text)


def default(double: Double, text: str) -> None:
    (double.prefix / "default").write_text(text)
