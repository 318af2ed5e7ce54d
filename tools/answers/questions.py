"""docs/answers.md: the questions about the GPU that were open before one could be had, each with what it answered.

An answer is a function of a file of tools/gpu/results; where there is no file, the page says which command makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from answers import facts, nccl_starts, raised_waits
from answers.markdown import listed, page, paragraph, table
from answers.overlap import MEASURED
from answers.questions_of_suites import default_bound, room_by_size
from answers.suite import FOLDER
from pyshim.errors import OverlapError

Answer = Optional[tuple[str, str]]  # in words, in numbers; None: not measured
MOST_NAMED = 3
TAIL = 0.9  # of a grid's time
EQUAL, LAUNCH, LEGACY = "equal priority", "launch priority", "launch priority, legacy stream"
SET_LATER = ("stream priority set while idle", "stream priority set while busy", "legacy stream, priority set")
WORDS = {"stream priority set while busy": "stream priority set while busy (with 1 ms of its own work)"}
CAPTURED, BY_NODE = "graph, captured priority", "graph, captured priority, node priorities used"


@dataclass(frozen=True)
class Question:
    name: str
    text: str
    file: str  # of tools/gpu/results
    answer: Callable[[Path], Answer]


# ---- U1 to U8 ----


def what_waits(root: Path) -> Answer:
    rule, found = facts.rule(root), facts.waiting(root)
    if rule is None:
        return None
    numbers = (
        f"in {found.late} of {found.runs:,} runs with single blocks a lower one started more than {facts.CLOCKS_US} us "
        f"after the raised one was ready, while that waited; in the others the last did at most {found.last_us:.1f} us "
        "after. Ready is when both the marker before it has run and the launch call has returned: the host can be "
        f"later than the marker ({found.early} runs: by the marker alone they would be late, too)"
    )
    return f"**{rule}**", numbers


def equal_entry(root: Path) -> Answer:
    found = facts.variants(root).get(EQUAL)
    if found is None:
        return None
    shares = [
        1 - (left - wait) / total
        for left, wait, total in zip(found["low_left_at_marker_us"], found["wait_first_us"], found["low_total_us"])
    ]
    share = facts.middle(shares)
    words = "only in the tail of the grid before it" if share > TAIL else "before the tail of the grid before it"
    numbers = f"starts when {100 * share:.0f} % of that grid's time are over (median of {len(shares)} runs)"
    return words, "; ".join(filter(None, (numbers, facts.queue_order(root))))


def co_residency(root: Path) -> Answer:
    found = facts.neighbours(root)
    if not found:
        return None
    against = sum(one.shared and not one.sum_fits for one in found)
    parts = []
    for words, wanted in facts.CARVEOUTS.items():
        chosen = [one for one in found if one.carveout == wanted]
        yes = [one for one in chosen if one.fits]
        only_sum = [one for one in chosen if one.sum_fits and not one.fits]
        if chosen:
            counts = [f"{sum(one.shared for one in some)} of {len(some)}" for some in (yes, only_sum)]
            parts.append(f"{words}: {counts[0]}, and {counts[1]} whose sum fits, but not by the library's arithmetic")
    words = f"also where their sum does not fit ({against} runs)" if against else "never where their sum does not fit"
    return f"**{words}**", f"runs that shared, of those in which all fits: {'; '.join(parts)}"


def refill(root: Path) -> Answer:
    gaps = [gap for found in facts.variants(root).values() for gap in found.get("refill_ns", ())]
    if not gaps:
        return None
    numbers = f"{min(gaps) / 1000:.2f} to {max(gaps) / 1000:.2f} us, medians of {len(gaps):,} runs"
    return f"**{facts.middle(gaps) / 1000:.2f} us**", "; ".join(filter(None, (numbers, facts.block_ends(root))))


CLUSTERS = (
    ("64 blocks like NCCL's", facts.SINGLE, facts.FOURS),
    ("24 whole multiprocessors", "stream priority, 24 blocks", "stream priority, 24 blocks, clusters of 4"),
    (
        "the same beside one block a multiprocessor",
        "stream priority, 24 blocks, k 1",
        "stream priority, 24 blocks, clusters of 4, k 1",
    ),
)


def clusters(root: Path) -> Answer:
    found = facts.variants(root)
    rows = [
        (what, one, four)
        for what, *names in CLUSTERS
        for one, four in [[facts.median(found.get(name), "wait_last_us") for name in names]]
        if one is not None and four is not None
    ]
    if not rows:
        return None
    longer = sum(four > one for _, one, four in rows)
    words = "clusters of four wait longer" if longer == len(rows) else f"longer in {longer} of {len(rows)} cases"
    numbers = "; ".join(f"{what}: {one:.0f} us until the last starts, {four:.0f} in fours" for what, one, four in rows)
    return words, "; ".join(filter(None, (numbers, facts.cluster_sizes(root))))


def quantisation(root: Path) -> Answer:
    found = facts.one_wave(root)
    if not found:
        return None
    longest = max(found)
    shares = found[longest]["own share"]
    first, last = min(shares), max(shares)
    parts = [
        f"{stays / 1000:g} ms, {way}: {times[first]:.2f} times with {first}, {times[last]:.2f} with {last} resident"
        for stays, ways in sorted(found.items(), reverse=True)
        for way, times in ways.items()
        if first in times and last in times
    ]
    shorter = "".join(
        f", {ways['own share'][first]:.2f} where it ends after {stays:g} us"
        for stays, ways in found.items()
        if stays < longest and first in ways.get("own share", {})
    )
    words = f"**{shares[first]:.2f} times** from the first block on where it stays{shorter}"
    return words, f"over the time of the same way alone, by how long communication takes: {'; '.join(parts)}"


def hook_costs(root: Path) -> Answer:
    found = facts.launch_costs(root)
    if not found:
        return None
    twice = sorted((run for run in found if facts.AGAIN in run), key=_noise)
    parts = [
        f"bare {run['bare'] / 1000:.2f} us, behind the library (default policy) {run['h200'] / 1000:.2f}, two bare "
        f"arms differ by {_noise(run):.0f} ns"
        for run in twice
    ]
    words = f"**{_costs(twice or found)} ns** a launch, by run"
    if twice:
        words += f"; two bare arms differ by {_noise(twice[0]):.0f} to {_noise(twice[-1]):.0f} ns there"
    numbers = f"`cuLaunchKernel`, from the quietest run: {'; '.join(parts)}; over all {len(found)} runs, with and "
    numbers += f"without a second bare arm, {_costs(found)} ns"
    return words, "; ".join(filter(None, (numbers if parts else "", facts.graph_costs(root))))


def _costs(found: list[dict[str, float]]) -> str:
    costs = [run["h200"] - run["bare"] for run in found]
    return f"{min(costs):+.0f} to {max(costs):+.0f}"


def _noise(run: dict[str, float]) -> float:
    """Of two arms that are the same, ns."""
    return abs(run[facts.AGAIN] - run["bare"])


# ---- Of the issue ----


def raising(*names: str) -> Callable[[Path], Answer]:
    """Do these ways of raising let communication in before the tail, as a stream of equal priority does not?"""

    def answer(root: Path) -> Answer:
        variants = facts.variants(root)
        equal = facts.median(variants.get(EQUAL), facts.WAIT)
        found = [(name, facts.median(variants.get(name), facts.WAIT)) for name in names]
        if equal is None or any(wait is None for _, wait in found):
            return None
        late = [name for name in names if not facts.raised(variants[name])]
        numbers = "; ".join(f"{WORDS.get(name, name)}: {wait:,.0f} us" for name, wait in found)
        words = f"**not all ways**: {listed(late)}" if late else "**yes**"
        return words, f"wait from the launch: {numbers}; at equal priority {equal:,.0f} us"

    return answer


def two_ranks(root: Path) -> Answer:
    found = facts.two_ranks(root)
    return ("**yes**", "; ".join(found)) if found else None


def correctness(root: Path) -> Answer:
    found = facts.results(root, "correctness")
    rows = found["rows"] if found else []
    if not rows:
        return None
    wrong = [f"{row['program']}, {row['policy']}" for row in rows if row["faults"]]
    counted = [row for row in rows if row["seen_by_profiler"] is not None]
    launches = sum(row["launches"] or 0 for row in rows)
    words = f"**{len(wrong)} differ**: {listed(wrong[:MOST_NAMED])}" if wrong else "**no difference**"
    programs = len({row["program"] for row in rows})
    numbers = (
        f"{programs} programs, {len(rows)} runs behind the library, {launches:,} launches; {len(counted)} runs were "
        "counted by a profiler, too"
    )
    unlike = {row["program"]: listed([f"`{name}`" for name in row["itself"]]) for row in rows if row["itself"]}
    if unlike:
        own = "; ".join(f"{program} ({names})" for program, names in unlike.items())
        numbers += f". Results that differ between two bare runs, and so are not compared: {own}"
    return words, numbers


def occupancy(root: Path) -> Answer:
    found = facts.results(root, "occupancy")
    if found is None:
        return None
    plain = [name for name in found["samples"] if name not in found["different"]]
    different = [f"{name}: {count:,} of {found['samples'][name]:,}" for name, count in found["different"].items()]
    samples = sum(found["samples"][name] for name in plain)
    words = f"no difference in {samples:,} samples"
    return words, f"of {listed(plain)}; different with {listed(different)}" if different else f"of {listed(plain)}"


def captured(root: Path) -> Answer:
    variants = facts.variants(root)
    without, with_flag = (variants.get(name) for name in (CAPTURED, BY_NODE))
    if without is None or with_flag is None:
        return None
    early = [facts.raised(one) for one in (without, with_flag)]
    words = {(False, True): "**only if the graph honours node priorities**", (True, True): "**yes**"}
    numbers = "; ".join(
        f"{what}: {facts.median(one, facts.WAIT):,.0f} us" for what, one in ((CAPTURED, without), (BY_NODE, with_flag))
    )
    return words.get((early[0], early[1]), "**no**"), f"wait from the launch: {numbers}"


def carveouts(root: Path) -> Answer:
    found = facts.carveouts(root)
    if not found:
        return None
    alone, both = found["any"], found["largest"]
    words = "**yes**" if alone.apart else "no"
    numbers = (
        f"there is room in all of {alone.runs:,} runs, and in {alone.apart:,} no block shares; with the largest "
        f"carve-out for the first kernel and none or the largest for the second: {both.apart} of {both.runs}"
    )
    return words, numbers


RULE = "What do lower priorities do while a raised block fits nowhere: hold, drain, backfill?"
QUESTIONS = (
    Question("U1", RULE, "dispatch-rule", what_waits),
    Question("U2", "At equal priority, when does a second kernel enter?", "dispatch-rule", equal_entry),
    Question(
        "U3", "Which blocks of communication share a multiprocessor with computation?", "neighbours", co_residency
    ),
    Question("U4", "How long does a freed place stay empty?", "dispatch-rule", refill),
    Question("U5", "What do clusters cost at entry?", "dispatch-rule", clusters),
    Question(
        "U6", "What does communication that is there first cost a grid of one wave?", "quantisation", quantisation
    ),
    Question("U7", "What does time do as shared memory grows?", "overlap-standins", room_by_size),
    Question("U8", "What does the library cost a launch, and a graph?", "launch-latency", hook_costs),
    Question("", "Does per-launch priority beat a stream of priority 0?", "dispatch-rule", raising(LAUNCH)),
    Question("", "And on the legacy default stream?", "dispatch-rule", raising(LEGACY)),
    Question("", "And in a captured graph?", "dispatch-rule", captured),
    Question("", "Does raising a stream's priority after its creation work?", "dispatch-rule", raising(*SET_LATER)),
    Question("", "Does another carve-out keep two kernels apart?", "carveout", carveouts),
    *(
        Question(
            "", f"How soon does a kernel of NCCL start behind a long grid? {what}", name, nccl_starts.summary(name)
        )
        for name, what in (("nccl-start-matrix", "By setting"), ("nccl-start", "Behind the library"))
    ),
    Question("", "Which control shortens the wait of communication most?", "raised", raised_waits.summary),
    Question("", "Do two real ranks run on one GPU?", "two-ranks", two_ranks),
    Question("", "Do programs compute the same, and is every launch seen?", "correctness", correctness),
    Question("", "Is our occupancy the driver's?", "occupancy", occupancy),
    *(
        Question("", f"What does the default policy lose at most? {title}", name, default_bound(name))
        for name, title in MEASURED.items()
    ),
)


def _rows(root: Path) -> Iterator[tuple[str, ...]]:
    for question in QUESTIONS:
        path = root / FOLDER / f"{question.file}.json"
        try:
            answer = question.answer(root) if path.exists() else None
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            what = f"{path.name}: {question.name or question.text}: {type(error).__name__}: {error}"
            raise OverlapError(what, "keep the file's format, or change what tools/answers reads of it") from error
        words, numbers = answer or ("not measured", f"`tools/gpu/run {question.file}` measures it")
        source = f"[{question.file}](../{FOLDER}/{question.file}.json)" if answer else "–"
        yield question.name, question.text, words, numbers, source


def files(root: Path) -> dict[str, str]:
    rows = list(_rows(root))
    answered = sum(row[-1] != "–" for row in rows)
    used = sorted({question.file for question, row in zip(QUESTIONS, rows) if row[-1] != "–"})
    rule = facts.rule(root)
    lead = f"While a raised block waits, an H200 follows `{rule}`. " if rule else ""
    head = {
        "Question": "What was not known of the GPU when the method was written down, and what did the GPU say?",
        "Answer": f"{lead}{answered} of {len(rows)} questions have an answer.",
        "From": f"{facts.machines(root, used)} [What was asked, and how](../tools/gpu/README.md).",
        "Anew": (
            "`.venv/bin/python tools/answers --write answers`, from the files in the last column. CI compares this "
            "page."
        ),
    }
    parts = [
        "## Questions",
        paragraph(
            "U1 to U8 are the probes that were planned before a GPU could be had. Numbers are medians unless they say "
            "otherwise. `hold`: no lower-priority block starts anywhere until the waiting one is placed; `drain`: on "
            "its multiprocessor only; `backfill`: they go on everywhere."
        ),
        table(("", "question", "answer", "numbers", "from"), rows, left=5),
        *nccl_starts.parts(root),
        *raised_waits.parts(root),
        "## What the suite says",
        "The overlap suite, its arms and the predictions made before: [overlap](overlap.md).",
    ]
    return {"docs/answers.md": page("Answers of the GPU", "answers", head, parts)}
