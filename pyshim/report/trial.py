"""What a trial found out: one sentence over all processes, the same as data, and what makes its verdict doubtful."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from pyshim import _native
from pyshim.launch.folder import WORTH
from pyshim.report.who import who
from pyshim.samples import Change
from pyshim.stats.trial import Arm, Trial

if TYPE_CHECKING:
    from pyshim.report.collect import Collected
    from pyshim.report.steps import Step
    from pyshim.stats.page import Page

WORDS = {"communication": "communication launch", "host_wait": "host wait"}
_IN_STEP = 0.9  # of the time: less is a finding
_SETTLED = ("kept", "nothing", "noisy")
# What happened to a trial that gets no times.
_OBSTACLES = {
    "context": "the program ended the context of the GPU in which the trial counted, and the trial ended with it",
    "times": "the driver cannot time events, so the trial was given up",
    "captures": "in each block the program captured something for a graph, and such a block cannot be timed",
}
_WHOLE_RUNS = "compare whole runs: overlap-run --policy ARM --report DIR, then overlap report --compare"


class Outcome(NamedTuple):
    """Processes of which the same can be said."""

    outcome: str  # kept | nothing | noisy | graphs | unsettled: ended before a verdict | stopped: has not ended
    arm: str | None  # that was kept
    pages: Sequence[Page]

    @property
    def trials(self) -> list[Trial]:
        return [page.trial for page in self.pages if page.trial]

    @property
    def mark(self) -> str | None:
        """What was counted; None: no trial began."""
        return next((trial.mark for trial in self.trials if trial.mark), None)

    @property
    def obstacle(self) -> str | None:
        """Why a trial got no times; None: they all did."""
        return next((trial.obstacle for trial in self.trials if trial.obstacle), None)

    @property
    def marks(self) -> int:
        return max(trial.marks for trial in self.trials)

    @property
    def seconds(self) -> float | None:
        return max((trial.seconds for trial in self.trials if trial.seconds is not None), default=None)

    @property
    def arms(self) -> dict[str, tuple[Arm, ...]]:
        """Return what each process says of an arm, by its name; the reference is left out."""
        found: dict[str, tuple[Arm, ...]] = {}
        for trial in self.trials:
            for arm in trial.arms[1:]:
                found[arm.name] = (*found.get(arm.name, ()), arm)
        return found


def outcomes(pages: Sequence[Page]) -> list[Outcome]:
    """Return the outcomes of processes with a trial, the most frequent first.

    Helpers that count nothing are left out where others count."""
    tried = [page for page in pages if page.trial]
    counting = [page for page in tried if page.trial and (page.trial.mark or any(page.trial.early))]
    found: dict[tuple[str, str | None], list[Page]] = {}
    for page in counting or tried:
        found.setdefault(_outcome(page), []).append(page)
    return sorted((Outcome(*key, of) for key, of in found.items()), key=lambda outcome: -len(outcome.pages))


def _outcome(page: Page) -> tuple[str, str | None]:
    trial = page.trial
    assert trial
    if trial.status == "kept":
        return trial.status, trial.arms[trial.kept].name
    if _replays(page, trial):
        return "graphs", None
    if trial.status in _SETTLED and not (trial.status == "noisy" and trial.obstacle):
        return trial.status, None
    return ("unsettled" if page.ended else "stopped"), None


def _replays(page: Page, trial: Trial) -> bool:
    """Return whether graphs make most of the launches.

    Each launch of a graph repeats one launch at least. A step that is a graph leaves fewer marks than graph launches.
    """
    graphs = page.graph_launches
    marks = max(page.communication, trial.marks + sum(trial.early))
    return 2 * graphs > page.launches > 0 or graphs > marks


def change(arms: Sequence[Arm]) -> Change | None:
    """Return the change of time under an arm. Of several processes: the mean, and an interval that holds all theirs."""
    found = [one for arm in arms for one in [arm.samples.change()] if one]
    if not found:
        return None
    return Change(fmean(one.percent for one in found), min(one.low for one in found), max(one.high for one in found))


def sentence(collected: Collected) -> str | None:
    """Return the verdict; None: no policy has a trial."""
    every = outcomes(collected.pages)
    said = [_said(one, worth(collected, one)) for one in every]
    if len(every) < 2:
        return said[0] if every else None
    return "the processes differ: " + ". ".join(f"{who(one.pages)}: {words}" for one, words in zip(every, said))


def worth(collected: Collected, one: Outcome) -> float | None:
    """Return the smallest gain that the policy of these processes keeps, in per cent; None: not known, or several."""
    names = {(page.run, page.trial.arms[0].name) for page in one.pages if page.trial}
    known = {(run.id, policy.get("name")): policy.get(WORTH) for run in collected.runs for policy in run.policies}
    found = {known.get(name) for name in names}
    try:
        percent = float(found.pop() or "") if len(found) == 1 else 0.0
    except ValueError:
        return None
    return percent if math.isfinite(percent) and percent > 0 else None


def _said(one: Outcome, worth: float | None) -> str:
    if one.outcome == "kept":
        return "; ".join([f"{_arm(one, str(one.arm))}, kept{_by(one)}{_after(one)}", *_others(one)])
    if one.outcome == "nothing":
        arms = "; ".join(_others(one))
        least = "as much as `worth` in the policy" if worth is None else f"{worth:g} % or more"
        return f"no arm gained {least}{_by(one)}{_after(one)}: {arms}"
    if one.outcome == "noisy":
        when = f"{_by(one)}{_after(one)}"
        return f"cannot tell, the pace varies too much{when}, so nothing was kept: {'; '.join(_others(one))}"
    if one.outcome == "graphs":
        graphs, launches = (sum(getattr(page, name) for page in one.pages) for name in ("graph_launches", "launches"))
        return (
            f"cannot tell: most launches are repeated by graphs ({graphs:,} launches of graphs, {launches:,} launches "
            "of kernels), and an arm acts only when a graph is captured. Run some hundred steps before the capture, or "
            f"{_WHOLE_RUNS}"
        )
    return _unsettled(one)


def _unsettled(one: Outcome) -> str:
    stopped = one.outcome == "stopped"
    obstacle = _obstacle(one)
    if obstacle:
        when = f" after {_count(one.marks, one.mark)}" if one.mark else ""
        return f"no verdict: {_OBSTACLES[obstacle]}{when}{_by(one)}. No arm was kept. To find out, {_WHOLE_RUNS}"
    if not one.mark:
        early = [max(trial.early[index] for trial in one.trials) for index in (0, 1)]
        when = "it has not begun" if stopped else "the process ended before it began"
        seen = f"{_count(early[0], 'communication')} and {_count(early[1], 'host_wait')}"
        header = _native.header()
        begins = (
            f"{_count(header.OVERLAP_TRIAL_WARM_UP, 'communication')} "
            f"({_count(header.OVERLAP_TRIAL_WAITS, 'host_wait')}"
        )
        return (
            f"no verdict: {when}, after {seen}. It begins after {begins} where there is no communication), and a "
            f"verdict needs at least {_needed(one):,} more"
        )
    when = "the process was killed in the middle, or is still running," if stopped else "the process ended"
    need = f"of at least {_needed(one):,} " if one.marks < _needed(one) else ""
    short = "" if need else ". Steps vary, or blocks were too short to be judged"
    known = "; ".join(_others(one)) if any(change(arms) for arms in one.arms.values()) else "nothing"
    return f"no verdict: {when} after {_count(one.marks, one.mark, need)}{_by(one)}{short}. So far: {known}"


def _obstacle(one: Outcome) -> str | None:
    """Return what kept the trial from a verdict. A short program may end its context where it ends anyway."""
    rest = max(page.communication - page.trial.marks - sum(page.trial.early) for page in one.pages if page.trial)
    short = one.marks < _needed(one) and rest < _native.header().OVERLAP_TRIAL_WARM_UP
    return None if one.obstacle == "context" and short else one.obstacle


def _needed(one: Outcome, known: bool = False) -> int:
    """Return the fewest marks between the beginning of a trial and its verdict. known: with samples of earlier runs."""
    header, arms = _native.header(), max(len(trial.arms) for trial in one.trials)
    rounds = header.OVERLAP_TRIAL_ROUNDS - (header.OVERLAP_TRIAL_KNOWN if known else 0)
    return 2 * arms * int(header.OVERLAP_TRIAL_SHORTEST * rounds)


def _count(count: int, mark: str, of: str = "") -> str:
    """of: how many there should be."""
    word = WORDS[mark]
    return f"{count:,} {of}{word if count == 1 and not of else f'{word}es' if word.endswith('h') else f'{word}s'}"


def _by(one: Outcome) -> str:
    count = len(one.pages)
    what = "ranks" if all(page.rank is not None for page in one.pages) else "processes"
    return f" in {count:,} {what}" if count > 1 else ""


def _after(one: Outcome) -> str:
    seconds = one.seconds
    when = "" if seconds is None else f" after {seconds:,.0f} s" if seconds >= 10 else f" after {seconds:.2g} s"
    return f"{when} ({_count(one.marks, one.mark or 'communication')})"


def _others(one: Outcome) -> list[str]:
    return [_arm(one, name) for name in one.arms if name != one.arm]


def _arm(one: Outcome, name: str) -> str:
    arms = one.arms[name]
    found = change(arms)
    dropped = [arm for arm in arms if arm.status == "harmful"]
    if dropped:
        some = f" in {len(dropped):,} of {len(arms):,}" if len(dropped) < len(arms) else ""
        return f"{name}: dropped{some}" + (f", {found.percent:+.0f} %" if found else "")
    if found is None:
        several = any(arm.samples.count > 1 for arm in arms)
        return f"{name}: {'samples differ too much' if several else 'too few samples'}"
    return f"{name}: {_signed(found.percent)} % [{_signed(found.low)}, {_signed(found.high)}]"


def _signed(percent: float) -> str:
    text = f"{percent:+.1f}"
    return "0.0" if text in ("-0.0", "+0.0") else text


def gain(collected: Collected) -> tuple[str, str] | None:
    """Return the second and third sentence of a report; None: there is no trial, or its processes differ."""
    every = outcomes(collected.pages)
    if len(every) != 1:
        return None
    (one,) = every
    if one.outcome == "kept":
        return (
            "measured: see the trial",
            f"nothing: the next run of the same command begins with {one.arm} (overlap trial lists what is remembered)",
        )
    if one.outcome == "nothing":
        return "nothing was gained: see the trial", "nothing: this program runs as fast without overlap-run"
    if one.outcome == "graphs":
        return "not known: see the trial", "capture later, or compare whole runs, as the trial says"
    if one.outcome == "noisy":
        folder = shlex.quote(collected.directories[0])
        following = f"compare whole runs: overlap report --compare BEFORE {folder}"
    elif _obstacle(one):
        following = _WHOLE_RUNS
    elif one.outcome == "stopped":
        following = "a run to its end: then its samples are remembered for the next one"
    else:
        following = "a run with more steps"
        if one.marks >= _needed(one, known=True):
            following += ", or further runs: each begins with the samples of those before"
    return "not known: the trial has no verdict", following


def as_json(collected: Collected) -> dict[str, Any] | None:
    said = sentence(collected)
    if said is None:
        return None
    return {
        "sentence": said,
        "outcomes": [
            {
                "outcome": one.outcome,
                "arm": one.arm,
                "processes": len(one.pages),
                "mark": one.mark,
                "marks": one.marks,
                "seconds": one.seconds,
                "worth_percent": worth(collected, one),
                "arms": [_arm_json(name, arms) for name, arms in one.arms.items()],
            }
            for one in outcomes(collected.pages)
        ],
    }


def _arm_json(name: str, arms: Sequence[Arm]) -> dict[str, Any]:
    found = change(arms)
    return {
        "name": name,
        "dropped": sum(arm.status == "harmful" for arm in arms),
        "samples": sum(arm.samples.count for arm in arms),
        "percent": found and found.percent,
        "low_percent": found and found.low,
        "high_percent": found and found.high,
    }


def never_in_force(collected: Collected) -> set[str]:
    """Return the arms of trials that no process is known to have run under: their rules had nothing to act on."""
    every: set[str] = set()
    seen: set[str] = set()
    for trial in (page.trial for page in collected.pages if page.trial):
        names = [arm.name for arm in trial.arms]
        every.update(names[1:])
        seen.update(names[arm] for arm in (0, trial.kept, *(block.arm for block in trial.blocks)))
    return every - seen


_ENDS = {"nothing": " (none is faster)", "noisy": " (too noisy)", "unsettled": " yet", "stopped": " yet"}


def findings(step: Step) -> Iterator[str]:
    """Yield verdicts that differ between the ranks of a step, and ranks whose arms were not in step."""
    every = outcomes(step.pages)
    if len(every) > 1 and any(one.outcome in _SETTLED for one in every):
        words = (f"{one.arm or 'no arm'} kept{_ENDS.get(one.outcome, '')} for {who(one.pages)}" for one in every)
        yield (
            f"the trial settled differently: {'; '.join(words)}. These ranks run under different policies to the end; "
            "name one policy instead: overlap-run --policy ARM"
        )
    worst = min(_shared(step.pages), default=None, key=lambda pair: pair[0])
    if worst and worst[0] < _IN_STEP:
        share, pages = worst
        yield (
            f"the arms of the trial were not in step: {who(pages)} were under the same arm {100 * share:.0f} % of the "
            "time. Each rank switches after the same number of marks: these ranks began apart, or count different "
            "ones, as stages of a pipeline do. The verdict is that of a mixture of arms"
        )


def _shared(pages: Sequence[Page]) -> Iterator[tuple[float, tuple[Page, Page]]]:
    """Yield the share of time in which a rank had the same arm in force as the first rank of its host."""
    first: dict[str, Page] = {}
    ranks = (page for page in pages if page.rank is not None and page.trial)
    for page in sorted(ranks, key=lambda page: page.rank or 0):
        other = first.setdefault(page.host, page)
        if other is not page and page.trial and other.trial:
            share = overlap(_spans(other.trial), _spans(page.trial))
            if share is not None:
                yield share, (other, page)


Span = tuple[int, int, int]  # from, to, arm


def _spans(trial: Trial) -> list[Span]:
    """Return the spans of blocks; the last one's end is not known."""
    return [
        (block.begun, after.begun, block.arm)
        for block, after in zip(trial.blocks, trial.blocks[1:])
        if block.begun < after.begun
    ]


def overlap(some: Sequence[Span], others: Sequence[Span]) -> float | None:
    """Return the share of the time of both in which the arm is the same; None: there is no such time."""
    same = both = at = beside = 0
    while at < len(some) and beside < len(others):
        (begin, end, arm), (other_begin, other_end, other_arm) = some[at], others[beside]
        length = max(0, min(end, other_end) - max(begin, other_begin))
        both += length
        same += length * (arm == other_arm)
        at, beside = (at + 1, beside) if end <= other_end else (at, beside + 1)
    return same / both if both else None
