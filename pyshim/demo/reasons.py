"""Why the times are what they are: sentences made of what was counted and seen, nothing that was not."""

from __future__ import annotations

from collections.abc import Sequence

from pyshim.demo.arms import Kernel, Run, change
from pyshim.demo.scenes import STENCIL
from pyshim.demo.sizes import Sizes, sizes
from pyshim.demo.timeline import Step
from pyshim.stats.page import sentences

# Differences below this many per cent are called none.
SAME = 0.5


def why(run: Run) -> list[str]:
    """Return sentences about one run, in the order of the arms."""
    return _of_stencil(run) if run.scene is STENCIL else _of_step(run)


def gained(run: Run) -> str:
    """Return what the default policy does to the scene, as the end of a sentence."""
    percent = run.against_plain(run.default)
    if abs(percent) < SAME:
        return "the default policy changes nothing"
    return f"the default policy makes it {abs(percent):.1f}% {'faster' if percent < 0 else 'slower'}"


def verdict(run: Run) -> str:
    """Return one sentence: which control is worth it here."""
    default, policy, priority = (run.against_plain(arm) for arm in (run.default, run.policy, run.priority))
    against = change(run.priority.milliseconds, run.policy.milliseconds)
    numbers = f"default {signed(default)}, priority alone {signed(priority)}, policy {signed(policy)} against plain"
    if default < min(priority, policy, 0.0) - SAME:
        said = "raising what is waited for pays"
    elif policy > SAME and priority > SAME:
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


def _of_stencil(run: Run) -> list[str]:
    plain, default = run.plain.step, run.default.step
    sentence = f"plain: {signed(change(run.sequential.milliseconds, run.plain.milliseconds))} against sequential."
    if plain:
        sentence += (
            f" The boundary planes are ready when an iteration begins, and stand behind the blocks of the interior for "
            f"{_each(plain)}; their exchange can only follow."
        )
    sentences = [sentence]
    priority = f"priority: {signed(run.against_plain(run.priority))} against plain."
    if abs(run.against_plain(run.priority)) < SAME:
        priority += " What is raised is the exchange, which has to wait for its boundary planes all the same."
    sentences.append(priority)
    policy = f"policy: {signed(run.against_plain(run.policy))} against plain."
    if run.policy.counters and run.policy.counters.shaped:
        policy += f" {_launches(run.policy.counters.shaped)} shaped: the interior has fewer blocks on a multiprocessor."
    sentences.append(policy)
    counters = run.default.counters
    streams = [stream for stream in counters.streams if stream.status == "raised"] if counters else []
    sentence = f"default: {signed(run.against_plain(run.default))} against plain."
    if counters and streams:
        sentence += (
            f" The stream that carries the exchange was raised once it was known, and with it {counters.critical} "
            "launches of boundary planes."
        )
    if default:
        sentence += f" They wait {_each(default)}."
    if run.rule == "backfill":
        sentence += " Under backfill blocks of the interior keep refilling places, so the exchange still waits."
    return [*sentences, sentence]


def _each(step: Step) -> str:
    """Of a stencil: its lower lane has a boundary and an exchange for each iteration."""
    waits = step.waits_us[::2]
    return f"{sum(waits) / max(1, len(waits)):,.0f} us an iteration"


def _of_step(run: Run) -> list[str]:
    step, known = run.policy.step, run.plain.outcome
    shaped_bytes = max((span.dynamic_shared for span in step.computation), default=None) if step else None
    compute, communication = known.compute, known.communication
    fits = sizes(run.gpu, compute, communication, shaped_bytes) if compute and communication else None
    sentences = [*_room(compute, communication, fits)] if fits and compute and communication else []
    return sentences + _plain(run) + _priority(run) + _policy(run, fits) + _default(run)


def _default(run: Run) -> list[str]:
    counters = run.default.counters
    if counters is None:
        return []
    sentence = (
        f"default: {signed(run.against_plain(run.default))} against plain; {counters.raised} of "
        f"{counters.communication} communication launches raised."
    )
    if counters.communication_unhurried:
        sentence += (
            f" {_launches(counters.communication_unhurried)} were not: several long GEMMs run before anything waits "
            "for the collectives, and there raising may cost more than it gains (`priority: auto`)."
        )
    return [sentence]


def signed(percent: float) -> str:
    return f"{percent:+.1f}%"


def _room(gemm: Kernel, comm: Kernel, fits: Sizes) -> list[str]:
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
    if before and after and before.computation and after.computation:
        # The first one runs alone in every arm.
        alone, shaped = before.computation[0].length_us, after.computation[0].length_us
        sentence += (
            f" Communication waited {_waits(after)}, and a GEMM alone takes {shaped:,.0f} us"
            f" instead of {alone:,.0f} ({signed(change(alone, shaped))})."
        )
    lines = [sentence]
    for name, count in counters.reasons.items():
        if name not in ("communication", "shaped"):
            lines.append(f"policy: {_launches(count)}: {sentences().get(name, name)} ({name}).")
    return lines


def _launches(count: int) -> str:
    return "1 launch" if count == 1 else f"{count} launches"


def _waits(step: Step) -> str:
    waits: Sequence[float] = step.waits_us
    return f"{sum(waits) / max(1, len(waits)):,.0f} us a bucket"
