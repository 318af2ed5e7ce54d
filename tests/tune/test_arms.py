"""What an arm becomes: the environment of the program, and what tuned.yaml extends and sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyshim.policy.model import Policy
from pyshim.policy.reader import read_bytes
from pyshim.start import driver, plan
from pyshim.tune import arms
from pyshim.tune.arms import BARE, Arm, ArmOptions, Platform, TunedProgram
from pyshim.tune.sets import HERE as MEASURED
from pyshim.tune.sets import SETS

NVIDIA = Platform("NVIDIA H100 80GB HBM3", "", "580.1", False, frozenset({"nvidia"}))
AMD = Platform("", "", "", False, frozenset({"amd"}))
HERE = {"PATH": "/usr/bin:/bin"}


def extending(name: str, gpu: str) -> Policy:
    text = f"policy: 1\nname: tuned\nextends: {name}\n" + (f'gpu: ["{gpu}"]\n' if gpu else "")
    reading = read_bytes(text.encode(), "/tmp/tuned.yaml", {})
    assert reading.policy is not None, reading.findings
    return reading.policy


def test_a_file_is_extended_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.yaml").write_text("policy: 1\nname: mine\nstreams: {raise: {share: 10%}}\n")
    monkeypatch.chdir(tmp_path)
    (stage,), _ = arms.stages(ArmOptions(arms=("mine=mine.yaml", "other=observe")), NVIDIA, {})
    assert [arm.name for arm in stage.arms] == ["default", "mine", "other"]
    found = [arms.extends(arm, NVIDIA, {}) for arm in stage.arms]
    assert found == [("default", ""), (str(tmp_path / "mine.yaml"), ""), ("observe", "")]
    assert [extending(*one).raise_share for one in found] == [50, 10, 150]  # observe: 100 more


def test_on_amd_the_default_is_that_of_its_gpus() -> None:
    policies = [extending(*arms.extends(Arm("default", "auto"), AMD, {})), extending("mi300x", "AMD Instinct*")]
    assert policies[0].stream_creators and policies[0].gpus == ("AMD Instinct*",)
    assert [(one.stream_creators, one.environment) for one in policies[:1]] == [
        (one.stream_creators, one.environment) for one in policies[1:]
    ]


def test_the_gpu_is_that_of_the_drivers_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "0000:01:00.0").mkdir()
    (tmp_path / "0000:01:00.0" / "information").write_text("Model: \t\t NVIDIA H200\nIRQ: 1\n")
    folders = {"/proc/driver/nvidia/gpus": str(tmp_path)}
    names, text = driver.names, driver.text
    monkeypatch.setattr(driver, "names", lambda folder: names(folders.get(folder, folder)))
    monkeypatch.setattr(driver, "text", lambda path: text(path.replace("/proc/driver/nvidia/gpus", str(tmp_path))))
    assert arms.machine(None, {}).gpu == "NVIDIA H200"


def test_what_a_policy_may_set_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = tmp_path / "nccl.conf"
    conf.write_text("NCCL_CGA_CLUSTER_SIZE=4\n")
    monkeypatch.setattr(plan, "ETC", str(conf))
    variables = ("A", "NCCL_MAX_CTAS", "OMPI_MCA_btl", "NCCL_CGA_CLUSTER_SIZE", "SET")
    arm = Arm("x", None, tuple((name, "1") for name in variables))
    inside, outside = arms.split(arm, {"SET": "2"})
    assert set(inside) == {"A"} and set(outside) == set(variables) - {"A"}


def environment(arm: Arm, *command: str, **base: str) -> dict[str, str]:
    return arms.environment_of(arm, TunedProgram(command, {**HERE, **base}))


def test_bare_is_the_users_environment_and_an_arm_adds_to_it() -> None:
    assert environment(BARE, "true", A="1") == {**HERE, "A": "1"}
    assert environment(Arm("X=2", None, (("X", "2"),)), "true", X="1") == {**HERE, "X": "2"}
    found: Any = environment(Arm("default", "auto"), "true")
    assert found["LD_PRELOAD"] == plan.LIBRARY and found["OVERLAP_TABLE"] and found["OVERLAP_QUIET"] == "1"


def test_nothing_of_ours_is_left_around_it() -> None:
    base = {"LD_PRELOAD": "/x/liboverlap.so:/y/libz.so", "OVERLAP_TABLE": "x", "OVERLAP_POLICY_PATH": "/p", "A": "1"}
    assert arms.own_environment(base) == {"LD_PRELOAD": "/y/libz.so", "OVERLAP_POLICY_PATH": "/p", "A": "1"}


def test_sets_hold_what_may_be_tried_and_never_what_hangs() -> None:
    found = {setting.variable for settings in SETS.values() for setting in settings}
    hangs = {"NCCL_P2P_USE_CUDA_MEMCPY", "NCCL_SHM_USE_CUDA_MEMCPY", "NCCL_P2P_LEVEL"}
    assert not found & {*hangs, "NCCL_ALGO", "NCCL_PROTO"}
    for name, settings in SETS.items():
        assert all(setting.gained for setting in settings)
        assert all(setting.source == MEASURED or setting.source.startswith("https://") for setting in settings)
        stages, _ = arms.stages(ArmOptions(tries=tuple(arms.of_set(name))), NVIDIA, {}, why="static")
        values: dict[str, int] = {}
        for setting in settings:
            values[setting.variable] = values.get(setting.variable, 0) + len(setting.values)
        assert [len(stage.tried) for stage in stages] == list(values.values())
    assert arms.of_set("nccl")[0] == "NCCL_MIN_CTAS=16,8,32"
    assert arms.of_set("pytorch") == ["CUDA_DEVICE_MAX_CONNECTIONS=1,32"]
