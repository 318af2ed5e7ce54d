"""Many kernels, sizes and threads: what a launch costs stays what it costs with few. tests/programs/many.c."""

from __future__ import annotations

import errno
import re
from pathlib import Path
from typing import Any

import pytest
from interposing import ONE, Build, Runner, rule

from pyshim import _native

WINDOWS = rule("{blocks_per_sm: 1}", when="overlapping", more="streams: {raise: auto}")


@pytest.fixture
def many(build: Build) -> dict[str, Any]:
    stub = build.library("many/libcuda.so.1", "many_driver.c", "-fvisibility=hidden", "-Wl,-Bsymbolic")
    return {"program": build("many-program", "many.c", link=[stub]), "env": {"LD_LIBRARY_PATH": str(stub.parent)}}


def said(stdout: str) -> dict[str, int]:
    return {name: int(value) for name, value in re.findall(r"(\w+): (\d+)", stdout)}


@pytest.mark.parametrize("policy", [ONE, WINDOWS, "observe"], ids=["always", "windows", "observe"])
@pytest.mark.parametrize(("kernels", "sizes"), [(1, 64), (1, 1000), (40, 400), (20_000, 1), (50_000, 1)])
def test_no_launch_is_decided_twice(
    kernels: int, sizes: int, policy: str, many: dict[str, Any], preloaded: Runner
) -> None:
    done = preloaded([str(kernels), str(sizes), "1"], policy, **many)
    assert done.status == 0, done.stderr
    made = said(done.stdout)
    assert made["asked"] == 0, "decisions were made anew"
    assert done.totals["launches"] == made["launches"] == kernels * sizes * 4 * 3


@pytest.mark.parametrize("end", [[], ["killed"]], ids=["ends", "killed"])
@pytest.mark.parametrize("threads", [3, 4, 5, 16, 17, 250])
def test_every_thread_counts_on_its_own(
    threads: int, end: list[str], many: dict[str, Any], preloaded: Runner, tmp_path: Path
) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    done = preloaded(["3", "2", str(threads), *end], ONE, report=folder, **many)
    assert done.status == (-9 if end else 0), done.stderr
    made = said(done.stdout)["launches"]
    assert done.totals["launches"] == made == threads * 3 * 2 * 4 * 3
    (path,) = folder.glob("*.page")
    page = _native.ffi.from_buffer("struct overlap_page *", data := path.read_bytes())
    assert len(data) == _native.ffi.sizeof("struct overlap_page")
    own = [sum(shard.launches) for shard in page.shards][:-1]
    most = _native.header().OVERLAP_SHARDS - 1
    assert sum(count > 0 for count in own) == min(threads, most), "a thread has no shard of its own"
    assert (sum(page.shards[most].launches) > 0) == (threads > most), "the last shard is that of all others"


@pytest.mark.parametrize("end", [[], ["killed"]], ids=["ends", "killed"])
def test_a_page_grows_where_nothing_can_be_allocated(
    end: list[str], many: dict[str, Any], build: Build, preloaded: Runner, tmp_path: Path
) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    words = [f"{errno.EOPNOTSUPP},fallocate", str(many["program"]), "3", "2", "80", *end]
    done = preloaded(words, ONE, program=build("seccomp", "seccomp.c"), env=many["env"], report=folder)
    assert done.status == (-9 if end else 0), done.stderr
    assert done.totals["launches"] == said(done.stdout)["launches"] == 80 * 3 * 2 * 4 * 3


@pytest.mark.parametrize(("refused", "threads"), [("gettid", 8), ("gettid", 80), ("tgkill", 80)])
@pytest.mark.parametrize("error", ["EPERM", "ENOSYS"])
def test_threads_that_have_no_number_lose_no_launch(
    error: str, refused: str, threads: int, many: dict[str, Any], build: Build, preloaded: Runner
) -> None:
    """Each has counters of its own all the same, and those of a thread that may still run are no other's."""
    sandbox = f"{getattr(errno, error)},{refused}"
    words = [sandbox, str(many["program"]), "100", "4", str(threads)]
    done = preloaded(words, ONE, program=build("seccomp", "seccomp.c"), env=many["env"])
    assert done.status == 0, done.stderr
    assert done.totals["launches"] == said(done.stdout)["launches"] == threads * 100 * 4 * 4 * 3


@pytest.mark.parametrize("addresses", [1_000_000, 1_000], ids=["never again", "again"])
def test_modules_that_come_and_go(addresses: int, build: Build, bare: Runner, preloaded: Runner) -> None:
    """300,000, more than there is room for: the last is shaped, too, and decided once; unloads take as long as ever."""
    name = f"reloads{addresses}/libcuda.so.1"
    stub = build.library(name, "stub_driver.c", "-DCOUNTS", f"-DADDRESSES={addresses}")
    program = build("reloads", "reloads.c", link=[stub])
    env = {"LD_LIBRARY_PATH": str(stub.parent)}
    without = bare("300000", program=program, env=env)
    done = preloaded("300000", ONE, program=program, env=env)
    assert (done.status, done.stdout) == (0, without.stdout)
    assert without.stdout == "failed: 0\nasked: 0\n"
    assert done.reasons == {"shaped": 600_000}
