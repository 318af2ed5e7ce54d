"""Keep what a trial found out, for the next run of the program."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyshim.launch import trials
from pyshim.report.trial import outcomes
from pyshim.samples import Samples

if TYPE_CHECKING:
    from pyshim.report.collect import Collected
    from pyshim.report.steps import Step


def remember(collected: Collected, environment: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Add each run with a trial to what is known of its program, once; yield what is to be said."""
    for step in collected.steps:
        try:
            known = _remember(step, environment)
        except OSError as error:
            why = " ".join(filter(None, (error.strerror, error.filename and f"({error.filename})")))
            yield f"what the trial found out is not kept for later runs: {why}"
            continue
        if known:
            runs = f"{known.number:,} run{'s' * (known.number > 1)}"
            yield f"what the trial found out in {runs} is kept for the next run of this command (overlap trial)"


def _remember(step: Step, environment: Mapping[str, str]) -> trials.Memory | None:
    # Ranks wait for each other, so their times say one thing, once: the first rank speaks for all.
    pages = sorted((page for page in step.pages if page.trial and page.trial.mark), key=lambda page: page.rank or 0)
    trial = pages[0].trial if pages else None
    unfinished = any(page.trial and page.trial.status == "running" and not page.ended for page in pages)
    if trial is None or unfinished:
        return None
    said = outcomes(pages)
    given = [one for run in step.runs for one in map(trials.given, run.trials) if one]
    own = next((one for one in given if one.program.policy == trial.arms[0].name), None)
    if own is None or any(one.outcome == "graphs" for one in said):
        return None
    kept = None
    if len(said) == 1 and said[0].outcome in ("kept", "nothing"):
        kept = said[0].arm or own.program.policy
    level = max((arm.level for arm in trial.arms[1:]), default=0)
    found: dict[int, dict[str, Samples]] = {}
    for arm in trial.arms[1:]:
        if arm.samples.count and (arm.level == level or arm.status == "harmful"):
            found.setdefault(arm.level, {})[arm.name] = arm.samples
    if not found and kept is None:
        return None
    return trials.keep(step.id, own, level, found.pop(level, {}), kept, environment, found)
