"""What the report says of a trial: each outcome, in text, as data and with --check, and that no page can mislead it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
import trials
from scipy import stats
from test_schema import strict

from pyshim import _native
from pyshim.launch.folder import WORTH
from pyshim.report import trial
from pyshim.report.collect import collect
from pyshim.report.findings import findings
from pyshim.samples import Samples
from pyshim.stats.file import Unreadable
from pyshim.stats.page import read_page

SOME = {("symbol", "no_rule"): 9000, ("runtime", "communication"): 3000}
SHIM = Path(__file__).resolve().parents[2] / "shim"


def said(report) -> str | None:
    return trial.sentence(collect(str(report), waiting_room="/nonexistent"))


def found(report) -> list[str]:
    return findings(collect(str(report), waiting_room="/nonexistent"))


def run_under(report, *policies):
    (file,) = report.glob("run-*.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "policies": policies}))


def test_a_page_has_it(write_page):
    path = trials.put(write_page(SOME), blocks=[(7, 5, 1, 23), (19, 0, 0, 23)], early=[64, 3])
    read = read_page(str(path)).trial
    assert read is not None
    assert (read.status, read.kept, read.mark, read.marks, read.early) == ("kept", 1, "communication", 2048, (64, 3))
    assert (read.seconds, read.measured) == (41.0, 2)
    assert read.blocks == ((trials.BEGUN + 700_000, 5000, 1, 23), (trials.BEGUN + 1_900_000, None, 0, 23))
    assert [(arm.name, arm.status, arm.level, arm.samples.count) for arm in read.arms] == [
        ("trial", "tried", 1, 0), ("critical-streams", "tried", 1, 12), ("a100-paper", "harmful", 1, 4),
    ]  # fmt: skip
    assert read_page(str(write_page(SOME, number=1))).trial is None


def test_the_latest_blocks_by_time(write_page, library):
    most = library.OVERLAP_BLOCKS
    blocks = [(10 * number, 5, 0, 23) for number in range(most + 5)]
    read = read_page(str(trials.put(write_page(SOME), blocks=blocks))).trial
    assert read is not None and read.measured == most + 5
    assert [(block.begun - trials.BEGUN) // 1_000_000 for block in read.blocks] == [*range(5, most + 5)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"arms": 1}, {"arms": 7}, {"arms": 2**32 - 1}, {"status": 4}, {"mark": 3}, {"kept": 3}, {"kept": 0},
    ],
    ids=str,
)  # fmt: skip
def test_an_impossible_one_makes_its_page_unreadable(wrong, report, write_page):
    path = trials.put(write_page(SOME), blocks=[(7, 5, 1, 23)])
    page = _native.ffi.from_buffer("struct overlap_page *", data := bytearray(path.read_bytes()))
    for name, value in wrong.items():
        setattr(page.trial, name, value)
    path.write_bytes(data)
    with pytest.raises(Unreadable, match="damaged"):
        read_page(str(path))


@pytest.mark.parametrize("where", ["block arm", "arm status", "arm level"])
def test_so_does_an_impossible_arm(where, write_page):
    path = trials.put(write_page(SOME), blocks=[(7, 5, 1, 23)])
    page = _native.ffi.from_buffer("struct overlap_page *", data := bytearray(path.read_bytes()))
    record, field = {"block": page.trial.block, "arm": page.trial.arm}[where.split()[0]][0], where.split()[1]
    setattr(record, field, 5 if field == "level" else 3)
    path.write_bytes(data)
    with pytest.raises(Unreadable, match="damaged"):
        read_page(str(path))


@pytest.mark.parametrize(
    "samples",
    [
        (12, float("nan"), 1.0), (12, 0.1, float("inf")), (12, 25.0, 60.0), (12, 0.0, 49.0), (12, 0.0, -1.0),
        (12, 6.0, 0.1), (2**64 - 1, 0.0, 0.0), (0, 1.0, 1.0),
    ],
)  # fmt: skip
def test_samples_that_cannot_be_are_left_out(samples, report, write_page):
    trials.put(write_page(SOME), samples=(samples, samples, trials.LOSES))
    assert said(report) == (
        "critical-streams: too few samples, kept after 41 s (2,048 communication launches); a100-paper: dropped, +39 %"
    )


@pytest.mark.parametrize("values", [[-0.2, -0.19, -0.21], [0.01, 0.5, -0.4, 0.02, 0.1]], ids=str)
def test_the_interval_is_that_of_students_t(values):
    samples = Samples(len(values), sum(values), sum(value**2 for value in values))
    made = samples.change()
    mean, error = sum(values) / len(values), stats.sem(values)
    low, high = stats.t.interval(0.95, len(values) - 1, mean, error)
    assert made == pytest.approx([100 * ((2 + m) / (2 - m) - 1) for m in (mean, low, high)])


@pytest.mark.parametrize("values", [[0.1], [1.99, -1.99], [0.0, 1.5], [0.0, -1.5], [2.0, 2.0]], ids=str)
def test_samples_that_allow_any_change_have_none(values):
    assert Samples(len(values), sum(values), sum(value**2 for value in values)).change() is None


def test_samples_that_differ_too_much_are_named(report, write_page):
    differing, steady = (2, 1.5, 2.25), (2, 0.1, 0.006)
    for samples, words in (
        ([steady, differing, differing], "So far: nothing"),
        (
            [steady, differing, steady],
            "So far: critical-streams: samples differ too much; a100-paper: +5.1 % [-21.0, +40.1]",
        ),
    ):
        trials.put(write_page(SOME), trials.RUNNING, 0, settled=0, marks=900, samples=samples, dropped=())
        assert said(report).endswith(words)


def test_one_arm_kept(overlap, report, write_page):
    trials.put(write_page(SOME, rank=0, world=1))
    done = overlap("report", str(report))
    lines = done.stdout.splitlines()
    assert lines[0] == (
        "trial: critical-streams: -17.8 % [-18.3, -17.3], kept after 41 s (2,048 communication launches); "
        "a100-paper: dropped, +39 %"
    )
    assert [line.partition(": ")[0] for line in lines[1:4]] == ["done", "gain", "next"]
    assert lines[2] == "gain: measured: see the trial"
    assert lines[3].startswith("next: nothing: the next run of the same command begins with critical-streams")


@pytest.mark.parametrize("seconds, shown", [(0.0227, "0.023"), (3.24, "3.2"), (12.4, "12"), (4000, "4,000")])
def test_the_time_until_the_verdict(seconds, shown, report, write_page):
    trials.put(write_page(SOME), settled=trials.BEGUN + int(seconds * 1e9))
    sentence = said(report)
    assert sentence and f", kept after {shown} s (2,048 communication launches)" in sentence


def test_ranks_that_agree_are_summed_up(report, write_page):
    for rank, percent in enumerate((-17.0, -18.0, -19.0)):
        path = write_page(SOME, rank=rank, world=3, pid=100 + rank)
        samples = ((0, 0.0, 0.0), trials.sums(percent, 0.7), trials.LOSES if rank else trials.EQUAL)
        trials.put(path, samples=samples, dropped=(2,) if rank else ())
    assert said(report) == (
        "critical-streams: -18.0 % [-19.5, -16.5], kept in 3 ranks after 41 s (2,048 communication launches); "
        "a100-paper: dropped in 2 of 3, +26 %"
    )
    assert found(report) == []


def test_ranks_that_differ(report, write_page):
    for rank in range(3):
        path = write_page(SOME, rank=rank, world=3, pid=100 + rank)
        trials.put(path, **({} if rank else {"status": trials.NOTHING, "kept": 0}))
    sentence = said(report)
    assert sentence is not None
    assert sentence.startswith("the processes differ: ranks 1-2 on node1: critical-streams: -17.8 %")
    assert ". rank 0 on node1: no arm gained as much as" in sentence
    (one,) = found(report)
    assert one.startswith(
        "the trial settled differently: critical-streams kept for ranks 1-2 on node1; no arm kept (none is faster) for"
    )


def test_a_rank_that_is_still_trying(report, write_page):
    for rank in range(3):
        path = write_page(SOME, rank=rank, world=3, pid=100 + rank)
        trials.put(path, **({} if rank else {"status": trials.RUNNING, "kept": 0, "settled": 0}))
    (one,) = found(report)
    assert one.startswith(
        "the trial settled differently: critical-streams kept for ranks 1-2 on node1; no arm kept yet for rank 0 on"
    )


@pytest.mark.parametrize(("marks", "further"), [(167, False), (168, True)])
def test_a_run_that_is_too_short_even_with_others(marks, further, report, write_page, overlap):
    """Of three arms four rounds must be of this run."""
    trials.put(write_page(SOME), trials.RUNNING, 0, settled=0, marks=marks, samples=[(0, 0.0, 0.0)] * 3, dropped=())
    lines = overlap("report", report).stdout.splitlines()
    assert ("next: a run with more steps, or further runs: each" in lines[3]) is further
    assert lines[3].startswith("next: a run with more steps")


@pytest.mark.parametrize(
    "worth, least",
    [("0.5", "0.5 % or more"), ("2", "2 % or more")]
    + [(bad, "as much as `worth` in the policy") for bad in (None, "", "-1", "nan", "inf", "x")],
)
def test_nothing_kept(worth, least, report, write_page):
    run_under(report, {"name": "other", WORTH: "3"}, {"name": "trial", WORTH: worth})
    samples = ((0, 0.0, 0.0), trials.EQUAL, (0, 0.0, 0.0))
    trials.put(write_page(SOME), trials.NOTHING, 0, samples)
    assert said(report) == (
        f"no arm gained {least} after 41 s (2,048 communication launches): "
        "critical-streams: -0.1 % [-0.3, +0.1]; a100-paper: dropped"
    )
    answer = trial.as_json(collect(str(report), waiting_room="/nonexistent"))
    assert answer and answer["outcomes"][0]["worth_percent"] == (
        float(least.split()[0]) if "or more" in least else None
    )


def test_nothing_kept_under_several_policies(report, write_page):
    """Each says its own `worth`: then there is no number."""
    run_under(report, {"name": "other", WORTH: "3"}, {"name": "trial", WORTH: "0.5"})
    for rank, name in enumerate(("trial", "other")):
        arms = (name, *trials.ARMS[1:])
        trials.put(write_page(SOME, rank=rank, world=2, pid=100 + rank), trials.NOTHING, 0, arms=arms)
    sentence = said(report)
    assert sentence and sentence.startswith("no arm gained as much as `worth` in the policy in 2 ranks")


def test_too_noisy(report, write_page):
    trials.put(write_page(SOME), trials.NOISY, 0, mark=2)
    sentence = said(report)
    assert sentence and sentence.startswith(
        "cannot tell, the pace varies too much after 41 s (2,048 host waits), so nothing"
    )


@pytest.mark.parametrize("ended", [True, False])
def test_not_begun(ended, report, write_page):
    trials.put(
        write_page(SOME, flags=5 if ended else 1), 0, 0, mark=0, begun=0, settled=0, marks=0, early=[12, 1],
        samples=[(0, 0.0, 0.0)] * 3, dropped=(),
    )  # fmt: skip
    when = "the process ended before it began" if ended else "it has not begun"
    assert said(report) == (
        f"no verdict: {when}, after 12 communication launches and 1 host wait. It begins after 64 communication "
        "launches (256 host waits where there is no communication), and a verdict needs at least 504 more"
    )


def test_ended_too_soon(report, write_page):
    trials.put(write_page(SOME), trials.RUNNING, 0, settled=0, marks=200, samples=[(0, 0.0, 0.0)] * 3, dropped=())
    assert said(report) == (
        "no verdict: the process ended after 200 of at least 504 communication launches. So far: nothing"
    )


def test_killed_in_the_middle(report, write_page):
    flags = 1
    trials.put(write_page(SOME, flags=flags), trials.RUNNING, 0, settled=0, marks=900, dropped=())
    assert said(report) == (
        "no verdict: the process was killed in the middle, or is still running, after 900 communication launches. "
        "Steps vary, or blocks were too short to be judged. So far: critical-streams: -17.8 % [-18.3, -17.3]; "
        "a100-paper: +39.0 % [+37.2, +40.8]"
    )


@pytest.mark.parametrize(
    "graphs, launches, marks, cannot",
    [(7000, 12000, 9000, True), (500, 12000, 400, True), (500, 12000, 3000, False), (0, 12000, 0, False)],
)
def test_graphs(graphs, launches, marks, cannot, report, write_page, library):
    path = write_page({("symbol", "no_rule"): launches}, counters={library.OVERLAP_COUNTER_GRAPH_LAUNCHES: graphs})
    trials.put(path, trials.NOTHING, 0, marks=marks)
    sentence = said(report)
    assert sentence is not None
    assert sentence.startswith("cannot tell: most launches are repeated by graphs") is cannot
    trials.put(path)
    sentence = said(report)
    assert sentence and sentence.startswith("critical-streams: -17.8 %"), "what was measured stands"


def test_helpers_without_marks_are_not_mentioned(report, write_page):
    trials.put(write_page(SOME, rank=0, world=1))
    path = write_page({}, pid=101)
    trials.put(path, 0, 0, mark=0, begun=0, settled=0, marks=0, samples=[(0, 0.0, 0.0)] * 3)
    sentence = said(report)
    assert sentence and sentence.startswith("critical-streams")


@pytest.mark.parametrize("late, warns", [(0, False), (10, False), (100, True)])
def test_blocks_out_of_step(late, warns, report, write_page):
    lengths, arms = [100] * 12, [0, 1, 2, 2, 1, 0] * 2
    for rank, begun in enumerate((trials.BEGUN, trials.BEGUN + late * 1_000_000 // 2)):
        path = write_page(SOME, rank=rank, world=2, pid=100 + rank)
        trials.put(path, blocks=trials.blocks(lengths, arms), begun=begun)
    sentences = found(report)
    assert len(sentences) == warns
    if warns:
        assert sentences[0].startswith(
            "the arms of the trial were not in step: ranks 0-1 on node1 were under the same arm"
        )


def test_arms_that_were_never_in_force(report, write_page):
    def idle() -> set[str]:
        return trial.never_in_force(collect(str(report), waiting_room="/nonexistent"))

    trials.put(write_page(SOME, rank=0, world=2), trials.RUNNING, 0)
    assert idle() == {"critical-streams", "a100-paper"}
    trials.put(write_page(SOME, rank=0, world=2), blocks=trials.blocks([1, 1], [0, 1]))
    assert idle() == {"a100-paper"}
    trials.put(write_page(SOME, rank=1, world=2, pid=101), kept=2, dropped=())
    assert idle() == set()


def test_the_share_of_time():
    assert trial.overlap([(0, 10, 0), (10, 20, 1)], [(0, 10, 0), (10, 20, 1)]) == 1
    assert trial.overlap([(0, 10, 0), (10, 20, 1)], [(0, 20, 0)]) == 0.5
    assert trial.overlap([(0, 10, 0), (12, 20, 1)], [(5, 13, 1)]) == pytest.approx(1 / 6)
    assert trial.overlap([(0, 10, 0)], [(10, 20, 0)]) is None


@pytest.mark.parametrize(
    "obstacle, status, says",
    [
        (1, 0, "the program ended the context"),
        (2, 0, "the driver cannot time events"),
        (3, 0, "in each block the program captured"),
        (3, trials.NOISY, "in each block the program captured"),
    ],
)
def test_a_trial_without_times_says_why(obstacle, status, says, report, write_page, overlap):
    path = write_page(SOME)
    trials.put(path, status, 0, marks=600, obstacle=obstacle, dropped=(), samples=[(0, 0.0, 0.0)] * 3)
    sentence = said(report)
    assert sentence and sentence.startswith(f"no verdict: {says}")
    assert "after 600 communication launches. No arm was kept." in sentence
    assert "overlap report --compare" in sentence and "ended before" not in sentence
    data = json.loads(overlap("report", str(report), "--json").stdout)
    assert data["verdict"]["next"].startswith("compare whole runs")
    assert data["processes"][0]["trial"]["obstacle"] == ("context", "times", "captures")[obstacle - 1]


def test_a_short_program_that_ends_its_context_was_too_short(report, write_page):
    trials.put(write_page(SOME), 0, 0, marks=300, obstacle=1, dropped=(), samples=[(0, 0.0, 0.0)] * 3)
    sentence = said(report)
    assert sentence and "the process ended after 300 of at least 504 communication launches" in sentence


def test_captures_may_keep_a_trial_from_its_beginning(report, write_page):
    fields = {"mark": 0, "begun": 0, "settled": 0, "marks": 0, "early": (700, 0), "obstacle": 3}
    trials.put(write_page(SOME), 0, 0, samples=[(0, 0.0, 0.0)] * 3, dropped=(), **fields)
    sentence = said(report)
    assert sentence and "cannot be timed. No arm was kept." in sentence


def test_a_verdict_stands_whatever_comes_later(report, write_page):
    trials.put(write_page(SOME), trials.NOTHING, 0, obstacle=3)
    sentence = said(report)
    assert sentence and sentence.startswith("no arm")


def test_the_page_draws_the_pace_of_each_block(overlap, report, write_page, tmp_path):
    blocks = [(10 * n, 0 if n == 3 else 1000 + n, n % 3, 23) for n in range(9)]
    trials.put(write_page(SOME, rank=0, world=1), blocks=blocks)
    page = tmp_path / "page.html"
    assert overlap("report", str(report), "--html", str(page)).returncode == 0
    text = page.read_text(encoding="utf-8")
    assert "trial: critical-streams: -17.8 %" in text
    dots = re.findall(r'<circle cx="[\d.]+%" cy="[\d.]+" r="3" class="(arm\d)"><title>([^<]*)</title>', text)
    assert [kind for kind, _ in dots] == [f"arm{n % 3}" for n in range(9) if n != 3], (
        "a time that is not known has no dot"
    )
    assert dots[1][1] == "critical-streams: 43.5 us"


def test_as_data(overlap, report, write_page):
    trials.put(write_page(SOME, rank=0, world=1), blocks=[(7, 5, 1, 23)])
    answer = json.loads(overlap("report", str(report), "--json").stdout)
    (outcome,) = answer["trial"]["outcomes"]
    assert (outcome["outcome"], outcome["arm"], outcome["marks"], outcome["seconds"]) == (
        "kept",
        "critical-streams",
        2048,
        41,
    )
    assert [arm["name"] for arm in outcome["arms"]] == ["critical-streams", "a100-paper"]
    assert outcome["arms"][0]["percent"] == pytest.approx(-17.8, abs=0.05)
    schema = json.loads((SHIM.parent / "pyshim/report/report.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(strict(schema)).validate(answer)
    assert answer["processes"][0]["trial"]["blocks"] == [[trials.BEGUN + 700_000, 5000, 1, 23]]
