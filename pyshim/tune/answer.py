"""What a search found: a table, a sentence, tuned.yaml, and the command to use it."""

from __future__ import annotations

import math
import os
import shlex
import time
from typing import NamedTuple

import yaml

from pyshim import __version__
from pyshim.errors import OverlapError
from pyshim.pages.untrusted import write_whole
from pyshim.tune.arms import BARE, Platform, extends, split
from pyshim.tune.judge import Change
from pyshim.tune.search import INTERRUPTED, ArmRow, SearchResult, Setup, again

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


def shown(change: Change, higher: bool) -> str:
    low, middle, high = interval(change, higher)
    return f"{middle:+.1f} % ({low:+.1f} to {high:+.1f})"


def answer(setup: Setup, result: SearchResult, here: Platform) -> TuneResult:
    """Say what to do, and write tuned.yaml where that is sure. Raises OverlapError where it cannot be written."""
    simulated = " on a simulated GPU" if here.simulated else ""
    higher = setup.metric.higher
    goes_on = again(setup.folder).partition(": ")[2]
    if result.broken:
        return TuneResult(f"not known: {result.stopped}", None, None)
    if result.best is not BARE and result.change is not None:
        less = "more" if higher else "less"
        low, middle, high = sorted(map(abs, interval(result.change, higher)))
        early = f"; {result.stopped} before all was sure ({goes_on})" if result.stopped else ""
        kept = f"keep {result.best.name}: {middle:.1f} % {less} than bare{simulated} ({low:.1f} to {high:.1f} %){early}"
        return TuneResult(kept, *_write(setup, result, here))
    if result.stopped:
        return TuneResult(f"{LEAVE}: no arm is surely better so far; {result.stopped} ({goes_on})", None, None)
    worth = abs(percent(-setup.worth, higher))
    sentence = f"{LEAVE}: no arm is better than bare by {worth:.2g} % or more{simulated}"
    return TuneResult(sentence, *_write(setup, result, here))


def _write(setup: Setup, result: SearchResult, here: Platform) -> tuple[str, str]:
    base = setup.started.base
    inside, outside = split(result.best, base)
    policy: dict[str, object] = {"policy": 1, "name": "tuned"}
    if result.best.policy is None:
        policy["streams"] = {"raise": "off"}
    else:
        policy["extends"], gpu = extends(result.best, here, base)
        policy |= {"gpu": [gpu]} if gpu else {}
    policy |= {"environment": inside} if inside else {}
    path = os.path.join(setup.folder, TUNED)
    front = " ".join(f"{name}={shlex.quote(value)}" for name, value in outside.items())
    command = shlex.join(setup.started.command)
    simulate = f"--simulate {setup.started.simulate} " if setup.started.simulate else ""
    use = f"{front} overlap-run {simulate}--policy {shlex.quote(path)} {command}".strip()
    if outside and os.path.basename(setup.started.command[0]).startswith(("mpirun", "mpiexec")):
        listed = ";".join(f"{name}={value}" for name, value in outside.items())
        use = f"OMPI_MCA_mca_base_env_list={shlex.quote(listed)} {use}"  # Open MPI: on other hosts, too
    if result.best is BARE:
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
        f"{result.runs} runs; two equal runs differ by {noise(result) or 0:.2g} %",
        *(f"{row.arm.name}: {_told(row, setup.metric.higher)}" for row in result.rows),
    ]
    if use:
        lines.append(f"not all of it can be in a policy; the whole command: {use}")
    return ["".join(char if char.isprintable() else "?" for char in line) for line in lines]


def _told(row: ArmRow, higher: bool) -> str:
    change = f", {shown(row.change, higher)}" if row.change else ""
    figure = "-" if row.median is None else f"{row.median:.6g}"
    return f"{figure}{change}, {row.runs} runs{f', {row.verdict}' if row.verdict else ''}"


def noise(result: SearchResult) -> float | None:
    return None if result.noise is None else percent(result.noise, False)


def as_json(setup: Setup, result: SearchResult, here: Platform, found: TuneResult) -> dict[str, object]:
    higher = setup.metric.higher
    arms = []
    for row in result.rows:
        low, middle, high = interval(row.change, higher) if row.change else (None, None, None)
        arms.append(
            {
                "name": row.arm.name,
                "policy": row.arm.policy,
                "environment": dict(row.arm.variables),
                "median": row.median,
                "change_percent": middle,
                "low_percent": low,
                "high_percent": high,
                "runs": row.runs,
                "verdict": row.verdict,
            }
        )
    return {
        "version": 1,
        "answer": found.sentence,
        "kept": None if result.best is BARE else result.best.name,
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
