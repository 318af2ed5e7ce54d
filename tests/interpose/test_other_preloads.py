"""Beside other preloaded libraries, sanitizers and unusual programs: nobody notices us."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from interposing import BLOCKS, NCCL, Build, Runner, glibc, rule, same, smallest_size

from pyshim.start import plan

WORDS = f"ptx=k,{NCCL} repeat=3 launch=k,{BLOCKS},256,0 ex=k,{BLOCKS},256,0 launch={NCCL},16,256,0"
RAISED = rule("{blocks_per_sm: 1}", more="streams: {raise: auto}")


@pytest.mark.plain("brings a sanitizer of its own", sanitized=True)
@pytest.mark.parametrize("way", ["symbol", "dlsym", "proc_address_v2"])
@pytest.mark.parametrize("sanitizer", ["address", "thread"])
def test_sanitized_programs(sanitizer: str, way: str, build: Build, bare: Runner, preloaded: Runner) -> None:
    name = f"lib{sanitizer[0]}san.so"
    command = [*shlex.split(os.environ.get("CC", "cc")), f"-print-file-name={name}"]
    runtime = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    if not runtime.startswith("/"):
        pytest.skip(f"the compiler has no {name}, which gcc has: apt-get install gcc libc6-dev")
    macro, link = {
        "symbol": ("LINKED", [plan.SIMULATED_DRIVER]),
        "dlsym": ("DLSYM", []),
        "proc_address_v2": ("PROC2", []),
    }[way]
    program = build(f"client-{sanitizer}-{way}", "client.c", f"-DWAY_{macro}", f"-fsanitize={sanitizer}", link=link)
    env = {"ASAN_OPTIONS": "detect_leaks=0"}  # the driver's, which lives as long as the process
    wrapper = (
        ["-R", str(program)] if sanitizer == "thread" and shutil.which("setarch") else []
    )  # room for its shadow memory
    words = [*wrapper, *WORDS.split()]
    without = bare(words, program="setarch" if wrapper else program, env=env)
    if without.status and "unexpected memory mapping" in without.stderr:
        pytest.skip("the thread sanitizer does not run on this kernel")
    assert without.status == 0, without.stderr
    done = preloaded(
        words, RAISED, program="setarch" if wrapper else program, env=env, preload=f"{os.path.realpath(runtime)}:{{}}"
    )
    same(done, without, but=["dynamic_shared", "priority", "entry"])
    assert done.totals["launches"] == 5
    assert done.totals["shaped"] == 4


@pytest.mark.parametrize("order", ["{{}}:{other}", "{other}:{{}}"])
@pytest.mark.parametrize("way", ["symbol", "dlsym", "proc_address_v2"])
def test_beside_an_allocator_that_asks_dlsym_while_it_starts(
    order: str, way: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    other = build.library("libstuballoc.so", "malloc_stub.c", "-fno-builtin")
    without = bare(WORDS, way, env={"LD_PRELOAD": str(other)})
    assert without.status == 0, without.stdout
    assert f"{int(glibc() < (2, 34))} allocations while" in without.stdout
    done = preloaded(WORDS, RAISED, way, preload=order.format(other=other))
    same(done, without, but=["dynamic_shared", "priority", "entry"])
    assert done.totals["launches"] == 5


@pytest.mark.parametrize("way", ["symbol", "dlsym", "proc_address", "proc_address_v2"])
def test_two_copies_of_the_library_count_a_launch_once_and_inflate_once(
    way: str, bare: Runner, preloaded: Runner, tmp_path: Path
) -> None:
    """As where one comes from a module and one from a container: sizes are the larger, not the sum."""
    copy = tmp_path / "libcopy.so"
    shutil.copy(plan.LIBRARY, copy)
    without, done = bare(WORDS, way), preloaded(WORDS, RAISED, way, preload=f"{{}}:{copy}")
    same(done, without, but=["dynamic_shared", "priority", "entry"])
    assert done.sizes == [smallest_size(1)] * 4 + [0]
    # No launch twice in one page; a copy that the other one stands in front of may see fewer.
    assert max(process["launches"] for process in done.report["processes"]) == 5


def test_the_same_library_named_twice_is_one(bare: Runner, preloaded: Runner) -> None:
    done = preloaded(WORDS, RAISED, preload="{0}:{0}")
    same(done, bare(WORDS), but=["dynamic_shared", "priority", "entry"])
    assert [process["launches"] for process in done.report["processes"]] == [5]


@pytest.mark.plain("a sanitizer takes more than 16 KiB of stack", sanitized=True)
def test_the_first_launches_from_a_thread_with_the_smallest_stack(
    build: Build, bare: Runner, preloaded: Runner
) -> None:
    stub = build.library("stub/libcuda.so.1", "stub_driver.c")
    program = build("small-stack", "small_stack.c", "-DSTACK=16384", link=[stub])
    env = {"LD_LIBRARY_PATH": str(stub.parent)}
    without, done = bare(program=program, env=env), preloaded(program=program, policy=RAISED, env=env)
    assert without.stdout == "bad: 0, largest size: 0, extended: 0\n"
    assert done.status == 0
    assert done.stdout == f"bad: 0, largest size: {smallest_size(1)}, extended: 0\n"
    assert done.totals["launches"] == 20


@pytest.mark.plain("the counters of lines are written into files", coverage=True)
@pytest.mark.parametrize("number", [3, 0])
@pytest.mark.parametrize("way", ["symbol", "dlsym"])
def test_no_file_may_be_opened_any_more(way: str, number: int, bare: Runner, preloaded: Runner) -> None:
    """The driver is opened by the program before that; all that is lost is the page."""
    words = f"before:nofile={number} {WORDS}" if way == "symbol" else WORDS
    env = {"SIMGPU_LAUNCHES": ""}
    without, done = bare(words, way, env=env), preloaded(words, RAISED, way, env=env)
    assert (done.status, done.stdout) == (without.status, without.stdout)
    said = way == "symbol" and number > 0  # with none at all poll(2) does not work, and no line is risked
    assert done.stderr.count("\n") == said, done.stderr
    assert ("no statistics in " in done.stderr) == said


def test_sixteen_threads_launch_while_modules_come_and_go(build: Build, bare: Runner, preloaded: Runner) -> None:
    program = build("stress", "stress.c", link=[plan.SIMULATED_DRIVER])
    without = bare(program=program)
    assert without.stdout == "120\n" * 16
    done = preloaded(program=program, policy=rule("{blocks_per_sm: 1}", match='kernel: "shape*"'))
    assert (done.status, done.stdout, done.stderr) == (0, without.stdout, "")
    assert done.totals["launches"] == len(done.launches) == 16 * 120
    size = smallest_size(1)
    for launch in done.launches:
        wanted = size if launch["kernel"].startswith("shape") and launch["blocks"] > 1056 else 0
        assert (launch["result"], launch["dynamic_shared"]) == (0, wanted), launch
    assert done.totals["shaped"] == 16 * 60 // 2
    assert done.totals["refused"] == 0
