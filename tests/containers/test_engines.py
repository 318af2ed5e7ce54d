"""The recipes in containers: what is counted, and what happens where something is not there."""

from __future__ import annotations

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import recipes
from containers import WORDS, Engine, copied, launches, pages
from interposing import Build

COUNTED = [3]
INSIDE = recipes.block('eval "$(').split("; exec")[0]


def inside(engine: Engine, program: str = f"client {WORDS}") -> str:
    """A program that a shell starts, which asks task-prolog."""
    return f"sh -c '{INSIDE.replace('/opt/overlap', str(engine.site))}; exec {program}'"


def no_variables(text: str) -> str:
    """The recipe without those from outside."""
    return text.replace("$(sed 's/^\\([^=]*\\)=/--setenv \\1 /' overlap.env)", "").replace("--set-env=overlap.env ", "")


def test_a_program_in_a_container_is_counted(engine: Engine, report: Path) -> None:
    done = engine(report=report)
    assert (done.status, done.stderr) == (0, "")
    assert launches(report) == COUNTED


def test_from_inside_too(engine: Engine, report: Path) -> None:
    done = engine(inside(engine), report=report, change=no_variables)
    assert (done.status, done.stderr) == (0, "")
    assert launches(report) == COUNTED


def test_without_the_folder_every_process_says_so_and_runs(engine: Engine, report: Path) -> None:
    """And from inside nothing is said."""
    without = engine(mounted=False, report=report, change=no_variables)
    assert (without.status, without.stderr) == (0, "")
    missing = engine(mounted=False, report=report)
    assert (missing.status, missing.stdout) == (0, without.stdout)
    assert [line.split("'")[1] for line in missing.stderr.splitlines()] == [f"{engine.site}/lib/liboverlap.so"]
    assert missing.stderr.startswith("ERROR: ld.so: object ")
    two = engine("sh -c 'cat /etc/passwd; exec cat /etc/passwd'", mounted=False)
    assert two.stderr.count("ERROR: ld.so") == 3
    quiet = engine(inside(engine), mounted=False, report=report, change=no_variables)
    assert (quiet.status, quiet.stdout, quiet.stderr) == (0, without.stdout, "")
    assert launches(report) == []


def test_a_library_for_another_machine_is_not_preloaded_from_inside(engine: Engine, report: Path) -> None:
    """From outside the loader says so, as of one that is missing."""
    other = engine.site.parent / "other"
    shutil.copytree(engine.site, other, dirs_exist_ok=True)
    library = bytearray((engine.site / "lib/liboverlap.so").read_bytes())
    library[18] = {62: 183, 183: 62}[library[18]]
    (other / "lib/liboverlap.so").write_bytes(library)

    def mounted_instead(text: str) -> str:
        for before in ("bind ", "bind="):
            text = text.replace(f"{before}{engine.site}", f"{before}{other}")
        return text

    done = engine(report=report, change=mounted_instead)
    assert done.status == 0
    assert [line.split("'")[1] for line in done.stderr.splitlines()] == [f"{engine.site}/lib/liboverlap.so"]
    done = engine(inside(engine), report=report, change=lambda text: mounted_instead(no_variables(text)))
    assert (done.status, done.stderr, launches(report)) == (0, "", [])


def test_a_preload_of_the_image_is_kept_from_inside(engine: Engine, image: Path, tmp_path: Path) -> None:
    other = copied(image, tmp_path / "image") / "other.so"
    subprocess.run(["cc", "-shared", "-nostdlib", "-x", "c", "/dev/null", "-o", str(other)], check=True)
    program = inside(engine, "env").replace("sh -c '", "sh -c 'export LD_PRELOAD=/other.so; ")
    done = engine(program, image=other.parent, change=no_variables)
    assert f"LD_PRELOAD={engine.site}/lib/liboverlap.so:/other.so" in done.stdout.splitlines()
    assert done.stderr == ""


def test_variables_by_name_in_a_cleared_environment(engine: Engine, report: Path) -> None:
    values = {"PATH": "/bin", "SIMGPU": "h100", "LD_LIBRARY_PATH": "/driver", "OVERLAP_REPORT": "/report"}
    clear, word = {"bwrap": ("--clearenv", "--setenv {} {}"), "ch-run": ("--unset-env='*'", "--set-env={}={}")}[
        engine.name
    ]
    own = " ".join([engine.name, clear, *(word.format(*pair) for pair in values.items())])
    done = engine(report=report, change=lambda text: text.replace(f"{engine.name} ", f"{own} "))
    assert (done.status, done.stderr) == (0, "")
    assert launches(report) == COUNTED


@pytest.mark.parametrize(
    ("where", "why"), [("/nowhere", "there is no such folder"), ("/etc", "its files cannot be made")]
)
def test_a_report_folder_that_cannot_be_used_costs_one_line(engine: Engine, where: str, why: str) -> None:
    without = engine(change=no_variables)
    done = engine(env={"OVERLAP_REPORT": where})
    assert (done.status, done.stdout) == (0, without.stdout)
    assert done.stderr == f"overlap: no statistics in {where}: {why}\n"


def test_the_folder_of_the_site_is_mounted_read_only(bwrap: Engine) -> None:
    assert bwrap(f"sh -c ': >{bwrap.site}/lib/x'").status != 0
    assert not (bwrap.site / "lib/x").exists()


def test_with_an_empty_dev(bwrap: Engine, report: Path) -> None:
    done = bwrap(report=report, change=lambda text: text.replace("--dev /dev ", "--tmpfs /dev "))
    assert (done.status, done.stderr, launches(report)) == (0, "", COUNTED)


def test_containers_of_one_host_name_and_the_same_process_ids_share_a_report_folder(
    bwrap: Engine, report: Path
) -> None:
    def run(number: int) -> int:
        one = replace(bwrap, folder=bwrap.folder / str(number))
        one.folder.mkdir()
        return one(report=report, change=lambda text: text.replace("bwrap ", "bwrap --unshare-pid ")).status

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(8))) == [0] * 8
    assert_all_kept(report, 8)


def assert_all_kept(report: Path, number: int) -> None:
    found = pages(report)
    assert [page.launches for page in found] == COUNTED * number
    ((host, pid),) = {(page.host, page.pid) for page in found}
    assert sorted(path.name for path in report.iterdir()) == [f"{host}.{pid}.{n}.page" for n in range(number)]


def test_they_share_it_on_a_network_file_system_too(
    bwrap: Engine, build: Build, image: Path, report: Path, tmp_path: Path
) -> None:
    """There a page waits in the container's own /dev/shm, and all are brought at once."""
    other = copied(image, tmp_path / "image")
    shutil.copy(build.library("libfakenfs.so", "fake_nfs.c"), other / "driver")
    (report / "network").mkdir()
    os.mkfifo(report / "gate")

    def run(number: int) -> int:
        one = replace(bwrap, folder=bwrap.folder / str(number), image=other)
        one.folder.mkdir()
        words = f"{WORDS} file=9,/report/{number} wait <>/report/gate"
        return one(
            f"sh -c 'LD_PRELOAD=$LD_PRELOAD:/driver/libfakenfs.so exec client {words}'",
            report=report,
            env={"OVERLAP_REPORT": "/report/network"},
            change=lambda text: text.replace("bwrap ", "bwrap --unshare-pid "),
        ).status

    with ThreadPoolExecutor(4) as pool, (report / "gate").open("r+b", buffering=0) as gate:
        done = [pool.submit(run, number) for number in range(4)]
        while not all((report / str(number)).exists() for number in range(4)):
            assert not any(one.done() for one in done)
        assert pages(report / "network") == []
        gate.write(b"go!!")
        assert [one.result() for one in done] == [0] * 4
    assert_all_kept(report / "network", 4)
