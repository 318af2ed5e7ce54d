"""What a process knows of its place in a job, and where it keeps its page: with nothing but variables set by hand."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from interposing import BLOCKS, Build, Runner, report_of, same

from pyshim import __version__
from pyshim.start import plan
from pyshim.start.environment import checksum

WORDS = f"ptx=k launch=k,{BLOCKS},256,0"


@pytest.mark.parametrize(
    ("variables", "rank", "world"),
    [
        pytest.param({}, None, None, id="no launcher"),
        pytest.param({"RANK": "3", "WORLD_SIZE": "8"}, 3, 8, id="torchrun"),
        pytest.param(
            {"RANK": "3", "WORLD_SIZE": "8", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"},
            3,
            8,
            id="torchrun inside srun",
        ),
        pytest.param({"RANK": "3", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}, 3, None, id="another's world"),
        pytest.param(
            {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "SLURM_PROCID": "0", "PMIX_RANK": "1"},
            1,
            4,
            id="mpirun in a batch step",
        ),
        pytest.param({"PMIX_RANK": "2", "SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "4"}, 2, 4, id="srun with PMIx"),
        pytest.param({"PMI_RANK": "0", "PMI_SIZE": "2"}, 0, 2, id="mpiexec of MPICH"),
        pytest.param({"SLURM_PROCID": "1", "SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "2"}, 1, 2, id="srun"),
        pytest.param({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, 0, None, id="batch step"),
        pytest.param({"RANK": "", "PMI_RANK": "x", "WORLD_SIZE": "4"}, None, None, id="values that are no numbers"),
        pytest.param({"RANK": "1", "WORLD_SIZE": "0"}, 1, None, id="a world of nobody"),
        pytest.param({"RANK": "99999999999999999999", "WORLD_SIZE": "4"}, None, None, id="beyond any rank"),
    ],
)
def test_the_page_says_which_rank_of_how_many(
    preloaded: Runner, variables: dict[str, str], rank: int | None, world: int | None
) -> None:
    (process,) = preloaded(WORDS, env={"OVERLAP_QUIET": "1", **variables}).report["processes"]
    assert (process["rank"], process["world"]) == (rank, world)


def test_the_page_says_which_library_under_which_table(
    preloaded: Runner, table_of: Callable[[str], dict[str, str]]
) -> None:
    seen = [preloaded(WORDS, policy).report["processes"][0] for policy in ("observe", "h100-paper")]
    assert [process["library"] for process in seen] == [__version__] * 2
    tables = [checksum(table_of(policy)["OVERLAP_TABLE"]) for policy in ("observe", "h100-paper")]
    assert [process["table"] for process in seen] == tables
    assert tables[0] != tables[1]


def test_children_say_it_too(preloaded: Runner) -> None:
    done = preloaded(f"forks=2 {WORDS}")
    assert len({(process["library"], process["table"]) for process in done.report["processes"]}) == 1
    assert done.report["processes"][0]["table"]


def test_a_relative_folder_is_that_of_the_start(
    table_of: Callable[[str], dict[str, str]], tmp_path: Path, build: Build
) -> None:
    """Whoever sets OVERLAP_REPORT by hand may write one; the program may go elsewhere before it uses a GPU."""
    (tmp_path / "out").mkdir()
    program = f"import ctypes, os; os.chdir('/'); cuda = ctypes.CDLL({plan.SIMULATED_DRIVER!r})"
    program += "; print(cuda.cuInit(0) + cuda.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0))"
    env = {**table_of("observe"), "OVERLAP_REPORT": "out"}
    done = subprocess.run([sys.executable, "-c", program], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "0\n")
    (process,) = report_of(tmp_path / "out")["processes"]
    assert process["directory"] == f"{tmp_path}/out"


@pytest.mark.plain("a sanitizer sets errno", sanitized=True)
def test_a_relative_folder_where_there_is_no_folder_leaves_errno_alone(
    table_of: Callable[[str], dict[str, str]], tmp_path: Path, build: Build
) -> None:
    """A program finds errno 0 when it starts."""
    program = build("errno-at-start", "errno_at_start.c")
    script = f"mkdir gone && cd gone && rmdir ../gone && exec {program}"
    env = {**table_of("observe"), "OVERLAP_REPORT": "out"}
    command = ["sh", "-c", script]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "0\n")


def test_a_relative_folder_below_a_path_that_is_too_long(preloaded: Runner, bare: Runner, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 200) / ("e" * 200)
    (deep / "out").mkdir(parents=True)
    env = {"OVERLAP_REPORT": "out/" + "f" * 200}
    done, without = preloaded(WORDS, env=env, cwd=deep), bare(WORDS, cwd=deep)
    same(done, without)
    assert list((deep / "out").iterdir()) == []
