"""The scenes of `overlap demo`: a stencil and a training step."""

from __future__ import annotations

import json
from pathlib import Path

from pyshim.demo import timeline
from pyshim.demo.arms import Outcome, Scene

LAYERS = 4
BUCKETS = 4
# In the first step the library gets to know the kernels, and the clock of the simulated GPU counts that too. A real GPU
# is measured; the simulated one computes, and the same answer every time.
SIMULATED = ("--warmup=3", "--steps=1")
REAL = ("--warmup=3", "--steps=15", "--check")
STENCIL_STEPS = {True: 4, False: 50}  # of two iterations; simulated or not
SEQUENTIAL = "sequential"


def _step_words(arm: str, simulated: bool) -> list[str]:
    kind = SEQUENTIAL if arm == SEQUENTIAL else "concurrent"
    return [f"--arm={kind}", f"--layers={LAYERS}", f"--buckets={BUCKETS}", *(SIMULATED if simulated else REAL)]


def _step_read(arm: str, printed: str, path: Path | None) -> Outcome:
    answer = json.loads(printed)
    gemm = str(answer["compute"]["kernel"])
    return Outcome(float(answer["milliseconds"]), timeline.read(path, gemm, LAYERS, BUCKETS) if path else None)


def _stencil_words(arm: str, simulated: bool) -> list[str]:
    return ["-", "one" if arm == SEQUENTIAL else "plain", str(STENCIL_STEPS[simulated]), "stencil/style-0"]


def _stencil_read(arm: str, printed: str, path: Path | None) -> Outcome:
    """Return the time of an iteration: the last on the simulated GPU, the median of the second half on a real one."""
    times = [float(json.loads(line)["milliseconds"]) for line in printed.splitlines()]
    if path is None:
        late = sorted(times[len(times) // 2 :])
        return Outcome(late[len(late) // 2])
    return Outcome(times[-1], step=timeline.read_stencil(path, arm == SEQUENTIAL))


STENCIL = Scene(
    name="stencil",
    about="A stencil whose boundary planes and their exchange by NCCL have a stream of their own",
    lower="halo",
    legend="1{0} the interior of iteration 1; b its boundary planes, x{0} their exchange; {1} they are ready and wait",
    program="demo-stencil",
    words=_stencil_words,
    read=_stencil_read,
)
STEP = Scene(
    name="step",
    about="A training step, whose all-reduces are needed by its end only",
    lower="comm",
    legend="1{0} the GEMMs of layer 1, and the all-reduce of bucket 1; {1} it is ready and waits; o{0} optimiser",
    program="demo-step",
    words=_step_words,
    read=_step_read,
)
SCENES = (STENCIL, STEP)
