"""What a reader sees: timelines, times, reasons. Lines of text, at most `width` columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from pyshim.demo.arms import Arm, Run
from pyshim.demo.drawing import Style, clamp, lanes, legend
from pyshim.demo.reasons import gained, signed, verdict, why

DEFAULT_RULE = "hold"
WHAT = {
    "sequential": "one stream",
    "plain": "two streams, no control",
    "default": "what is waited for raised",
}


def report(scenes: Sequence[Sequence[Run]], rule: str | None, width: int, style: Style) -> list[str]:
    """Return all lines. scenes: for each its runs, one for every dispatch rule; rule: the one that is shown."""
    columns = clamp(width)
    shown = [next(run for run in runs if run.rule == rule) for runs in scenes]
    lines = _title(shown[0], columns)
    for number, (runs, chosen) in enumerate(zip(scenes, shown), 1):
        lines += [
            "",
            *_wrapped(f"{number}. {chosen.scene.about}: {gained(chosen)}{' (simulated)' if rule else ''}", columns),
            *_scene(runs, chosen, columns, style),
        ]
    if rule:
        lines += [""] + _item(
            "Which rule a real GPU follows is documented nowhere. Times of blocks are assumptions (costs.yaml); "
            "a simulation shows what follows from them, never how fast a GPU is.",
            columns,
        )
    return lines


def _scene(runs: Sequence[Run], chosen: Run, columns: int, style: Style) -> list[str]:
    lines = []
    if all(arm.step for arm in chosen.arms):
        lines += ["", *_timelines(chosen, columns, style)]
    lines += ["", *_table(runs, chosen)]
    lines += ["", "why" + (f", under {chosen.rule}" if chosen.rule else "")]
    for sentence in why(chosen):
        lines += _item(sentence, columns)
    lines += ["", "so"]
    for run in runs:
        lines += _item(f"{run.rule}: {verdict(run)}" if run.rule else verdict(run), columns)
    return lines


def _title(run: Run, width: int) -> list[str]:
    if run.rule is None:
        return _wrapped(f"overlap demo on {run.gpu}, measured by events, medians", width)
    rule = f"dispatch rule {run.rule}" + (" (the default)" if run.rule == DEFAULT_RULE else "")
    return _wrapped(f"overlap demo on a simulated {run.gpu}, {rule}; every number is simulated", width)


def _timelines(run: Run, width: int, style: Style) -> list[str]:
    end = max(arm.step.end_us for arm in run.arms if arm.step)
    lines = _wrapped(legend(run.scene.legend, style), width)
    for arm in run.arms:
        lines.append(_heading(arm, run, width))
        if arm.step:
            lines += lanes(arm.step, end, width, style, run.scene.lower)
    return lines


def _heading(arm: Arm, run: Run, width: int) -> str:
    left = f"{arm.name}: {WHAT[arm.name]}"
    right = f"{'simulated ' if run.rule else ''}{arm.milliseconds:.3f} ms"
    return left + " " * max(1, width - len(left) - len(right)) + right


def _table(runs: Sequence[Run], chosen: Run) -> list[str]:
    simulated = chosen.rule is not None
    heads = [run.rule or "measured" for run in runs]
    lines = [f"{'simulated ms' if simulated else 'ms':<24}" + "".join(f"{head:>12}" for head in heads)]
    for index, arm in enumerate(chosen.arms):
        lines.append(f"  {arm.name:<22}" + "".join(f"{run.arms[index].milliseconds:>12.3f}" for run in runs))
    changes = (signed(run.change_percent) for run in runs)
    return [*lines, f"  {'default against plain':<22}" + "".join(f"{change:>12}" for change in changes)]


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False)


def _item(sentence: str, width: int) -> list[str]:
    return textwrap.wrap(sentence, width, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
