"""Why the times are what they are: sentences made of what was counted and seen, nothing that was not."""

from __future__ import annotations

from collections.abc import Sequence

from pyshim.demo.arms import Run, change
from pyshim.demo.scenes import STENCIL
from pyshim.demo.timeline import Step
from pyshim.report.streams import RAISED, outcome

# Differences below this many per cent are called none.
SAME = 0.5


def why(run: Run) -> list[str]:
    """Return sentences about one run, in the order of the arms."""
    return [_plain(run), _default(run)]


def gained(run: Run) -> str:
    """Return what the default policy does to the scene, as the end of a sentence."""
    percent = run.change_percent
    if abs(percent) < SAME:
        return "the default policy changes nothing"
    return f"the default policy makes it {abs(percent):.1f}% {'faster' if percent < 0 else 'slower'}"


def verdict(run: Run) -> str:
    """Return one sentence: whether raising is worth it here."""
    percent = run.change_percent
    said = "raising changes nothing" if abs(percent) < SAME else "raising pays" if percent < 0 else "raising loses"
    return f"{said} (default {signed(percent)} against plain)"


def signed(percent: float) -> str:
    return f"{percent:+.1f}%"


def _plain(run: Run) -> str:
    gain = change(run.sequential.milliseconds, run.plain.milliseconds)
    sentence = f"plain: {signed(gain)} against sequential."
    step = run.plain.step
    if step and run.scene is STENCIL:
        sentence += (
            f" The boundary planes are ready when an iteration begins, and stand behind the blocks of the interior for "
            f"{_waits(run, step)}; their exchange can only follow."
        )
    elif step:
        sentence += (
            f" Communication stood ready without room for {_waits(run, step)};"
            f" {100 * step.hidden:.0f}% of it ran beside a GEMM."
        )
    return sentence


def _default(run: Run) -> str:
    counters, step = run.default.counters, run.default.step
    sentence = f"default: {signed(run.change_percent)} against plain."
    if counters:
        sentence += f" {counters.raised:,} of {counters.launches:,} launches were on a raised stream, warm-up included."
        of = [stream for stream in counters.streams if stream.communicates]
        if of and not any(stream.status == RAISED for stream in of):
            sentence += f" The stream of communication in the end: {outcome(of[-1].status)}."
    if step:
        sentence += f" What is waited for stands ready for {_waits(run, step)}."
    if run.rule == "backfill":
        sentence += " Under backfill blocks of lower priority keep refilling places, so what is raised still waits."
    return sentence


def _waits(run: Run, step: Step) -> str:
    """Of a stencil: its lower lane has a boundary and an exchange for each iteration."""
    waits: Sequence[float] = step.waits_us[::2] if run.scene is STENCIL else step.waits_us
    each = "an iteration" if run.scene is STENCIL else "a bucket"
    return f"{sum(waits) / max(1, len(waits)):,.0f} us {each}"
