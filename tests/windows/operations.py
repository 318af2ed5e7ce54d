"""Programs as lists of operations, and as the lines that the interpreter (tests/programs/windows.c) reads.

A stream is two characters. The first says how it is named in the call, the second is a slot or a device:
  s3 t3        the stream in slot 3, by the plain entry point or by the per-thread one (_ptsz)
  l0 L0 M0     the legacy stream of device 0: NULL, plain; handle 1, plain; handle 1, per-thread entry point
  p0 P0 Q0     the per-thread default stream on device 0: NULL, per-thread entry point; handle 2, plain; the
               same, per-thread entry point
Where HIP has no per-thread entry point, the call names the stream by its handle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, Union

NO_STREAM = "--"
PLAIN, BLOCKING, NON_BLOCKING = 0, 0, 1
LAUNCHES = "kcKCN"
EXTERNAL = 2  # of a record: with flags, external; of a wait: 1
NOT_READY = 600


class Op(NamedTuple):
    kind: str
    stream: str = NO_STREAM
    which: int = 0
    other: int = 0
    thread: int = 0

    def __str__(self) -> str:
        return f"{self.kind}{self.stream},{self.which},{self.other},{self.thread}"


Program = tuple[Op, ...]
Key = Union[int, tuple[str, int], tuple[str, int, int]]

WORDS = {
    "n": "create stream (which: 1 non-blocking; other: device)",
    "x": "destroy stream",
    "e": "create event which on device other",
    "z": "destroy event which",
    "k": "launch computation (other 1: cuLaunchKernelEx, hipModuleLaunchKernel; 2 more: a large grid)",
    "c": "launch communication (other 1: likewise)",
    "K": "launch computation that records event which behind it, and event other before it if that is another (HIP)",
    "C": "launch communication, likewise (HIP)",
    "r": "record event which (other 1: with flags; 2: external)",
    "w": "wait for event which (other 1: external)",
    "y": "synchronize stream",
    "q": "query stream",
    "Y": "synchronize event which",
    "Q": "query event which",
    "T": "elapsed time between events which and other",
    "S": "synchronize the context of device which",
    "h": "copy host to device, synchronous",
    "d": "copy device to host, synchronous",
    "D": "copy device to device, synchronous",
    "m": "fill, synchronous",
    "a": "copy device to device, asynchronous",
    "A": "copy device to host on the stream, which the host waits for (HIP)",
    "f": "fill, asynchronous",
    "H": "host function",
    "P": "set the priority of the stream to minus which (CUDA)",
    "b": "begin capture",
    "E": "end capture, instantiate as graph which",
    "g": "launch graph which",
    "G": "destroy graph which",
    "B": "graph which with graph other as a child, added by hand",
    "N": "graph which with one kernel node, added by hand (other 1: communication)",
    "v": "wait for the value at address which",
    "V": "write the value at address which",
    "u": "make the heads of slot which dependencies of a capturing stream (other 1: its only ones)",
}


def line_of(program: Iterable[Op]) -> str:
    return " ".join(map(str, program))


class NotAProgram(ValueError):
    """A line that is none: one sentence."""


_WORD = re.compile(r"([a-zA-Z])(--|[st][0-9]|[lLMpPQ][01]),([0-9]{1,2}),([0-9]{1,2}),([01])")
_NO_STREAM_KINDS = "ezYQTSGBN"


def program_of(line: str) -> Program:
    ops = []
    for number, word in enumerate(line.split()):
        found = _WORD.fullmatch(word)
        if not found or found[1] not in WORDS:
            raise NotAProgram(f"operation {number}, {word!r}: kind, stream, which, other and thread, as in ks1,0,0,0")
        op = Op(found[1], found[2], int(found[3]), int(found[4]), int(found[5]))
        if (op.stream == NO_STREAM) != (op.kind in _NO_STREAM_KINDS):
            needs = "takes no stream (--)" if op.kind in _NO_STREAM_KINDS else "needs a stream"
            raise NotAProgram(f"operation {number}, {word!r}: {WORDS[op.kind]}: {needs}")
        ops.append(op)
    if not ops:
        raise NotAProgram("a program has at least one operation")
    return tuple(ops)


def is_communication(op: Op) -> bool:
    return op.kind in "cC" or (op.kind == "N" and op.other == 1)


def is_computation(op: Op) -> bool:
    return op.kind in LAUNCHES and not is_communication(op)


def device_of_default(stream: str) -> int:
    return int(stream[1])


def key_of(stream: str, thread: int) -> Key:
    """Which stream it is, however it is named."""
    if stream[0] in "st":
        return int(stream[1])
    if stream[0] in "lLM":
        return "legacy", int(stream[1])
    return "thread", int(stream[1]), thread


def describe(program: Iterable[Op]) -> str:
    """For people: one operation a line."""
    lines = []
    for number, op in enumerate(program):
        stream = "" if op.stream == NO_STREAM else f" on {op.stream}"
        thread = f" by thread {op.thread}" if op.thread else ""
        lines.append(f"{number:3} {op}  {WORDS[op.kind]}{stream}{thread}")
    return "\n".join(lines)
