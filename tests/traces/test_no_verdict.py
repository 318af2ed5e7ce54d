"""`overlap report --compare` of traces where less can be said than it seems, from outside."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest
from made import GEMM, K, kineto, kineto_events, nsys, step

GEMM_US, STEP_US = 100.0, 600.0


def trace(path: Path, lengths: list[float], gpu_steps: bool = True, marked: bool = True, hidden: float = 50.0) -> str:
    """Steps of these lengths: a GEMM that fills them, and an all-reduce that ends `hidden` inside of it."""
    kernels: list[K] = []
    marks = []
    now = 1000.0
    for number, length in enumerate(lengths):
        kernels += step(now, [length - 100], [(length - 100 - hidden, 80 + hidden)])
        marks.append((number, now, length))
        now += length
    kineto(path, kineto_events(kernels, marks if marked else (), gpu_steps=gpu_steps))
    return str(path)


def steady(seed: int, mean: float = STEP_US, count: int = 30) -> list[float]:
    made = random.Random(seed)
    return [round(made.gauss(mean, 3), 3) for _ in range(count)]


def compare(overlap, *arguments: str):
    done = overlap("report", "--compare", *arguments, timeout=300)
    assert "Traceback" not in done.stderr
    return done


def row(done, name: str) -> list[str]:
    return next(line for line in done.stdout.splitlines() if line.strip().startswith(name)).split()


SURE = ("less after", "more after", "no difference seen")


def says_no_change(done) -> bool:
    told = any(words in done.stdout for words in SURE)
    return done.returncode == 1 and row(done, "step time")[-2:] == ["-", "-"] and not told


def test_of_a_torn_trace_no_change_is_told(overlap, tmp_path):
    whole = trace(tmp_path / "whole.json", steady(1))
    torn = tmp_path / "torn.json"
    torn.write_bytes(Path(whole).read_bytes()[: Path(whole).stat().st_size // 2])
    for pair in ((str(torn), whole), (whole, str(torn)), (str(torn), str(torn))):
        done = compare(overlap, *pair)
        assert says_no_change(done)
        assert done.stdout.count("it ends in the middle: it was read as far as it goes") == 1
        assert f"what is left of {torn} may be of anything: no change is told" in done.stdout.replace("\n", " ")
    done = compare(overlap, str(torn), whole, "--json")
    answer = json.loads(done.stdout)
    assert answer["comparable"] is False and done.returncode == 1
    for change in answer["total"].values():
        assert change["difference"] is change["interval"] is change["verdict"] is None


def test_a_database_that_lost_pages_is_torn(overlap, tmp_path):
    """sqlite reads what is there, and says nothing."""
    kernels = [one for number in range(200) for one in step(number * 600.0, [500.0], [(450.0, 130.0)])]
    ranges = [(f"step {number}", number * 600.0, 600.0) for number in range(200)]
    whole = nsys(tmp_path / "whole.sqlite", kernels, ranges)
    assert "shorter than it says" not in compare(overlap, str(whole), str(whole)).stdout
    torn = tmp_path / "torn.sqlite"
    torn.write_bytes(whole.read_bytes()[:-4096])
    done = compare(overlap, str(torn), str(whole))
    assert done.returncode == 1
    assert not any(words in done.stdout for words in SURE)
    assert f"{torn}: it is shorter than it says" in done.stdout or f"{torn} cannot be read" in done.stderr
    # Less than a page is enough.
    torn.write_bytes(whole.read_bytes()[:-100])
    assert compare(overlap, str(torn), str(whole)).returncode == 1


def test_steps_of_the_host_in_which_nothing_ran_are_none(overlap, tmp_path):
    kernels = [K(GEMM, 5000.0 + 100 * number, 90.0) for number in range(30)]
    marks = [(number, 4000.0 + 500 * number, 500.0) for number in range(10)]
    path = str(kineto(tmp_path / "early.json", kineto_events(kernels, marks)))
    answer = json.loads(compare(overlap, path, path, "--json").stdout)
    # 4000, 4500 and from 8000 on are before and after what ran; the last of the rest is left out.
    assert answer["before"]["steps"] == 5
    assert answer["total"]["computation"]["before"] == pytest.approx(450)
    kernels = [K(GEMM, 4000.0, 90.0), K(GEMM, 8000.0, 90.0)]
    path = str(kineto(tmp_path / "gap.json", kineto_events(kernels, marks)))
    assert json.loads(compare(overlap, path, path, "--json").stdout)["before"]["steps"] is None


def test_a_step_is_not_compared_with_a_whole(overlap, tmp_path):
    steps = trace(tmp_path / "steps.json", steady(1))
    whole = trace(tmp_path / "whole.json", steady(2), marked=False)
    page = tmp_path / "page.html"
    for pair in ((steps, whole), (whole, steps)):
        done = compare(overlap, *pair)
        assert says_no_change(done)
        assert "a step cannot be compared with a whole trace: no change is told" in done.stdout
        assert "ms a step" not in done.stdout
        compare(overlap, *pair, "--html", str(page), "--force")
        assert '"verdict neither">Nothing can be compared.<' in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("real_first", [True, False])
def test_what_was_simulated_is_not_compared_with_what_was_measured(overlap, tmp_path, real_first):
    real = trace(tmp_path / "real.json", steady(1))
    simulated = tmp_path / "simulated.json"
    simulated.write_text(SIMULATED, encoding="utf-8")
    page = tmp_path / "page.html"
    pair = (real, str(simulated)) if real_first else (str(simulated), real)
    done = compare(overlap, *pair, "--html", str(page))
    assert (done.returncode, done.stdout, page.exists()) == (2, "", False)
    assert f"{simulated} is simulated" in done.stderr and f"{real} is measured" in done.stderr
    # A folder of both is no better.
    done = compare(overlap, str(tmp_path), str(tmp_path))
    assert done.returncode == 2
    done = compare(overlap, str(simulated), str(simulated), "--html", str(page))
    assert (done.returncode, page.read_text(encoding="utf-8").count('class="badge"')) == (0, 2)


SIMULATED = """[
{"name": "process_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": "simulated, rule exclusive"}},
{"name": "gemm", "ph": "X", "pid": 1, "tid": 1, "ts": 0, "dur": 100, "args": {"grid": [1, 1, 1], "threads": 128}}
]"""


def test_of_next_to_nothing_there_is_no_percentage(overlap, tmp_path):
    """0.006 us were hidden before, by rounding of times: they became 50 us, not 800,000 %."""
    before = trace(tmp_path / "before.json", steady(1), hidden=0.006)
    after = trace(tmp_path / "after.json", steady(2))
    done = compare(overlap, before, after)
    assert row(done, "hidden")[:4] == ["hidden", "0.006", "50.000", "+49.994"]
    assert row(done, "step time")[-4] == "%"
    page = tmp_path / "page.html"
    compare(overlap, before, after, "--html", str(page))
    assert "+49.994" in page.read_text(encoding="utf-8") and "000.0 %" not in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("times", ['"ts": 1e300, "dur": 1.0', '"ts": 1.0, "dur": 1e308', '"ts": -1e300, "dur": 1e300'])
def test_times_of_no_clock_are_left_out(overlap, tmp_path, times):
    good = trace(tmp_path / "good.json", steady(1))
    text = Path(good).read_text(encoding="utf-8")
    event = f'{{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, {times}}},'
    bad = tmp_path / "bad.json"
    bad.write_text(text.replace('"traceEvents": [', f'"traceEvents": [{event}', 1), encoding="utf-8")
    done = compare(overlap, good, str(bad), "--json")
    answer = json.loads(done.stdout, parse_constant=pytest.fail)
    assert answer["total"]["step_time"]["difference"] == 0
    assert answer["warnings"] == [f"{bad}: 1 events have times of no clock, and were left out"]
    plain = compare(overlap, good, str(bad))
    assert "inf" not in plain.stdout.split() and "nan" not in plain.stdout.split()


def test_a_pipe_is_refused_at_once(overlap, tmp_path):
    good = trace(tmp_path / "good.json", steady(1))
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    for pair in ((str(pipe), good), (good, str(pipe))):
        done = compare(overlap, *pair)
        assert done.returncode == 1
        assert f"error: {pipe} is a pipe" in done.stderr


def test_two_runs_of_one_process_that_drifts_are_no_difference(overlap, tmp_path):
    """Steps that resemble the one before: of independent ones, 17 of 24 such pairs would differ."""
    wrong = 0
    for pair in range(4):
        paths = []
        for side in range(2):
            made = random.Random(10 * pair + side)
            lengths, now = [], made.gauss(0, 30)
            for _ in range(60):
                now = 0.9 * now + made.gauss(0, 13)
                lengths.append(round(1000 + now, 3))
            paths.append(trace(tmp_path / f"{pair}.{side}.json", lengths))
        done = compare(overlap, *paths, "--json")
        wrong += json.loads(done.stdout)["total"]["step_time"]["verdict"] in ("less", "more")
    assert wrong == 0


def test_a_drift_is_warned_of(overlap, tmp_path):
    steps = [600 + 5 * number + noise - 600 for number, noise in enumerate(steady(3))]
    path = trace(tmp_path / "drifts.json", steps)
    done = compare(overlap, path, trace(tmp_path / "steady.json", steady(4)))
    assert done.stdout.count("steps drift in") == 1 and f"steps drift in {path}: 0.6" in done.stdout


def test_every_rank_has_every_quantity(overlap, tmp_path):
    for name, mean in (("before", STEP_US), ("after", STEP_US - 60)):
        (tmp_path / name).mkdir()
        for rank in range(2):
            path = tmp_path / name / f"{rank}.json"
            trace(path, steady(rank, mean))
            path.write_text(path.read_text(encoding="utf-8").replace('"rank": 0', f'"rank": {rank}'), encoding="utf-8")
    done = compare(overlap, str(tmp_path / "before"), str(tmp_path / "after"))
    lines = done.stdout.splitlines()
    at = next(index for index, line in enumerate(lines) if "exposed" in line and "comp." in line)
    assert lines[at].split() == ["us", "step", "comp.", "comm.", "hidden", "exposed", "share", "slowdown"]
    assert [line.split()[0] for line in lines[at + 1 : at + 7]] == ["rank", "after", "change"] * 2
    answer = json.loads(compare(overlap, str(tmp_path / "before"), str(tmp_path / "after"), "--json").stdout)
    changes = answer["ranks"][1]["changes"]
    first = lines[at + 4].split()
    assert first[:2] == ["rank", "1"]
    expected = [changes[name]["before"] for name in ("step_time", "computation", "communication", "hidden", "exposed")]
    assert [float(value) for value in first[2:7]] == pytest.approx(expected, abs=0.001)
    text = " ".join(done.stdout.split())
    assert "The last step of every trace is left out" in text
    assert "slowdown -: in no step did the same kernel run both beside communication and alone" in text
