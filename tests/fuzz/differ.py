"""Random programs of a driver's calls, with and without the library: results, read-backs and its log are equal.

    python -m tests.fuzz.differ [--vendor cuda] [--calls N] [--seconds N] [--seed N] [--policy NAME...]
    python -m tests.fuzz.differ --repeat FILE                a finding once more
    python -m tests.fuzz.differ --seed N --only 3,17,204     these calls of a program, with all that they answer

A program is made by differ.c from its seed. Each runs without the library, then under every policy. A difference is
shrunk to few calls that still differ. Every answer of a call must be the same, and graphs exactly so in the log; what a
policy may change of other launches: `allowed()`.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import mmap
import os
import re
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyshim.start import plan
from pyshim.start.environment import environment
from tests.fuzz import differ_rows
from tests.hip_runtimes import VERSIONS, runtime
from tools.simgpu.hip.image import Kernel, image

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

CALLS = 2000  # of one program
FOUND = 77
LONGEST = 1 << 16
SLOW = 60  # seconds for one program
FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra")
# By name of what is called: the simulated GPU, and the library that is called, or the version of HIP's.
DRIVERS: dict[str, tuple[str, Path | int]] = {
    "cuda": ("h100", Path(plan.SIMULATED_DRIVER)),
    **{f"hip{version}": ("mi250x", version) for version in VERSIONS},
}
KERNELS = ("gemm", "elementwise", "ncclDevKernel_AllReduce", "ncclDevKernel_Broadcast")  # of HIP's programs
# One with every control on, for every launch.
EVERYTHING = """policy: 1
name: everything
gpu: ["*"]
streams: {raise: auto, created_by: ["differ*"]}
compute:
  - {match: {kernel: "gemm*"}, shape: {blocks_per_sm: 1}, when: always}
  - {match: {kernel: "bounded"}, shape: make_room, when: always}
  - {match: {kernel: "*"}, shape: {dynamic_shared_memory: 60KiB}, when: always}
"""
UNCHANGED = ("off", "observe")  # policies that change nothing
CREATED = ("everything",)  # policies under which streams of the program are created raised, whatever it asked for
RAISED = {"cuda": -5, "hip": -1}  # the greatest priority, which a raised stream has
# What a policy changes in the driver's log, and what is not read of a launch that is refused.
CHANGED = ("dynamic_shared", "priority")
UNREAD = ("cooperative", "cluster", "parameters")
COMMUNICATION = "nccl"  # in the names of communication kernels of all programs here


@dataclass(frozen=True)
class Difference:
    """Where a run with the library parts from the one without."""

    what: str  # a line of the record or of the driver's log, or how the process ended
    without: str
    within: str
    kind: str = ""  # differences of one kind are taken for the same one
    last: int | None = None  # the call, where one is known

    def __str__(self) -> str:
        return f"{self.what}\n  without: {self.without}\n  with:    {self.within}"


@dataclass
class Run:
    status: int
    record: bytes
    log: bytes


def allowed(policy: str, without: Mapping[str, Any], within: Mapping[str, Any]) -> bool:
    """Return whether a policy may turn this line of the driver's log into that one: a launch may be on a raised
    stream, of graphs too, or outside graphs have a larger dynamic size."""
    if policy in UNCHANGED:
        return False
    # A launch that is refused may be refused before all of it was read.
    read = UNREAD if without["result"] else ()
    rest = [{key: line[key] for key in line if key not in (*CHANGED, *read)} for line in (without, within)]
    raised = RAISED["hip" if "hip" in without["entry"] else "cuda"]
    priority = within["priority"] == without["priority"] or (
        within["priority"] == raised and (without["priority"] == 0 or policy in CREATED)
    )
    larger = within["dynamic_shared"] > without["dynamic_shared"]
    fixed = without["graph"] or COMMUNICATION in without["kernel"]
    return (
        rest[0] == rest[1]
        and priority
        and (within["dynamic_shared"] == without["dynamic_shared"] or (larger and not fixed))
    )


def is_extra(line: Mapping[str, Any], near: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a line of the log is a changed launch that the driver refused, made again as asked. near: the line
    with those before and after it."""
    names = ("kernel", "blocks", "threads", "stream", "graph")
    again = sum(all(line.get(name) == other.get(name) for name in names) for other in near) > 1
    return bool(line["result"] and again)


def without_addresses(log: bytes) -> bytes:
    """Streams by the order in which they appear; numbers of default streams are left."""
    seen: dict[bytes, bytes] = {}
    return re.sub(rb"0x[0-9a-f]{4,}", lambda match: seen.setdefault(match[0], b"#%d" % len(seen)), log)


def logs_differ(policy: str, without: bytes, within: bytes) -> Difference | None:
    without, within = without_addresses(without), without_addresses(within)
    if without == within:
        return None
    a, b = without.splitlines(), within.splitlines()
    i = j = 0
    while i < len(a) or j < len(b):
        one, other = (json.loads(lines[k]) if k < len(lines) else None for lines, k in ((a, i), (b, j)))
        if one and other and (a[i] == b[j] or allowed(policy, one, other)):
            i, j = i + 1, j + 1
        elif (
            policy not in UNCHANGED
            and other
            and is_extra(other, [json.loads(line) for line in b[max(j - 1, 0) : j + 2]])
        ):
            j += 1
        else:
            texts = [json.dumps(line) if line else "(nothing)" for line in (one, other)]
            return Difference(f"line {i + 1} of the driver's log", texts[0], texts[1], "log")
    return None


def differ(policy: str, without: Run, within: Run) -> Difference | None:
    if without.status:
        return Difference("the end of the process, of both", str(without.status), "", "crash")
    if without.status != within.status:
        status = str(within.status)
        return Difference("the end of the process", str(without.status), status, status)
    for one, other in zip(without.record.decode().splitlines(), within.record.decode().splitlines()):
        if one != other:
            words = one.split()
            return Difference(f"call {words[0]}, thread {words[1]}, {words[2]}", one, other, words[2], int(words[0]))
    return logs_differ(policy, without.log, within.log)


def changed(without: Run, within: Run, counts: Counter[str]) -> None:
    """Count the launches that the library changed."""
    for one, other in zip(without.log.splitlines(), within.log.splitlines()):
        if one != other:
            a, b = json.loads(one), json.loads(other)
            counts["raised"] += a["priority"] != b["priority"]
            counts["shaped"] += a["dynamic_shared"] != b["dynamic_shared"]


def table_of(vendor: str) -> str:
    return vendor.rstrip("567")


@dataclass
class Fuzzer:
    vendor: str
    folder: Path
    library: str = plan.LIBRARY
    environments: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        clean = {
            name: value for name, value in os.environ.items() if not name.startswith(("OVERLAP_", "LD_", "SIMGPU"))
        }
        gpu, driver = DRIVERS[self.vendor]
        self.driver = runtime(driver) if isinstance(driver, int) else driver
        code = self.folder / "image"
        code.write_bytes(image(Kernel(name, vgprs=256, agprs=8, arguments=[8, 4]) for name in KERNELS))
        everything = self.folder / "everything.yaml"
        everything.write_text(EVERYTHING, encoding="ascii")
        self.simulated = plan.make(plan.Request(policy="observe", simulate=gpu), clean).settings
        more = {"SIMGPU": f"{gpu},2", "SIMGPU_MULTIPROCESSORS": "2", "DIFFER_IMAGE": str(code)}
        self.environments["bare"] = {**environment(clean, self.simulated._replace(library=None)), **more}
        for name, asked in {
            "observe": "observe",
            "default": "default",
            f"{gpu}-paper": f"{gpu}-paper",
            "everything": str(everything),
        }.items():
            table = plan.make(plan.Request(policy=asked), clean).settings.table
            made = environment(clean, self.simulated._replace(table=table))
            self.environments[name] = {**made, **more, "LD_PRELOAD": self.library}
        self.environments["off"] = {**self.environments["everything"], "OVERLAP_RUN": "off"}
        self.program = self.build()

    @property
    def policies(self) -> list[str]:
        return [name for name in self.environments if name != "bare"]

    def build(self) -> Path:
        rows, program = self.folder / "rows.h", self.folder / "differ"
        rows.write_text(differ_rows.source(table_of(self.vendor)), encoding="utf-8")
        named = [
            f'-DDIFFER_VENDOR="differ_{table_of(self.vendor)}.h"',
            f'-DDIFFER_RUNTIME="{self.driver.name}"',
            f'-DDIFFER_ROWS="{rows}"',
            f"-I{ROOT / 'shim'}",
            f"-I{HERE}",
        ]
        command = [*os.environ.get("CC", "cc").split(), *FLAGS, *named, str(HERE / "differ.c"), "-o", str(program)]
        where = f"-Wl,-rpath,{self.driver.parent}"  # the package has the newest HIP runtime only
        subprocess.run([*command, str(self.driver), where, "-ldl", "-pthread"], check=True)
        return program

    def run(
        self, policy: str, seed: int, calls: int, only: Sequence[int] | None = None, arguments: bool = False
    ) -> Run:
        record, log = self.folder / "record", self.folder / "launches"
        log.write_bytes(b"")
        command = [str(self.program), str(seed), str(calls), str(record)]
        if only is not None:
            command.append(",".join(map(str, only)))
        # Of handles after their end: differ.h.
        given = {
            **self.environments[policy],
            "SIMGPU_LAUNCHES": str(log),
            **({} if seed % 2 else {"SIMGPU_HANDLES": "fresh"}),
        }
        if arguments:
            given["DIFFER_ARGUMENTS"] = "1"
        try:
            done = subprocess.run(
                command,
                env=given,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=SLOW,
                check=False,
            )
            status = done.returncode
        except subprocess.TimeoutExpired:
            status = -99
        return Run(status, record.read_bytes().rstrip(b"\0"), log.read_bytes())

    def difference(self, policy: str, seed: int, calls: int, only: Sequence[int] | None = None) -> Difference | None:
        bare = self.run("bare", seed, calls, only)
        return differ(policy, bare, self.run(policy, seed, calls, only))

    def shrunk(self, policy: str, seed: int, calls: int, like: Difference, tick: Callable[[], None]) -> list[int]:
        """Fewer calls that differ still: delta debugging over the list of them."""
        left, parts = list(range(calls if like.last is None else like.last + 1)), 2
        while len(left) > 1:
            size = max(1, len(left) // parts)
            for start in range(0, len(left), size):
                tried = left[:start] + left[start + size :]
                tick()
                found = self.difference(policy, seed, calls, tried) if tried else None
                if found and found.kind == like.kind:
                    left, parts = tried, max(parts - 1, 2)
                    break
            else:
                if size == 1:
                    break
                parts = min(2 * parts, len(left))
        return left


def covered(record: bytes, counts: Counter[tuple[str, bool]]) -> None:
    for name, result in re.findall(rb"^\d+ \d+ (\w+) (\w+)", record, re.M):
        counts[name.decode(), result == b"0"] += 1


def say(text: str) -> None:
    print(text, flush=True)


class State:
    """struct fuzz_state of fuzz.h, for tools/checks/fuzz.py."""

    HEAD = struct.Struct("<QQQ")

    def __init__(self) -> None:
        self.tried = 0
        self.memory: Any = bytearray(self.HEAD.size + LONGEST)
        if path := os.environ.get("FUZZ_STATE"):
            with open(path, "w+b") as file:
                file.truncate(len(self.memory))
                self.memory = mmap.mmap(file.fileno(), len(self.memory))

    def set(self, accepted: int, data: bytes = b"") -> None:
        self.tried += 1
        self.memory[self.HEAD.size : self.HEAD.size + len(data)] = data
        self.HEAD.pack_into(self.memory, 0, len(data), self.tried, accepted)

    def count(self, tried: int, accepted: int) -> None:
        self.tried = tried - 1
        self.set(accepted)


def command_of(again: Mapping[str, Any]) -> str:
    words = f"--vendor {again['vendor']} --policy {again['policy']} --seed {again['seed']}"
    return f"python -m tests.fuzz.differ {words} --only {','.join(map(str, again['only']))}"


def tell(fuzzer: Fuzzer, policy: str, seed: int, calls: int, only: list[int]) -> Difference | None:
    found = fuzzer.difference(policy, seed, calls, only)
    say(f"seed {seed}, policy {policy}: {found or 'no difference'}")
    say(fuzzer.run("bare", seed, calls, only, arguments=True).record.decode())
    return found


def search(fuzzer: Fuzzer, options: argparse.Namespace) -> int:
    state, counts, changes = State(), Counter[tuple[str, bool]](), Counter[str]()
    end = time.monotonic() + options.seconds if options.seconds else None
    policies = options.policy or fuzzer.policies
    say(f"engine: calls of {fuzzer.vendor}, from seed {options.seed}, under {', '.join(policies)}")
    compared = found = 0
    for seed in itertools.count(options.seed):
        if compared >= options.calls or found >= options.findings or (end and time.monotonic() > end):
            break
        bare = fuzzer.run("bare", seed, CALLS)
        covered(bare.record, counts)
        for policy in policies:
            within = bare if bare.status else fuzzer.run(policy, seed, CALLS)
            difference = differ(policy, bare, within)
            changed(bare, within, changes)
            if not difference:
                continue
            found += 1
            say(f"FOUND: seed {seed}, policy {policy}: {difference}")
            again = {
                "vendor": fuzzer.vendor,
                "policy": policy,
                "seed": seed,
                "calls": CALLS,
                "only": list(range(CALLS)),
            }
            tick = functools.partial(state.set, compared, json.dumps(again).encode())
            tick()
            again["only"] = fuzzer.shrunk(policy, seed, CALLS, difference, tick)
            tell(fuzzer, policy, seed, CALLS, again["only"])
            say(f"again: {command_of(again)}")
            state.set(compared, json.dumps(again).encode())
            break
        compared += CALLS
        if not found:
            state.count(compared, sum(count for (_, good), count in counts.items() if good))
    say(f"changed: {changes['raised']:,} launches raised, {changes['shaped']:,} shaped")
    say(differ_rows.statement(fuzzer.vendor, counts))
    return FOUND if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="compares random programs with and without the library")
    parser.add_argument("--vendor", choices=list(DRIVERS), default="cuda")
    parser.add_argument(
        "--calls", type=int, default=1_000_000, help="of programs, each of which runs under every policy"
    )
    parser.add_argument("--seconds", type=int, default=0, help="no more than these (default: no limit)")
    parser.add_argument("--seed", type=int, default=1, help="of the first program")
    parser.add_argument("--policy", action="append", help="only this one")
    parser.add_argument("--findings", type=int, default=1, help="how many before it ends")
    parser.add_argument("--only", help="these calls of the program alone")
    parser.add_argument("--repeat", type=Path)
    parser.add_argument("--library", default=plan.LIBRARY)
    options = parser.parse_args()
    again = json.loads(options.repeat.read_text(encoding="utf-8")) if options.repeat else None
    with tempfile.TemporaryDirectory(prefix="overlap-differ-") as folder:
        fuzzer = Fuzzer(again["vendor"] if again else options.vendor, Path(folder), options.library)
        if again:
            return FOUND if tell(fuzzer, again["policy"], again["seed"], again["calls"], again["only"]) else 0
        if options.only:
            only = [int(word) for word in options.only.split(",")]
            return (
                FOUND
                if [p for p in options.policy or fuzzer.policies if tell(fuzzer, p, options.seed, CALLS, only)]
                else 0
            )
        return search(fuzzer, options)


if __name__ == "__main__":
    sys.exit(main())
