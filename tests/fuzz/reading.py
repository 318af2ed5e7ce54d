"""Runs one of the fuzzers in Python, *_fuzz.py: python -m tests.fuzz.reading NAME --seconds N | --repeat FILE

A fuzzer is a module with
    seeds() -> {name: bytes}     what to begin with
    one(data: bytes) -> bool     reads it; whether it was accepted; what it raises is a finding
    WORDS                        bytes that mean something in its inputs
    SLOWEST                      seconds of CPU that an input may take
    LONGEST                      bytes of an input

Inputs are made by mutations of our own; from Python 3.12 on those that reach new lines are kept (PEP 669). Ends with a
traceback and status 77 at the first finding. The input that is tried and the counts are in the file that FUZZ_STATE
names (struct fuzz_state of fuzz.h).
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import mmap
import os
import random
import resource
import signal
import struct
import sys
import time
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

FOUND = 77
MEMORY = 4 << 30  # bytes of address space
READ = ("pyshim", "yaml")  # packages whose lines count as reached
_HEAD = struct.Struct("<QQQ")  # size, tried, accepted
NUMBERS = (0, 1, 2, 3, 7, 8, 16, 99, 100, 127, 128, 255, 256, 4095, 32767, 65535, 1 << 31, (1 << 32) - 1)


class TooSlow(BaseException):
    """No handler of the code under test takes it for something of its own."""


class State:
    def __init__(self, longest: int) -> None:
        self.tried = self.accepted = 0
        path = os.environ.get("FUZZ_STATE")
        self._memory: Any = bytearray(_HEAD.size + longest)
        if path:
            with open(path, "w+b") as file:
                file.truncate(len(self._memory))
                self._memory = mmap.mmap(file.fileno(), len(self._memory))

    def trying(self, data: bytes) -> None:
        self.tried += 1
        self._memory[_HEAD.size : _HEAD.size + len(data)] = data
        _HEAD.pack_into(self._memory, 0, len(data), self.tried, self.accepted)

    def took(self, accepted: bool) -> None:
        self.accepted += accepted
        struct.pack_into("<Q", self._memory, 16, self.accepted)


class Trial:
    """One input after the other, each with a limit to its CPU time."""

    def __init__(self, fuzzer: ModuleType) -> None:
        self.fuzzer = fuzzer
        self.state = State(fuzzer.LONGEST)
        signal.signal(signal.SIGPROF, self._late)

    @staticmethod
    def _late(_signal: int, _frame: FrameType | None) -> None:
        raise TooSlow

    def __call__(self, data: bytes) -> None:
        data = bytes(data[: self.fuzzer.LONGEST])
        self.state.trying(data)
        signal.setitimer(signal.ITIMER_PROF, self.fuzzer.SLOWEST)
        try:
            accepted = self.fuzzer.one(data)
        except BaseException as error:
            signal.setitimer(signal.ITIMER_PROF, 0)
            if isinstance(error, KeyboardInterrupt):
                raise
            _say(traceback.format_exc())
            _say(f"input: {data[:300]!r}{'...' if len(data) > 300 else ''}")
            os._exit(FOUND)
        signal.setitimer(signal.ITIMER_PROF, 0)
        self.state.took(bool(accepted))


def _say(text: str) -> None:
    os.write(_said, f"{text}\n".encode("utf-8", "backslashreplace"))


_said = os.dup(2)  # a fuzzer may give the program under test another stderr


def mutated(dice: random.Random, data: bytes, words: Iterable[bytes], other: bytes) -> bytes:
    """One to four changes, most of them small."""
    made = bytearray(data)
    words = tuple(words)
    for _ in range(1 + min(3, int(dice.expovariate(0.9)))):
        at = dice.randrange(len(made) + 1)
        kind = dice.randrange(9)
        if kind == 0 and made:
            made[at % len(made)] = dice.randrange(256)
        elif kind == 1 and made:
            made[at % len(made)] ^= 1 << dice.randrange(8)
        elif kind == 2:
            width = dice.choice((1, 2, 4, 8))
            number = dice.choice(NUMBERS) if dice.random() < 0.7 else dice.getrandbits(64)
            made[at : at + width] = (number & (1 << 8 * width) - 1).to_bytes(width, dice.choice(("little", "big")))
        elif kind == 3:
            del made[at : at + 1 + int(dice.expovariate(0.05))]
        elif kind == 4 and made:
            start = dice.randrange(len(made))
            made[at:at] = made[start : start + 1 + int(dice.expovariate(0.03))] * dice.choice((1, 1, 1, 2, 40))
        elif kind == 5 and other:
            start = dice.randrange(len(other))
            piece = other[start : start + 1 + int(dice.expovariate(0.02))]
            made[at : at + (len(piece) if dice.random() < 0.5 else 0)] = piece
        elif kind in (6, 7) and words:
            made[at : at + dice.choice((0, 0, 1, 4))] = dice.choice(words)
        else:
            made[at:at] = bytes(dice.randrange(256) for _ in range(dice.randrange(1, 5)))
    return bytes(made)


class Lines:
    """Lines of the packages under test that were reached for the first time, by sys.monitoring: each is told once, so
    that it costs nothing after that."""

    def __init__(self) -> None:
        self.reached = 0
        monitoring = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
        self._disable = monitoring.DISABLE
        origins = (importlib.util.find_spec(name) for name in READ)
        self._ours = tuple(str(Path(str(found.origin)).parent) for found in origins if found)
        monitoring.use_tool_id(monitoring.COVERAGE_ID, "fuzz")
        monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.LINE, self._line)
        monitoring.set_events(monitoring.COVERAGE_ID, monitoring.events.LINE)

    def _line(self, code: Any, _number: int) -> Any:
        self.reached += code.co_filename.startswith(self._ours)
        return self._disable


def own(trial: Trial, seconds: float, seeds: list[bytes], dice: random.Random) -> None:
    lines = Lines() if sys.version_info >= (3, 12) else None
    print(f"engine: own mutations{', by lines reached' if lines else ''}", flush=True)
    end = time.monotonic() + seconds
    corpus: list[bytes] = []
    for data in seeds:
        trial(data)
        corpus.append(data)
    while time.monotonic() < end:
        # What was found last is what is not worn out yet.
        data = (
            corpus[-1 - min(len(corpus) - 1, int(dice.expovariate(2 / len(corpus))))] if lines else dice.choice(corpus)
        )
        for _ in range(20):
            made = mutated(dice, data, trial.fuzzer.WORDS, dice.choice(corpus))[: trial.fuzzer.LONGEST]
            before = lines.reached if lines else 0
            trial(made)
            if lines and lines.reached > before:
                corpus.append(made)
            if time.monotonic() >= end:
                break
    if lines:
        print(f"covered: {lines.reached:,} lines, {len(corpus):,} inputs kept", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="one of the fuzzers in Python")
    parser.add_argument("name")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=None, help="of the mutations of our own")
    parser.add_argument("--repeat", type=Path)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    trial = Trial(importlib.import_module(f"tests.fuzz.{options.name}_fuzz"))
    if options.repeat:
        trial(options.repeat.read_bytes())
        return 0
    seeds = [data[: trial.fuzzer.LONGEST] for _, data in sorted(trial.fuzzer.seeds().items())]
    own(trial, options.seconds, seeds, random.Random(options.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
