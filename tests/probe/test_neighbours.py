"""`overlap probe` beside another program's blocks that stay: no answer, or the true one."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyshim import _native
from pyshim.probe import ask, judge

# Runs measure.py, and puts in front of each grid a block on every multiprocessor, which none for itself fits beside.
DISTURBED = """
import ctypes, importlib.util, json, os, sys
spec = importlib.util.spec_from_file_location("measure", {measure!r})
measure = importlib.util.module_from_spec(spec)
spec.loader.exec_module(measure)
plain, stream, module, kernel = measure.beside_grid, ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
NAME = b"overlap_probe_neighbour"

def beside(gpu, times, cycles):
    if not stream:
        gpu.cuda("cuModuleLoadData", ctypes.byref(module), gpu.ptx.replace(b"overlap_probe_gap", NAME))
        gpu.cuda("cuModuleGetFunction", ctypes.byref(kernel), module, NAME)
        gpu.cuda("cuFuncSetAttribute", kernel, measure.CARVEOUT, measure.CARVEOUT_MOST)
        gpu.cuda("cuStreamCreateWithPriority", ctypes.byref(stream), measure.NON_BLOCKING, gpu.least)
        gpu.kernels["neighbour"] = kernel
    gpu.launch("neighbour", stream, 1e6, gpu.limits["multiprocessors"], 2 * measure.LEFT_FREE)
    found = plain(gpu, times, cycles)
    gpu.cuda("cuStreamSynchronize", stream)
    return found

measure.beside_grid = beside
answer = measure.measure(measure.Driver(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
os.write(int(sys.argv[4]), json.dumps(answer).encode())
"""
GRID = 2400.0  # microseconds by itself, in the costs of `overlap probe`


@pytest.fixture
def disturbed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    program = tmp_path / "disturbed.py"
    program.write_text(DISTURBED.format(measure=ask.MEASURE))
    monkeypatch.setattr(ask, "MEASURE", str(program))
    return program


def asked(
    rule: str, stays: float, monkeypatch: pytest.MonkeyPatch, folder: Path, environment: dict[str, str]
) -> judge.Verdict:
    costs = folder / f"costs{stays}.yaml"
    plain = Path(ask.__file__).with_name("costs.yaml").read_text()
    costs.write_text(f'{plain}- {{kernel: "*neighbour", block_us: {stays}, spread: 0, gain: 20, sharing: 0}}\n')
    monkeypatch.setattr(ask, "COSTS", str(costs))
    here = {"LD_LIBRARY_PATH": str(_native.SIMULATED_DRIVER.parent), "SIMGPU": f"h200:{rule}"}
    found = ask.ask(0, {**environment, **here, "SIMGPU_MULTIPROCESSORS": "16"}, 30)
    assert found.refused is None and found.verdict.trials == 20, found.refused
    return found.verdict


@pytest.mark.parametrize("part", [1.2, 1.5, 2.5])
@pytest.mark.parametrize("rule", judge.WORDS[:3])
def test_blocks_that_outlast_the_grid_give_no_answer(
    rule: str, part: float, disturbed: Path, monkeypatch: pytest.MonkeyPatch, clean_environment: dict[str, str]
) -> None:
    assert asked(rule, part * GRID, monkeypatch, disturbed.parent, clean_environment).rule is None


@pytest.mark.parametrize("rule", judge.WORDS[:3])
def test_blocks_that_end_before_it_give_no_wrong_one(
    rule: str, disturbed: Path, monkeypatch: pytest.MonkeyPatch, clean_environment: dict[str, str]
) -> None:
    found = [asked(rule, part * GRID, monkeypatch, disturbed.parent, clean_environment).rule for part in (0.02, 0.5)]
    assert found[0] == rule, "gone before anything was asked"
    assert found[1] in (rule, None)
