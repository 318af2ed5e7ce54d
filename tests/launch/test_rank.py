from __future__ import annotations

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


def test_world_size_of_zero_is_unknown() -> None:
    assert rank.world_size({"WORLD_SIZE": "0"}) is None
    assert rank.world_size({"SLURM_NTASKS": "16"}) == 16


def test_all_ranks_of_a_step_share_a_job_and_other_steps_do_not() -> None:
    def job(**more: str) -> str | None:
        return rank.job({"SLURM_JOB_ID": "1", "SLURM_STEP_ID": "0", "SLURM_PROCID": "0", **more})

    assert job() == job(SLURM_PROCID="5")
    assert len({job(), job(SLURM_STEP_ID="1"), job(SLURM_JOB_ID="2"), job(SLURM_RESTART_COUNT="1")}) == 4
    assert rank.job({"SLURM_JOB_ID": "1"}) is None
    assert rank.job({"RANK": "0"}) is None
