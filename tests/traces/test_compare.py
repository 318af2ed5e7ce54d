"""`overlap report --compare` of traces, from outside: what is printed, what --json has, what is refused."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import holistic
import pytest
import pytorch
from made import GEMM, GPU, NCCL, K, kineto, kineto_events, nsys, step

from pyshim import _native
from pyshim.traces import open_trace
from pyshim.traces.compared import compare
from pyshim.traces.timeline import MOST
from tools.bench import traces as bench

BENCH = Path(__file__).resolve().parents[2] / "tools" / "bench"

QUANTITIES = ["step_time", "computation", "communication", "hidden", "exposed", "overlap_share", "idle", "slowdown"]


def job(
    late: float, seed: int, ranks: int = 2, steps: int = 31
) -> dict[int, tuple[list[K], list[tuple[int, float, float]]]]:
    """Of each rank what ran, and its steps: 20 GEMMs, and two all-reduces; the second ends `late` after them."""
    made = random.Random(seed)
    found = {}
    for rank in range(ranks):
        kernels: list[K] = []
        marks = []
        now = 1000.0
        for number in range(steps):
            gemms = [round(made.gauss(100, 3), 3) for _ in range(20)]
            busy = round(sum(gemms), 3)
            reduces = [(300, round(made.gauss(500, 10), 3)), (round(busy - 700, 3), round(700 + late, 3))]
            kernels += [K(None, now - 2, 2), *step(now, gemms, reduces)]
            marks.append((number, now, busy + late))
            now = round(now + busy + late + 50, 3)
        made.shuffle(kernels)
        found[rank] = kernels, marks
    return found


def folder(path: Path, made: dict[int, tuple[list[K], list[tuple[int, float, float]]]]) -> str:
    path.mkdir()
    for rank, (kernels, marks) in made.items():
        # The file's name says nothing of the rank.
        kineto(path / f"{chr(ord('z') - rank)}.json", kineto_events(kernels, marks, gpu_steps=True), rank=rank)
    return str(path)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    path = tmp_path_factory.mktemp("pair")
    return folder(path / "before", job(400, 1)), folder(path / "after", job(100, 4))


def test_what_is_printed(overlap, pair):
    before, after = pair
    done = overlap("report", "--compare", before, after, env={"COLUMNS": "60"})
    assert done.returncode == 0 and done.stderr == ""
    text = done.stdout.replace(before, "BEFORE").replace(after, "AFTER")
    golden = Path(__file__).with_name("golden") / "compare.txt"
    assert text == golden.read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= 60


def test_json(overlap, pair):
    done = overlap("report", "--compare", *pair, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert (answer["version"], answer["kind"], answer["simulated"], answer["confidence"]) == (1, "traces", False, 0.95)
    assert answer["before"] == {
        **{"path": pair[0], "kinds": ["pytorch"], "simulated": False, "ranks": 2, "steps": 30},
        **{"steps_from": "ProfilerStep#", "steps_left_out": 1, "gpus": [GPU]},
    }
    assert [rank["name"] for rank in answer["ranks"]] == ["rank 0", "rank 1"]
    for changes in (answer["total"], *(rank["changes"] for rank in answer["ranks"])):
        assert list(changes) == QUANTITIES
        verdicts = {name: change["verdict"] for name, change in changes.items()}
        assert (verdicts["step_time"], verdicts["overlap_share"]) == ("less", "more")
        assert verdicts["computation"] == "no difference seen"
        assert changes["exposed"]["before"] == pytest.approx(400, abs=0.01)
        assert changes["exposed"]["after"] == pytest.approx(100, abs=0.01)
        assert changes["communication"]["before"] == pytest.approx(1600, abs=10)
        low, high = changes["step_time"]["interval"]
        assert low <= changes["step_time"]["difference"] <= high < 0


def test_nsys_says_the_same(overlap, pair, tmp_path):
    """The same kernels, in the other form; ranks are taken in the order of their files."""
    made = {"before": job(400, 1), "after": job(100, 4)}
    paths = []
    for name, ranks in made.items():
        (tmp_path / name).mkdir()
        for rank, (kernels, marks) in ranks.items():
            ranges = [(f"step {number}", start, length) for number, start, length in marks]
            nsys(tmp_path / name / f"report{rank + 9}.sqlite", kernels, ranges)
        paths.append(str(tmp_path / name))
    one = json.loads(overlap("report", "--compare", *pair, "--json").stdout)
    other = json.loads(overlap("report", "--compare", *paths, "--json").stdout)
    assert [rank["name"] for rank in other["ranks"]] == ["trace 0", "trace 1"]
    for name in QUANTITIES:
        for side in ("before", "after", "difference"):
            assert other["total"][name][side] == pytest.approx(one["total"][name][side], rel=1e-6, abs=1e-3)


def test_ranks_are_matched_and_the_rest_is_named(overlap, pair, tmp_path):
    three = folder(tmp_path / "three", job(400, 1, ranks=3))
    done = overlap("report", "--compare", three, pair[1], "--json")
    answer = json.loads(done.stdout)
    assert [rank["name"] for rank in answer["ranks"]] == ["rank 0", "rank 1"]
    assert answer["warnings"] == [f"only in {three}, and left out: rank 2"]
    assert "warning: only in" in done.stderr


def test_ranks_that_one_side_does_not_know(overlap, pair, tmp_path):
    (tmp_path / "one").mkdir()
    for rank, (kernels, marks) in job(100, 4).items():
        kineto(tmp_path / "one" / f"{rank}.json", kineto_events(kernels, marks), rank=None)
    answer = json.loads(overlap("report", "--compare", pair[0], str(tmp_path / "one"), "--json").stdout)
    assert [rank["name"] for rank in answer["ranks"]] == ["trace 0", "trace 1"]
    assert "by the order of the files" in answer["warnings"][0]


def test_a_rank_with_several_files_has_the_steps_of_all(overlap, pair, tmp_path):
    """What torch.profiler leaves for every cycle of its schedule."""
    (tmp_path / "cycles").mkdir()
    for cycle in range(3):
        for rank, (kernels, marks) in job(400, cycle, steps=4).items():
            kineto(tmp_path / "cycles" / f"{rank}.{cycle}.json", kineto_events(kernels, marks), rank=rank)
    answer = json.loads(overlap("report", "--compare", str(tmp_path / "cycles"), pair[1], "--json").stdout)
    assert (answer["before"]["steps"], answer["before"]["ranks"]) == (9, 2)


def test_gpus_of_one_file_do_not_hide_each_others_communication(overlap, tmp_path):
    kernels = [K(GEMM, 0.0, 100.0, device=0), K(NCCL, 0.0, 100.0, 20, device=1), K(GEMM, 50.0, 100.0, device=1)]
    path = str(kineto(tmp_path / "t.json", kineto_events(kernels)))
    answer = json.loads(overlap("report", "--compare", path, path, "--json").stdout)
    assert [rank["name"] for rank in answer["ranks"]] == ["rank 0, GPU 0", "rank 0, GPU 1"]
    shares = [rank["changes"]["overlap_share"]["before"] for rank in answer["ranks"]]
    assert shares == [None, 0.5]
    # As processes of a node in one report of nsys, each of which has a GPU 0.
    export = nsys(tmp_path / "export", kernels[:1])
    nsys(export, [kernel._replace(device=0) for kernel in kernels[1:]], process=0x22000000000000)
    answer = json.loads(overlap("report", "--compare", str(export), str(export), "--json").stdout)
    assert [rank["name"] for rank in answer["ranks"]] == ["trace 0, GPU 0", "trace 0, process 1, GPU 0"]
    assert [rank["changes"]["overlap_share"]["before"] for rank in answer["ranks"]] == [None, 0.5]


def test_no_steps(overlap, tmp_path):
    path = str(kineto(tmp_path / "t.json", kineto_events(step(100.0, [50.0, 50.0], [(20.0, 200.0)]))))
    done = overlap("report", "--compare", path, path)
    assert done.returncode == 0
    assert f"warning: no steps in {path}: the whole of it counts as one" in done.stdout
    row = next(line for line in done.stdout.splitlines() if line.startswith("step time"))
    assert row.split() == ["step", "time", "220.000", "220.000", "+0.0", "%", "-"]
    assert "us  " in done.stdout and "difference seen" not in done.stdout


def test_many_ranks_are_a_few_lines(overlap, tmp_path):
    """Twenty ranks, without steps: those that have changed most; and of two folders' warnings the first ten."""
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
        for rank in range(20):
            late = 200.0 + (rank if name == "after" else 0)
            kineto(tmp_path / name / f"{rank}.json", kineto_events(step(0.0, [50.0], [(20.0, late)])), rank=rank)
        for number in range(6):
            (tmp_path / name / f"torn{number}.json").write_text('{"traceEvents": [')
    done = overlap("report", "--compare", str(tmp_path / "before"), str(tmp_path / "after"))
    lines = done.stdout.splitlines()
    ranks = [line.split()[1] for line in lines if line.startswith("rank ")]
    assert ranks == [str(rank) for rank in range(19, 3, -1)]
    assert "The 16 of 20 ranks whose steps have changed most (--json has all):" in lines
    assert sum("warning:" in line for line in lines) == 11 and "more: --json has all" in lines[-1]
    answer = json.loads(
        overlap("report", "--compare", str(tmp_path / "before"), str(tmp_path / "after"), "--json").stdout
    )
    assert len(answer["ranks"]) == 20 and len(answer["warnings"]) > 11


def test_simulated_traces_are_called_so(overlap, overlap_run, tmp_path):
    paths = []
    for arm in ("sequential", "concurrent"):
        paths.append(str(tmp_path / arm))
        words = (
            str(_native.DEMO / "demo-step"),
            f"--arm={arm}",
            "--warmup=1",
            "--steps=2",
            "--layers=4",
            "--buckets=2",
        )
        assert (
            overlap_run("--quiet", "--simulate", "h100", "--", *words, env={"SIMGPU_TRACE": paths[-1]}).returncode == 0
        )
    done = overlap("report", "--compare", *paths)
    assert "simulated: this is no measurement of a GPU" in done.stdout + done.stderr
    answer = json.loads(overlap("report", "--compare", *paths, "--json").stdout)
    assert answer["simulated"] is True
    assert {change["verdict"] for change in answer["total"].values()} == {None}
    assert "so there is no verdict" in done.stdout + done.stderr
    before, after = (answer["total"]["hidden"][when] for when in ("before", "after"))
    assert before <= 0.002 < 0.01 < after  # a copy runs beside it for a microsecond


def test_a_folder_without_traces_is_refused(overlap, pair, tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    done = overlap("report", "--compare", pair[0], str(tmp_path))
    assert done.returncode == 1
    assert f"error: there are no kernels on a GPU in {tmp_path}" in done.stderr


def test_the_picture_is_of_one_step_and_small(pair, tmp_path):
    compared = compare(*pair)
    before = compared.timeline()["before"]
    assert before["name"] == "rank 0, GPU 0"
    lengths = sorted(times.span for times in compared.ranks[0].before)
    assert before["length_us"] == pytest.approx(lengths[14], abs=0.001)
    streams = {lane["stream"]: lane["bars"] for lane in before["lanes"]}
    assert list(streams) == ["7", "20"]
    assert [bar[2:] for bar in streams["20"]] == [["communication", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"]] * 2
    computed = [bar for bar in streams["7"] if bar[2] == "computation"]
    assert len(computed) == 20 and computed[0][0] == 0
    json.dumps(compared.timeline())

    many = [K((GEMM, NCCL, GEMM)[n % 3], n * 2.0, 1.5, 7 + n % 2) for n in range(20000)]
    path = str(kineto(tmp_path / "many.json", kineto_events(many)))
    lanes = compare(path, path).timeline()["after"]["lanes"]
    bars = [bar for lane in lanes for bar in lane["bars"]]
    assert 1000 < len(bars) <= 2 * MOST
    assert max(bar[1] for bar in bars) == 19999 * 2 + 1.5
    assert sum(int(bar[3].split()[0]) for bar in bars) == len(many)


def test_real_traces_of_a_cpu(overlap, tmp_path):
    """As torch.profiler of the PyTorch at hand writes them."""
    try:
        python = pytorch.python()
    except pytorch.Missing as missing:
        pytest.skip(str(missing))
    program = """
import sys, torch
from torch.profiler import ProfilerActivity, profile, schedule
model = torch.nn.Linear(64, 64)
def done(profiler):
    profiler.export_chrome_trace(sys.argv[1])
with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=3, repeat=1),
             on_trace_ready=done) as profiler:
    for _ in range(4):
        model(torch.randn(8, 64)).sum().backward()
        profiler.step()
"""
    path = str(tmp_path / "cpu.json")
    subprocess.run([str(python), "-c", program, path], check=True, capture_output=True, timeout=120)
    trace = open_trace(path)
    assert [span.name for span in trace.spans() if span.name.startswith("ProfilerStep")] == [
        f"ProfilerStep#{number}" for number in (1, 2, 3)
    ]
    assert (trace.kind, trace.warnings) == ("pytorch", [])
    done = overlap("report", "--compare", path, path)
    assert done.returncode == 1
    assert f"error: there are no kernels on a GPU in {path}" in done.stderr
    assert "recorded with activities=[CPU]?" in done.stderr


def test_memory_does_not_grow_with_the_trace(tmp_path):
    """30 MB of kernels alone, the worst case: 24 bytes a launch are kept, and what a window over the file needs."""
    small, large = tmp_path / "small.json", tmp_path / "large.json"
    bench.write(small, 3_000_000, kernels_only=True)
    bench.write(large, 30_000_000, kernels_only=True)
    (_, little, _), (_, much, found) = bench.read(small), bench.read(large)
    assert found["steps"] > 20
    launches = large.read_text().count('"cat": "kernel"')
    assert much - little < 24 * launches / 1e6 + 15
    assert much < 70


def test_holistic_trace_analysis_says_the_same(tmp_path):
    """Its own answers, on the same files: tests/traces/holistic.py asks it."""
    holistic.make(tmp_path)
    compared = compare(str(tmp_path / "before"), str(tmp_path / "after"))
    for side, answers in holistic.ANSWERS.items():
        for rank, (idle, computation, span, share) in zip(compared.ranks, answers):
            values = {name: getattr(change, side) for name, change in rank.changes.items()}
            assert (values["idle"], values["computation"], values["step_time"]) == (idle, computation, span)
            assert round(100 * values["overlap_share"], 2) == share
