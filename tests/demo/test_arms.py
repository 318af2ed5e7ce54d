"""The arms: what their environment is made of, and the way of a real GPU, played by a simulated one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from pyshim import _native
from pyshim.demo import arms, scenes
from pyshim.demo.scenes import SCENES
from pyshim.errors import OverlapError


def test_nothing_of_ours_reaches_an_arm() -> None:
    base = {
        "PATH": "/bin",
        "OVERLAP_RUN": "off",
        "SIMGPU_COSTS": "x",
        "LD_PRELOAD": f"/opt/{_native.SHIM.name}:/opt/libjemalloc.so",
        "LD_LIBRARY_PATH": f"{_native.SIMULATED_DRIVER.parent}/hip7:{_native.SIMULATED_DRIVER.parent}:/opt/lib",
    }
    assert arms.clean(base) == {"PATH": "/bin", "LD_PRELOAD": "/opt/libjemalloc.so", "LD_LIBRARY_PATH": "/opt/lib"}


def test_an_empty_preload_is_left_out() -> None:
    assert arms.clean({"LD_PRELOAD": str(_native.SHIM)}) == {}


def test_change_is_in_per_cent_of_what_was_before() -> None:
    assert arms.change(2.0, 1.5) == -25.0


@pytest.mark.usefixtures("built")
def test_a_simulated_driver_of_an_outer_run_is_no_real_gpu() -> None:
    base = {**os.environ, "LD_LIBRARY_PATH": str(_native.SIMULATED_DRIVER.parent)}
    found = []
    for names in (base, arms.clean(base)):
        try:
            found.append(arms.real_gpu(names))
        except OverlapError as error:
            found.append(error.sentence)
    assert found[0] == found[1]


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_a_driver_is_measured_in_all_arms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scene: arms.Scene) -> None:
    shutil.copy(_native.SIMULATED_DRIVER, tmp_path)
    monkeypatch.setattr(scenes, "REAL", ("--warmup=1", "--steps=3"))  # no check: kernels do not run there
    base = {**arms.clean(os.environ), "LD_LIBRARY_PATH": str(tmp_path)}
    name = arms.real_gpu(base)
    assert name.startswith("NVIDIA ")
    ran = []
    run = arms.measure(scene, name, base, lambda: ran.append(1))
    assert len(ran) == arms.count([scene], False)
    assert (run.rule, run.gpu) == (None, name)
    assert all(arm.milliseconds > 0 and arm.step is None for arm in run.arms)
    assert run.default.counters is not None
    assert run.default.counters.launches > 0
