"""Slurm, containers, profilers, other preloads, and variables that serialise: real environments and processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from doctoring import Look, states

from pyshim.doctor.around import CONNECTIONS, TABLE


@pytest.mark.parametrize("variable", TABLE, ids=lambda variable: variable.name)
def test_each_variable_of_the_table(look: Look, variable) -> None:
    value = variable.values[-1].upper() if variable.values else "1"
    ((state, sentence, hint),) = look("variables", **{variable.name: value})
    assert (state, hint) == ("fail" if variable.stops else "warn", variable.hint)
    assert sentence == f"{variable.name}={value}: {variable.sentence}"
    harmless = "8" if variable.name == CONNECTIONS else "1" if "0" in variable.values else "0"
    assert states(look("variables", **{variable.name: harmless})) == ["ok"]


def test_variables_that_change_nothing(look: Look) -> None:
    for environment in ({}, {"LD_BIND_NOT": "0"}, *({CONNECTIONS: value} for value in ("2", "8", "32"))):
        assert look("variables", **environment) == [
            ("ok", "no variable is set that keeps launches from overlapping", "")
        ]


@pytest.mark.parametrize(
    ("environment", "state", "words"),
    [
        ({}, "ok", "not in a Slurm job"),
        ({"SLURM_JOB_ID": "7"}, "ok", "in Slurm job 7, outside a step; no policy is set"),
        (
            {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "16"},
            "ok",
            "in step 0 of Slurm job 7, 16",
        ),
        ({"SLURM_JOB_ID": "7", "OVERLAP_TABLE": "x"}, "ok", "a policy is set around this command"),
        ({"SLURM_JOB_ID": "7", "SLURM_TASK_PROLOG": "/p"}, "ok", "SLURM_TASK_PROLOG=/p"),
        ({"SLURM_JOB_ID": "7", "SLURM_EXPORT_ENV": "NONE"}, "warn", "SLURM_EXPORT_ENV=NONE"),
        ({"SLURM_JOB_ID": "7", "SLURM_EXPORT_ENV": "PATH,HOME"}, "warn", "SLURM_EXPORT_ENV=PATH,HOME"),
    ],
)
def test_slurm(look: Look, environment: dict[str, str], state: str, words: str) -> None:
    ((found, sentence, hint),) = look("slurm", **environment)
    assert (found, bool(hint)) == (state, state != "ok") and words in sentence


@pytest.mark.parametrize(
    ("file", "text", "environment", "words"),
    [
        ("", "", {}, "not in a container"),
        (".dockerenv", "", {}, "in a container (Docker)"),
        ("run/.containerenv", "", {}, "in a container (Podman)"),
        ("proc/1/cgroup", "0::/kubepods.slice/x", {}, "in a container (Kubernetes)"),
        ("proc/1/cgroup", "0::/init.scope", {}, "not in a container"),
        ("", "", {"APPTAINER_CONTAINER": "/x.sif"}, "in a container (Apptainer)"),
        ("", "", {"container": "systemd-nspawn"}, "in a container (systemd-nspawn)"),
    ],
)
def test_containers(look: Look, tmp_path: Path, file: str, text: str, environment: dict[str, str], words: str) -> None:
    if file:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    ((state, sentence, _),) = look("container", **environment)
    assert state == "ok" and words in sentence


def test_a_container_with_little_shared_memory(look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dev/shm").mkdir(parents=True)
    real = os.statvfs

    def small(path: str) -> os.statvfs_result:
        found = list(real(path))
        found[1], found[2] = 4096, 64 << 8  # 64 MiB, as Docker gives
        return os.statvfs_result(found)

    monkeypatch.setattr(os, "statvfs", small)
    ((state, sentence, hint),) = look("container", (".dockerenv",))
    assert state == "warn" and "with 64 MiB of /dev/shm" in sentence and "--shm-size" in hint


def test_profilers_that_are_injected(look: Look) -> None:
    assert states(look("profilers")) == ["ok"]
    ((state, sentence, _),) = look("profilers", CUDA_INJECTION64_PATH="/libtool.so")
    assert (state, sentence) == ("warn", "CUDA_INJECTION64_PATH=/libtool.so: CUDA loads it into the process")


@pytest.mark.parametrize(("tool", "words"), [("nsys", "Nsight Systems (nsys)"), ("ncu", "kernels one at a time")])
def test_a_profiler_around_it(tmp_path: Path, clean_environment: dict[str, str], tool: str, words: str) -> None:
    """The parent is a real process of that name."""
    shutil.copy("/bin/sh", tmp_path / tool)
    command = f"'{sys.executable}' -m pyshim doctor; exit $?"
    done = subprocess.run(
        [tmp_path / tool, "-c", command], env=clean_environment, capture_output=True, text=True, check=False
    )
    assert "warn  this runs under " in done.stdout and words in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("name", "state", "words"),
    [
        ("libjemalloc.so.2", "ok", "ours is put in front of it"),
        ("libasan.so.8", "ok", "stays in front of ours"),
        ("liboverlap.so", "warn", "another copy of our library"),
    ],
)
@pytest.mark.parametrize("where", ["LD_PRELOAD", "/etc/ld.so.preload"])
def test_other_preloads(look: Look, tmp_path: Path, name: str, state: str, words: str, where: str) -> None:
    (tmp_path / name).write_bytes(b"")
    environment = {}
    if where == "LD_PRELOAD":
        environment = {"LD_PRELOAD": f"ROOT/{name}"}
    else:
        (tmp_path / "etc").mkdir()
        (tmp_path / "etc/ld.so.preload").write_text(f"\n {tmp_path}/{name}\n")
    ((found, sentence, hint),) = look("preloads", **environment)
    assert (found, bool(hint)) == (state, state != "ok")
    assert sentence.startswith(f"{where} has ") and words in sentence


def test_a_preload_that_is_not_there(look: Look) -> None:
    assert look("preloads") == [("ok", "nothing else is preloaded", "")]
    ((state, sentence, _),) = look("preloads", LD_PRELOAD="/nowhere/libmine.so")
    assert state == "warn" and sentence.startswith("LD_PRELOAD has /nowhere/libmine.so, which is not there")
