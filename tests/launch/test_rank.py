from __future__ import annotations

import re
from pathlib import Path

import pytest

from pyshim.launch import rank


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param({}, None, id="no launcher"),
        pytest.param({"SLURM_PROCID": "7"}, 7, id="srun"),
        pytest.param({"RANK": "3", "SLURM_PROCID": "0"}, 3, id="torchrun inside srun"),
        pytest.param({"OMPI_COMM_WORLD_RANK": "2", "SLURM_PROCID": "0"}, 2, id="mpirun inside a batch step"),
        pytest.param({"PMIX_RANK": "5"}, 5, id="pmix"),
        pytest.param({"PMI_RANK": "6"}, 6, id="pmi"),
        pytest.param({"RANK": "", "PMI_RANK": "x", "SLURM_PROCID": "1"}, 1, id="values that are no numbers"),
        pytest.param({"RANK": "-1"}, None, id="negative"),
        pytest.param({"RANK": "²"}, None, id="a digit that is none"),
        pytest.param({"RANK": "9" * 30}, None, id="beyond any rank"),
    ],
)
def test_rank(environment: dict[str, str], expected: int) -> None:
    assert rank.rank(environment) == expected


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param({"RANK": "0", "WORLD_SIZE": "0"}, None, id="zero"),
        pytest.param({"WORLD_SIZE": "4"}, None, id="without a rank"),
        pytest.param({"RANK": "0", "WORLD_SIZE": "8", "SLURM_STEP_NUM_TASKS": "2"}, 8, id="torchrun inside srun"),
        pytest.param({"RANK": "0", "SLURM_STEP_NUM_TASKS": "2"}, None, id="the number is another launcher's"),
        pytest.param({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4"}, 4, id="mpirun"),
        pytest.param({"PMIX_RANK": "0", "SLURM_STEP_NUM_TASKS": "2"}, 2, id="srun --mpi=pmix"),
        pytest.param({"PMI_RANK": "0", "PMI_SIZE": "3"}, 3, id="pmi"),
        pytest.param({"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "2"}, 2, id="srun"),
        pytest.param({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, None, id="a batch step is one process"),
    ],
)
def test_world_size(environment: dict[str, str], expected: int) -> None:
    assert rank.world_size(environment) == expected


def test_the_library_goes_by_the_same_table() -> None:
    """The preloaded library looks for itself: also where nobody has started overlap-run."""
    text = (Path(__file__).parents[2] / "shim" / "sys" / "rank.def").read_text()
    assert tuple(re.findall(r'^RANK\("(\w+)", "(\w+)"\)$', text, re.M)) == rank.LAUNCHERS


STEP = {"SLURM_JOB_ID": "1234", "SLURM_STEP_ID": "3", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"}


def test_all_ranks_of_a_step_share_a_job_and_other_steps_do_not() -> None:
    def job(**more: str) -> str | None:
        return rank.job({**STEP, **more})

    assert job() == job(SLURM_PROCID="5") == job(PMIX_NAMESPACE="slurm.pmix.1.0", PMIX_RANK="5")
    others = [{"SLURM_STEP_ID": "1"}, {"SLURM_JOB_ID": "2"}, {"PMIX_NAMESPACE": "prterun-n0-1@1"}]
    assert len({job(), *(job(**other) for other in others)}) == 4
    assert rank.job({"SLURM_JOB_ID": "1", "SLURM_STEP_NUM_TASKS": "2"}) is None
    assert rank.job({"RANK": "0"}) is None


FIRST = "000004d200000003"
ATTEMPTS = [("0", FIRST), ("1", "000004d201000003"), ("300", "000004d22c000003"), ("x", FIRST)]


@pytest.mark.parametrize(("restarts", "digits"), ATTEMPTS)
def test_of_slurm_it_is_made_of_job_step_and_attempt(restarts: str, digits: str) -> None:
    """As the site's TaskProlog makes it; a requeued job keeps the numbers of job and step."""
    assert rank.job({**STEP, "SLURM_RESTART_COUNT": restarts}) == digits
    assert rank.job(STEP) == FIRST


@pytest.mark.parametrize(
    "alone",
    [
        pytest.param({"SLURM_JOB_ID": "7", "SLURM_PROCID": "0"}, id="batch script"),
        pytest.param({**STEP, "SLURM_STEP_ID": str((1 << 32) - 6), "SLURM_STEP_NUM_TASKS": "1"}, id="interactive"),
    ],
)
def test_what_a_script_or_a_shell_runs_one_after_the_other_is_no_job(alone: dict[str, str]) -> None:
    """But the ranks that mpirun or torchrun start in it are."""
    assert rank.job(alone) is None
    first, other = ({**alone, "PMIX_NAMESPACE": name, "OMPI_COMM_WORLD_RANK": "0"} for name in "12")
    assert rank.job(first) != rank.job(other)
    torchrun = {"TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "n0", "MASTER_PORT": "1", "RANK": "1"}
    assert rank.job({**alone, **torchrun}) == rank.job(torchrun) is not None


def test_workers_of_one_torchrun_share_a_job() -> None:
    def job(**more: str) -> str | None:
        base = {"RANK": "0", "TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "n0", "MASTER_PORT": "29500"}
        return rank.job({**base, **more})

    assert job() == job(RANK="5") != job(MASTER_PORT="29501")
