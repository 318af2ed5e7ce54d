"""The question to one GPU: measured in a process of its own, which may hang or crash, judged here."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from pyshim.doctor import child, gpus
from pyshim.launch import driver
from pyshim.probe import judge

_HERE = os.path.dirname(os.path.realpath(__file__))
MEASURE, COSTS = os.path.join(_HERE, "measure.py"), os.path.join(_HERE, "costs.yaml")
_MEASURING = 5.0  # seconds on a real GPU; where others use it, trials take longer
# Variables that change how kernels are launched, or who else looks at them: a program may need them, these do not.
_NOT_FOR_THIS = (
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_INJECTION64_PATH",
    "SIMGPU_TIMELINE",
    "SIMGPU_TRACE",
    "SIMGPU_LAUNCHES",
)


class Asked(NamedTuple):
    """run: None where there are no times; then refused, why: a sentence without a full stop, and the driver's error."""

    verdict: judge.Verdict
    run: judge.Run | None
    seconds: float
    bus: str = ""
    refused: gpus.Answer | None = None
    obstacle: str = ""  # as measure.py names it


def ask(device: int, environment: Mapping[str, str], seconds: float) -> Asked:
    """Measure a GPU. device: its number in this environment. seconds: limit, after which the process is ended."""
    quiet = {name: value for name, value in environment.items() if name not in _NOT_FOR_THIS}
    quiet["SIMGPU_COSTS"] = COSTS
    started = time.monotonic()
    measuring = seconds / 2
    if "SIMGPU" not in environment:  # a simulated one is slow on a busy host
        measuring = min(measuring, _MEASURING)
    words = (driver.NAME, str(device), str(measuring))
    data, why = child.ask(MEASURE, words, quiet, seconds)
    took = time.monotonic() - started
    nothing = judge.verdict(judge.Run((), 1, 0.0, 1))
    if why:
        return Asked(nothing, None, took, refused=gpus.Answer(error=why))
    try:
        refused = gpus.refusal(data)
        if refused:
            call = data.get("call")
            said = f"{call}: {refused.error}" if call else refused.error
            return Asked(nothing, None, took, refused=refused._replace(error=said))
        if data["obstacle"]:
            return Asked(nothing, None, took, str(data["bus"]), obstacle=str(data["obstacle"]))
        run = _run(data)
        return Asked(judge.verdict(run), run, took, str(data["bus"]))
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError):
        return Asked(nothing, None, took, refused=gpus.Answer(error=child.NO_SENSE))


def _run(data: Any) -> judge.Run:
    trials = [
        judge.Trial(
            float(trial["alone"]),
            float(trial["grid"]),
            _pair(trial["control"]),
            tuple(_pair(pair) for pair in trial["highs"]),
        )
        for trial in data["trials"]
    ]
    return judge.Run(tuple(trials), int(data["waves"]), float(data["high"]), int(data["multiprocessors"]))


def _pair(pair: Any) -> tuple[float, float]:
    first, second = pair
    return float(first), float(second)
