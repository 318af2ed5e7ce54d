"""What a search found: a table, a sentence, tuned.yaml, and the command to use it."""

from __future__ import annotations

import math
import os
import shlex
import time
from typing import NamedTuple

import yaml

from pyshim import __version__
from pyshim.counts import counted
from pyshim.errors import OverlapError
from pyshim.pages.untrusted import write_whole
from pyshim.start.program import LAUNCHER_KINDS
from pyshim.tune.arms import BARE, Platform, extends, split
from pyshim.tune.judge import Change
from pyshim.tune.search import INTERRUPTED, ArmRow, SearchResult, Setup, again, duration

TUNED = "tuned.yaml"
LEAVE = "leave it as it is"


class TuneResult(NamedTuple):
    sentence: str
    tuned: str | None  # the file
    use: str | None  # the command


def percent(figure: float, higher: bool) -> float:
    """Return the change of the metric in per cent. figure: a logarithm, negative for better."""
    return 100 * math.expm1(-figure if higher else figure)


def interval(change: Change, higher: bool) -> tuple[float, float, float]:
    """Return low, middle and high of the metric's change, in per cent."""
    low, middle, high = (percent(figure, higher) for figure in change)
    return (high, middle, low) if higher else (low, middle, high)


def shown(row: ArmRow, higher: bool) -> str:
    """Return an arm's change from bare with its interval, for a table."""
    if row.middle is None:
        return "-"
    if row.change is None:
        return f"{percent(row.middle, higher):+.1f} %"
    low, middle, high = interval(row.change, higher)
    return f"{middle:+.1f} % ({low:+.1f} to {high:+.1f})"


def answer(setup: Setup, result: SearchResult, here: Platform) -> TuneResult:
    """Say what to do, and write tuned.yaml for what is sure. Raises OverlapError where it cannot be written."""
    simulated = " on a simulated GPU" if here.simulated else ""
    if result.broken:
        return TuneResult(f"not known: {result.stopped} ({again(setup.folder).partition(': ')[2]})", None, None)
    if not result.is_compared:
        runs = "and nothing but the program as it is has run" if result.row(BARE).runs else "and no run has ended"
        return TuneResult(f"not known: {result.stopped}, {runs}{_on(setup, result)}", None, None)
    if result.kept is not BARE:
        kept = f"keep {result.kept.name}: {_gain(setup, result.row(result.kept), 'than bare' + simulated)}"
        return TuneResult(kept + _rest(setup, result), *_write(setup, result, here))
    if not result.stopped:
        worth = abs(percent(-setup.worth, setup.metric.higher))
        sentence = f"{LEAVE}: no arm is better than bare by {worth:.2g} % or more{simulated}"
        return TuneResult(sentence, *_write(setup, result, here))
    if result.best is BARE:
        return TuneResult(f"{LEAVE}: no arm is better so far{_rest(setup, result)}", None, None)
    row = result.row(result.best)
    sentence = f"best so far, not sure: {row.arm.name}, {_gain(setup, row, 'than bare' + simulated)}"
    return TuneResult(sentence + _rest(setup, result), None, None)


def _gain(setup: Setup, row: ArmRow, than: str) -> str:
    """Return `10.0 % less than bare (9.8 to 10.2 %)`; an interval on both sides of 0 keeps its signs."""
    higher = setup.metric.higher
    assert row.middle is not None
    gain = f"{abs(percent(row.middle, higher)):.1f} % {'more' if higher else 'less'} {than}"
    if row.change is None:
        return f"{gain} in a single run" if row.runs == 1 else f"{gain} in {row.runs} runs"
    figures = interval(row.change, higher)
    if row.change.high < 0:
        low, _, high = sorted(map(abs, figures))
        return f"{gain} ({low:.1f} to {high:.1f} %)"
    return f"{gain} ({figures[0]:+.1f} to {figures[2]:+.1f} %, {row.runs} run{'s' * (row.runs > 1)})"


def _rest(setup: Setup, result: SearchResult) -> str:
    """Return what is not decided, and how to go on; nothing where all is."""
    if not result.stopped:
        return ""
    said = f"; {result.stopped} before all was sure"
    if result.kept is not BARE and result.best != result.kept:
        said = (
            f"; {result.best.name} may be better: {_gain(setup, result.row(result.best), 'than bare')}, not sure{said}"
        )
    return f"{said}{_on(setup, result)}"


def _on(setup: Setup, result: SearchResult) -> str:
    """Return how to go on."""
    more = f", and one more round takes {duration(result.more)}" if result.more else ""
    return f" ({again(setup.folder).partition(': ')[2]}{more})"


def _write(setup: Setup, result: SearchResult, here: Platform) -> tuple[str, str]:
    base = setup.started.base
    kept = result.kept
    inside, outside = split(kept, base)
    policy: dict[str, object] = {"policy": 1, "name": "tuned"}
    if kept.policy is None:
        policy["streams"] = {"raise": "off"}
    else:
        policy["extends"], gpu = extends(kept, here, base)
        policy |= {"gpu": [gpu]} if gpu else {}
    policy |= {"environment": inside} if inside else {}
    path = os.path.join(setup.folder, TUNED)
    front = " ".join(f"{name}={shlex.quote(value)}" for name, value in outside.items())
    command = shlex.join(setup.started.command)
    simulate = f"--simulate {setup.started.simulate} " if setup.started.simulate else ""
    use = f"{front} overlap-run {simulate}--policy {shlex.quote(path)} {command}".strip()
    if outside and LAUNCHER_KINDS.get(os.path.basename(setup.started.command[0])) == "mpirun":
        listed = ";".join(f"{name}={value}" for name, value in outside.items())
        use = f"OMPI_MCA_mca_base_env_list={shlex.quote(listed)} {use}"  # Open MPI: on other hosts, too
    if kept is BARE:
        use = command
    text = "".join(f"# {line}\n" for line in _comment(setup, result, here, use if front else ""))
    text += yaml.safe_dump(policy, sort_keys=False)
    try:
        write_whole(path, text.encode(), mode=0o666)
    except OSError as error:
        raise OverlapError(f"{path} cannot be written: {error.strerror}", again(setup.folder)) from error
    return path, use


def _comment(setup: Setup, result: SearchResult, here: Platform, use: str) -> list[str]:
    lines = [
        f"overlap tune of overlap-run {__version__}, {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC",
        f"command: {shlex.join(setup.started.command)}",
        f"GPU: {here.name}",
        f"{counted(result.runs, 'run')}; successive runs of an arm differ by {noise(result) or 0:.2g} %",
        *(f"{row.arm.name}: {_told(row, setup.metric.higher)}" for row in result.rows),
    ]
    if use:
        lines.append(f"not all of it can be in a policy; the whole command: {use}")
    return ["".join(char if char.isprintable() else "?" for char in line) for line in lines]


def _told(row: ArmRow, higher: bool) -> str:
    change = "" if row.middle is None else f", {shown(row, higher)}"
    figure = "-" if row.value is None else f"{row.value:.6g}"
    return f"{figure}{change}, {counted(row.runs, 'run')}{f', {row.verdict}' if row.verdict else ''}"


def noise(result: SearchResult) -> float | None:
    return None if result.noise is None else percent(result.noise, False)


def as_json(setup: Setup, result: SearchResult, here: Platform, found: TuneResult) -> dict[str, object]:
    higher = setup.metric.higher
    arms = []
    for row in result.rows:
        low, _, high = interval(row.change, higher) if row.change else (None, None, None)
        arms.append(
            {
                "name": row.arm.name,
                "policy": row.arm.policy,
                "environment": dict(row.arm.variables),
                "value": row.value,
                "change_percent": None if row.middle is None else percent(row.middle, higher),
                "low_percent": low,
                "high_percent": high,
                "runs": row.runs,
                "verdict": row.verdict,
            }
        )
    return {
        "version": 1,
        "answer": found.sentence,
        "kept": None if result.kept is BARE else result.kept.name,
        "best_so_far": None if result.best is BARE else result.best.name,
        "sure": not result.stopped,
        "interrupted": result.stopped == INTERRUPTED,
        "tuned": found.tuned,
        "use": found.use,
        "gpu": here.gpu or None,
        "driver": here.driver or None,
        "simulated": here.simulated,
        "metric": setup.metric.pattern or "seconds of the run",
        "noise_percent": noise(result),
        "runs": result.runs,
        "directory": setup.folder,
        "arms": arms,
    }
