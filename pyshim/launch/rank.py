"""Which of how many processes of a job this one is, by the variables that launchers set."""

from __future__ import annotations

from collections.abc import Mapping

RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
WORLDS = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
# What all ranks of one job step share and no other step does; the first group whose first name is set.
JOBS = (
    ("PMIX_NAMESPACE",),
    ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT", "SLURM_CLUSTER_NAME"),
    ("PMI_JOBID",),
)


def rank(environment: Mapping[str, str]) -> int | None:
    return _first_number(environment, RANKS)


def world_size(environment: Mapping[str, str]) -> int | None:
    return _first_number(environment, WORLDS) or None


def job(environment: Mapping[str, str]) -> str | None:
    """16 hexadecimal digits that are equal in all ranks of a job step; None outside one."""
    if rank(environment) is None:
        return None
    for group in JOBS:
        if environment.get(group[0]):
            import hashlib

            key = "\0".join(f"{name}={environment.get(name, '')}" for name in group)
            return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return None


def _first_number(environment: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = environment.get(name, "")
        if value.isascii() and value.isdigit() and len(value) < 10:
            return int(value)
    return None
