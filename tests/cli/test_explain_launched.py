"""overlap explain --run and --from TRACE: what would be done with kernels that were launched, and would it help?"""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from pyshim import _native

sys.path.append(str(Path(__file__).resolve().parents[1] / "traces"))

from made import GEMM, NCCL, K, kineto, kineto_events, nsys, step

GOLDEN = Path(__file__).parent / "golden"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
FLASH = "flash_fwd_splitkv_kernel"
SMALL = "triton_poi_fused_0"
ONE_RANK = "void oneRankReduce<FuncSum<float>>(void*)"

# 12 ms of computation: which of it meets NCCL of 544 threads with 1,024 + 82,240 bytes on an H200.
LAUNCHED = [
    *step(0, [2000.0, 3000.0], [(10.0, 500.0)]),  # one wave
    *(K(ADD, 10_000 + 100 * at, 50.0, registers=32, static=0, dynamic=0, grid=(20000, 1, 1)) for at in range(60)),
    *(K(FLASH, 20_000 + 100 * at, 100.0, registers=255, static=0, dynamic=65536, grid=(2000, 1, 1))
      for at in range(10)),
    *(K(SMALL, 30_000 + 100 * at, 10.0, block=(32, 1, 1), registers=16, static=0, dynamic=100_000, grid=(9000, 1, 1))
      for at in range(300)),
    K(ONE_RANK, 90_000, 10.0, block=(1024, 1, 1), registers=64, static=0, dynamic=200_000),
    K(None, 91_000, 10.0),
]  # fmt: skip
SHARES = {"beside": (0, 0), "window": (300, 3000), "later": (60, 3000), "never": (10, 1000), "left": (2, 5000)}


@pytest.fixture
def trace(tmp_path):
    return kineto(tmp_path / "trace.json", kineto_events(LAUNCHED))


def answer(overlap, *arguments, **more):
    done = overlap("explain", *map(str, arguments), "--json", **more)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("columns", [60, 80])
def test_a_trace_is_golden_and_fits(overlap, library, trace, columns):
    done = overlap("explain", "--from", trace.name, cwd=trace.parent, env={"COLUMNS": str(columns)})
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr == (GOLDEN / f"explain-trace{'' if columns == 80 else '-60'}.txt").read_text()
    assert max(map(len, done.stderr.splitlines())) <= columns


def test_the_profilers_trace_and_nsys_say_the_same(overlap, library, trace):
    """Compressed or not; and of nsys, which tells static and dynamic shared memory apart."""
    packed = trace.with_name("packed")
    packed.write_bytes(gzip.compress(trace.read_bytes()))
    export = nsys(trace.with_name("export.bin"), LAUNCHED)
    found = [answer(overlap, "--from", path) for path in (trace, packed, export)]
    for one in found:
        assert one["gpu"] == "h200"
        totals = {name: (total["launches"], total["us"]) for name, total in one["totals"].items()}
        assert totals == {**SHARES, "unknown": (0, 0)}
        assert one["totals"]["window"]["share"] == 0.25
        assert one["communication_launches"] == 2
        # Its own, without the one-rank reduction, which nobody waits for.
        assert one["communication"]["comm_threads"] == 544
        assert one["communication"]["comm_static_smem"] + one["communication"]["comm_dynamic_smem"] == 1024 + 82240
    assert found[0]["totals"] == found[1]["totals"] == found[2]["totals"]
    (window,) = (kernel for kernel in found[2]["kernels"] if kernel["outcome"] == "window")
    assert (window["kernel"], window["grid"], window["launches"]) == (SMALL, 9000, 300)
    assert (window["control"], window["dynamic_shared_memory"], window["blocks"]) == ("make_room", 115713, 1)


def test_each_answer_is_that_of_a_single_request(overlap, library, trace):
    found = answer(overlap, "--from", trace)
    lines = []
    for kernel in found["kernels"]:
        footprint = {"threads": "threads", "registers": "registers", "static_smem": "static_shared_memory"}
        request = {name: kernel[key] for name, key in footprint.items()}
        request |= {"gpu": "h200", "blocks": kernel["grid"], "dynamic_smem": kernel["asked"]}
        lines.append(
            {**request, **{name: found["communication"][name] for name in found["communication"] if name != "name"}}
        )
    done = overlap("explain", "--stdin", "--json", input="".join(json.dumps(line) + "\n" for line in lines))
    assert len(lines) == 4
    for kernel, line in zip(found["kernels"], done.stdout.splitlines()):
        single = json.loads(line)
        for name in ("control", "reason", "dynamic_shared_memory", "blocks", "native_blocks"):
            assert kernel[name] == single[name]


def test_options_stand_over_what_the_trace_says(overlap, library, trace):
    other = answer(overlap, "--from", trace, "--gpu", "a100", "--comm-threads", 64, "--comm-registers", 32)
    assert (other["gpu"], other["communication"]["name"], other["communication"]["comm_threads"]) == (
        "a100",
        "as told",
        64,
    )
    assert answer(overlap, "--from", trace, "--kernel", "*elementwise_kernel")["totals"]["later"]["share"] == 1
    amd = answer(overlap, "--from", trace, "--gpu", "mi250x")
    assert amd["communication"]["name"].startswith("RCCL"), "another library communicates there"


def test_a_policy_changes_what_its_communication_takes(overlap, library, trace):
    found = answer(overlap, "--from", trace, "--policy", "h200-small-comm")
    assert found["communication"]["comm_threads"] == 288
    assert {kernel["reason"] for kernel in found["kernels"]} >= {"dispatch_unknown"}
    assert any("are templates whose arguments the trace does not have" in note for note in found["notes"])


def test_settings_of_communication_are_tried(overlap, library, trace):
    """What each would change is what a trace with blocks of that size says."""
    found = answer(overlap, "--from", trace)
    settings = {one["setting"]: one["totals"] for one in found["settings"]}
    assert list(settings) == ["NCCL_NTHREADS=256 with NCCL_ALGO=Ring", "NCCL_NTHREADS=128 with NCCL_ALGO=Ring"]
    trace.write_text(trace.read_text().replace("544", "160"))
    smaller = answer(overlap, "--from", trace)
    assert smaller["communication"]["comm_threads"] == 160
    expected = {name: {"launches": one["launches"], "us": one["us"]} for name, one in smaller["totals"].items()}
    assert settings["NCCL_NTHREADS=128 with NCCL_ALGO=Ring"] == expected
    assert expected["never"]["launches"] == 0 and found["totals"]["never"]["launches"] == 10
    assert smaller["settings"] == []


def test_several_traces_are_added_up(overlap, library, trace):
    other = shutil.copy(trace, trace.with_name("other.json"))
    assert answer(overlap, "--from", trace, other)["totals"]["window"]["launches"] == 600


def test_a_trace_without_communication_is_planned_beside_the_newest(overlap, library, tmp_path):
    path = kineto(tmp_path / "t.json", kineto_events([K(GEMM, 0, 5.0, grid=(5000, 1, 1))]))
    assert answer(overlap, "--from", path)["communication"]["name"].startswith("NCCL 2.")
    done = overlap("explain", "--from", str(path))
    assert "communication itself" not in done.stderr


@pytest.mark.parametrize(
    ("name", "arguments", "error", "hint"),
    [
        ("NVIDIA RTX 9", [], "{} is of NVIDIA RTX 9, whose limits are not known", "--gpu G says it; `overlap gpus`"),
        ("", [], "{} does not say on which GPU it was", "--gpu G says it; `overlap gpus`"),
        ("NVIDIA H200", ["--kernel", "nix"], "{}: no kernel in it is called like nix", ""),
        ("NVIDIA H200", ["--sweep"], "--sweep goes without a trace", "ask about one kernel in numbers"),
        ("NVIDIA H200", ["--blocks", "3"], "--blocks goes without a trace", "it says that of every launch"),
        ("NVIDIA H200", ["--comm-from", "x"], "--comm-from goes without a trace", "its own communication kernels"),
        ("NVIDIA H200", ["--comm-threads", "3"], "needed, and not said: --comm-registers", "overlap explain --help"),
        ("NVIDIA H200", ["--policy", "h200", "--shape", "leave"], "--shape: goes without a policy", "overlap explain"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)  # fmt: skip
def test_a_mistake_about_a_trace_is_one_sentence(overlap, library, trace, name, arguments, error, hint):
    trace.write_text(trace.read_text().replace('"NVIDIA H200"', f'"{name}"' if name else "7"))
    done = overlap("explain", "--from", str(trace), *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    first, *hints = done.stderr.splitlines()
    assert first.startswith(f"overlap: error: {error.format(trace)}")
    assert len(hints) <= 1 and all(line.startswith(f"overlap: help: {hint}") for line in hints)


def test_a_file_with_no_kernel_of_a_gpu_and_one_that_is_none(overlap, library, tmp_path):
    empty = kineto(tmp_path / "cpu.json", kineto_events([]))
    done = overlap("explain", "--from", str(empty))
    assert (done.returncode, f"{empty}: no kernel of a GPU in it" in done.stderr) == (2, True)
    torn = tmp_path / "torn.json"
    torn.write_bytes(empty.read_bytes()[:100])
    done = overlap("explain", "--from", str(torn))
    assert (done.returncode, "overlap: help: " + f"{torn}: it ends in the middle" in done.stderr) == (2, True)
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as database:
        database.execute("CREATE TABLE t (a)")
    done = overlap("explain", "--from", str(tmp_path / "other.sqlite"))
    assert (done.returncode, "is a database of something else than nsys" in done.stderr) == (2, True)
    done = overlap("explain", "--from", str(empty), __file__)
    assert (done.returncode, f"{empty} is a trace and {__file__} is none" in done.stderr) == (2, True)


def test_numbers_that_no_launch_has_are_not_known(overlap, library, tmp_path):
    launches = [
        K("a", 0, 1.0, registers=10**12, grid=(10**30, 1, 1)),
        K("b\x00c\ud800", 2, 1.0, block=(-5, 1, 1)),
        K("d", 4, 1.0, registers=32, grid=(10**30, 1, 1)),
        K(NCCL, 6, 1.0, registers=-1),
    ]
    found = answer(overlap, "--from", kineto(tmp_path / "t.json", kineto_events(launches)))
    assert [kernel["outcome"] for kernel in found["kernels"]].count("unknown") == 2
    assert found["communication"]["name"].startswith("NCCL 2.")


def test_a_h100_of_another_form_is_known_by_its_policy(overlap, library, trace):
    trace.write_text(trace.read_text().replace("NVIDIA H200", "NVIDIA H100 PCIe"))
    assert answer(overlap, "--from", trace)["gpu"] == "h100"


@pytest.fixture(scope="module")
def run(overlap_run, library, tmp_path_factory):
    """A report of the demo's program on the simulated H100, under a policy of ours."""
    folder = tmp_path_factory.mktemp("run")
    policy = folder / "mine.yaml"
    policy.write_text(
        'policy: 1\nname: mine\ngpu: ["NVIDIA H100*"]\ncompute:\n'
        '  - match: {kernel: "sgemm*"}\n    shape: {blocks_per_sm: 50%}\n    when: always\n'
    )
    demo = _native.DEMO
    words = ["--arm", "concurrent", "--warmup", "1", "--steps", "1", "--cubins", str(demo)]
    ours = ["--simulate", "h100", "--policy", str(policy), "--report", str(folder / "report"), "--quiet"]
    done = overlap_run(*ours, "--", str(demo / "overlap-demo"), *words)
    assert done.returncode == 0, done.stderr
    return folder


def test_a_run_is_answered_under_its_own_policy(overlap, library, run):
    report = json.loads(overlap("report", str(run / "report"), "--json").stdout)["totals"]
    found = answer(overlap, "--run", run / "report")
    assert found["rule"] == f"the first of {run / 'mine.yaml'} that matches"
    assert found["gpu"] == "h100"
    kernels = {kernel["kernel"]: kernel for kernel in found["kernels"]}
    assert sum(kernel["launches"] for kernel in kernels.values()) == report["launches"] - report["communication"]
    assert found["communication_launches"] == report["communication"]
    gemm = kernels["sgemm_128x64_nn"]
    assert gemm["launches"] == report["shaped"]
    assert gemm["launches"] - 1 == report["reasons"][gemm["reason"]], "the first came before any communication"
    assert (gemm["control"], gemm["reason"], gemm["us"]) == ("cap", "capped_without_room", None)
    assert kernels["optimizer_step"]["reason"] == "no_rule"
    assert (found["communication"]["comm_threads"], found["communication"]["comm_static_smem"]) == (544, 36800)


def test_a_run_is_answered_under_another_policy_and_gpu(overlap, library, run):
    found = answer(overlap, "--run", run / "report", "--policy", "h100-small-comm", "--gpu", "h100")
    assert found["communication"]["comm_threads"] == 288
    by_shape = answer(overlap, "--run", run / "report", "--shape", "quick_entry", "--keep-at-least", "10%")
    assert by_shape["rule"] == "quick_entry, keep_at_least 10%"
    done = overlap("explain", "--run", str(run / "report"), "--kernel", "sgemm*")
    assert (done.returncode, done.stdout) == (0, "")
    assert "Of the launches of computation, 100 % never meets communication." in done.stderr
    done = overlap("explain", "--run", str(run / "report"), "--policy", "h100")
    said = " ".join(done.stderr.split())
    assert "100 % is left alone (80 % dispatch_unknown, 20 % no_rule)." in said, "each reason has its share"
    done = overlap("explain", "--run", str(run))
    assert (done.returncode, done.stderr.startswith(f"overlap: error: {run}: no launch of a kernel")) == (2, True)
