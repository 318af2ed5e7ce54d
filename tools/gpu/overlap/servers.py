"""Processes of program.c, one for each way of running it: bare, with one connection, behind overlap-run.

On a real GPU a bare process serves the whole run, and one behind a policy serves one cell: what the library learns in a
process (which streams are small, and waited for) is about what ran in that process. On the simulated GPU costs belong
to names of kernels, so every process serves one cell and one size of communication.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
CUBINS = (HERE / "overlap_sm90.cubin", HERE / "simt_sm90.cubin")
PATIENCE = 60.0  # seconds for one answer
FOREIGN = ("OVERLAP_", "NCCL_", "CUDA_DEVICE_", "SIMGPU")  # what the user has set of these is about other runs


class Failed(Exception):
    """One sentence, a next step, and an exit status."""

    def __init__(self, sentence: str, help_: str | None = None, status: int = 1) -> None:
        super().__init__(sentence)
        self.help, self.status = help_, status


def compiled(folder: Path) -> Path:
    """program.c, by $CC or cc."""
    target = folder / "standins-program"
    command = [
        os.environ.get("CC", "cc"),
        "-std=c11",
        "-D_GNU_SOURCE",
        "-O2",
        str(HERE / "program.c"),
        "-o",
        str(target),
    ]
    try:
        done = subprocess.run([*command, "-ldl"], stderr=subprocess.PIPE, text=True, check=False)
    except OSError as error:
        raise Failed(f"no C compiler: {error.strerror}: {command[0]}", "install one, or name it in CC", 2) from None
    if done.returncode:
        raise Failed(f"program.c does not compile: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    return target


def overlap(*arguments: str, environment: Mapping[str, str]) -> Any:
    """Return the JSON answer of this repository's `overlap`, or of the installed one."""
    command, environment = ["overlap"], dict(environment)
    if (ROOT / "pyshim").is_dir():
        command = [sys.executable, "-m", "pyshim"]
        environment["PYTHONPATH"] = str(ROOT)
    elif not shutil.which("overlap"):
        raise Failed("overlap is not installed", "pip install it, or leave out the policies: --only", 2)
    done = subprocess.run([*command, *arguments], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"overlap {arguments[0]}: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    return json.loads(done.stdout)


class Server:
    def __init__(self, name: str, command: list[str], environment: Mapping[str, str]) -> None:
        self.name = name
        self.said = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 (closed in end)
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, env=dict(environment), stdin=pipe, stdout=pipe, stderr=self.said, text=True
        )
        self.ready = False

    def ask(self, request: str) -> Any:
        """Return the answer. Raises Failed if there is none."""
        if not self.ready:
            self._answer("its start")
            self.ready = True
        assert self.process.stdin
        with contextlib.suppress(OSError):  # what it said last tells more
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
        return self._answer(request)

    def _answer(self, request: str) -> Any:
        assert self.process.stdout
        if not select.select([self.process.stdout], [], [], PATIENCE)[0]:
            raise Failed(f"{self.name}: no answer within {PATIENCE:.0f} s to: {request}")
        line = self.process.stdout.readline()
        if line.endswith("\n"):
            return json.loads(line)
        self.process.wait()
        self.said.seek(0)
        said = self.said.read().strip().splitlines()
        raise Failed(f"{self.name}: {said[-1] if said else f'ended with {self.process.returncode}'} (asked: {request})")

    def end(self) -> None:
        assert self.process.stdin and self.process.stdout
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.said.close()


class Servers:
    """simulated: None, or GPU:RULE. costs: the text of a file of costs for a kernel and a sample, where simulated."""

    def __init__(self, folder: Path, simulated: str | None, costs: Any = None) -> None:
        self.folder, self.simulated, self.costs = folder, simulated, costs
        self.program = compiled(folder)
        self.base = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        if simulated:
            from pyshim import _native

            self.base.update(SIMGPU=simulated, LD_LIBRARY_PATH=str(_native.SIMULATED_DRIVER.parent))
        self.running: dict[tuple[str, ...], Server] = {}
        self.policies: dict[str, dict[str, str]] = {}

    def sample(self, process: str, kernel: str, words: Mapping[str, int]) -> dict[str, Any]:
        if self.simulated:
            words = {"warm": 0, **words}  # nothing there is warmer the second time
        said = " ".join(f"{key}={value}" for key, value in words.items())
        answer: dict[str, Any] = self.at(process, kernel, words).ask(f"sample {kernel} {said}")
        return answer

    def at(self, process: str, kernel: str, words: Mapping[str, int]) -> Server:
        text = self.costs(kernel, words) if self.costs else ""
        key = (process, text)
        if key not in self.running:
            environment = {**self.base, **self._of(process)}
            if text:
                file = self.folder / f"costs{len(list(self.folder.iterdir()))}.yaml"
                file.write_text(text, encoding="utf-8")
                environment["SIMGPU_COSTS"] = str(file)
            command = [str(self.program), *map(str, CUBINS)]
            self.running[key] = Server(process, command, environment)
        return self.running[key]

    def _of(self, process: str) -> dict[str, str]:
        if process == "connections-1":
            return {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
        if not process.startswith("policy:"):
            return {}
        if process not in self.policies:
            name = process.partition(":")[2]
            own = HERE / "policies" / f"{name}.yaml"
            words = ("env", "--policy", str(own) if own.exists() else name, "--format", "json")
            self.policies[process] = overlap(*words, environment=self.base)
        return self.policies[process]

    def end(self, only_policies: bool = False) -> None:
        for key in list(self.running):
            if key[0].startswith("policy:") or not only_policies:
                self.running.pop(key).end()
