"""The names of NVIDIA's runtime: launches are counted once, as the runtime's, and belong to whoever called it."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from interposing import BLOCKS, ONE, Build, Done, Runner, rule, same, smallest_size

from pyshim.report.collect import collect
from pyshim.start import plan
from tools.checks import check_exports

ROOT = Path(__file__).resolve().parents[2]
OURS = Path(plan.SIMULATED_DRIVER).parent
DEFINED = (ROOT / "shim" / "cuda" / "runtime.def").read_text(encoding="utf-8")
ROWS = re.findall(r"^RUNTIME\((\w+),", DEFINED, re.M)
CREATES = [row for row in ROWS if row.startswith("cudaStreamCreate")]
LAUNCHES = [row for row in ROWS if row not in CREATES]
SHAPED = [row for row in LAUNCHES if "Cooperative" not in row]
VERSIONS = (12, 13)
NOT_READY = 3  # cudaErrorInitializationError

Owners = Callable[..., "dict[str, int]"]


def host(build: Build, version: int = 13) -> Path:
    runtime = OURS / f"libcudart.so.{version}"
    return build(f"runtime-host{version}", "runtime_host.c", link=[runtime, plan.SIMULATED_DRIVER])


def caller(build: Build, name: str = "libcaller.so", version: int = 13, *flags: str) -> Path:
    """A library that is linked to the runtime, or only calls it (version 0)."""
    link = [OURS / f"libcudart.so.{version}"] if version else []
    return build.library(f"{version}/{name}", "runtime_caller.c", *flags, link=link)


def outer(build: Build, inner: Path) -> Path:
    """A library that lets another one call."""
    return build.library("libouter.so", "runtime_caller.c", f'-DTHROUGH="{inner}"', "-Wl,--allow-shlib-undefined")


def fake(build: Build, name: str, *flags: str) -> Path:
    return build.library(f"{name}/libcudart.so.13", "runtime_fake.c", *flags)


def with_fake(build: Build, runtime: Path) -> dict[str, Any]:
    """A program that finds this runtime."""
    program = build(f"host-{runtime.parent.name}", "runtime_host.c", "-DBARE", link=[runtime])
    return {"program": program, "env": {"LD_LIBRARY_PATH": str(runtime.parent), "OVERLAP_QUIET": "1"}}


def every(kernel: str = "k", blocks: int = 10, rows: list[str] = LAUNCHES) -> str:
    return " ".join(f"launch={row},{kernel},{blocks}" for row in rows)


@pytest.fixture
def owners(preloaded: Runner, tmp_path: Path) -> Owners:
    """Runs of which is told how many launches each library made."""

    def run(words: str, **more: Any) -> dict[str, int]:
        pages = tmp_path / "owners"
        pages.mkdir()
        done = preloaded(words, report=pages, **more)
        assert done.status == 0, done.stderr
        found: dict[str, int] = {}
        for row in collect(str(pages)).pages[0].rows:
            found[row.library] = found.get(row.library, 0) + row.launches
        return found

    return run


# ---- Every name is there, and is what programs are bound to


def test_every_name_is_exported_without_a_version() -> None:
    elf = check_exports.read(Path(plan.LIBRARY).read_bytes())
    found = {(symbol.name, symbol.version) for symbol in elf.symbols if symbol.defined and "cuda" in symbol.name}
    assert found == {(row, "") for row in ROWS}
    assert len(ROWS) == len(set(ROWS)) == len(re.findall(r"^RUNTIME\(", DEFINED, re.M)) > 10


@pytest.mark.parametrize("version", VERSIONS)
def test_every_name_is_one_of_the_runtimes_and_leads_to_ours(
    version: int, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """Bound by the loader, although the program asks for a version of the runtime's."""
    words = " ".join(f"where={row}" for row in ROWS)
    without, done = bare(words, program=host(build, version)), preloaded(words, program=host(build, version))
    for run, file in ((without, f"libcudart.so.{version}"), (done, Path(plan.LIBRARY).name)):
        assert [line for line in run.stdout.splitlines() if " is in " in line] == [
            f"{row} is in {file}" for row in ROWS
        ]


# ---- Counting


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("row", LAUNCHES)
def test_a_launch_is_counted_once(row: str, version: int, build: Build, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k repeat=3 launch={row},k,10 launch={row},k,20,2048"
    without, done = (run(words, program=host(build, version)) for run in (bare, preloaded))
    assert [launch["result"] for launch in without.launches] == [0] * 4
    assert {launch["entry"].endswith("_ptsz") for launch in without.launches} == {row.endswith("_ptsz")}
    same(done, without)
    assert done.totals["launches"] == 4
    assert sum(done.reasons.values()) == 4


@pytest.mark.parametrize("row", LAUNCHES)
def test_a_launch_is_decided_once(row: str, build: Build, bare: Runner, preloaded: Runner) -> None:
    """Although it passes two of our functions: one launch, one size, also when the answer is kept (the fourth)."""
    blocks = BLOCKS if row in SHAPED else 100
    words = f"ptx=k repeat=4 launch={row},k,{blocks} launch={row},k,{blocks},1024"
    without, done = (run(words, *policy, program=host(build)) for run, policy in ((bare, ()), (preloaded, (ONE,))))
    same(done, without, but=["dynamic_shared"])
    if row in SHAPED:
        assert done.sizes == [smallest_size(1)] * 5
        assert done.reasons == {"shaped": 5}
    else:
        assert done.sizes == without.sizes
        assert done.reasons == {"cooperative": 5}
    assert done.totals["launches"] == 5
    assert (done.totals["shaped"], done.totals["refused"]) == (5 * (row in SHAPED), 0)


def test_a_launch_by_the_driver_afterwards_is_the_drivers(build: Build, bare: Runner, preloaded: Runner) -> None:
    """The same kernel, grid and stream; first looked up, then from the cache."""
    words = "ptx=k " + " ".join(f"launch={row},k,10 symbol=k,10 dlsym=k,10" for row in LAUNCHES)
    words += f" repeat=9 launch={LAUNCHES[0]},k,10 repeat=7 symbol=k,10 repeat=5 dlsym=k,10"
    count = len(LAUNCHES)
    for policy in ("observe", ONE):
        without, done = bare(words, program=host(build)), preloaded(words, policy, program=host(build))
        same(done, without)  # one wave: nothing is shaped
        assert done.totals["launches"] == count + 9 + count + 7 + count + 5


@pytest.mark.parametrize("wrong", ["k,0", "-,10"])
@pytest.mark.parametrize("row", LAUNCHES)
def test_the_mark_is_taken_back_when_the_call_fails(
    row: str, wrong: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """Refused by the driver, or without a kernel."""
    words = f"ptx=k repeat=3 launch={row},{wrong} symbol=k,10 launch={row},{wrong} repeat=2 dlsym=k,10"
    without, done = (run(words, program=host(build)) for run in (bare, preloaded))
    assert not re.search(r"^launch: 0$", without.stdout, re.M)
    same(done, without)
    assert done.totals["launches"] == 3 + len([launch for launch in without.launches if launch["result"]])


def test_creating_a_stream_leaves_no_mark_either(build: Build, bare: Runner, preloaded: Runner) -> None:
    words = "ptx=k " + " ".join(f"create={row} symbol=k,10" for row in CREATES)
    without, done = (run(words, program=host(build)) for run in (bare, preloaded))
    same(done, without)
    assert done.totals["launches"] == len(CREATES)


def test_threads(build: Build, preloaded: Runner) -> None:
    """Whose thread is in the runtime is its own affair."""
    done = preloaded("ptx=k threads=8,200,k sync", program=host(build))
    assert done.stdout.splitlines() == ["ptx: 0", "threads: 0", "sync: 0"]
    assert done.totals["launches"] == 1600 + 4 + 1600  # four of which have no kernel


ASKS = {
    "default": ("RTLD_DEFAULT", "runtime"),
    "handle": ('dlopen("libcudart.so.13",RTLD_NOW|RTLD_NOLOAD)', "proc_address"),
}


@pytest.mark.parametrize("handle", ASKS)
def test_names_that_are_asked_for(handle: str, build: Build, bare: Runner, preloaded: Runner, owners: Owners) -> None:
    """In the global scope ours come first, as for who is bound. Whoever asks a runtime itself gets its own functions,
    and then it is the runtime that calls the driver."""
    expression, way = ASKS[handle]
    asks = caller(build, f"libasks-{handle}.so", 13, f"-DASKS={expression}")
    words = f"ptx=k by={asks} {every()}"
    without, done = (run(words, program=host(build)) for run in (bare, preloaded))
    same(done, without)
    assert done.totals["launches"] == len(LAUNCHES)
    owner = asks.name if way == "runtime" else "libcudart.so.13"
    assert owners(words, program=host(build)) == {owner: len(LAUNCHES)}


# ---- Whose launch it is


@pytest.mark.parametrize("version", VERSIONS)
def test_it_belongs_to_the_library_that_called_the_runtime(version: int, build: Build, owners: Owners) -> None:
    library = caller(build, "libcaller.so", version)
    made = owners(f"ptx=k by={library} {every()}", program=host(build, version))
    assert made == {"libcaller.so": len(LAUNCHES)}


def test_two_runtimes_at_once(build: Build, bare: Runner, preloaded: Runner, owners: Owners) -> None:
    """Each library is bound to its own."""
    callers = [caller(build, f"libcaller{version}.so", version) for version in VERSIONS]
    turns = " ".join(f"by={one} {every()}" for one in (*callers, *callers))
    without, done = (run(f"ptx=k {turns}", program=host(build)) for run in (bare, preloaded))
    same(done, without)
    assert done.totals["launches"] == 4 * len(LAUNCHES)
    assert owners(f"ptx=k {turns}", program=host(build)) == {one.name: 2 * len(LAUNCHES) for one in callers}


def test_a_library_that_lets_another_one_launch_is_not_the_caller(build: Build, owners: Owners) -> None:
    """Who called the first function that is ours is who launches."""
    inner = caller(build)
    made = owners(f"ptx=k by={outer(build, inner)} {every()}", program=host(build))
    assert made == {"libcaller.so": len(LAUNCHES)}


def test_the_programs_own_launches_are_its_own(build: Build, owners: Owners) -> None:
    """It is called by its name, also after a library has launched."""
    words = f"ptx=k {every()} by={caller(build)} launch=cudaLaunchKernel,k,10 by=main {every()} symbol=k,10"
    found = owners(words, program=host(build))
    assert found == {"libcaller.so": 1, host(build).name: 2 * len(LAUNCHES) + 1}


def test_a_rule_for_a_library_is_for_what_that_library_launches(build: Build, preloaded: Runner) -> None:
    """The same kernel in turn from two libraries and the program; and by the driver, which the program calls."""
    library, other = caller(build), caller(build, "libother.so")
    callers = [str(library), "main", str(other)]
    turns = " ".join(f"by={one} {every('k', BLOCKS, SHAPED)}" for one in callers)
    words = f"ptx=k {turns} {turns} {turns} symbol=k,{BLOCKS}"
    policy = rule("{blocks_per_sm: 1}", match='kernel: "*", library: "libcaller*"')
    done = preloaded(words, policy, program=host(build))
    size, count = smallest_size(1), len(SHAPED)
    assert done.sizes == ([size] * count + [0] * 2 * count) * 3 + [0]
    assert done.reasons == {"shaped": 3 * count, "no_rule": 6 * count + 1}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("row", CREATES)
def test_streams_that_a_library_creates(row: str, version: int, build: Build, bare: Runner, preloaded: Runner) -> None:
    """Only that library's: neither the program's, nor another library's, nor what is created afterwards."""
    policy = rule("leave", more='streams: {raise: off, created_by: ["libcaller*"]}')
    callers = [caller(build, name, version) for name in ("libcaller.so", "libother.so")]
    words = f"ptx=k create={row} by={callers[0]} create={row},-2 by={callers[1]} create={row},-1 by=main create={row} "
    words += " ".join(f"of={i} launch=cudaLaunchKernel,k,10,0,{i}" for i in range(1, 5))
    without, done = bare(words, program=host(build, version)), preloaded(words, policy, program=host(build, version))
    asked = [0, -2, -1, 0] if "Priority" in row else [0] * 4
    assert without.priorities == priorities(without) == priorities(done) == asked
    assert done.priorities == [0, -5, asked[2], 0]
    assert done.totals["streams_created_raised"] == 1


def priorities(done: Done) -> list[int]:
    return [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("priority")]


# ---- Calls inside calls


@pytest.mark.parametrize(
    "first",
    [True, False],
)
def test_another_library_that_stands_in_front_of_the_runtime(
    first: bool, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """A profiler before ours or behind it, one of whose functions calls another by name."""
    profiler = build.library("libnextprofiler.so", "runtime_fake.c", "-DNEXT", "-DNESTED")
    words = f"ptx=k {every()} symbol=k,10 create=cudaStreamCreate"
    preload = f"{profiler}:{{}}" if first else f"{{}}:{profiler}"
    without = bare(words, program=host(build), env={"LD_PRELOAD": str(profiler)})
    done = preloaded(words, preload=preload, program=host(build))
    assert without.stderr.count("profiler: ") == len(LAUNCHES) + 1
    same(done, without)
    assert done.totals["launches"] == len(LAUNCHES) + 1


def test_a_call_inside_a_call_belongs_to_the_outer_caller(build: Build, preloaded: Runner) -> None:
    """The profiler calls cudaLaunchKernelExC, which is ours again: it is not the profiler that launches."""
    profiler = build.library("libnextprofiler.so", "runtime_fake.c", "-DNEXT", "-DNESTED")
    policy = rule("{blocks_per_sm: 1}", match='kernel: "*", library: "libcaller*"')
    words = f"ptx=k by={caller(build, version=0)} repeat=3 launch=cudaLaunchKernel,k,{BLOCKS}"
    done = preloaded(words, policy, preload=f"{{}}:{profiler}", program=host(build))
    assert Counter(done.stderr.splitlines())["profiler: cudaLaunchKernelExC"] == 3
    assert done.sizes == [smallest_size(1)] * 3
    assert done.reasons == {"shaped": 3}


# ---- Runtimes and programs that are not as usual


def test_a_runtime_whose_driver_nobody_sees(build: Build, bare: Runner, preloaded: Runner) -> None:
    """It is said at least that there were launches, of which nothing is known. Streams are none."""
    where = with_fake(build, fake(build, "unseen-driver"))
    words = f"{every('-')} create=cudaStreamCreate create=cudaStreamCreateWithPriority,-1"
    without, done = bare(words, **where), preloaded(words, ONE, **where)
    assert without.stdout == "launch: 0\n" * len(LAUNCHES) + "create: 0\n" * 2
    same(done, without)
    assert done.totals["launches"] == len(LAUNCHES)
    assert done.reasons == {"unknown_footprint": len(LAUNCHES)}


def test_what_such_a_runtime_refuses_is_no_launch(build: Build, bare: Runner, preloaded: Runner) -> None:
    where = with_fake(build, fake(build, "refusing", "-DANSWER=999"))
    without, done = bare(every("-"), **where), preloaded(every("-"), **where)
    assert without.stdout == "launch: 999\n" * len(LAUNCHES)
    same(done, without)
    assert done.report["processes"] == []


def test_a_runtime_whose_driver_nobody_sees_calls_itself(build: Build, bare: Runner, preloaded: Runner) -> None:
    where = with_fake(build, fake(build, "nested", "-DNESTED"))
    words = "repeat=3 launch=cudaLaunchKernel,-,10 launch=cudaLaunchKernelExC,-,10"
    done = preloaded(words, **where)
    same(done, bare(words, **where))
    assert done.totals["launches"] == 4


@pytest.mark.parametrize("driver", [True, False])
def test_a_program_without_a_runtime(driver: bool, build: Build, bare: Runner, preloaded: Runner) -> None:
    """It must not look as if there was one. Weak references lead to ours, which say that nothing is there."""
    program = build("no-runtime", "no_runtime.c", "-Wno-address")
    words = [plan.SIMULATED_DRIVER] if driver else []
    without, done = bare(words, program=program), preloaded(words, program=program)
    count = len(ROWS) + driver
    # Which object the text of dlerror begins with is the loader's business.
    looked_up, seen = ([re.sub(r" /\S+:", "", line) for line in run.stdout.splitlines()] for run in (without, done))
    assert looked_up[driver:] == [f"{row} 0 undefined symbol: {row}" for row in ROWS]
    assert seen[:count] == looked_up
    assert seen[count:-1] == [f"{row} is linked" for row in ROWS]
    assert seen[-1] == " ".join([str(NOT_READY)] * len(ROWS) + ["0"])
    assert (done.status, done.stderr, done.report["processes"]) == (0, "", [])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_library_that_is_switched_off_passes_everything_through(
    version: int, build: Build, bare: Runner, preloaded: Runner
) -> None:
    words = (
        f"ptx=k {every('k', 100)} by={caller(build, version=version)} {every('k', 100)} launch=cudaLaunchKernel,k,0 "
    )
    words += " ".join(f"create={row},-1" for row in CREATES) + " of=1 of=2 of=3 symbol=k,10 sync"
    off = {"OVERLAP_RUN": "off"}
    without = bare(words, program=host(build, version))
    done = preloaded(words, ONE, program=host(build, version), env=off)
    same(done, without)
    assert done.report["processes"] == []


def test_the_simulated_runtimes_are_bound_by_version(simulated: Mapping[str, str], build: Build) -> None:
    """Else nothing above would say that versioned references are bound to names without one."""
    for version in VERSIONS:
        elf = check_exports.read(host(build, version).read_bytes())
        asked = {symbol.name: symbol.version for symbol in elf.symbols if not symbol.defined}
        assert {asked[row] for row in ROWS} == {f"libcudart.so.{version}"}
    assert subprocess.run([host(build)], env=dict(simulated), check=False).returncode == 0
