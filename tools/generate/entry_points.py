"""The table of the driver's entry points, as a run on the simulated GPU finds it: docs/data/entry-points-cuda.csv.

    python -m tools.generate.entry_points [--check]

Every row of driver.def is called in a real process by each of the three routes, with the library and without.
What the program sees must be the same; what the driver gets must differ as EFFECTS says. `-`: there is no such way.
--check: the file must be what this run found. Exits 1 and says what is wrong. The program is
tests/programs/entry_points.c.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyshim.launch import plan
from pyshim.launch.environment import environment
from tools.generate import driver_table

ROOT = Path(__file__).resolve().parents[2]

TABLE = ROOT / "docs/data/entry-points-cuda.csv"
PROGRAMS = ROOT / "tests/programs"
WAYS = ("symbol", "dlsym", "proc_address")
FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-g", "-O1", "-fPIE", "-Wall", "-Werror")
OURS, DRIVERS, NOBODYS = "liboverlap.so", "libcuda.so.1", "none"
NOT_SUPPORTED = "801"
POLICY = """policy: 1
name: entry_points
gpu: ["NVIDIA *"]
when: always
communication: {priority: highest, streams: {created_by: ["*"], priority: highest}}
compute:
  - {match: {kernel: leave}, shape: leave}
  - {match: {kernel: inside}, when: overlapping, shape: {blocks_per_sm: 1}}
  - {match: {kernel: "*"}, shape: {blocks_per_sm: 1}}
"""
SIZE = "dynamic_shared 115713"  # one block of k on a multiprocessor


@dataclass(frozen=True)
class Effect:
    """what: for the table. shown: what the driver has only with the library preloaded, and how often (0: at all);
    unsimulated: likewise where the simulated driver does not know the call. Of HIP: nodes: kernel nodes that are
    counted; refused: launches that the runtime refuses before it logs them."""

    what: str
    shown: Mapping[str, int] = field(default_factory=dict)
    unsimulated: Mapping[str, int] | None = None
    nodes: int = 0
    refused: int = 0

    def of(self, seen: Seen) -> Mapping[str, int]:
        return self.shown if seen.known or self.unsimulated is None else self.unsimulated


LAUNCH = Effect("dynamic size; priority of communication", {f"{SIZE} priority 0 cluster 1": 3, "priority -5": 1})
COOPERATIVE = Effect("priority of communication", {"priority -5": 1, SIZE: -1})
COUNTED = Effect("nothing; counted")
NODE = Effect(
    "dynamic size; priority of communication",
    {"node of 115713 bytes, priority 0": 1, "node of 0 bytes, priority -5": 1, "graph:": 0},
)
SET = Effect("dynamic size", {"node of 115713 bytes": 1})
EXEC_SET = Effect("dynamic size", {f'graph: kernel "k" blocks 1200 result 0 {SIZE}': 1})
SHOWN = Effect("the size that is shown is the one that the program set", {"node of 115713 bytes": 1})
SET_BACK = Effect("the node is set back first if it may not be shaped any more", {"node of 115713 bytes": 1})
FLAG = Effect(
    "a flag, so that the priority of communication counts",
    {'graph: kernel "ncclDevKernel" blocks 16 result 0 dynamic_shared 0 priority -5': 1},
)
UPDATE = Effect(
    "priorities that differ by what we have raised do not count",
    {'graph: kernel "ncclDevKernel" blocks 16 result 0 dynamic_shared 0 priority -5': 1},
)
STREAM = Effect("priority of streams that the policy's libraries create", {"stream of priority -5": 1})
KERNELS = Effect("nothing; the kernels are known from then on", {SIZE: 3})
END = Effect("nothing; what is known of the kernels is forgotten", {SIZE: 3})
LIMIT = Effect("the limit of dynamic memory stays as high as our sizes need", {"attribute 8 is 232448": 1, SIZE: 6})
OWN = Effect("limit and carve-out that are told are the program's own", {"8 is 232448": 1, "9 is 100": 1})
CACHE = Effect("our carve-out is taken back", {"attribute 9 is 100": 1})
ASKED = Effect("nothing, our limit and carve-out do not show; the kernel is left alone from then on", {SIZE: 3})
# What is ordered shows in launches that are shaped in overlap windows only: how many are.
CARRIED = Effect("nothing; what the stream knows goes with the event", {SIZE: 1})
SEEN = Effect("nothing; what the host has seen to be over is over", {SIZE: 2})
WAITS = Effect("nothing; the stream is behind what the event is behind", {SIZE: 2})
UNSEEN = Effect("nothing; the stream may be behind anything from then on", {SIZE: 1}, {SIZE: 2})
CAPTURES = Effect("nothing; no launch of a capture is beside what runs now", {SIZE: 2})
BEHIND_ALL = Effect("nothing; the stream is behind all that was captured", {SIZE: 1})
ANYTHING = Effect("nothing; who waits for the event may be behind anything", {SIZE: 1}, {SIZE: 2})
ON_LEGACY = Effect("nothing; on the legacy default stream it orders the blocking ones", {SIZE: 1})
ON_THREADS = Effect("nothing; on the default stream of the thread it orders no other", {SIZE: 2})
BY_HOST = Effect("nothing; what the host has waited for is over", {SIZE: 1}, {SIZE: 2})

EFFECTS = {
    "cuLaunchKernel(Ex)?(_ptsz)?": LAUNCH,
    "cuLaunchCooperativeKernel(_ptsz)?": COOPERATIVE,
    "cuFuncSetSharedSize": Effect("nothing; the size of the function's launches by `cuLaunch` and its like is known"),
    "cuLaunch|cuLaunchGrid(Async)?|cuLaunchCooperativeKernelMultiDevice": COUNTED,
    "cuInit": Effect("nothing; what is launched is expected to come this way"),
    "cuCtxCreate(_v[2-4])?|cuDevicePrimaryCtxRetain|cuGreenCtxCreate": Effect("nothing; the process has opened a GPU"),
    "cuGetProcAddress(_v2)?": Effect("the address that it hands out", {"a function of liboverlap.so": 0}),
    "cuStreamCreate(WithPriority)?|cuGreenCtxStreamCreate": STREAM,
    "cuStreamGet(Priority|Attribute)(_ptsz)?": Effect(
        "nothing; of a stream that is raised, what the program has left it"
    ),
    "cuStreamCopyAttributes(_ptsz)?": Effect("nothing; not our priority of a stream that is raised"),
    "cuStreamDestroy(_v2)?": Effect("nothing; the stream is forgotten"),
    "cuStreamSetAttribute(_ptsz)?": Effect("nothing; the priority is the program's own"),
    "cuGraphAdd(Kernel)?Node(_v2)?": NODE,
    "cuGraph(Kernel)?NodeSetParams(_v2)?": SET,
    "cuGraphExec(Kernel)?NodeSetParams(_v2)?": EXEC_SET,
    "cuGraphKernelNodeGetParams(_v2)?": SHOWN,
    "cuGraphKernelNode(Set|Copy)Attributes?": SET_BACK,
    "cuGraphAddDependencies_v2": Effect(
        "a node that may now begin before others have ended is set back", {"node of 115713 bytes": 2}
    ),
    "cuGraphInstantiate.*": FLAG,
    "cuGraphExecUpdate(_v2)?|cuGraphExecChildGraphNodeSetParams": UPDATE,
    "cuGraphExecGetFlags": Effect("our flag does not show"),
    "cuGraphExecDestroy": Effect("nothing; what is known of the executable graph is forgotten"),
    "cuGraphLaunch(_ptsz)?": COUNTED,
    "cu(Module|Library)(GetFunction|GetKernel|GetModule|EnumerateFunctions|EnumerateKernels)": KERNELS,
    "cuKernelGetFunction": KERNELS,
    "cu(Module|Library)Unload|cuCtxDestroy(_v2)?|cuCtxDetach|cuGreenCtxDestroy": END,
    "cuDevicePrimaryCtxRe(set|lease)(_v2)?": END,
    "cuCtxFromGreenCtx": Effect("nothing; its kernels end with the green context", {SIZE: 3}),
    "cu(Func|Kernel)SetAttribute": LIMIT,
    "cu(Func|Kernel)GetAttribute": OWN,
    "cu(Ctx|Func|Kernel)SetCacheConfig": CACHE,
    "cuOccupancy.*": ASKED,
    "cuEventCreate": Effect("nothing; what had its address is forgotten", {SIZE: 2}),
    "cuEventRecord(WithFlags)?(_ptsz)?": CARRIED,
    "cuEvent(Query|Synchronize|ElapsedTime)(_v2)?": SEEN,
    "cuEventDestroy(_v2)?": Effect("nothing; what the event knows is forgotten", {SIZE: 2}),
    "cuIpcGetEventHandle": Effect("nothing; who waits for the event may be behind anything", {SIZE: 2}),
    "cuIpcOpenEventHandle": Effect("nothing; likewise, once this process has given one away", {SIZE: 2}),
    "cuStreamWaitEvent(_ptsz)?": WAITS,
    "cuStream(Synchronize|Query)(_ptsz)?": SEEN,
    "cuStream(WaitValue(32|64)|BatchMemOp)(_v2)?(_ptsz)?": UNSEEN,
    "cuWaitExternalSemaphoresAsync(_ptsz)?": UNSEEN,
    "cuStreamBeginCapture(_v2|ToGraph)?(_ptsz)?|cuStreamEndCapture(_ptsz)?": CAPTURES,
    "cuStreamUpdateCaptureDependencies(_v2)?(_ptsz)?": BEHIND_ALL,
    "cuCtxSynchronize(_v2)?": BY_HOST,
    "cu(Green)?CtxRecordEvent": ANYTHING,
    "cu(Green)?CtxWaitEvent": WAITS,
    "cuGraphAddEventRecordNode|cuGraph(Exec)?EventRecordNodeSetEvent": ANYTHING,
    "cuGraphAdd(EventWait|ExternalSemaphoresWait|BatchMemOp)Node": UNSEEN,
    "cuGraphAddDependencies": Effect("nothing; what is being captured may be behind anything", {SIZE: 1}),
    r"cu(Mem|Graphics|LaunchHostFunc|Signal|StreamA|StreamWrite)\w*_ptsz": ON_THREADS,
    r"cu(Mem\w*Async|Graphics\w*|LaunchHostFunc|Signal|StreamA|StreamWrite)\w*(?<!_ptsz)": ON_LEGACY,
    r"cuMem(cpy|set)(?!\w*Async)\w*": BY_HOST,
}


@dataclass
class Seen:
    """What one row did in one process."""

    address: str = ""
    program: list[str] = field(default_factory=list)
    driver: list[str] = field(default_factory=list)
    counted: dict[str, int] = field(default_factory=dict)  # launches by route; HIP's program prints them

    @property
    def known(self) -> bool:
        """Whether the simulated driver implements the call."""
        return not any(line.split()[0] == NOT_SUPPORTED for line in self.program)


def rows() -> list[str]:
    return [row.name for row in driver_table.rows()]


def effect_of(row: str, effects: Mapping[str, Effect] = EFFECTS) -> Effect | None:
    """Return the effect whose pattern matches the row; None unless exactly one does."""
    found = [effect for pattern, effect in effects.items() if re.fullmatch(pattern, row)]
    return found[0] if len(found) == 1 else None


def asked_as() -> dict[str, str]:
    """Exported name -> what cuGetProcAddress is asked for."""
    text = (ROOT / "tools/simgpu/api.def").read_text(encoding="utf-8")
    found = {}
    for base, version, per_thread, symbol in re.findall(r"^PROC\((\w+), (\d+), (\d), (\w+)\)", text, re.M):
        found[symbol] = f"`{base}` {version}{', per thread' if per_thread == '1' else ''}"
    return found


def compiler() -> list[str]:
    return shlex.split(os.environ.get("CC", "cc"))


def build(folder: Path) -> tuple[Path, Path]:
    program, raw = folder / "entry-points", folder / "libraw.so"
    source = PROGRAMS / "entry_points.c"
    command = [*compiler(), *FLAGS, str(source), "-o", str(program), plan.SIMULATED_DRIVER, "-ldl"]
    subprocess.run(command, check=True)
    command = [*compiler(), "-shared", "-fPIC", str(PROGRAMS / "entry_points_raw.c"), "-o", str(raw), "-ldl"]
    subprocess.run(command, check=True)
    return program, raw


def settings(folder: Path, library: bool, text: str = POLICY, gpu: str = "h100") -> dict[str, str]:
    """As overlap-run would start it, with the library or without."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("OVERLAP_", "SIMGPU", "LD_"))}
    policy = folder / "policy.yaml"
    policy.write_text(text, encoding="ascii")
    made = plan.make(plan.Request(policy=str(policy)), clean).settings
    simulated = plan.make(plan.Request(policy="observe", simulate=gpu), clean).settings
    if not library:
        return environment(clean, simulated._replace(library=None))
    return environment(clean, simulated._replace(table=made.table))


def run(folder: Path, way: str, library: bool) -> dict[str, Seen]:
    program, raw = folder / "entry-points", folder / "libraw.so"
    log = folder / f"{way}-{library}.launches"
    env = {**settings(folder, library), "SIMGPU_LAUNCHES": str(log)}
    done = subprocess.run([program, way, raw], env=env, stdout=subprocess.PIPE, text=True, timeout=300, check=False)
    if done.returncode:
        raise SystemExit(f"entry_points: {way}: ended with {done.returncode}\n{done.stdout[-2000:]}")
    return read(done.stdout)


def read(text: str) -> dict[str, Seen]:
    """Return what the program printed, by row."""
    found: dict[str, Seen] = {}
    for line in text.splitlines():
        if line.startswith("== "):
            seen = found.setdefault(line[3:], Seen())
        elif line.startswith("address: "):
            seen.address = line[9:]
        elif line.startswith("driver:"):
            seen.driver.append(line[7:].strip())
        elif line.startswith("counted:"):
            words = line.split()[1:]
            seen.counted = {way: int(number) for way, number in zip(words[::2], words[1::2])}
        else:
            seen.program.append(line)
    return found


def mistakes(row: str, ours: Seen, bare: Seen, effect: Effect | None) -> list[str]:
    """What is not as it must be."""
    if effect is None:
        return ["EFFECTS does not say what is changed"]
    found = []
    if bare.address not in (DRIVERS, NOBODYS) or ours.address != (OURS if bare.address == DRIVERS else NOBODYS):
        found.append(f"the address is of {ours.address}, without us of {bare.address}")
    if ours.program != bare.program:
        found.append(f"the program sees {ours.program}, without us {bare.program}")
    if bare.address == NOBODYS:
        return found
    for text, count in effect.of(bare).items():
        number = sum(text in line for line in ours.driver)
        if any(text in line for line in bare.driver):
            count = -2 if text != "graph:" else count
        if (count == 0 and number == 0) or (count > 0 and number != count) or (count == -1 and number) or count == -2:
            found.append(f"the driver has `{text}` {number} times: {ours.driver}, without us {bare.driver}")
    if not effect.shown and ours.driver != bare.driver:
        found.append(f"the driver has {ours.driver}, without us {bare.driver}")
    left = [[line for line in seen.driver if '"leave"' in line] for seen in (ours, bare)]
    if left[0] != left[1]:
        found.append(f"what the policy leaves alone is launched as {left[0]}, without us {left[1]}")
    return found


def table(found: Mapping[str, Mapping[str, Seen]]) -> str:
    names = asked_as()
    made: list[tuple[str, ...]] = [("entry point", "symbol", "dlsym", "cuGetProcAddress", "what is changed")]
    for row in rows():
        effect = effect_of(row)
        cells = ["-" if found[way][row].address == NOBODYS else "yes" for way in WAYS]
        if cells[2] == "yes":
            cells[2] = names[row]
        made.append((row, *cells, effect.what if effect else "?"))
    return comma_separated(made)


def comma_separated(rows: Iterable[Iterable[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def measure() -> tuple[str, list[str]]:
    """The table, and everything that is wrong."""
    wrong, found = [], {}
    with tempfile.TemporaryDirectory(prefix="overlap-entry-") as scratch:
        folder = Path(scratch)
        build(folder)
        for way in WAYS:
            ours, bare = run(folder, way, True), run(folder, way, False)
            found[way] = ours
            for row in rows():
                said = mistakes(row, ours[row], bare[row], effect_of(row))
                wrong += [f"{row} by {way}: {mistake}" for mistake in said]
    return table(found), wrong


def main() -> int:
    parser = argparse.ArgumentParser(description="the table of the driver's entry points, from a run")
    parser.add_argument("--check", action="store_true", help="the committed file must be what this run finds")
    options = parser.parse_args()
    return finish(TABLE, *measure(), options.check)


def finish(file: Path, text: str, wrong: list[str], check: bool) -> int:
    """Says what is wrong; writes the table, or compares it."""
    for line in wrong:
        print(f"entry_points: {line}", file=sys.stderr)
    if not check:
        file.write_text(text, encoding="ascii")
    elif not file.exists() or file.read_text(encoding="ascii") != text:
        print(f"entry_points: {file} is not what this run found: run this without --check", file=sys.stderr)
        return 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
