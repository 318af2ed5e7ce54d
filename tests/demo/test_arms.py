"""The arms: what their environment is made of, and the way of a real GPU, played by a simulated one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from pyshim import _native
from pyshim.demo import arms


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
    assert arms.real_gpu(base) == arms.real_gpu(arms.clean(base))


@pytest.mark.usefixtures("built")
def test_a_driver_is_measured_in_all_arms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(_native.SIMULATED_DRIVER, tmp_path)
    monkeypatch.setattr(arms, "REAL", ("--warmup=1", "--steps=3"))  # no check: kernels do not run there
    base = {**arms.clean(os.environ), "LD_LIBRARY_PATH": str(tmp_path)}
    assert arms.real_gpu(base) is None
    run = arms.measure(base)
    assert run.rule is None
    assert all(arm.milliseconds > 0 and arm.step is None for arm in run.arms)
    assert run.policy.counters is not None
    assert run.policy.counters.shaped > 0
