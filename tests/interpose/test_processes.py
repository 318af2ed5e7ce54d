"""However a process begins and ends, its page says what it did; and the program is what it was."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from interposing import BLOCKS, ONE, Build, Done, Runner, report_of, same

from pyshim.pages.page import Page, read_page
from pyshim.pages.untrusted import Unreadable
from pyshim.pages.waiting import fetch
from pyshim.report.collect import collect

THREE = f"repeat=3 launch=k,{BLOCKS},256,0"
TWO = f"repeat=2 launch=k,{BLOCKS},256,0"
ROOT = os.geteuid() == 0


def launches(done: Done) -> list[int]:
    return sorted(process["launches"] for process in done.report["processes"])


@pytest.mark.parametrize("way", ["symbol", "dlsym"])
def test_forked_children_start_at_zero_with_pages_of_their_own(way: str, bare: Runner, preloaded: Runner) -> None:
    words = f"forks=3 ptx=k {THREE} ex=k,{BLOCKS},256,0"
    without, done = bare(words, way), preloaded(words, ONE, way)
    assert without.stdout.count("child: 0") == 3
    same(done, without, but=["dynamic_shared"])
    assert launches(done) == [4, 4, 4, 4]
    assert [process["shaped"] for process in done.report["processes"]] == [4] * 4
    parent = next(process["pid"] for process in done.report["processes"] if not process["forked"])
    assert [process["parent"] for process in done.report["processes"] if process["forked"]] == [parent] * 3


@pytest.mark.parametrize("way", ["symbol", "dlsym"])
def test_a_child_of_a_process_that_uses_the_gpu_has_its_own_page(way: str, bare: Runner, preloaded: Runner) -> None:
    """A driver does not work in such a child, so its launch fails; it was made all the same, and not by the parent."""
    words = f"ptx=k {THREE} fork {TWO} exit=7 join {THREE}"
    without, done = bare(words, way), preloaded(words, ONE, way)
    assert "child: 7" in without.stdout
    assert "launch: 3" in without.stdout
    same(done, without, but=["dynamic_shared"])
    assert launches(done) == [1, 6]
    child = next(process for process in done.report["processes"] if process["launches"] == 1)
    assert child["forked"]
    assert child["parent"] == next(process["pid"] for process in done.report["processes"] if process["launches"] == 6)


def test_children_that_touch_nothing_leave_the_parent_alone(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k {THREE} fork exit=0 join fork _exit=3 join fork abort join {THREE}"
    done = preloaded(words)
    same(done, bare(words))
    assert max(launches(done)) == sum(launches(done)) == 6


def test_exec_in_the_same_process_gets_a_second_page(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k {THREE} exec ptx=k {TWO}"
    done = preloaded(words)
    same(done, bare(words))
    assert launches(done) == [2, 3]
    assert len({process["pid"] for process in done.report["processes"]}) == 1


@pytest.mark.parametrize(("end", "status"), [("kill", -9), ("abort", -6), ("_exit=3", 3), ("exit=4", 4)])
def test_the_page_is_valid_after_any_end(end: str, status: int, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k {THREE} {end}"
    without, done = bare(words), preloaded(words)
    assert without.status == status
    same(done, without)
    assert launches(done) == [3]
    assert [process["ended"] for process in done.report["processes"]] == [end.startswith("exit")]


def test_a_running_process_can_be_read(build: Build, table_of: Callable[[str], dict[str, str]], tmp_path: Path) -> None:
    pages = tmp_path / "report"
    pages.mkdir()
    env = {**table_of("observe"), "OVERLAP_REPORT": str(pages)}
    process = subprocess.Popen(
        [str(build.client()), "ptx=k", *THREE.split(), "wait"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        process.stdout.read(1)  # printed before it waits
        assert report_of(pages)["totals"]["launches"] == 3
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
    assert report_of(pages)["totals"]["launches"] == 3


# ---- Report folders that cannot hold a page ----


def one_line(done: Done, without: Done, text: str = "no statistics in ") -> None:
    assert (done.status, done.stdout, done.launches) == (without.status, without.stdout, without.launches)
    assert done.stderr.count("\n") == 1, done.stderr
    assert text in done.stderr


def test_folder_removed(bare: Runner, preloaded: Runner, tmp_path: Path) -> None:
    words = f"ptx=k {THREE}"
    one_line(preloaded(words, report=tmp_path / "missing"), bare(words))


def test_folder_removed_while_running(bare: Runner, preloaded: Runner, tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    words = f"before:rmdir={folder} ptx=k {THREE}"
    one_line(
        preloaded(words, report=folder),
        bare(words.replace(f"before:rmdir={folder}", f"before:rmdir={_made(tmp_path)}")),
    )


def _made(tmp_path: Path) -> Path:
    (tmp_path / "other").mkdir()
    return tmp_path / "other"


def test_folder_is_a_file(bare: Runner, preloaded: Runner, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    words = f"ptx=k {THREE}"
    one_line(preloaded(words, report=tmp_path / "file"), bare(words))


def test_folder_not_writable(bare: Runner, preloaded: Runner, tmp_path: Path) -> None:
    folder = Path("/proc/self") if ROOT else tmp_path / "closed"  # root may write anywhere else
    if not ROOT:
        folder.mkdir(0o500)
    words = f"ptx=k {THREE}"
    one_line(preloaded(words, env={"OVERLAP_REPORT": str(folder)}), bare(words))


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "tiny"
    folder.mkdir()
    if (
        not ROOT
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(folder)], capture_output=True
        ).returncode
    ):
        pytest.skip("only root may mount a small disk: run as root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_disk_full(bare: Runner, preloaded: Runner, tiny_disk: Path) -> None:
    words = f"ptx=k {THREE}"
    one_line(preloaded(words, report=tiny_disk), bare(words), "the disk is full")
    assert list(tiny_disk.iterdir()) == []


@pytest.mark.plain("the counters of lines are written into files", coverage=True)
def test_files_may_not_grow(bare: Runner, preloaded: Runner) -> None:
    """RLIMIT_FSIZE: the kernel would kill who writes more."""
    words = f"ptx=k {THREE}"
    limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))}
    one_line(preloaded(words, **limit), bare(words, **limit))


def test_a_link_planted_where_the_page_goes_is_not_followed(build: Build, preloaded: Runner, tmp_path: Path) -> None:
    victim, pages = tmp_path / "victim", tmp_path / "report"
    victim.write_text("precious")
    pages.mkdir()
    script = f'ln -s {victim} "{pages}/$(uname -n).$$.0.page"; exec {build.client()} ptx=k {THREE}'
    done = preloaded(["-c", script], program="/bin/sh", report=pages)
    assert (done.status, done.stderr) == (0, "")
    assert victim.read_text() == "precious"
    assert launches(done) == [3]


# ---- Network file systems ----


NEEDS_SHM = pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no /dev/shm here")


def waiting(pages: Path) -> list[Path]:
    """The pages in /dev/shm that name this folder."""
    found = Path("/dev/shm").glob("overlap-*.page")
    return [path for path in found if f"{pages}\0".encode() in path.read_bytes()]


@pytest.fixture
def network(build: Build, tmp_path: Path) -> Iterator[dict[str, Any]]:
    pages = tmp_path / "network"
    pages.mkdir()
    fake = build.library("libfakenfs.so", "fake_nfs.c")
    (pages / "run.json").write_text('{"id": "network", "version": 1}')
    yield {"report": pages, "preload": f"{{}}:{fake}"}
    for path in waiting(pages):
        path.unlink()


@NEEDS_SHM
def test_on_a_network_file_system_the_page_is_copied_at_the_end(preloaded: Runner, network: dict[str, Any]) -> None:
    done = preloaded(f"forks=1 ptx=k {THREE}", **network)
    assert (done.status, done.stderr) == (0, "")
    assert waiting(network["report"]) == []
    assert launches(done) == [3, 3]


@NEEDS_SHM
def test_on_a_network_file_system_overlap_report_reads_the_page_after_a_kill_and_fetches_it(
    preloaded: Runner, network: dict[str, Any]
) -> None:
    pages = network["report"]
    done = preloaded(f"ptx=k {THREE} kill", **network)
    assert done.status == -9
    assert len(waiting(network["report"])) == 1
    assert report_of(pages)["totals"]["launches"] == 3
    assert (len(waiting(pages)), list(pages.glob("*.page"))) == (1, [])
    assert list(fetch(str(pages))) == []
    assert (waiting(pages), len(list(pages.glob("*.page")))) == ([], 1)
    assert report_of(pages)["totals"]["launches"] == 3


Meanwhile = Callable[[Callable[[], None]], list[Page]]


@pytest.fixture
def meanwhile(preloaded: Runner, network: dict[str, Any]) -> Meanwhile:
    """meanwhile(do): what another node sees in the end, of a process that launches three times, waits while do() runs,
    and launches twice more."""

    def run(do: Callable[[], None]) -> list[Page]:
        told, tell = os.pipe()
        with ThreadPoolExecutor(1) as pool, open(tell, "w") as told_to, open(told) as stdin:
            done = pool.submit(preloaded, f"ptx=k {THREE} wait {TWO}", stdin=stdin, **network)
            until = time.monotonic() + 300
            while not any(launched(path) == 3 for path in waiting(network["report"])):
                assert time.monotonic() < until and not done.done()
            do()
            told_to.close()
            assert done.result().status == 0
        return list(collect(str(network["report"]), waiting_room="/nonexistent").pages)

    return run


def launched(path: Path) -> int:
    with suppress(Unreadable):
        return read_page(str(path)).launches
    return 0


@NEEDS_SHM
def test_on_a_network_file_system_a_fetch_meanwhile_leaves_the_end_to_the_process(
    meanwhile: Meanwhile, network: dict[str, Any]
) -> None:
    def look() -> None:
        assert list(fetch(str(network["report"]))) == []
        (process,) = report_of(network["report"])["processes"]
        assert (process["launches"], process["ended"]) == (3, False)

    (page,) = meanwhile(look)
    assert (page.launches, page.ended) == (5, True)
    assert waiting(network["report"]) == []


@NEEDS_SHM
def test_on_a_network_file_system_a_page_of_the_same_name_takes_no_page_away(
    meanwhile: Meanwhile, network: dict[str, Any]
) -> None:
    """Brought by another container meanwhile, which has the same host name and the same process ids."""
    taken: list[Path] = []

    def bring() -> None:
        (page,) = waiting(network["report"])
        process = page.name.partition("-")[2].rsplit(".", 2)[0]
        taken.append(network["report"] / f"{process}.0.page")
        taken[0].write_text("taken")

    assert [page.launches for page in meanwhile(bring)] == [5]
    assert taken[0].read_bytes() == b"taken"
    of_its_own = taken[0].with_name(taken[0].name.replace(".0.page", ".1.page"))
    assert set(network["report"].glob("*.page")) == {taken[0], of_its_own}
