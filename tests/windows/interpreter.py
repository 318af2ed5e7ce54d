"""tests/programs/windows.c as a process that has the library preloaded, and what the library's trace says it did."""

from __future__ import annotations

import contextlib
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyshim import _native
from tests.windows.operations import LAUNCHES, Program, is_computation, line_of, program_of

NOT_MADE = -1  # a call that the interpreter had no handle for
# What a driver may be without, and how to ask: kinds of generate.py, a program whose last operation answers it.
ASKED = {
    "vV": "ns0,1,0,0 Vs0,0,0,0",
    "W": "ns0,1,0,0 e--,0,0,0 rs0,0,0,0 bs0,0,0,0 ws0,0,1,0",
    "R": "ns0,1,0,0 e--,0,0,0 bs0,0,0,0 rs0,0,2,0",
}


class Answer(NamedTuple):
    """What the library said about a launch."""

    kernel: str
    sequence: int
    overlapping: bool
    shaped: bool
    could_overlap: int | None  # sequence of a communication launch
    reason: str


class Outcome(NamedTuple):
    results: list[int]
    answers: dict[int, Answer]  # by place in the program, for each launch and each kernel node added by hand


class _Layout:
    """Of the records of the trace, from the header that the library was compiled from."""

    def __init__(self) -> None:
        library, ffi = _native.library(), _native.ffi
        self.head = ffi.sizeof("struct overlap_trace")
        fields = dict(ffi.typeof("struct overlap_trace").fields)
        codes = {8: "Q", 4: "I", 2: "H"}
        names = ("size", "sequence", "asked", "launched", "flags", "reason", "kernel_size", "overlaps")
        order = sorted(names, key=lambda name: int(fields[name].offset))
        self.names, text, at = order, "<", 0
        for name in order:
            offset, size = fields[name].offset, ffi.sizeof(fields[name].type)
            text += f"{offset - at}x{codes[size]}"
            at = offset + size
        self.unpack = struct.Struct(text).unpack_from
        self.overlapping = library.OVERLAP_TRACE_OVERLAPPING
        self.reasons: list[str] = []
        while True:
            found = library.overlap_reason_name(len(self.reasons))
            if found == ffi.NULL:
                break
            self.reasons.append(ffi.string(found).decode())

    def answer(self, data: bytes, at: int) -> tuple[Answer, int]:
        values: dict[str, Any] = dict(zip(self.names, self.unpack(data, at)))
        begin = at + self.head
        answer = Answer(
            data[begin : begin + values["kernel_size"]].decode(),
            values["sequence"],
            bool(values["flags"] & self.overlapping),
            values["launched"] > values["asked"],
            values["overlaps"] - 1 if values["overlaps"] else None,
            self.reasons[values["reason"]],
        )
        return answer, at + int(values["size"])


class Interpreter:
    """One process that runs many programs. It is started anew before its trace is full."""

    LAUNCHES = 300_000  # that fit into the 64 MiB of a trace, with room to spare

    def __init__(self, program: Path, env: Mapping[str, str], folder: Path) -> None:
        self.program, self.env, self.folder = program, dict(env), folder
        self.layout = _Layout()
        self.process: subprocess.Popen[bytes] | None = None
        self.launches = 0
        self.trace: Any = None

    def close(self) -> None:
        if self.process:
            assert self.process.stdin and self.process.stdout
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait()
        if self.trace:
            self.trace.close()
        for file in self.folder.glob("*.trace"):
            file.unlink()
        for file in self.folder.glob("*.page"):
            file.unlink()
        self.process = self.trace = None
        self.launches = 0

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        """Not more than some hundred at once: what they print is held back until all are read."""
        if self.process is None or self.process.poll() is not None or self.launches > self.LAUNCHES:
            self.close()
            self.process = subprocess.Popen(
                [str(self.program)], env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(("".join(line_of(program) + "\n" for program in programs) + "\n").encode())
        self.process.stdin.flush()
        lines = [self.process.stdout.readline().decode() for _ in programs]
        if not lines[-1].endswith("\n"):
            raise RuntimeError(f"the interpreter ended: {self.process.wait()}, {[line for line in lines if line][-1:]}")
        answers = self._answers()
        outcomes, at = [], 0
        for program, text in zip(programs, lines):
            results = list(map(int, text.split()))
            if len(results) != len(program):
                raise RuntimeError(f"{len(results)} results of {len(program)} operations: {text}")
            taken = [at for at, op in enumerate(program) if op.kind in LAUNCHES and results[at] != NOT_MADE]
            mine = dict(zip(taken, answers[at : at + len(taken)]))
            for number, answer in mine.items():
                op = program[number]
                if is_computation(op) != (answer.kernel == "k"):
                    raise RuntimeError(
                        f"not in the trace: {line_of(program)}: {results}, {[a.kernel[:1] for a in mine.values()]}"
                    )
            if len(mine) != len(taken):
                raise RuntimeError(f"{len(taken)} launches, {len(mine)} in the trace: {line_of(program)}")
            outcomes.append(Outcome(results, mine))
            at += len(taken)
        if at != len(answers):
            raise RuntimeError(f"{len(answers) - at} launches in the trace that no program made")
        self.launches += at
        return outcomes

    def missing(self) -> str:
        """Kinds of operations that this driver does not take."""
        outcomes = self.run([program_of(line) for line in ASKED.values()])
        return "".join(kinds for kinds, outcome in zip(ASKED, outcomes) if outcome.results[-1])

    def _answers(self) -> list[Answer]:
        """What has been appended to the trace."""
        if self.trace is None:
            found = list(self.folder.glob("*.trace"))
            if len(found) != 1:
                return []
            self.trace = found[0].open("rb")
        data = self.trace.read()
        answers, at = [], 0
        while at < len(data):
            answer, at = self.layout.answer(data, at)
            answers.append(answer)
        return answers
