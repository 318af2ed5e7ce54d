"""Which of how many processes of a job this one is, by the variables that launchers set."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Rank, and how many there are: the same table, with the reasons, is in shim/sys/rank.def.
LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMIX_RANK", "SLURM_STEP_NUM_TASKS"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)
# What all ranks of one job step share and no other step does; the first group whose first name is set. Slurm's own
# PMIx comes before: it names the step once more.
JOBS = (
    ("PMIX_NAMESPACE",),
    ("SLURM_JOB_ID", "SLURM_STEP_ID"),
    ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"),
    ("PMI_JOBID",),
)
_ID = re.compile(r"[0-9a-f]{16}\Z")
_PMIX_OF_SLURM = re.compile(r"slurm\.pmix\.")


def rank(environment: Mapping[str, str]) -> int | None:
    return _first(environment)[0]


def world_size(environment: Mapping[str, str]) -> int | None:
    return _first(environment)[1]


def job(environment: Mapping[str, str]) -> str | None:
    """Return 16 hexadecimal digits that are equal in all ranks of a job step; None outside one."""
    if rank(environment) is None:
        return None
    for group in JOBS:
        value = environment.get(group[0])
        if not value or _PMIX_OF_SLURM.match(value):
            continue
        if group[0] == "SLURM_JOB_ID":
            if environment.get("SLURM_STEP_NUM_TASKS", "1") == "1":
                continue  # a batch script or a shell: one process, whose runs come one after the other
            digits = _of_slurm(environment)
            if digits:
                return digits
        import hashlib

        key = "\0".join(f"{name}={environment.get(name, '')}" for name in group)
        return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return None


def is_id(text: str) -> bool:
    return _ID.match(text) is not None


def inner(outer: str, environment: Mapping[str, str]) -> str | None:
    """Return the id for steps inside of the run `outer`, whose ranks must not differ either. None: one process."""
    step = job(environment)
    if step is None and (world_size(environment) or 1) == 1:
        return None
    import hashlib

    digits = hashlib.sha256(f"{outer}\0{step or ''}".encode("utf-8", "surrogateescape")).hexdigest()
    return outer[:8] + digits[:8] if is_id(outer) else digits[:16]


def _of_slurm(environment: Mapping[str, str]) -> str | None:
    """Return the id of a Slurm step, as the TaskProlog says it; its attempt tells requeued jobs apart."""
    numbers = environment["SLURM_JOB_ID"], environment.get("SLURM_STEP_ID", "")
    if not all(_is_number(text) for text in numbers):
        return None
    restarts = environment.get("SLURM_RESTART_COUNT", "")
    attempt = int(restarts) % 256 if _is_number(restarts) else 0
    job, step = map(int, numbers)
    return f"{job:08x}{step ^ attempt << 24:08x}"


def _first(environment: Mapping[str, str]) -> tuple[int | None, int | None]:
    for rank_name, world_name in LAUNCHERS:
        found = environment.get(rank_name, "")
        if _is_number(found):
            world = environment.get(world_name, "")
            return int(found), (int(world) or None) if _is_number(world) else None
    return None, None


def _is_number(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) <= 10 and int(value) < 1 << 32
