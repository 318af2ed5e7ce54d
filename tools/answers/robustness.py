"""docs/robustness.md: best, median and worst change of every shipped policy, simulated and measured, kept apart."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

from suites.arms import FIRST, STEADY
from suites.rows import LIMIT_PERCENT

from answers import measured, rows, svg
from answers.markdown import bullets, holds, listed, page, paragraph, percent, table
from answers.rows import RULES, Row

PICTURE = Path("docs/pictures/robustness.svg")
PAPER, WINDOWS, SMALL = "-paper", "-paper-windows", "-small-comm"
KINDS = {
    "The defaults": "",
    "The published method": PAPER,
    "The published method in overlap windows": WINDOWS,
    "Smaller blocks of communication": SMALL,
}
ABOUT = {
    "": "What `auto` picks. Communication is raised until the program shows that it may harm; no kernel is changed.",
    PAPER: "Half of the blocks of every kernel with two or more of them and two or more waves, all the time, and "
    "priority. `make_room` is for MI250X only, which the suite does not run.",
    WINDOWS: "The same with `when: overlapping`. No shipped policy: the suite makes it, to show what windows do.",
    SMALL: "The default with a ring of 288 threads and no clusters. That such a ring is 10 % slower is an "
    "assumption, and most of the losses are that assumption.",
}


def kind_of(row: Row) -> str | None:
    """The ending of the policy's name; None for observe."""
    if not row.policy.startswith(row.gpu):
        return None
    return row.policy[len(row.gpu) :]


class Spread:
    def __init__(self, values: Iterable[tuple[float, str]]) -> None:
        self.sorted = sorted(values)
        self.best, self.worst = self.sorted[0], self.sorted[-1]
        self.changes = [value for value, _ in self.sorted]
        self.median = statistics.median(self.changes)
        self.lost = sum(value > LIMIT_PERCENT for value in self.changes)

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """best, median, worst, how many lose."""
        best = f"{percent(self.best[0])} ({self.best[1]})" if self.best[0] <= -0.05 else "0.0 %"
        worst = f"{percent(self.worst[0])} ({self.worst[1]})" if self.worst[0] >= 0.05 else "0.0 %"
        return best, percent(self.median), worst, f"{self.lost} of {len(self.changes)}"


def spread(found: Iterable[Row]) -> Spread:
    return Spread((row.change, row.program) for row in found)


def groups(data: Sequence[Row], kind: str) -> dict[tuple[str, str], list[Row]]:
    """By policy and rule."""
    made: dict[tuple[str, str], list[Row]] = {}
    for row in data:
        if kind_of(row) == kind:
            made.setdefault((row.policy, row.rule), []).append(row)
    return made


def _simulated(data: Sequence[Row]) -> list[str]:
    parts = []
    for title, kind in KINDS.items():
        lines = []
        for (policy, rule), found in groups(data, kind).items():
            first = max(row.first for row in found)
            lines.append((f"`{policy}`", rule, *spread(found).cells, percent(first)))
        heads = ("policy", "rule", "best", "median", "worst", f"lose over {LIMIT_PERCENT:g} %", "first steps, worst")
        parts += [f"### {title}", paragraph(ABOUT[kind]), table(heads, lines, left=2)]
    return parts


def programs(data: Sequence[Row]) -> list[str]:
    """Return those that were measured, in the order of the suite."""
    return list(dict.fromkeys(row.program for row in data))


def shapes(data: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row.shape for row in data))


def _by_shape(data: Sequence[Row]) -> str:
    """Where the published method loses."""
    lines = []
    for shape in shapes(data):
        own = [row for row in data if kind_of(row) == PAPER and row.shape == shape]
        windows = [row for row in data if kind_of(row) == WINDOWS and row.shape == shape]
        held, filled = ([row for row in own if row.rule == rule] for rule in ("hold", "backfill"))
        alone = [row.priority for row in held]
        lines.append(
            (
                shape,
                _range(row.change for row in held),
                _range(row.change for row in filled),
                _range(alone),
                _range(row.change for row in windows),
                f"{100 * statistics.mean(row.shaped for row in own):.0f} %",
            )
        )
    heads = ("programs", "`hold`", "`backfill`", "priority alone, `hold`", "in windows, all rules", "shaped")
    return table(heads, lines)


def _range(values: Iterable[float]) -> str:
    found = sorted(values)
    return (
        f"{percent(found[0])} to {percent(found[-1])}" if percent(found[0]) != percent(found[-1]) else percent(found[0])
    )


def _reasons(data: Sequence[Row]) -> str:
    paper = [row for row in data if kind_of(row) == PAPER]
    held = [row for row in paper if row.rule == "hold"]
    gains = [row for row in held if row.change < -LIMIT_PERCENT]
    more = [row for row in gains if row.change < row.priority - 0.5]
    less = [row for row in gains if row.change > row.priority + 0.5]
    idle = [row for row in paper if row.shape in ("no-communication", "synchronous")]
    windows = [row for row in data if kind_of(row) == WINDOWS]
    idle_windows = [row for row in windows if row.shape in ("no-communication", "synchronous")]
    already = [row for row in paper if row.shape == "overlapped-already"]
    long = {(row.gpu, row.rule): row for row in paper if row.program == "one-long-kernel/gemm"}
    hopper = [row for row in paper if (row.gpu, row.rule) == ("h100", "backfill")]
    return bullets(
        (
            "**Nothing to overlap with.** "
            + holds(
                all(row.change <= 0.05 for row in idle_windows),
                f"Where nothing runs beside (`no-communication`, `synchronous`) fewer resident blocks only cost: "
                f"{_range(row.change for row in idle)}. Overlap windows take all of that away "
                f"({_range(row.change for row in idle_windows)}).",
            ),
            "**Communication is in already.** Where the collective was placed before computation came, room is "
            f"worth nothing: {_range(row.change for row in already)}, and windows do not help, because the launches "
            "can overlap.",
            "**The cap makes no room.** Half of the blocks leaves NCCL 2.28 no room on A40 and A100 at any size "
            "([sizes](sizes.md)); what is left of the method there is fewer blocks to wait for, and priority. "
            f"`one-long-kernel/gemm` on A40: {percent(long['a40', 'hold'].change)} under hold, "
            f"{percent(long['a40', 'hold'].priority)} by priority alone.",
            "**The gain is priority's, mostly.** " + f"Under hold {len(gains)} of {len(held)} rows gain over "
            f"{LIMIT_PERCENT:g} %, {percent(statistics.mean(row.change for row in gains))} in the mean; there "
            f"priority alone gains {percent(statistics.mean(row.priority for row in gains))}. Shaping adds over half "
            f"a point in {len(more)} of them and costs that in {len(less)}.",
            "**Clusters under backfill.** "
            + holds(
                not any(row.change < -LIMIT_PERCENT for row in hopper),
                "NCCL's clusters of four never find four multiprocessors with room at once: under backfill none of the "
                f"{len(hopper)} programs gains on H100, and {sum(row.change > LIMIT_PERCENT for row in hopper)} lose.",
            ),
        )
    )


def _measured(root: Path) -> list[str]:
    found = measured.steps(root)
    arms = measured.arms(root)
    policies = [name for name, command in arms.items() if command.startswith("overlap-run") or name == "own"]
    lines = []
    for arm in (measured.ITSELF, *policies):
        chosen = [step for step in found if step.arm == arm]
        if chosen:
            runs = listed(sorted({str(step.run) for step in chosen}))
            what = arms.get(arm, "nothing changed: odd rounds against even ones")
            lines.append((arm, what, runs, *Spread((step.change, step.case) for step in chosen).cells))
    heads = ("arm", "what runs", "runs", "best", "median", "worst", f"lose over {LIMIT_PERCENT:g} %")
    least, most, *_ = measured.range_of_steps(root)
    kinds = listed(sorted({step.case.split()[0] for step in found}))
    return [
        paragraph(
            f"Two {measured.machine(root, 'two-gpus')}, PyTorch and real collectives; medians of {least} to {most} "
            f"steps of a case ({kinds}, by computation to communication) against the bare arm of the same run, which "
            "takes turns with it. The first row is the noise: the bare arm against itself. `python "
            "tools/gpu/two_gpus.py two.json --arm 'bare:' --arm 'h200: overlap-run --policy h200 --report DIR' "
            f"...`; [two-gpus.json](../{measured.FOLDER}/two-gpus.json), [what it says](../tools/gpu/README.md)."
        ),
        table(heads, lines, left=3),
    ]


SHAPING = ("paper", "room", "entry", "room in windows")


def _over_priority(found: Sequence[measured.Step]) -> str:
    """What shaping adds to priority in the same run and case."""
    alone = {(step.run, step.case): step.change for step in found if step.arm == "highest"}
    over = Spread(
        (100 * ((100 + step.change) / (100 + alone[step.run, step.case]) - 1), f"{step.case}, {step.arm}")
        for step in found
        if step.arm in SHAPING and (step.run, step.case) in alone
    )
    noise = Spread((step.change, step.case) for step in found if step.arm == measured.ITSELF)
    best, median, worst, lost = over.cells
    return holds(
        over.best[0] > noise.best[0] and over.median >= 0,
        "Against priority alone (`highest`, same run and case) the arms that shape gain nothing that stands out of "
        f"the noise: best {best}, median {median}, worst {worst}; {lost} lose over {LIMIT_PERCENT:g} %. They cost "
        "most in `pairs`, where elementwise kernels beside communication went from sixteen resident blocks to one.",
    )


def _in_windows(found: Sequence[measured.Step]) -> str:
    always, inside = (
        [step.change for step in found if step.arm == arm and step.case.split()[0] in ("synchronous", "blocking_calls")]
        for arm in ("room", "room in windows")
    )
    return holds(
        max(inside) < 1 < min(always),
        "`room` shapes always, `room in windows` only what can overlap. Where nothing can (`synchronous`, "
        f"`blocking_calls`) the first costs {_range(always)}, the second {_range(inside)}.",
    )


def _picture(data: Sequence[Row]) -> str:
    """A line for each policy and rule, a dot for each program."""
    left, top, width, row_height = 150, 62, 620, 15
    shown = [
        (key, found)
        for kind in (KINDS["The defaults"], PAPER, SMALL)
        for key, found in groups(data, kind).items()
        if key[1] != "drain"
    ]
    least, most = (edge(row.change for _, found in shown for row in found) for edge in (min, max))
    scale = width / (most - least)
    parts = [
        svg.text(
            16,
            22,
            f"Simulated: change of a step's time, {len(programs(data))} programs by policy and dispatch rule",
            size=15,
        ),
        svg.text(
            16,
            40,
            "left is faster; a dot is a program, the bar its median. tools/bench/suite, assumed costs.",
            color=svg.GREY,
        ),
    ]
    y = float(top)
    zero = left + (0 - least) * scale
    bottom = top + len(shown) * row_height + 12
    for tick in svg.ticks(least, most):
        x = left + (tick - least) * scale
        parts += [
            svg.line(x, top - 10, x, bottom, svg.LIGHT),
            svg.text(x, bottom + 14, f"{tick:+.0f} %" if tick else "0", "middle", 10),
        ]
    parts.append(svg.line(zero, top - 10, zero, bottom, svg.INK))
    for (policy, rule), found in shown:
        color = svg.COLORS[0] if rule == "hold" else svg.COLORS[2]
        values = spread(found)
        parts.append(svg.text(left - 8, y + 4, f"{policy}, {rule}", "end", 10))
        parts.append(
            svg.line(left + (values.best[0] - least) * scale, y, left + (values.worst[0] - least) * scale, y, color)
        )
        parts.append(svg.dots(((left + (value - least) * scale, y) for value in values.changes), color))
        median = left + (values.median - least) * scale
        parts.append(svg.line(median, y - 6, median, y + 6, svg.COLORS[1], 2.5))
        y += row_height
    return svg.document(left + width + 30, bottom + 26, "Simulated change by policy and rule", parts)


def _answer(root: Path, data: Sequence[Row]) -> str:
    count = len(programs(data))
    defaults = spread(row for row in data if kind_of(row) == "")
    paper = [row for row in data if kind_of(row) == PAPER]
    all_paper = spread(paper)
    losing = sorted(spread(found).lost for found in groups(data, PAPER).values())
    steps = measured.steps(root)
    noise, ours, highest, shaped = (
        Spread((step.change, step.case) for step in steps if step.arm in chosen)
        for chosen in ((measured.ITSELF,), ("h200",), ("highest",), SHAPING)
    )
    return " ".join(
        (
            holds(
                defaults.worst[0] <= LIMIT_PERCENT,
                f"Simulated, {count} programs on {len({row.gpu for row in data})} GPUs under {len(RULES)} "
                f"dispatch rules: the default policies change a step by {percent(defaults.best[0])} at best, "
                f"{percent(defaults.median)} in the median and {percent(defaults.worst[0])} at worst.",
            ),
            f"The published method, applied everywhere, by {percent(all_paper.best[0])}, {percent(all_paper.median)} "
            f"and {percent(all_paper.worst[0])}, and {losing[0]} to {losing[-1]} of {count} programs lose "
            f"more than {LIMIT_PERCENT:g} %.",
            f"Measured on two H200: the default {percent(ours.best[0])}, {percent(ours.median)} and "
            f"{percent(ours.worst[0])} where the bare program differs from itself by {percent(noise.best[0])} to "
            f"{percent(noise.worst[0])}; priority alone {percent(highest.best[0])} to {percent(highest.worst[0])}, "
            f"shaping {percent(shaped.best[0])} to {percent(shaped.worst[0])}.",
        )
    )


def files(root: Path) -> dict[str, str]:
    read = rows.read(root)
    data = read.rows
    count = len(programs(data))
    steps = measured.steps(root)
    *_, shortest, longest = measured.range_of_steps(root)
    observed = [row for row in data if row.policy == "observe"]
    gpus = listed(list(dict.fromkeys(row.gpu.upper() for row in data)))
    head = {
        "Question": (
            "What do the shipped policies change at best, in the median and at worst, by GPU and dispatch rule, "
            "and where does the published method lose?"
        ),
        "Answer": _answer(root, data),
        "The published number": (
            "The paper ([arXiv 2606.09200](https://arxiv.org/abs/2606.09200)) claims up to 25.5 % less "
            "total time on A40, A100, H100 and MI250X, baseline not known to us: we had its abstract, which names "
            "neither what it is measured against nor GPU, kernels, sizes and trials of that number. Nothing on this "
            "page confirms or refutes it."
        ),
        "From": (
            f"Simulated ({read.date}, commit {read.commit}, [suite.csv](../{rows.DATA})): {gpus}, from assumed costs "
            "of kernels. Measured: two H200. The two are kept apart."
        ),
        "Anew": (
            "`.venv/bin/python tools/answers --measure` (minutes), then `--write robustness`. CI compares this page "
            "with the rows, and some rows with a run of its own."
        ),
    }
    picture = PICTURE.relative_to("docs")
    parts = [
        f"![Simulated change by policy and rule]({picture})",
        "## Protocol of the simulated part",
        paragraph(
            f"{count} programs of {len(shapes(data))} shapes ([what they are](../tools/bench/README.md)), each in "
            f"a process of its own on a simulated GPU: {FIRST + STEADY} steps, of which the first {FIRST}, in which "
            "the library asks about kernels and `auto` makes up its mind, are apart (last column); changes are of "
            "the mean of the others against the program as written, two streams, no priority, no library. Blocks "
            "differ in length from a fixed seed, so a run gives the same bytes again, and there are no intervals: "
            "the programs of a shape are the only spread. Costs are assumptions "
            "([costs.yaml](../tools/bench/suites/costs.yaml)). `hold`, `drain` and `backfill` are what a GPU may do "
            "with lower priorities while a block of communication waits for room ([the "
            "model](../tools/simgpu/README.md)); an H200 holds. "
            + holds(
                all(row.change == 0 for row in observed),
                f"`observe` changes no step in any of its {len(observed)} rows.",
            )
        ),
        "## Simulated: by policy and rule",
        *_simulated(data),
        "## Simulated: where the published method loses",
        "Ranges over the programs of the shape on A40, A100 and H100:",
        _by_shape(data),
        _reasons(data),
        "## Measured: two H200",
        *_measured(root),
        bullets(
            (
                _over_priority(steps),
                _in_windows(steps),
                "On one H200, what a shaped kernel costs by itself is in [sensitivity](sensitivity.md).",
            )
        ),
        "## What cannot be concluded",
        bullets(
            (
                "How much a policy gains on a real A40, A100, H100, B200, L40S: none of them was at hand. The "
                "simulated numbers rank mechanisms under assumed costs; they are no speeds.",
                "Anything about MI250X and MI300X: the suite's programs are CUDA's, and no GPU of AMD was at hand.",
                "More than two ranks, several hosts, or a network: none was run.",
                f"A training run: the steps that were measured take {shortest:.0f} to {longest:.0f} ms, those that "
                "are simulated less ([what the suite does not know](../tools/bench/README.md)).",
                "What the paper measured: see above.",
            )
        ),
    ]
    return {"docs/robustness.md": page("Robustness", "robustness", head, parts), str(PICTURE): _picture(data)}
