from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from pyshim.start import folder


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
        pytest.param({"RANK": "2147483648"}, None, id="beyond what the library reads"),
    ],
)
def test_rank(environment: dict[str, str], expected: int) -> None:
    assert folder.rank(environment) == expected


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
    assert folder.world_size(environment) == expected


def test_the_library_goes_by_the_same_table() -> None:
    """The preloaded library looks for itself: also where nobody has started overlap-run."""
    text = (Path(__file__).parents[2] / "shim" / "sys" / "rank.def").read_text()
    assert [*map(" ".join, folder.rank_variables())] == [
        row.replace('"', "").replace(",", "") for row in re.findall(r"^RANK\((.*)\)$", text, re.M)
    ]
    assert len(folder.rank_variables()) >= 5


STEP = {"SLURM_JOB_ID": "1234", "SLURM_STEP_ID": "3", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"}


def test_all_ranks_of_a_step_share_a_name_and_other_steps_do_not() -> None:
    def name(**more: str) -> str | None:
        return folder.step({**STEP, **more})

    assert name() == name(SLURM_PROCID="5") == name(PMIX_NAMESPACE="slurm.pmix.1.0", PMIX_RANK="5") == "slurm-1234.3"
    others = [{"SLURM_STEP_ID": "1"}, {"SLURM_JOB_ID": "2"}, {"PMIX_NAMESPACE": "prterun-n0-1@1"}]
    assert len({name(), *(name(**other) for other in others)}) == 4
    assert folder.step({"SLURM_JOB_ID": "1", "SLURM_STEP_NUM_TASKS": "2"}) is None
    assert folder.step({"RANK": "0"}) is None


@pytest.mark.parametrize(
    ("restarts", "name"),
    [("", "slurm-1234.3"), ("0", "slurm-1234.3"), ("1", "slurm-1234.3.1"), ("x", "slurm-1234.3.x")],
)
def test_a_requeued_job_keeps_the_numbers_of_job_and_step(restarts: str, name: str) -> None:
    assert folder.step({**STEP, "SLURM_RESTART_COUNT": restarts}) == name


@pytest.mark.parametrize(
    "alone",
    [
        pytest.param({"SLURM_JOB_ID": "7", "SLURM_PROCID": "0"}, id="batch script"),
        pytest.param({**STEP, "SLURM_STEP_ID": str((1 << 32) - 6), "SLURM_STEP_NUM_TASKS": "1"}, id="interactive"),
    ],
)
def test_what_a_script_or_a_shell_runs_one_after_the_other_has_names_of_its_own(alone: dict[str, str]) -> None:
    """But the ranks that mpirun or torchrun start in it share one."""
    assert folder.step(alone) is None
    first, other = ({**alone, "PMIX_NAMESPACE": name, "OMPI_COMM_WORLD_RANK": "0"} for name in "12")
    assert (folder.step(first), folder.step(other)) == ("pmix-1", "pmix-2")
    torchrun = {"TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "n0", "MASTER_PORT": "1", "RANK": "1"}
    assert folder.step({**alone, **torchrun}) == folder.step(torchrun) == "torchrun-none-n0-1"


def test_without_a_name_in_common_the_ranks_of_a_host_are_known_by_who_starts_them() -> None:
    """Hydra, say: its ranks have a number, and nothing that the next mpiexec's would not have."""
    name = folder.step({"PMI_RANK": "1", "PMI_SIZE": "2"})
    assert name == folder.step({"PMI_RANK": "0", "PMI_SIZE": "2"})
    assert name and f"-{os.getppid()}-" in name
    assert folder.step({"PMI_RANK": "0", "PMI_SIZE": "1"}) is None


@pytest.mark.parametrize("odd", ["a/b", "..", "../x", "x" * 300, "a b", "a@b", "\udcff", "\n"])
def test_a_name_is_that_of_a_folder_whatever_the_launcher_says(odd: str) -> None:
    name = folder.step({**STEP, "PMIX_NAMESPACE": odd})
    assert name and re.fullmatch(r"[A-Za-z0-9._+-]{1,120}", name) and name.startswith("pmix-")
    assert name != folder.step({**STEP, "PMIX_NAMESPACE": f"{odd}?"}), "and still its own"


def test_else_a_run_is_named_by_time_and_pid() -> None:
    assert re.fullmatch(rf"\d{{8}}-\d{{6}}-{os.getpid()}", folder.name({}))
