"""Why the times are what they are: sentences made of what was counted and seen, nothing that was not."""

from __future__ import annotations

from collections.abc import Sequence

from pyshim import _native
from pyshim.demo.arms import Arm, Run, change
from pyshim.demo.sizes import Sizes, sizes
from pyshim.demo.timeline import Step

# Differences below this many per cent are called none.
SAME = 0.5


def why(run: Run) -> list[str]:
    """About one run, in the order of the arms."""
    step = run.policy.step
    shaped_bytes = max((span.dynamic_shared for span in step.gemms), default=None) if step else None
    fits = sizes(run.plain.gpu, run.plain.compute, run.plain.communication, shaped_bytes)
    sentences = [*_room(run.plain, fits)] if fits else []
    sentences += _plain(run) + _priority(run) + _policy(run, fits)
    return sentences


def verdict(run: Run) -> str:
    """One sentence: which control is worth it here."""
    policy, priority = run.change_percent, change(run.plain.milliseconds, run.priority.milliseconds)
    against = change(run.priority.milliseconds, run.policy.milliseconds)
    numbers = f"priority alone {signed(priority)}, policy {signed(policy)} against plain"
    if policy > SAME and priority > SAME:
        said = "both controls lose: leave it as it is"
    elif against < -SAME:
        said = "shaping pays" if policy < -SAME else "shaping only gives back what priority lost"
    elif priority < -SAME:
        said = "priority alone gets it all; shaping " + ("only costs" if against > SAME else "adds next to nothing")
    elif policy > SAME:
        said = "priority changes nothing, and shaping only costs"
    else:
        said = "neither control changes anything"
    return f"{said} ({numbers})"


def signed(percent: float) -> str:
    return f"{percent:+.1f}%"


def _room(arm: Arm, fits: Sizes) -> list[str]:
    gemm, comm = arm.compute, arm.communication
    first = f"A multiprocessor holds {fits.native} blocks of {gemm.name}; {fits.limit} stop one more."
    shared = comm.static_shared + comm.dynamic_shared
    takes = f"{comm.threads} threads of {comm.registers} registers, {shared:,} bytes of shared memory"
    if fits.beside < 0:
        second = f"A block of communication ({takes}) fits on no multiprocessor of this GPU."
    elif fits.beside >= fits.native:
        second = f"A block of communication ({takes}) fits beside all of them: there is room already."
    elif fits.beside > 0:
        second = (
            f"A block of communication ({takes}) fits beside {fits.beside} of them: "
            f"{fits.native - fits.beside} must end before one gets in."
        )
    else:
        second = (
            f"A block of communication ({takes}) fits beside none of them: "
            f"it gets in only where all {fits.native} have ended."
        )
    return [first, second]


def _plain(run: Run) -> list[str]:
    gain = change(run.sequential.milliseconds, run.plain.milliseconds)
    sentence = f"plain: {signed(gain)} against sequential."
    step = run.plain.step
    if step:
        sentence += (
            f" Communication stood ready without room for {_waits(step)};"
            f" {100 * step.hidden:.0f}% of it ran beside a GEMM."
        )
        if sum(step.waits_us) > 0:
            sentence += " At equal priority it queues behind every block of the GEMM that was there first."
    return [sentence]


def _priority(run: Run) -> list[str]:
    counters = run.priority.counters
    raised, launches = (counters.raised, counters.launches) if counters else (0, 0)
    gain = change(run.plain.milliseconds, run.priority.milliseconds)
    sentence = f"priority: {signed(gain)} against plain; {raised} of {launches} launches raised, warm-up included."
    before, after = run.plain.step, run.priority.step
    if not before or not after:
        return [sentence]
    waited, waits = sum(before.waits_us), sum(after.waits_us)
    sentence += f" Communication waited {_waits(after)}."
    if waits > 0.9 * waited:
        if run.rule == "backfill":
            sentence += (
                " Under backfill GEMM blocks refill every place that is freed; what it needs is never free at once."
            )
        else:
            sentence += " It was not what kept communication waiting."
    elif run.rule == "backfill":
        sentence += " Under backfill it gets in where blocks happen to end together before others refill their places."
    else:
        halted = "anywhere" if run.rule == "hold" else "on the multiprocessors that it was promised"
        sentence += f" Under {run.rule} no GEMM block starts {halted} while it waits, so room comes as blocks end."
    return [sentence]


def _policy(run: Run, fits: Sizes | None) -> list[str]:
    counters = run.policy.counters
    if counters is None:
        return []
    sentence = (
        f"policy: {signed(run.change_percent)} against plain; {counters.raised} of {counters.launches} launches raised,"
        f" {counters.shaped} shaped."
    )
    before, after = run.sequential.step, run.policy.step
    if fits and fits.shaped is not None:
        sentence += f" Instead of {fits.native} blocks of the GEMM a multiprocessor holds {fits.shaped}."
    if before and after and before.gemms and after.gemms:
        # The first one runs alone in every arm.
        alone, shaped = before.gemms[0].length_us, after.gemms[0].length_us
        sentence += (
            f" Communication waited {_waits(after)}, and a GEMM alone takes {shaped:,.0f} us"
            f" instead of {alone:,.0f} ({signed(change(alone, shaped))})."
        )
    lines = [sentence]
    for name, count in counters.reasons.items():
        if name not in ("communication", "shaped"):
            lines.append(f"policy: {_launches(count)}: {_sentence_of(name)} ({name}).")
    return lines


def _sentence_of(reason: str) -> str:
    lib = _native.library()
    for index in range(lib.OVERLAP_REASONS):
        if _native.text(lib.overlap_reason_name(index)) == reason:
            return _native.text(lib.overlap_reason_sentence(index))
    return reason


def _launches(count: int) -> str:
    return "1 launch" if count == 1 else f"{count} launches"


def _waits(step: Step) -> str:
    waits: Sequence[float] = step.waits_us
    return f"{sum(waits) / max(1, len(waits)):,.0f} us a bucket"
