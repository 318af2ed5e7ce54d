"""The table of HIP's entry points, as runs on simulated GPUs find it: docs/data/entry-points-hip.csv.

    python -m tools.generate.hip_entry_points [--check]

Every row of HIP's driver.def is called in a real process, by every route that a version of the runtime has, with the
library and without. What the program sees must be the same; what the runtime gets must differ as EFFECTS says and in
nothing else; every launch must be counted once, under its route. --check: the file must be what this run found. Exits 1
and says what is wrong; the program is tests/programs/hip_entry_points.c.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from pyshim.launch import plan
from tools.generate import driver_table, entry_points
from tools.generate.entry_points import FLAGS, NOBODYS, OURS, Effect, Seen
from tools.simgpu.hip import code_object

ROOT = Path(__file__).resolve().parents[2]

HIP = ROOT / "shim/vendor/hip"
TABLE = entry_points.TABLE.with_name("entry-points-hip.csv")
PROGRAMS = ROOT / "tests/programs"
NAMES = {"5.7": "5", "6.4": "6", "7.2": "7"}
# A route, and since when there is one. Calls by the table are made by symbol.
SINCE = {"symbol": 5, "dlsym": 5, "proc_address": 6, "driver_entry": 7, "table": 6}
COUNTED = {"driver_entry": "proc_address", "table": "dispatch_table"}
POLICY = """policy: 1
name: hip_entry_points
gpu: ["AMD *"]
when: always
communication:
  priority: highest
  streams: {created_by: ["hip-entry-points*"], priority: highest}
  reserve_cus: 8
compute:
  - {match: {kernel: leave}, shape: leave}
  - {match: {kernel: inside}, when: overlapping, shape: {blocks_per_sm: 1}}
  - {match: {kernel: "*"}, shape: {blocks_per_sm: 1}}
"""
SIZE = "dynamic_shared 32769"  # one workgroup on a compute unit
RAISED, FEWER = "stream of priority -1", "mask 00000003"


LAUNCH = Effect("dynamic size", {SIZE: 3})
ALONE = Effect("nothing; counted")
KERNELS = Effect("nothing; the kernels are known from then on", {SIZE: 3})
END = Effect("nothing; what is known of the kernels is forgotten", {SIZE: 6})
ASKED = Effect("nothing; the kernel is left alone from then on", {SIZE: 3})
STREAM = Effect("priority of streams that the policy's libraries create", {RAISED: 1})
NODE = Effect("dynamic size", {SIZE: 2}, nodes=4)
SET = Effect("dynamic size", {SIZE: 2}, nodes=1)
CARRIED = Effect("nothing; what the stream knows goes with the event", {SIZE: 1})
SEEN = Effect("nothing; what the host has seen to be over is over", {SIZE: 2})
WAITS = Effect("nothing; the stream is behind what the event is behind", {SIZE: 2})
UNSEEN = Effect("nothing; the stream may be behind anything from then on", {SIZE: 1}, {SIZE: 2})
CAPTURES = Effect("nothing; no launch of a capture is beside what runs now", {SIZE: 4})
BEHIND_ALL = Effect("nothing; the stream is behind all that was captured", {SIZE: 1})
ANYTHING = Effect("nothing; who waits for the event may be behind anything", {SIZE: 1}, {SIZE: 2})
ON_DEVICES = Effect("nothing; on the default stream of the device it orders the blocking ones", {SIZE: 1})
ON_THREADS = Effect("nothing; on the default stream of the thread it orders no other", {SIZE: 2})
BY_HOST = Effect("nothing; what the host has waited for is over", {SIZE: 1}, {SIZE: 2})

EFFECTS = {
    r"(_Z24)?hip(Ext|Hcc)?(Module)?LaunchKernel(_spt|P18.*)?": LAUNCH,
    "hipLaunchKernelExC|hipDrvLaunchKernelEx": Effect("dynamic size", {SIZE: 3}, refused=1),
    "hip(Module)?LaunchCooperativeKernel(_spt)?|hip.*MultiDevice": ALONE,
    "hipLaunchByPtr": Effect("dynamic size, where it reaches hipModuleLaunchKernel", {SIZE: 2}),
    "hipInit|hipGetDeviceCount": Effect("nothing; what is launched is expected to come this way"),
    "hipSetDevice|hipMalloc": Effect("nothing; the process has opened a GPU"),
    "hipGetProcAddress": Effect("the address that it hands out", {f"a function of {OURS}": 1}),
    "hipGetDriverEntryPoint(_spt)?": Effect("the address that it hands out", {f"a function of {OURS}": 2}),
    "hipStreamCreate(WithFlags|WithPriority)?": STREAM,
    "hipExtStreamCreateWithCUMask": Effect("fewer compute units, where the policy reserves some", {FEWER: 1}),
    "hipStreamGetPriority(_spt)?": Effect("nothing; of a raised stream, the program's"),
    "hipStreamDestroy": Effect("nothing; the stream is forgotten"),
    "hipModule(Load(Data(Ex)?|FatBinary)?|GetFunction)": KERNELS,
    "hipLibraryGetKernel": Effect("nothing; the kernel is left alone: its accumulation registers are not known"),
    "hipModuleUnload|hipDeviceReset": END,
    "__hipUnregisterFatBinary": Effect(END.what, {SIZE: 6}, refused=1),
    "hipLibraryUnload": Effect("nothing; what is known of the kernels is forgotten"),
    "hipGetFuncBySymbol": Effect("nothing; both are the same kernel from then on", {SIZE: 6}),
    "hip(Module)?Occupancy.*": ASKED,
    "hipGraphAdd(Kernel)?Node": NODE,
    "hipGraph(Kernel)?NodeSetParams": SET,
    "hipGraphExec(Kernel)?NodeSetParams": SET,
    "hipGraphKernelNodeGetParams": Effect("the size that is shown is the one that was set", {SIZE: 2}, nodes=1),
    "hipGraphKernelNodeSetAttribute": Effect("a node that becomes cooperative is set back first", {SIZE: 1}, nodes=1),
    "hipGraphKernelNodeCopyAttributes": Effect("a node that becomes cooperative is set back first", {SIZE: 1}, nodes=2),
    "hipGraphInstantiate(With.*)?": Effect("nothing; what the graph holds is noted", {SIZE: 2}, nodes=2),
    "hipGraphLaunch(_spt)?": ALONE,
    "hipGraphExecDestroy": Effect("nothing; what is known of the executable graph is forgotten"),
    "hipEventCreate(WithFlags)?": Effect("nothing; what had its address is forgotten", {SIZE: 2}),
    "hipEventRecord(WithFlags|_spt)?": CARRIED,
    "hipEvent(Query|Synchronize|ElapsedTime)": SEEN,
    "hipEventDestroy": Effect("nothing; what the event knows is forgotten", {SIZE: 2}),
    "hipIpcGetEventHandle": Effect("nothing; who waits for the event may be behind anything", {SIZE: 2}),
    "hipIpcOpenEventHandle": Effect("nothing; likewise, once this process has given one away", {SIZE: 2}),
    "hipStreamWaitEvent(_spt)?": WAITS,
    "hipStream(Synchronize|Query)(_spt)?": SEEN,
    "hipStream(WaitValue(32|64)|BatchMemOp)|hipWaitExternalSemaphoresAsync": UNSEEN,
    "hipStreamBeginCapture(ToGraph|_spt)?": CAPTURES,
    "hipStreamEndCapture(_spt)?": Effect("nothing; no launch of a capture is beside what runs now", {SIZE: 2}),
    "hipStreamUpdateCaptureDependencies": BEHIND_ALL,
    "hip(Device|Ctx)Synchronize": BY_HOST,
    "hipGraphAddEventRecordNode|hipGraph(Exec)?EventRecordNodeSetEvent": ANYTHING,
    "hipGraphAdd(EventWait|ExternalSemaphoresWait|BatchMemOp)Node": UNSEEN,
    "hipGraphAddDependencies": Effect("nothing; what is being captured may be behind anything", {SIZE: 1}),
    r"hip(Mem\w*Async|LaunchHostFunc|StreamAddCallback)_spt": ON_THREADS,
    r"hip(Mem\w*Async(_v2)?|Malloc\w*Async|FreeAsync|Drv\w*Async|Graphics\w*|LaunchHostFunc|Signal\w*|Stream(A|Write)\w*)"
    r"(?<!_spt)": ON_DEVICES,
    r"hip(Drv)?Mem(cpy|set)(?!\w*Async)\w*": BY_HOST,
}


class Run(NamedTuple):
    version: str
    way: str


def rows() -> list[str]:
    return [row.name for row in driver_table.rows(HIP / "driver.def")]


def exported(version: str) -> set[str]:
    text = (ROOT / f"tools/simgpu/hip/symbols-{version}.txt").read_text(encoding="ascii")
    return {line.split("@")[0] for line in text.split()}


def runs() -> list[Run]:
    return [Run(version, way) for version in NAMES for way, since in SINCE.items() if int(NAMES[version]) >= since]


def effect_of(row: str) -> Effect | None:
    return entry_points.effect_of(row, EFFECTS)


def runtime(version: str) -> Path:
    return Path(plan.SIMULATED_RUNTIMES[int(NAMES[version]) - 5])


def build(folder: Path) -> None:
    """A program for each version, linked to its runtime; what it loads; and who hands out tables."""
    compiler = entry_points.compiler()
    kernels = [code_object.Kernel(name, arguments=[8, 4]) for name in ("k", "leave", "inside", "ncclDevKernel")]
    (folder / "code").write_bytes(code_object.code_object(kernels, variables={"variable": bytes(64)}))
    libraries = {"libhip_scene.so": "hip_scene.c", "librocprofiler-register.so.0": "hip_register.c"}
    for name, source in libraries.items():
        command = [*compiler, "-shared", "-fPIC", str(PROGRAMS / source), "-o", str(folder / name)]
        subprocess.run([*command, f"-Wl,-soname,{name}", "-ldl"], check=True)
    for version in NAMES:
        listed = folder / f"rows-{version}.h"
        there = exported(version)
        listed.write_text("".join(f"ROW({row})\n" for row in rows() if row in there), encoding="ascii")
        command = [*compiler, *FLAGS, f'-DROWS="{listed}"', f'-DRUNTIME="{runtime(version).name}"']
        command += [str(PROGRAMS / "hip_entry_points.c"), "-o", str(folder / f"hip-entry-points-{version}")]
        subprocess.run([*command, str(runtime(version)), "-ldl"], check=True)


def run(folder: Path, settings: Mapping[str, str], one: Run, library: bool) -> dict[str, Seen]:
    base = folder / f"{one.version}-{one.way}-{library}"
    base.mkdir()
    env = dict(settings)
    env["LD_LIBRARY_PATH"] = f"{runtime(one.version).parent}:{folder}"
    env["SIMGPU_MULTIPROCESSORS"] = "10"
    env["SIMGPU_LAUNCHES"] = str(base / "launches")
    if library:
        (base / "report").mkdir()
        env |= {"OVERLAP_REPORT": str(base / "report"), "OVERLAP_RUN_ID": "0123456789abcdef"}
    if one.way == "table":
        env["SIMGPU_HIP_TABLE"] = "register"
    way = "symbol" if one.way == "table" else one.way
    command = [str(folder / f"hip-entry-points-{one.version}"), way, str(folder / "libhip_scene.so")]
    done = subprocess.run(
        [*command, str(folder / "code")],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"hip_entry_points: {shlex.join(one)}: ended with {done.returncode}\n{done.stdout[-2000:]}")
    return entry_points.read(done.stdout)


def unchanged(ours: str, bare: str) -> bool:
    """The same, but for what a policy may change."""
    for text in (SIZE, RAISED, FEWER, f"a function of {OURS}"):
        pattern = {SIZE: r"dynamic_shared \d+", RAISED: r"stream of priority -?\d+"}.get(text, text.split()[0] + " .*")
        if text in ours and re.sub(pattern, text, bare, count=1) == ours:
            return True
    return ours == bare


def mistakes(row: str, one: Run, ours: Seen, bare: Seen, effect: Effect | None) -> list[str]:
    """What is not as it must be."""
    if effect is None:
        return ["EFFECTS does not say what is changed"]
    found = []
    real = runtime(one.version).name
    if bare.address not in (real, NOBODYS) or ours.address != (OURS if bare.address == real else NOBODYS):
        found.append(f"the address is of {ours.address}, without us of {bare.address}")
    if ours.program != bare.program:
        found.append(f"the program sees {ours.program}, without us {bare.program}")
    if bare.address == NOBODYS:
        return found
    launched = [[line for line in seen.driver if not line.startswith("node:")] for seen in (ours, bare)]
    if len(launched[0]) != len(launched[1]) or not all(map(unchanged, *launched)):
        found.append(f"the runtime has {launched[0]}, without us {launched[1]}")
    shown = effect.of(bare)
    if one.way == "table" and not bare.known:  # simulated runtimes do not pass these by their table
        return found + miscounted(row, one, ours, bare, effect)
    for text in (SIZE, RAISED, FEWER, f"a function of {OURS}"):
        number = sum(text in line for line in ours.driver)
        if number != shown.get(text, 0):
            found.append(f"the runtime has `{text}` {number} times and not {shown.get(text, 0)}: {ours.driver}")
    return found + miscounted(row, one, ours, bare, effect)


def miscounted(row: str, one: Run, ours: Seen, bare: Seen, effect: Effect) -> list[str]:
    """Every launch once, and all of a way that may be; those of graphs apart."""
    table = one.way == "table" and not row.startswith("_Z24")
    symbol = "dispatch_table" if table else "symbol"
    wanted = COUNTED.get(one.way, one.way) if re.search(r"Launch.*Kernel|MultiDevice", row) else symbol
    wanted = symbol if one.way == "table" else wanted
    made = sum(not line.startswith(("graph:", "node:")) and line.startswith("kernel") for line in bare.driver)
    made += effect.refused
    counted = dict(ours.counted)
    counted.pop("graph_launches", None)
    nodes = counted.pop("graph_node", 0)
    ours_only = {way: number for way, number in counted.items() if number}
    found = []
    if row.startswith("hipGetDriverEntryPoint") and one.way != "table":  # makes a launch by what it got
        wanted = "proc_address"
    if ours_only != ({wanted: made} if made else {}):
        found.append(f"{made} launches by {wanted} are counted as {ours_only}")
    if effect.nodes and nodes != effect.nodes:
        found.append(f"{effect.nodes} kernel nodes are counted as {nodes}")
    return found


def table(found: Mapping[Run, Mapping[str, Seen]]) -> str:
    ways = {"symbol": "symbol", "dlsym": "dlsym", "proc_address": "hipGetProcAddress"}
    ways |= {"driver_entry": "hipGetDriverEntryPoint", "table": "dispatch table"}
    in_table = set(re.findall(r"^TABLE\((\w+),", (HIP / "dispatch_table.def").read_text(encoding="ascii"), re.M))
    made = [("entry point", *ways.values(), "what is changed")]
    for row in rows():
        effect = effect_of(row)
        cells = []
        for way in ways:
            there = [run.version for run in found if run.way == way and found[run][row].address != NOBODYS]
            cells.append(" ".join(there) if there and (way != "table" or row in in_table) else "-")
        made.append((row, *cells, effect.what if effect else "?"))
    return entry_points.comma_separated(made)


def measure() -> tuple[str, list[str]]:
    """The table, and everything that is wrong."""
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="overlap-entry-") as scratch:
        folder = Path(scratch)
        build(folder)
        asked = [(one, library) for one in runs() for library in (True, False)]
        settings = [entry_points.settings(folder, library, POLICY, "mi250x") for library in (False, True)]
        with ThreadPoolExecutor(2) as pool:
            answers = dict(zip(asked, pool.map(lambda each: run(folder, settings[each[1]], *each), asked)))
    for one in runs():
        ours, bare = answers[one, True], answers[one, False]
        for row in rows():
            said = mistakes(row, one, ours[row], bare[row], effect_of(row))
            wrong += [f"{row} by {one.way} with {one.version}: {mistake}" for mistake in said]
    return table({one: answers[one, True] for one in runs()}), wrong


def main() -> int:
    parser = argparse.ArgumentParser(description="the table of HIP's entry points, from runs")
    parser.add_argument("--check", action="store_true", help="the committed file must be what these runs find")
    options = parser.parse_args()
    text, wrong = measure()
    return entry_points.finish(TABLE, text, wrong, options.check)


if __name__ == "__main__":
    sys.exit(main())
