"""The text of invented runs: what is said follows from the numbers, also where a control does nothing or loses."""

from __future__ import annotations

import pytest

from pyshim.demo.arms import Arm, Kernel, Outcome, Run
from pyshim.demo.drawing import style_for
from pyshim.demo.reasons import verdict
from pyshim.demo.scenes import STEP
from pyshim.demo.sizes import Sizes, sizes
from pyshim.demo.text import report
from pyshim.demo.timeline import Span, arrange

GEMM = Kernel("sgemm", 1000, 256, 80, 24576, 0)
REDUCE = Kernel("ncclDevKernel_AllReduce", 24, 544, 96, 36800, 82240)
STYLE = style_for("ascii", color=False)


def arm(name: str, milliseconds: float, drawn: bool = True) -> Arm:
    gemm = Span(GEMM.name, False, 0, 500 * milliseconds, 1000, 256, 0)
    reduce = Span(REDUCE.name, True, 600 * milliseconds, 1000 * milliseconds, 24, 544, 82240)
    step = arrange([gemm, reduce], GEMM.name, 1, 1) if drawn else None
    return Arm(name, Outcome(milliseconds, "NVIDIA Invented", GEMM, REDUCE, step), None)


def run(rule: str | None, plain: float, priority: float, policy: float, default: float = 1.0) -> Run:
    times = {"sequential": 2.0, "plain": plain, "priority": priority, "policy": policy, "default": default}
    return Run(STEP, "NVIDIA Invented", rule, *(arm(name, ms, drawn=rule is not None) for name, ms in times.items()))


@pytest.mark.parametrize(
    ("plain", "priority", "policy", "said"),
    [
        pytest.param(1.0, 0.8, 0.9, "priority alone gets it all; shaping only costs", id="priority is best"),
        pytest.param(1.0, 0.8, 0.8, "priority alone gets it all; shaping adds next to nothing", id="next to nothing"),
        pytest.param(1.0, 1.0, 0.8, "shaping pays", id="the policy is best"),
        pytest.param(1.0, 0.9, 0.8, "shaping pays", id="both help, the policy more"),
        pytest.param(1.0, 1.0, 1.0, "neither control changes anything", id="nothing changes"),
        pytest.param(1.0, 1.0, 1.1, "priority changes nothing, and shaping only costs", id="shaping loses"),
        pytest.param(1.0, 1.1, 1.2, "both controls lose: leave it as it is", id="both lose"),
        pytest.param(1.0, 1.1, 1.0, "shaping only gives back what priority lost", id="priority loses"),
    ],
)
def test_the_verdict_names_the_control_that_is_worth_it(
    plain: float, priority: float, policy: float, said: str
) -> None:
    assert verdict(run("hold", plain, priority, policy)).startswith(f"{said} (default +0.0%, priority alone ")


def test_sizes_are_those_of_the_library(library: object) -> None:
    def of(gpu: str, shaped: int | None) -> Sizes | None:
        return sizes(gpu, GEMM, REDUCE, shaped)

    h100 = "NVIDIA H100 80GB HBM3"
    assert of(h100, None) == of(h100, GEMM.dynamic_shared) == Sizes(3, "registers", None, 0)
    assert of(h100, 65536) == Sizes(3, "registers", 2, 0)
    assert of("NVIDIA Invented", None) is None


@pytest.fixture
def unknown_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> Sizes | None:
        return None

    monkeypatch.setattr("pyshim.demo.reasons.sizes", none)


SIMULATED = """\
overlap demo on a simulated NVIDIA Invented, dispatch rule
hold (the default); every number is simulated

1. A training step, whose all-reduces are needed by its end
only: the default policy changes nothing (simulated)

1## the GEMMs of layer 1, and the all-reduce of bucket 1;
... it is ready and waits; o## optimiser
sequential: one stream                    simulated 2.000 ms
  compute  1#######################
  comm                             .....1###################
plain: two streams, no control            simulated 1.000 ms
  compute  1###########
  comm                 ...1########
priority: communication raised            simulated 0.800 ms
  compute  1#########
  comm               ..1#######
policy: raised, half of the blocks        simulated 0.900 ms
  compute  1##########
  comm                ..1########
default: what is waited for raised        simulated 1.000 ms
  compute  1###########
  comm                 ...1########

simulated ms                    hold       drain    backfill
  sequential                   2.000       2.000       2.000
  plain                        1.000       1.000       1.000
  priority                     0.800       0.800       1.000
  policy                       0.900       0.900       0.900
  default                      1.000       1.000       1.000
  policy against plain        -10.0%      -10.0%      -10.0%
  default against plain        +0.0%       +0.0%       +0.0%

why, under hold
- plain: -50.0% against sequential. Communication stood
  ready without room for 100 us a bucket; 0% of it ran
  beside a GEMM. At equal priority it queues behind every
  block of the GEMM that was there first.
- priority: -20.0% against plain; 0 of 0 launches raised,
  warm-up included. Communication waited 80 us a bucket.
  Under hold no GEMM block starts anywhere while it waits,
  so room comes as blocks end.

so
- hold: priority alone gets it all; shaping only costs
  (default +0.0%, priority alone -20.0%, policy -10.0%
  against plain)
- drain: priority alone gets it all; shaping only costs
  (default +0.0%, priority alone -20.0%, policy -10.0%
  against plain)
- backfill: shaping pays (default +0.0%, priority alone
  +0.0%, policy -10.0% against plain)

- Which rule a real GPU follows is documented nowhere. Times
  of blocks are assumptions (costs.yaml); a simulation shows
  what follows from them, never how fast a GPU is."""

MEASURED = """\
overlap demo on NVIDIA Invented, measured by events, medians

1. A training step, whose all-reduces are needed by its end only: the default policy changes nothing

ms                          measured
  sequential                   2.000
  plain                        1.000
  priority                     0.800
  policy                       0.900
  default                      1.000
  policy against plain        -10.0%
  default against plain        +0.0%

why
- plain: -50.0% against sequential.
- priority: -20.0% against plain; 0 of 0 launches raised, warm-up included.

so
- priority alone gets it all; shaping only costs (default +0.0%, priority alone -20.0%, policy
  -10.0% against plain)"""


@pytest.mark.usefixtures("unknown_gpu")
def test_a_simulated_report_as_a_whole() -> None:
    runs = [run("hold", 1.0, 0.8, 0.9), run("drain", 1.0, 0.8, 0.9), run("backfill", 1.0, 1.0, 0.9)]
    assert "\n".join(report([runs], "hold", 60, STYLE)) == SIMULATED


@pytest.mark.usefixtures("unknown_gpu")
def test_a_measured_report_as_a_whole() -> None:
    real = run(None, 1.0, 0.8, 0.9)
    assert "\n".join(report([[real]], None, 100, STYLE)) == MEASURED
