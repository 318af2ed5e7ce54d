"""The text of invented runs: what is said follows from the numbers, also where raising does nothing or loses."""

from __future__ import annotations

import pytest

from pyshim.demo.arms import Arm, Outcome, Run
from pyshim.demo.drawing import style_for
from pyshim.demo.reasons import verdict
from pyshim.demo.scenes import STEP
from pyshim.demo.text import report
from pyshim.demo.timeline import Span, arrange

STYLE = style_for("ascii", color=False)


def arm(name: str, milliseconds: float, drawn: bool = True) -> Arm:
    gemm = Span("sgemm", False, 0, 500 * milliseconds, 1000, 256, 0)
    reduce = Span("ncclDevKernel_AllReduce", True, 600 * milliseconds, 1000 * milliseconds, 24, 544, 82240)
    step = arrange([gemm, reduce], "sgemm", 1, 1) if drawn else None
    return Arm(name, Outcome(milliseconds, step), None)


def run(rule: str | None, default: float) -> Run:
    times = {"sequential": 2.0, "plain": 1.0, "default": default}
    return Run(STEP, "NVIDIA Invented", rule, *(arm(name, ms, drawn=rule is not None) for name, ms in times.items()))


@pytest.mark.parametrize(
    ("default", "said"),
    [
        (0.8, "raising pays (default -20.0% against plain)"),
        (1.0, "raising changes nothing (default +0.0% against plain)"),
        (1.1, "raising loses (default +10.0% against plain)"),
    ],
)
def test_the_verdict_follows_from_the_times(default: float, said: str) -> None:
    assert verdict(run("hold", default)) == said


SIMULATED = """\
overlap demo on a simulated NVIDIA Invented, dispatch rule
hold (the default); every number is simulated

1. A training step, whose all-reduces are needed by its end
only: the default policy makes it 20.0% faster (simulated)

1## the GEMMs of layer 1, and the all-reduce of bucket 1;
... it is ready and waits; o## optimiser
sequential: one stream                    simulated 2.000 ms
  compute  1#######################
  comm                             .....1###################
plain: two streams, no control            simulated 1.000 ms
  compute  1###########
  comm                 ...1########
default: what is waited for raised        simulated 0.800 ms
  compute  1#########
  comm               ..1#######

simulated ms                    hold       drain    backfill
  sequential                   2.000       2.000       2.000
  plain                        1.000       1.000       1.000
  default                      0.800       0.800       1.000
  default against plain       -20.0%      -20.0%       +0.0%

why, under hold
- plain: -50.0% against sequential. Communication stood
  ready without room for 100 us a bucket; 0% of it ran
  beside a GEMM.
- default: -20.0% against plain. What is waited for stands
  ready for 80 us a bucket.

so
- hold: raising pays (default -20.0% against plain)
- drain: raising pays (default -20.0% against plain)
- backfill: raising changes nothing (default +0.0% against
  plain)

- Which rule a real GPU follows is documented nowhere. Times
  of blocks are assumptions (costs.yaml); a simulation shows
  what follows from them, never how fast a GPU is."""

MEASURED = """\
overlap demo on NVIDIA Invented, measured by events, medians

1. A training step, whose all-reduces are needed by its end only: the default policy makes it 20.0%
faster

ms                          measured
  sequential                   2.000
  plain                        1.000
  default                      0.800
  default against plain       -20.0%

why
- plain: -50.0% against sequential.
- default: -20.0% against plain.

so
- raising pays (default -20.0% against plain)"""


def test_a_simulated_report_as_a_whole() -> None:
    runs = [run("hold", 0.8), run("drain", 0.8), run("backfill", 1.0)]
    assert "\n".join(report([runs], "hold", 60, STYLE)) == SIMULATED


def test_a_measured_report_as_a_whole() -> None:
    assert "\n".join(report([[run(None, 0.8)]], None, 100, STYLE)) == MEASURED
