"""Pages that wait in /dev/shm: read where they are; fetched on demand, without harm to processes that still count."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pyshim.pages.waiting import fetch, living
from pyshim.report.collect import collect
from pyshim.report.findings import remarks

HERE = os.uname().nodename
ENDED, RUNNING = 5, 1


@pytest.fixture
def room(tmp_path: Path) -> Path:
    (tmp_path / "shm").mkdir()
    return tmp_path / "shm"


@pytest.fixture
def wait_for(report: Path, room: Path, write_page: Callable[..., Path]) -> Callable[..., Path]:
    def write(launches: int = 5, host: str = HERE, pid: int = 7, **more: object) -> Path:
        path = room / f"overlap-{host}.{pid}.0.page"
        return write_page({"no_rule": launches}, pid=pid, path=path, host=host, **{"directory": str(report), **more})

    return write


def dead() -> int:
    """Return the id of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def contents(*folders: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for around in folders for path in around.iterdir() if path.is_file()}


def test_a_report_only_reads(report, wait_for, write_page, tmp_path, room):
    """Pages of killed, running and other runs' processes, a link, garbage: all stay as they are, and where they are."""
    wait_for(5, pid=dead(), flags=RUNNING)
    wait_for(6, pid=os.getpid(), flags=RUNNING)
    wait_for(7, host="elsewhere", pid=8, flags=ENDED)
    wait_for(9, pid=9, directory=str(tmp_path))
    (room / f"overlap-{HERE}.10.0.page").write_bytes(b"garbage")
    (room / f"overlap-{HERE}.11.0.page").symlink_to("/etc/passwd")
    before = contents(report, room)
    collected = collect(str(report), waiting_room=str(room))
    assert sorted(page.launches for page in collected.pages) == [5, 6, 7] and collected.skipped == ()
    assert contents(report, room) == before


@pytest.mark.skipif(living() is None, reason="needs the machine's own process ids")
def test_it_says_what_is_on_this_machine_only_and_how_it_comes_home(report, wait_for, room):
    wait_for(5, pid=os.getpid(), flags=RUNNING)
    assert [line for line in remarks(collect(str(report), waiting_room=str(room))) if "--fetch" in line] == []
    wait_for(5, pid=dead(), flags=RUNNING)
    (line,) = [line for line in remarks(collect(str(report), waiting_room=str(room))) if "--fetch" in line]
    assert line.startswith("1 page is in /dev/shm of this machine only")


def test_pages_that_wait_elsewhere_are_fetched_if_they_name_this_folder(report, wait_for, write_page, tmp_path, room):
    wait_for(5, host="node1", pid=7)
    wait_for(9, host="node1", pid=8, directory=str(tmp_path))
    (room / "overlap-node1.9.0.page").symlink_to("/etc/passwd")
    assert list(fetch(str(report), str(room))) == []
    collected = collect(str(report), waiting_room="/nonexistent")
    assert [page.launches for page in collected.pages] == [5] and collected.skipped == ()
    (copy,) = report.glob("*.page")
    assert copy.stat().st_mode & 0o777 == 0o600
    wait_for(6, host="node1", pid=7)
    assert list(fetch(str(report), str(room))) == []
    assert [page.launches for page in collect(str(report), waiting_room="/nonexistent").pages] == [6], (
        "it may have counted on"
    )


def test_the_command_fetches_only_where_it_is_asked(overlap, report, write_page):
    """By the machine's own /dev/shm."""
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("no /dev/shm here")
    page = Path("/dev/shm") / f"overlap-{HERE}.{dead()}.{os.getpid()}.page"
    try:
        write_page({"no_rule": 5}, pid=7, path=page, host=HERE, directory=str(report), flags=ENDED)
        assert "5 launches" in overlap("report", str(report)).stdout
        assert page.exists() and list(report.glob("*.page")) == []
        assert "5 launches" in overlap("report", str(report), "--fetch").stdout
        assert not page.exists() and len(list(report.glob("waiting-*.page"))) == 1
    finally:
        page.unlink(missing_ok=True)


def test_pages_that_wait_for_this_folder_need_no_run(report, write_page, tmp_path, room):
    """OVERLAP_REPORT was set by hand, so there is no run.json."""
    (report / "run.json").unlink()
    (tmp_path / "link").symlink_to(report)
    for pid, directory in ((7, report), (8, tmp_path / "link"), (9, tmp_path), (10, "")):
        write_page({"no_rule": 5}, pid=pid, path=room / f"overlap-node1.{pid}.0.page", directory=str(directory))
    (room / "overlap-node1.11.0.page").write_bytes(b"garbage")
    collected = collect(str(report), waiting_room=str(room))
    assert [page.pid for page in collected.pages] == [7, 8]
    assert collected.skipped == ()


def test_of_several_folders_each_gets_its_own(report, wait_for, write_page, tmp_path, room):
    other = tmp_path / "other"
    other.mkdir()
    wait_for(pid=dead())
    for path in (other, report):
        assert list(fetch(str(path), str(room))) == []
    assert ([*other.glob("*.page")], len([*report.glob("*.page")])) == ([], 1)


def test_a_page_that_was_brought_meanwhile_is_no_fault(report, room, monkeypatch):
    listed = os.listdir
    gone = f"overlap-{HERE}.7.0.page"
    monkeypatch.setattr(os, "listdir", lambda path: [gone] if str(path) == str(room) else listed(path))
    assert collect(str(report), waiting_room=str(room)).skipped == ()
    assert list(fetch(str(report), str(room))) == []


def test_a_page_of_another_user_that_waits_is_not_believed(report, wait_for, room):
    if os.getuid():
        pytest.skip("only root can make one: run as root")
    path = wait_for()
    os.chown(path, 1, 1)
    assert collect(str(report), waiting_room=str(room)).pages == ()
    assert list(fetch(str(report), str(room))) == []
    assert path.exists()


def test_what_its_process_brought_at_its_end_counts_and_not_the_copy_of_before(report, wait_for, write_page, room):
    wait_for(flags=RUNNING, pid=os.getpid())
    assert list(fetch(str(report), str(room))) == []
    assert [page.ended for page in collect(str(report), waiting_room=str(room)).pages] == [False]
    for launches in (5, 9):
        brought = report / f"{HERE}.{os.getpid()}.0.page"
        write_page({"no_rule": launches}, pid=os.getpid(), path=brought, host=HERE, flags=ENDED)
        (page,) = collect(str(report), waiting_room="/nonexistent").pages
        assert (page.launches, page.ended) == (launches, True)


def test_pages_of_containers_with_the_same_names_are_all_kept(report, wait_for, room):
    """Each has a /dev/shm of its own, in which `overlap report --fetch` runs."""
    for start in (1, 2):
        wait_for(launches=start, host="box", pid=1, start=start, flags=ENDED)
        assert list(fetch(str(report), str(room))) == []
    assert [page.launches for page in collect(str(report), waiting_room="/nonexistent").pages] == [1, 2]


def is_removed(report: Path, page: Path) -> bool:
    before = page.read_bytes()
    for _ in range(2):
        assert list(fetch(str(report), str(page.parent))) == []
        assert len(collect(str(report), waiting_room=str(page.parent)).pages) == 1
    (copy,) = report.glob("*.page")
    assert copy.read_bytes() == before
    return not page.exists()


def test_a_page_of_a_process_that_is_over_is_removed(report, wait_for, room):
    assert is_removed(report, wait_for(host="elsewhere", pid=os.getpid(), flags=ENDED))


@pytest.mark.skipif(living() is None, reason="needs the machine's own process ids")
def test_a_page_of_a_process_that_was_killed_is_removed(report, wait_for, room):
    assert is_removed(report, wait_for(pid=dead(), flags=RUNNING))


def test_a_page_of_a_process_that_runs_stays(report, wait_for, room):
    assert not is_removed(report, wait_for(pid=os.getpid(), flags=RUNNING))


def test_a_page_of_another_host_name_stays_until_it_says_that_it_ended(report, wait_for, room):
    """A container that shares /dev/shm."""
    assert not is_removed(report, wait_for(host="elsewhere", pid=dead(), flags=RUNNING))


def test_a_page_that_could_not_be_copied_stays(report, wait_for, room, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError("no space")

    page = wait_for(flags=ENDED)
    monkeypatch.setattr(os, "replace", refuse)
    ((_, why),) = fetch(str(report), str(room))
    assert (why, page.exists()) == ("it could not be copied: None", True)
    assert list(report.glob("waiting-*")) == []


# The words that start a process in a container's namespace of process ids.
IN = ["unshare", "--pid", "--fork", "--mount-proc"]


@pytest.fixture
def contained() -> None:
    tried = subprocess.run([*IN, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"needs root: {tried.stderr.strip()}")


def test_from_inside_a_container_nobody_is_taken_for_dead(contained, report, wait_for, room):
    page = wait_for(pid=dead(), flags=RUNNING)
    ask = "import sys; from pyshim.pages.waiting import fetch; list(fetch(sys.argv[1], sys.argv[2]))"
    subprocess.run([*IN, sys.executable, "-c", ask, str(report), str(room)], check=True)
    assert len(list(report.glob("*.page"))) == 1
    assert page.exists()


def test_a_process_that_runs_in_a_container_is_not_taken_for_dead(contained, report, wait_for, room):
    """Its page has its id of inside the container, which no process has outside."""
    pid = dead()
    shell = f'echo {pid - 1} >/proc/sys/kernel/ns_last_pid && sh -c "echo \\$\\$; read line"; true'
    with subprocess.Popen([*IN, "sh", "-c", shell], stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == f"{pid}\n"
        assert not Path(f"/proc/{pid}").exists()
        assert not is_removed(report, wait_for(pid=pid, flags=RUNNING))
