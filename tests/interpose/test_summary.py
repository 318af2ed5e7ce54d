"""One line at the end, said once for a whole job."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from interposing import BLOCKS, Build

Run = Callable[..., "subprocess.CompletedProcess[str]"]
WORDS = f"ptx=k repeat=3 launch=k,{BLOCKS},256,0".split()


@pytest.fixture
def run(overlap_run: Run, build: Build) -> Run:
    """overlap-run on the simulated GPU -> the library's own lines."""

    def lines(
        *words: str, options: tuple[str, ...] = (), env: dict[str, str] | None = None, status: int = 0
    ) -> list[str]:
        done = overlap_run(
            "--simulate", "h100", "--policy", "default", *options, str(build.client("dlsym")), *words, env=env
        )
        assert done.returncode == status, done.stderr
        return [line for line in done.stderr.splitlines() if "simulated" not in line]

    return lines


def test_rank_0_says_what_was_done(run: Run) -> None:
    said = "overlap: raised no stream (0 of 3 launches), 0 shaped, 0 of communication"
    assert run(*WORDS, env={"RANK": "0"}) == [f"{said}; next: overlap-run --report DIR ... says why, and what to do"]


@pytest.mark.parametrize("name", ["RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"])
def test_other_ranks_are_silent(name: str, run: Run) -> None:
    assert len(run(*WORDS, env={name: "0"})) == 1
    assert run(*WORDS, env={name: "1"}) == []


def test_without_a_rank_only_the_process_that_overlap_run_became_speaks(run: Run) -> None:
    assert len(run(*WORDS, "spawn", *WORDS)) == 1
    assert len(run("spawn", *WORDS, "launch=k,1,32,0")) == 1  # its own line: the parent has opened the driver, too
    assert len(run(*WORDS, "exec", *WORDS)) == 1  # the first program was replaced before its end


def test_a_program_that_a_script_starts_speaks_for_it(overlap_run: Run, build: Build) -> None:
    client = shlex.join([str(build.client("dlsym")), *WORDS])
    done = overlap_run("--simulate", "h100", "--policy", "default", "sh", "-c", f"{client}; exit 5")
    assert done.returncode == 5 and done.stderr.count("raised no stream (0 of 3 launches)") == 1, done.stderr


def test_a_forked_child_is_silent(run: Run) -> None:
    for env in ({"RANK": "0"}, {}):
        assert len(run("forks=3", *WORDS, env=env)) == 1


def test_quiet_is_silent(run: Run) -> None:
    assert run(*WORDS, options=("--quiet",), env={"RANK": "0"}) == []


def test_off_is_silent(run: Run) -> None:
    # No simulated GPU either, and so no driver: what the client then says is its own.
    said = "overlap: OVERLAP_RUN=off: --simulate does nothing; unset it"  # overlap-run's
    assert run(*WORDS, env={"RANK": "0", "OVERLAP_RUN": "off"}, status=3) == [said]


def test_a_program_that_opened_a_gpu_and_launched_nothing_is_told_so(run: Run) -> None:
    (line,) = run("ptx=k")
    assert line.startswith("overlap: this process opened a GPU, but no kernel launch was seen")


def test_a_program_that_opened_no_gpu_is_not_spoken_of(overlap_run: Run) -> None:
    done = overlap_run("--simulate", "h100", "--policy", "default", "/bin/true", env={"RANK": "0"})
    assert [line for line in done.stderr.splitlines() if "simulated" not in line] == []


def test_the_line_names_the_next_command_and_it_works(run: Run, overlap: Run, tmp_path: Path) -> None:
    pages = str(tmp_path / "my report's")
    (line,) = run(*WORDS, "exit=5", options=("--report", pages), status=5)
    (folder,) = shlex.split(line.rpartition("; next: overlap report ")[2])
    assert os.path.dirname(folder) == pages
    done = overlap("report", folder, "--json")
    assert done.returncode in (0, 1), done.stderr
    assert '"launches": 3' in done.stdout
    said = line.removeprefix("overlap: ").rpartition("; next: ")[0]
    assert overlap("report", folder).stdout.startswith(f"done: {said}: 1 process, "), "in the same words"


def test_the_line_names_the_report_wherever_the_shell_is(run: Run, tmp_path: Path) -> None:
    """By its whole path, as scripts change folders, and by the run, because another one may be the last by then."""
    pages, here = str(tmp_path / "run1"), {"PWD": str(tmp_path)}
    (line,) = run(*WORDS, options=("--report", pages), env=here)
    assert line.endswith(f"; next: overlap report {(tmp_path / 'run1' / 'last').resolve()}")
    # A program that names the directory itself, while another run of the report is the last one.
    first = (tmp_path / "run1" / "last").resolve()
    run(*WORDS, options=("--report", pages))
    (line,) = run(*WORDS, env={**here, "OVERLAP_REPORT": str(first)})
    assert line.endswith(f"; next: overlap report {first}")


def test_the_line_says_whose_launches_it_counts(run: Run) -> None:
    """One of several processes counts its own alone: a rank of many, or a parent."""
    (rank,) = run(*WORDS, env={"RANK": "0", "WORLD_SIZE": "2"})
    assert rank.startswith("overlap: rank 0 of 2: raised no stream (0 of 3 launches), 0 shaped")
    (alone,) = run(*WORDS, env={"RANK": "0", "WORLD_SIZE": "1"})
    assert alone.startswith("overlap: raised no stream (0 of 3 launches), 0 shaped")
    (parent,) = run(*WORDS, "spawn", *WORDS)
    assert parent.startswith("overlap: without child processes: raised no stream (0 of 3 launches), 0 shaped")
