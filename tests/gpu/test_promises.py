"""The planner's promises against a driver's answers. The driver here is our own arithmetic, or that with a mistake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.gpu import compare_occupancy

ROOT = Path(__file__).resolve().parents[2]
# Kernels as occupancy.cu lists them; MISTAKE: what the answer is changed to.
DRIVER = """#!{python}
import sys
from tools.gpu import compare_occupancy as ours
gpu, lib = ours.known("h200"), ours._native.library()
KERNELS = [(16, 0, 1024), (40, 1000, 1024), (96, 17000, 640), (255, 0, 256)]
def resident(kernel, threads, dynamic):
    registers, static, maximum = KERNELS[kernel]
    footprint = ours._native.ffi.new("struct overlap_footprint *", (threads, registers, static, dynamic, 0, 0))
    blocks = lib.overlap_occupancy_of(gpu, footprint).blocks
    return {mistake}
if sys.argv[1] == "kernels":
    print("registers,static,maximum_threads,maximum_dynamic")
    for registers, static, maximum in KERNELS:
        print(registers, static, maximum, 232448 - static, sep=",")
elif sys.argv[1] == "ask":
    for line in sys.stdin:
        print(resident(*map(int, line.split())))
else:
    print("carveout,registers,static,maximum_threads,threads,dynamic,blocks")
    for carveout in (-1, 100, 25):
        for number in range(int(sys.argv[1])):
            kernel, threads, dynamic = number % 4, 32 * (1 + number % 8), number * 997 % 200000
            blocks = 0 if carveout == 25 else resident(kernel, threads, dynamic)
            print(carveout, *KERNELS[kernel], threads, dynamic, blocks, sep=",")
"""


def ask(folder: Path, mistake: str = "blocks") -> subprocess.CompletedProcess[str]:
    program = folder / "occupancy"
    text = DRIVER.format(python=sys.executable, mistake=mistake)
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    words = [sys.executable, "-m", "tools.gpu.compare_occupancy", str(program), "--gpu", "h200"]
    words += ["--samples", "200", "--plans", "400"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_promises_are_kept_and_a_small_carveout_is_known_to_differ(tmp_path: Path) -> None:
    done = ask(tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["samples"] == {"carveout -1": 200, "carveout 100": 200, "carveout 25": 200}
    assert set(said["different"]) == {compare_occupancy.KNOWN}
    assert said["planned"] == {}
    promises = said["planner"]["promises"]
    assert not said["planner"]["broken"] and sum(promises.values()) > 1000
    for what in ("make_room, as planned", "window, a byte below", "window, largest size"):
        assert promises[what] > 20, what


def test_the_planner_leaves_what_was_measured_under_a_small_carveout() -> None:
    """With a carve-out of 25 % an H200's driver answered less in 6,995 of 25,348 samples: examples of these."""
    examples = json.loads((ROOT / "tools/gpu/results/correctness.json").read_text())["occupancy"]["examples"]
    gpu, library = compare_occupancy.known("h200"), compare_occupancy._native.library()
    assert len(examples) > 10
    for row in examples:
        assert row["carveout"] == 25 and row["blocks"] < row["ours"]
        assert compare_occupancy.unplanned(gpu, row), row
        # The same launch with the largest carve-out is planned for by some shape.
        launch = (
            1 << 20,
            0,
            gpu.shared_optin - row["static"],
            (row["threads"], row["registers"], row["static"], row["dynamic"]),
        )
        plan = compare_occupancy._native.ffi.new("struct overlap_plan *")
        library.overlap_plan_of(
            gpu,
            compare_occupancy._native.ffi.new("struct overlap_launch *", launch),
            compare_occupancy._native.ffi.NULL,
            library.OVERLAP_SHAPE_BLOCKS,
            1,
            0,
            plan,
        )
        assert plan.dynamic_shared > row["dynamic"], row


@pytest.mark.parametrize(
    ("mistake", "broken"),
    [
        # One block fewer from some size on; and one byte too much in the limit that the driver keeps.
        ("blocks - (dynamic > 100000)", {"make_room, as planned", "window, least size"}),
        ("blocks - (blocks == 1 and threads == 64)", {"window, largest size"}),
    ],
)
def test_a_broken_promise_is_found(tmp_path: Path, mistake: str, broken: set[str]) -> None:
    done = ask(tmp_path, mistake)
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert broken <= set(said["planner"]["broken"])
    assert said["planner"]["examples"][0].keys() >= {"what", "kernel", "threads", "dynamic", "answer"}


def test_an_edge_that_is_off_by_one_byte_is_found(tmp_path: Path) -> None:
    """A driver that gives a window's blocks one byte sooner than the planner thinks."""
    sooner = "lib.overlap_occupancy_of(gpu, ours._native.ffi.new('struct overlap_footprint *', (threads, registers, "
    sooner += "static, dynamic + 1, 0, 0))).blocks"
    said = json.loads(ask(tmp_path, sooner).stdout)
    assert "window, a byte below" in said["planner"]["broken"]


def test_a_gpu_that_nobody_knows_is_one_sentence() -> None:
    with pytest.raises(SystemExit, match="no such GPU in the library's table"):
        compare_occupancy.known("h2000")
