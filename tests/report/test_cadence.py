"""overlap report --compare of two folders: the time between communication launches, with its interval."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from statistics import geometric_mean

import jsonschema
import pytest

from pyshim import _native
from pyshim.report.cadence import Compared, compared, pace
from pyshim.report.collect import Collected, collect
from pyshim.stats.page import Page, read_page

RUN = "0123456789abcdef"
SCHEMA = Path(__file__).resolve().parents[2] / "pyshim" / "report" / "compare.schema.json"


def run_of(
    random_: random.Random, mean: float, count: int, correlation: float, every: int = 4
) -> list[tuple[int, int]]:
    """Samples of launches whose intervals depend on those before: an autoregressive process of the first order."""
    deviation, level = 0.3 * mean, 0.0
    intervals = []
    for _ in range(count):
        level = correlation * level + random_.gauss(0, 1) * (1 - correlation**2) ** 0.5
        intervals.append(max(mean + deviation * level, 1) * every * 1000)
    times = accumulate(intervals, initial=1e9)
    return [(1000 + every * index, round(nanoseconds)) for index, nanoseconds in enumerate(times)]


@pytest.fixture
def page(write_page, tmp_path) -> Page:
    return read_page(str(write_page({"communication": 4}, rank=0, path=tmp_path / "one.page")))


def measured(folder: Path) -> str:
    """As if the GPU had been a real one: its identifier does not say that it is simulated."""
    for path in folder.glob("*.page"):
        data = bytearray(path.read_bytes())
        page_ = _native.ffi.from_buffer("struct overlap_page *", data)
        for device in page_.devices:
            device.uuid = bytes(16)
        path.write_bytes(data)
    return str(folder)


def of(page: Page, *cadences: list[tuple[int, int]], ranks: bool = True, name: str = "x") -> Collected:
    pages = [
        replace(page, rank=index if ranks else None, pid=100 + index, cadence=tuple(cadence))
        for index, cadence in enumerate(cadences)
    ]
    return Collected((name,), (), tuple(pages), ())


def test_the_interval_holds_the_mean_as_often_as_it_says(page):
    """Also of intervals that depend on each other; 95 % of 300 within what chance does."""
    random_, held = random.Random(7), 0
    for _ in range(300):
        found = pace(replace(page, cadence=tuple(run_of(random_, 100, 511, 0.6))))
        held += found.low_us <= 100 <= found.high_us
    assert 300 * 0.90 <= held <= 300 * 0.99


def test_a_difference_is_seen_and_none_is_not(page):
    random_ = random.Random(3)
    seen: dict[float, list[str]] = {}
    for factor in (1.0, 0.6, 1.7):
        for _ in range(60):
            before = of(page, run_of(random_, 100, 511, 0.5))
            after = of(page, run_of(random_, 100 * factor, 511, 0.5))
            (pair,) = compared(before, after).pairs
            seen.setdefault(factor, []).append(pair.change.verdict)
            assert pair.change.low_percent < pair.change.percent < pair.change.high_percent
    assert not {"faster", "slower"} & set(seen[1.0])
    assert seen[0.6].count("faster") >= 55 and seen[1.7].count("slower") >= 55


def test_the_change_is_that_of_the_time_between_launches(page):
    steady = [(1000 + 8 * index, 8 * 100_000 * index + (index % 2)) for index in range(512)]
    quicker = [(1000 + 8 * index, 8 * 80_000 * index + (index % 2)) for index in range(512)]
    (pair,) = compared(of(page, steady), of(page, quicker)).pairs
    assert pair.before.mean_us == pytest.approx(100) and pair.after.mean_us == pytest.approx(80)
    assert pair.change.percent == pytest.approx(-20, abs=0.01) and pair.change.verdict == "faster"
    assert (pair.before.every, pair.before.counted) == (8, 8 * 510)  # as many whole stretches as leave the least out


def test_distances_that_change_on_the_way_do_not_matter(page):
    """The ring holds times of every 2nd launch and then of every 4th."""
    numbers = [*range(2, 402, 2), *range(404, 1604, 4)]
    cadence = tuple((number, number * 50_000) for number in numbers)
    found = pace(replace(page, cadence=cadence))
    assert found.mean_us == pytest.approx(50) and found.low_us == pytest.approx(50) == found.high_us
    assert found.every == 4


def test_the_start_of_a_short_run_is_left_out(page):
    slow = [(number, number * 9_000_000) for number in range(1, 31)]
    cadence = slow + [(number, slow[-1][1] + (number - 30) * 100_000) for number in range(31, 301)]
    assert pace(replace(page, cadence=tuple(cadence))).mean_us == pytest.approx(100)
    later = tuple((launches + 5000, time) for launches, time in cadence)
    assert pace(replace(page, cadence=later)).mean_us > 500, "these are not the first ones"


@pytest.mark.parametrize("total", [512, 516, 528, 700])
def test_the_start_is_left_out_where_the_ring_has_lost_a_part_of_it(total, page):
    """The first ten launches are a step that takes long, and of more than 512 the ring has lost some of them."""
    times = [number * 1_000_000 + (5_000_000_000 if number > 10 else 0) for number in range(1, total + 1)]
    taken = [*range(1, 513), *range(514, total + 1, 2)]
    cadence = tuple((number, times[number - 1]) for number in taken[-512:])
    found = pace(replace(page, cadence=cadence))
    assert found.low_us == pytest.approx(1000) == found.high_us == found.mean_us


def bursts(
    random_: random.Random, steps: int, each: int, step: float, correlation: float = 0.0
) -> list[tuple[int, int]]:
    """Steps of `step` milliseconds, with collectives in the last fifth of each, as the ring holds them."""
    found, at, level = [], 0.0, 0.0
    for _ in range(steps):
        level = correlation * level + random_.gauss(0, 1) * (1 - correlation**2) ** 0.5
        length = step * 1e6 * (1 + 0.005 * level)
        found += [round(at + length * (0.8 + 0.2 * index / each)) for index in range(each)]
        at += length
    taken, number = [], 0
    while number + 2 ** min(len(taken) // 512, 8) <= len(found):
        number += 2 ** min(len(taken) // 512, 8)
        taken.append((number, found[number - 1]))
    return taken[-512:]


@pytest.mark.parametrize(("steps", "each"), [(50, 40), (12, 40), (50, 96), (64, 8), (1000, 40)])
def test_several_collectives_in_a_step_hide_nothing(steps, each, page):
    """Stretches that end within a step would be long or short by chance."""
    random_ = random.Random(11)
    for _ in range(5):
        one, other = (bursts(random_, steps, each, length) for length in (50.0, 47.5))
        (pair,) = compared(of(page, one), of(page, other)).pairs
        assert pair.change.verdict == "faster" and pair.change.half_percent < 2
        assert pair.change.low_percent <= -5 <= pair.change.high_percent or abs(pair.change.percent + 5) < 1


@pytest.mark.parametrize(("steps", "each"), [(64, 8), (200, 40)])
def test_steps_that_are_like_those_before_them_prove_nothing(steps, each, page):
    random_, wrong = random.Random(5), 0
    for _ in range(60):
        one, other = (bursts(random_, steps, each, 50.0, 0.6) for _ in range(2))
        (pair,) = compared(of(page, one), of(page, other)).pairs
        wrong += pair.change.verdict in ("faster", "slower")
    assert wrong <= 60 * 0.12


def test_an_interval_that_reaches_far_shows_nothing(page):
    random_ = random.Random(2)
    one, other = (run_of(random_, 100, 60, 0.5) for _ in range(2))
    (pair,) = compared(of(page, one), of(page, other)).pairs
    assert pair.change.half_percent > 5 and pair.change.verdict == "too few launches to tell"


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ((480, 9600), (480, 9600), True),
        ((480, 9600), (960, 19100), True),  # the same program for longer
        ((480, 9600), (240, 9600), False),
        ((480, 9600), (480, 4800), False),
        ((480, 0), (470, 0), True),
        ((480, 0), (240, 0), False),
        ((480, 0), (480, 9600), False),
    ],
)
def test_other_collectives_are_not_compared(before, after, same, page):
    cadence = [(number, number * 1000 + number % 3) for number in range(1000, 1400)]
    sides = [
        replace(one, pages=(replace(one.pages[0], communication=many, launches=many + others),))
        for one, (many, others) in ((of(page, cadence), before), (of(page, cadence), after))
    ]
    (pair,) = compared(*sides).pairs
    assert pair.change.verdict == ("no difference seen" if same else "not the same launches")
    assert pair.as_json()["change"]["same_launches"] == same


def shifted(random_: random.Random, level: float) -> list[tuple[int, int]]:
    """A run whose pace is another one in an eighth of it, as where another program had the host for a while."""
    intervals = [(level if 96 <= index < 160 else 1.0) * random_.gauss(1, 0.01) * 400_000 for index in range(511)]
    return [(1000 + 4 * index, round(time)) for index, time in enumerate(accumulate(intervals, initial=1e9))]


def test_a_difference_as_large_as_those_within_a_run_is_no_verdict(page):
    """The interval alone would have seen it."""
    random_ = random.Random(4)
    for level, verdict in ((1.0, "faster"), (1.35, "no verdict: parts of one run differ as much")):
        seen = []
        for _ in range(20):
            slow = [(number, round(1.25 * time)) for number, time in shifted(random_, level)]
            (pair,) = compared(of(page, slow), of(page, shifted(random_, level))).pairs
            assert pair.change.high_percent < 0
            seen.append(pair.change.verdict)
        assert seen == [verdict] * 20
    assert pair.change.noise_percent > 20 and pair.change.stationary


def test_a_pace_that_drifts_has_no_verdict(page):
    cadence = [(1000 + number, round(1e6 * number + 300 * number**2)) for number in range(511)]
    (pair,) = compared(of(page, [(number, 3 * time) for number, time in cadence]), of(page, cadence)).pairs
    assert pair.change.low_percent is not None and pair.change.percent < -50
    assert not pair.change.stationary and pair.change.verdict == "no verdict: the pace drifts within a run"


@pytest.mark.slow
def test_observe_against_observe_on_a_busy_machine_has_no_verdict(overlap, overlap_run, tmp_path):
    """As if on a real GPU, beside processes that take the host's processors."""
    demo = _native.DEMO
    words = ["--simulate", "h100", "--policy", "observe", "--quiet"]
    verdicts = []
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        for index in range(6):
            report = str(tmp_path / f"run{index}")
            command = [*words, "--report", report, str(demo / "demo-stencil")]
            done = overlap_run(*command)
            assert done.returncode == 0, done.stderr
    finally:
        for process in busy:
            process.kill()
            process.wait()
    for index in range(0, 6, 2):
        sides = [collect(str(tmp_path / f"run{index + side}")) for side in (0, 1)]
        (pair,) = compared(*sides).pairs
        assert pair.change.verdict == "no verdict: simulated"
        verdicts.append(replace(pair.change, simulated=False).verdict)
    # An interval of 95 % misses once in twenty times; noise that is called a gain would be so more than once in three.
    assert sum(verdict in ("faster", "slower") for verdict in verdicts) <= 1, verdicts


@pytest.mark.parametrize("count", [2, 30])
def test_too_few_launches_have_no_interval(count, page):
    cadence = [(number, number * 1000) for number in range(10, 10 + count)]
    (pair,) = compared(of(page, cadence), of(page, cadence)).pairs
    assert pair.before.low_us is None and pair.change.verdict == "too few launches to tell"


def test_forty_have_one(page):
    cadence = [(number, number * 1000 + number % 3) for number in range(10, 50)]
    assert pace(replace(page, cadence=tuple(cadence))).low_us is not None


def test_ranks_are_matched_by_rank_and_else_by_order(page):
    one = [(number, number * 1000) for number in range(10, 100)]
    other = [(number, number * 2000) for number in range(10, 100)]
    before, after = of(page, one, other), of(page, one, other, one)
    turned = replace(after, pages=tuple(reversed(after.pages)))

    def changes(found: Compared) -> list[tuple[int | None, int]]:
        return [(pair.rank, round(pair.change.percent)) for pair in found.pairs]

    assert changes(compared(before, turned)) == [(0, 0), (1, 0)]
    assert compared(before, turned).only_after == ("node1:102",)
    without = of(page, other, one, ranks=False)
    assert changes(compared(before, without)) == [(None, 100), (None, -50)]
    assert compared(before, of(page, one)).only_before == ("node1:101",)


def test_without_communication_waits_of_the_host_are_timed(page):
    """As with MPI. Where one of the two runs has none of the other kind, too."""
    steady = tuple((count, count * 100_000 + count % 2) for count in range(1, 513))
    quicker = tuple((count, count * 80_000 + count % 2) for count in range(1, 513))

    def waiting(times, waits=600, **more):
        one = replace(page, rank=0, launches=1800, communication=0, waits=waits, wait_cadence=times, **more)
        return Collected(("x",), (), (one,), ())

    found = compared(waiting(steady), waiting(quicker))
    (pair,) = found.pairs
    assert found.as_json()["what"] == "time between waits of the host"
    assert (pair.before.events, pair.before.others, pair.change.verdict) == (600, 1800, "faster")
    assert pair.change.percent == pytest.approx(-20, abs=0.01)
    (pair,) = compared(waiting(steady), waiting(quicker, waits=900)).pairs
    assert pair.change.verdict == "not the same launches"
    assert compared(waiting(steady, cadence=steady), waiting(quicker)).what == "waits of the host"
    few = steady[:3]
    assert compared(waiting(steady, cadence=few), waiting(quicker, cadence=few)).what == "waits of the host"
    assert compared(waiting(steady, cadence=steady), waiting(steady, cadence=quicker)).what == "communication launches"


def test_of_several_processes_of_a_rank_the_one_that_communicates_most(page):
    many = [(number, number * 1000) for number in range(10, 100)]
    helper = replace(page, rank=0, pid=1, communication=3, cadence=((1, 5), (2, 9)))
    main = replace(page, rank=0, pid=2, communication=900, cadence=tuple(many))
    (pair,) = compared(Collected(("x",), (), (helper, main), ()), Collected(("y",), (), (main, helper), ())).pairs
    assert (pair.before_process, pair.after_process) == ("node1:2", "node1:2")


def test_real_processes_by_a_clock_of_their_own(overlap, run_job, tmp_path):
    """400 and 600 microseconds for each launch of communication, and what the library makes of it."""
    folders = {}
    for name, pace_ in (("before", "400"), ("after", "600")):
        words = {rank: {"LAUNCHES": "240"} for rank in range(2)}
        folders[name] = measured(run_job(otherwise=words, processes=2, report=tmp_path / name, PACE=pace_))
    done = overlap("report", "--compare", folders["before"], folders["after"], "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert (answer["version"], answer["clock"], answer["only_before"]) == (1, "host", [])
    assert [pair["rank"] for pair in answer["ranks"]] == [0, 1]
    for pair in answer["ranks"]:
        assert pair["before"]["mean_us"] == pytest.approx(400, abs=0.1)
        assert pair["after"]["mean_us"] == pytest.approx(600, abs=0.1)
        assert pair["change"]["percent"] == pytest.approx(50, abs=0.1)
        assert pair["before"]["events"] == pair["after"]["events"] == 120
        assert pair["change"]["verdict"] == "slower" and pair["change"]["low_percent"] > 0
    assert answer["verdicts"] == {"slower": 2}
    done = overlap("report", "--compare", folders["before"], folders["after"])
    text = done.stdout + done.stderr
    assert done.returncode == 0
    assert "Time between communication launches by the host's clock" in text and "slower: 2 of 2" in text
    lines = [line.split() for line in text.splitlines() if line.strip().startswith(("0 ", "1 "))]
    assert [line[-1] for line in lines] == ["slower", "slower"]


def test_the_row_for_all(page):
    """The geometric mean over ranks; its interval is as wide as if all ranks waited for each other."""
    random_ = random.Random(5)
    before = of(page, *(run_of(random_, 100, 511, 0.5) for _ in range(4)))
    after = of(page, *(run_of(random_, mean, 511, 0.5) for mean in (80, 80, 80, 160)))
    found = compared(before, after)
    total = found.as_json()["total"]
    ratios = [pair.after.mean_us / pair.before.mean_us for pair in found.pairs]
    assert total["change"]["percent"] == pytest.approx(100 * (geometric_mean(ratios) - 1))
    assert total["after_us"] / total["before_us"] == pytest.approx(geometric_mean(ratios))
    widths = [pair.change.high_percent - pair.change.low_percent for pair in found.pairs]
    width = total["change"]["high_percent"] - total["change"]["low_percent"]
    assert min(widths) < width < max(widths) and total["ranks"] == 4
    assert total["change"]["low_percent"] < total["change"]["percent"] < total["change"]["high_percent"]
    assert compared(of(page), of(page)).as_json()["total"] is None
    short = of(page, [(1, 1000), (2, 2000)], run_of(random_, 100, 511, 0.5))
    assert compared(short, before).as_json()["total"]["change"]["low_percent"] is None


def simulated(folder, model):
    """The run that the pages of a job belong to."""
    from pyshim.launch import folder as reports

    reports.write(str(folder), reports.Run(RUN, 1.0, ("x",), simulate=model))
    return folder


def test_simulated_is_said_everywhere(overlap, run_job, tmp_path):
    folders = []
    for name in ("before", "after"):
        words = {rank: {"LAUNCHES": "240"} for rank in range(2)}
        report = run_job(otherwise=words, processes=2, report=tmp_path / name, PACE="200")
        folders.append(str(simulated(report, "h100")))
    answer = json.loads(overlap("report", "--compare", *folders, "--json").stdout)
    assert (answer["kind"], answer["simulated"]) == ("reports", True)
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert list(validator.iter_errors(answer)) == []
    assert list(validator.iter_errors({**answer, "simulated": "h100"})) != []
    assert answer["verdicts"] == {"no verdict: simulated": 2}
    assert {pair["change"]["simulated"] for pair in answer["ranks"]} == {True}
    done = overlap("report", "--compare", *folders)
    text = done.stdout + done.stderr
    assert text.splitlines()[0] == "before and after: x"
    assert text.splitlines()[1] == "simulated: this is no measurement of a GPU, so there is no verdict"
    assert [line.split()[0] for line in text.splitlines() if line.strip().startswith(("0 ", "1 "))] == ["0", "1"]
    assert any(line.split()[:2] == ["all", "2"] for line in text.splitlines())
    # Against a run on a GPU.
    (tmp_path / "after" / "run.json").unlink()
    measured(simulated(tmp_path / "after", None))
    done = overlap("report", "--compare", *folders)
    assert done.returncode == 2 and done.stdout == ""
    assert f"{folders[0]} is simulated, {folders[1]} is measured" in done.stderr


def test_a_process_without_a_rank_is_given_none(overlap, run_job, tmp_path):
    folders = []
    for name in ("before", "after"):
        nobody = {"LAUNCHES": "240", "RANK": "", "WORLD_SIZE": ""}
        folders.append(measured(run_job(otherwise={0: nobody}, processes=1, report=tmp_path / name, PACE="200")))
    done = overlap("report", "--compare", *folders)
    text = done.stdout + done.stderr
    pair = json.loads(overlap("report", "--compare", *folders, "--json").stdout)["ranks"][0]
    assert pair["rank"] is None
    (head,) = [line for line in text.splitlines() if "before us" in line]
    assert head.split()[0] == "process" and pair["before_process"] in text
    assert "simulated" not in text


def test_real_processes_that_launch_other_collectives(overlap, run_job, tmp_path):
    """Twice as long is the same program; half as many collectives for as much computation is not."""
    folders = {}
    for name, launches, each in (("before", "240", "2"), ("longer", "480", "2"), ("other", "480", "4")):
        words = {0: {"LAUNCHES": launches, "EVERY": each}}
        folders[name] = measured(run_job(otherwise=words, processes=1, report=tmp_path / name, PACE="400"))
    for name, verdict in (("longer", "no difference seen"), ("other", "not the same launches")):
        (pair,) = json.loads(overlap("report", "--compare", folders["before"], folders[name], "--json").stdout)["ranks"]
        assert pair["change"]["verdict"] == verdict
    done = overlap("report", "--compare", folders["before"], folders["other"])
    text = done.stdout + done.stderr
    assert "120 communication launches beside 240 other launches before, 120 beside 480 after" in " ".join(text.split())


@pytest.fixture
def started(run_job, tmp_path):
    """started(name, command, program): the folder of a run of this command, whose process names this program."""
    from pyshim.launch import folder as reports

    made = run_job(otherwise={0: {"LAUNCHES": "240"}}, processes=1, PACE="200")
    measured(made)

    def run(name: str, command: str, program: str) -> str:
        report = tmp_path / name
        shutil.copytree(made, report)
        reports.write(str(report), reports.Run(name, 1.0, tuple(command.split())))
        (path,) = report.glob("*.page")
        data = bytearray(path.read_bytes())
        field = _native.ffi.from_buffer("struct overlap_page *", data).program
        field[0 : len(field)] = program.encode().ljust(len(field), b"\0")
        path.write_bytes(data)
        return str(report)

    return run


def test_different_programs_are_compared_by_force_only(overlap, started):
    before, after = started("before", "/opt/a/step 1", "/opt/a/step"), started("after", "./other", "./other")
    done = overlap("report", "--compare", before, after)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "overlap: error: --compare: different programs, step before and other after\n"
        "overlap: help: compare two runs of one program, or say --force\n"
    )
    done = overlap("report", "--compare", before, after, "--force")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "before: step 1; after: other")


@pytest.mark.parametrize(
    ("before", "after", "first"),
    [
        (("/opt/a/step 1", "/opt/a/step"), ("./step 1", "./step"), "before and after: step 1"),
        (("step 1", "step"), ("step 2", "step"), "before: step 1; after: step 2"),
        (("step", "./step"), ("mpirun -n 2 ./step", "./step"), "before: step; after: mpirun -n 2 ./step"),
        (
            ("python3 train.py", "python3"), ("mpirun python a/train.py -m x", "/usr/bin/python3.9"),
            "before: python3 train.py; after: mpirun python a/train.py -m x",
        ),
        (("python train.py", "python"), ("./job.sh", "python"), "before: python train.py; after: job.sh"),
        (("python train.py", "python"), ("python test.py", "python"), "train.py before and test.py after"),
        (("python -m train", "python"), ("srun -m block python -m test", "python"), "train before and test after"),
        (("job.sh", "step"), ("job.sh", "python"), "step before and python after"),
    ],
)  # fmt: skip
def test_programs_are_compared_and_not_their_commands(before, after, first, overlap, started):
    folders = started("before", *before), started("after", *after)
    done = overlap("report", "--compare", *folders)
    if " before and " not in first:
        assert (done.returncode, done.stdout.splitlines()[0]) == (0, first)
    else:
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"overlap: error: --compare: different programs, {first}\n")


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["--compare", "{report}", "{report}/missing"], 2, "/missing cannot be read: No such file"),
        (["--compare", "{report}", "{file}"], 2, "/something is a file, and a report is a folder of pages"),
        (["--compare", "{report}", "{other}"], 1, "no rank has launched communication or waited for its GPU"),
        (["--compare", "{report}", "{other}"], 1, "compare the program's own time of an iteration"),
        (["--compare", "{report}", "{report}/."], 2, "{report} and {report}/. are the same run"),
        (["--compare", "{report}", "{report}", "--force"], 2, "are the same run"),
        (["--compare", "{report}", "{report}", "--check"], 2, "--compare stands alone"),
        (["{report}", "--compare", "{report}", "{report}"], 2, "--compare stands alone"),
        (["--compare", "{report}"], 2, "expected 2 arguments"),
        ([], 2, "missing argument: DIR"),
    ],
)
def test_what_cannot_be_compared(words, status, sentence, overlap, report, write_page):
    write_page({"no_rule": 3})
    file = report / "something"
    file.write_text("x")
    other = shutil.copytree(report, report.parent / "other")
    names = {"report": report, "file": file, "other": other}
    done = overlap("report", *(word.format(**names) for word in words))
    assert done.returncode == status and done.stdout == ""
    assert sentence.format(**names) in done.stderr
