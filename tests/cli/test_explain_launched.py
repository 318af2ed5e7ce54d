"""overlap explain --report and --from TRACE: what would be done with kernels that were launched, and would it help?"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from made import GEMM, NCCL, K, kineto, kineto_events, nsys, step
from made_waits import Program, boundary, collective, interior

from pyshim.explain.answer import Explainer
from tests.cli.narrow import says_the_same

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


def golden_and_fits(overlap, name, *words, **more):
    wide, narrow = (overlap("explain", *words, env={"COLUMNS": columns}, **more) for columns in ("80", "60"))
    assert (wide.returncode, wide.stderr) == (0, "")
    assert wide.stdout == (GOLDEN / f"explain-{name}.txt").read_text()
    assert max(map(len, wide.stdout.splitlines())) <= 80
    says_the_same(narrow.stdout, wide.stdout)


def test_a_trace_is_golden_and_fits(overlap, library, trace):
    golden_and_fits(overlap, "trace", "--from", trace.name, cwd=trace.parent)


def halo(steps=5):
    """Boundary kernels in front of collectives stand behind the interior: tests/traces/test_waiting.py."""
    program = Program()
    for at in (1000.0 + 100 * number for number in range(steps)):
        program.launch(interior(at + 4, 76), at + 1)
        program.launch(boundary(at + 70, 5), at + 3)
        program.launch(collective(at + 76, 19), at + 5)
        program.record(1, 20, at + 7)
        program.wait(7, 1, at + 8)
        program.steps.append((int(at / 100), at, 100.0))
    return program


def test_priority_inversions_are_golden_and_fit(overlap, library, tmp_path):
    halo().kineto(tmp_path / "trace.json")
    golden_and_fits(overlap, "waiting", "--from", "trace.json", cwd=tmp_path)


def test_would_it_help_me_is_answered_first_and_the_next_command_named(overlap, library):
    """Of the trace that README asks about: what raising can save stands before what shaping could do, which the default
    policies do not do, and a trace that ships is called by its name."""
    done = overlap("explain", "--from", "demo-stencil", env={"COLUMNS": "100"})
    said = " ".join(done.stdout.split())
    saves = said.index("Raising streams 29, 31 can save at most 0.100 ms a step (25 %)")
    default = said.index("The default policy raises what something waits for, if it carries at most half of the ")
    assert saves < default < said.index("shaping rule: make_room")
    assert "for 0.204 ms (the waits below overlap). kernel" in said  # 0.197 and 0.098 ms
    assert "(default policies shape nothing)" in said
    assert "demo-stencil on h200: 60 launches" in said and ".json.gz" not in said
    assert (
        "NCCL_ALGO=Ring on all ranks, 98 % lets communication in once blocks have ended." in said and " 0 %" not in said
    )


def test_of_several_traces_the_inversions_that_cost_most_are_shown(overlap, library, tmp_path):
    halo().kineto(tmp_path / "waits.json")
    other = Program()
    for at in (1000.0 + 100 * number for number in range(5)):
        other.launch(interior(at + 4, 76), at + 1)
    other.kineto(tmp_path / "alone.json")
    paths = [str(tmp_path / "alone.json"), str(tmp_path / "waits.json")]
    done = overlap("explain", "--from", *paths)
    said = " ".join(done.stdout.split())
    assert "Raising stream 20 can save at most 0.024 ms a step (24 %)" in said
    assert "waits.json; --json has 1 more." in said
    found = answer(overlap, "--from", *paths)["waiting"]
    assert [[process["most_us"] for process in one["processes"]] for one in found] == [[0], [24]]
    assert answer(overlap, "--from", paths[0])["waiting"][0]["untold"] == []


def test_a_trace_without_calls_says_so(overlap, library, trace):
    assert answer(overlap, "--from", trace)["waiting"][0]["processes"] == []
    done = overlap("explain", "--from", str(trace))
    assert "Whether work waited behind other streams is not told: the trace has no calls of the host" in " ".join(
        done.stdout.split()
    )


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
    explainer = Explainer({})
    assert len(found["kernels"]) == 4
    for kernel in found["kernels"]:
        footprint = {"threads": "threads", "registers": "registers", "static_smem": "static_shared_memory"}
        request = {name: kernel[key] for name, key in footprint.items()}
        request |= {"gpu": "h200", "blocks": kernel["grid"], "dynamic_smem": kernel["asked"]}
        request |= {name: found["communication"][name] for name in found["communication"] if name != "name"}
        single = explainer.answer(request)
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


def test_one_kernel_that_is_left_gets_the_screen_of_one(overlap, library, trace):
    """The kernel has its own grid, and the trace's communication beside it."""
    more = ["--kernel", "cutlass*", "--policy", "h200"]
    golden_and_fits(overlap, "trace-one", "--from", trace.name, *more, cwd=trace.parent)


def test_other_grids_of_the_one_kernel_are_told(overlap, library, tmp_path):
    path = kineto(tmp_path / "t.json", kineto_events([K(SMALL, 10.0 * at, at, grid=(at, 1, 1)) for at in (3, 5, 4)]))
    done = overlap("explain", "--from", str(path), "--kernel", SMALL)
    assert "3 launches of computation, 12.0 us; of 3 grids, here that of 5 blocks" in " ".join(done.stdout.split())


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("policy", ["h200", None])
def test_that_shaping_would_not_help_is_said_of_shaping_alone(overlap, library, tmp_path, policy, columns):
    """The exposed time that the trace measured limits the gain."""
    launches = [*step(0, [2000.0, 3000.0], [(1000.0, 500.0), (4800.0, 300.0)]), K(None, 0, 1.0)]
    path = kineto(tmp_path / "t.json", kineto_events(launches, [(1, 0.0, 6000.0)], gpu_steps=True))
    more = ["--policy", policy] if policy else []
    done = overlap("explain", "--from", str(path), *more, env={"COLUMNS": str(columns)})
    said = " ".join(done.stdout.split())
    assert "Shaping would not help as it is; --kernel NAME that matches one kernel shows" in said
    assert "Priority is separate: overlap report --compare measures it." in said
    measured = (
        "Measured (on average of a step): in 6.000 ms, communication runs for 0.800 ms; 0.700 ms of that is "
        "overlapped with computation and 0.100 ms is exposed, which is the most that hiding more of it can gain."
    )
    assert measured in said
    assert max(map(len, done.stdout.splitlines())) <= columns
    found = answer(overlap, "--from", path)["overlap"]
    assert found == {"steps": True, "span": 6000.0, "communication": 800.0, "hidden": 700.0, "simulated": False}


def test_the_reasons_of_what_is_left_alone_are_told_with_their_shares(overlap, library, tmp_path):
    launches = [
        *step(0, [900.0], [(0, 10.0)]),
        K(ADD, 2000, 100.0, registers=32, static=0, dynamic=0, grid=(9**5, 1, 1)),
    ]
    policy = tmp_path / "mine.yaml"
    policy.write_text(
        "policy: 1\nname: mine\ngpu: NVIDIA H200*\ncompute:\n  - {match: {kernel: '*elementwise*'}, shape: leave}\n"
    )
    traced = str(kineto(tmp_path / "t.json", kineto_events(launches)))
    done = overlap("explain", "--from", traced, "--policy", str(policy))
    said = " ".join(done.stdout.split())
    assert "100 % is left alone (90 % no_rule, 10 % rule_leave)" in said
    assert "2 kernels are templates" in said


@pytest.mark.parametrize("known", [[], [K(GEMM, 50, 5.0, grid=(5000, 1, 1))]])
def test_nothing_follows_from_what_is_not_known(overlap, library, tmp_path, known):
    events = kineto_events([K(SMALL, 0, 1.0), *known])
    (own,) = (event for event in events if event["name"] == SMALL)
    for name in ("registers per thread", "shared memory"):
        del own["args"][name]
    done = overlap("explain", "--from", str(kineto(tmp_path / "t.json", events)))
    said = " ".join(done.stdout.split())
    nothing = "the recording lacks registers of a thread and shared memory."
    assert (
        f"{'Some kernels are not judged' if known else 'Whether it would help is not known'}, because {nothing}" in said
    )
    assert ("would not help" in said) == bool(known)


def test_a_pipe_is_refused_at_once(overlap, library, trace):
    pipe = trace.with_name("pipe")
    os.mkfifo(pipe)
    for arguments in (
        ["--from", str(pipe)],
        ["--from", str(trace), str(pipe)],
    ):
        done = overlap("explain", *arguments, "--gpu", "h100")
        said = f"overlap: error: {pipe} is a pipe, a socket or a device\noverlap: help: keep the trace in a file\n"
        assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    done = overlap("explain", "--from", "/dev/stdin", input=trace.read_text())
    assert (done.returncode, "/dev/stdin is a pipe, a socket or a device" in done.stderr) == (2, True)


@pytest.mark.parametrize(("name", "error"), [("none", "{} cannot be read: No such file"), ("empty", "{} is empty")])
def test_what_is_no_trace_is_one_sentence(overlap, library, tmp_path, name, error):
    (tmp_path / "empty").write_bytes(b"")
    done = overlap("explain", "--from", str(tmp_path / name))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"overlap: error: {error.format(tmp_path / name)}")


@pytest.mark.parametrize(
    ("name", "arguments", "error", "hint"),
    [
        ("NVIDIA RTX 9", [], "{} is of NVIDIA RTX 9, whose limits are not known", "--gpu G says it; `overlap policy"),
        ("", [], "{} does not say on which GPU it was", "--gpu G says it; `overlap policy"),
        ("NVIDIA H200", ["--kernel", "nix"], "{}: no kernel in it is called like nix", "4 kernels in it: cutlass"),
        ("NVIDIA H200", ["--policy", "h100"], "`h100` is not for NVIDIA H200: every launch is",
         "`h200` is: --policy h200; `h100` is for h100: --gpu h100 answers for that GPU"),
        ("NVIDIA H200", ["--policy", "h100", "--gpu", "a40"], "`h100` is not for NVIDIA A40:", "`a40` is: --policy"),
        ("NVIDIA H200", ["--blocks", "3"], "--blocks cannot be combined with a trace", "it says that of every launch"),
        ("NVIDIA H200", ["--comm-threads", "3"], "missing required option: --comm-registers", "overlap explain --help"),
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
    assert (done.returncode, f"{__file__} is no trace that we can read" in done.stderr) == (2, True)


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
        '  - match: {kernel: "stencil_i*"}\n    shape: {blocks_per_sm: 50%}\n    when: always\n'
    )
    ours = ["--simulate", "h100", "--policy", str(policy), "--report", str(folder / "report"), "--quiet"]
    done = overlap_run(*ours, "demo-stencil")
    assert done.returncode == 0, done.stderr
    return folder


def test_a_run_is_answered_under_its_own_policy(overlap, library, run):
    report = json.loads(overlap("report", str(run / "report"), "--json").stdout)["totals"]
    found = answer(overlap, "--report", run / "report")
    assert found["rule"] == f"the first of {run / 'mine.yaml'} that matches"
    assert found["gpu"] == "h100"
    kernels = {kernel["kernel"]: kernel for kernel in found["kernels"]}
    assert sum(kernel["launches"] for kernel in kernels.values()) == report["launches"] - report["communication"]
    assert found["communication_launches"] == report["communication"]
    interior = kernels["stencil_interior"]
    assert interior["launches"] == report["shaped"]
    assert interior["launches"] - 1 == report["reasons"][interior["reason"]], "the first came before any communication"
    assert (interior["control"], interior["reason"], interior["us"]) == ("cap", "capped_without_room", None)
    assert kernels["stencil_boundary"]["reason"] == "no_rule"
    assert (found["communication"]["comm_threads"], found["communication"]["comm_dynamic_smem"]) == (640, 82240)


def test_the_headline_says_when_the_rule_acts(overlap, library, run):
    """The policy of the run says always, that of h100 nothing, which is in overlap windows."""
    for more, when in (((), "always"), (("--policy", "h100"), "in overlap windows")):
        done = overlap("explain", "--report", str(run / "report"), *more)
        (rule,) = [line for line in " ".join(done.stdout.split()).split(" communication: ") if "rule: " in line]
        assert rule.endswith(f"that matches, {when}"), rule


def test_a_run_is_answered_under_another_policy_and_gpu(overlap, library, run):
    found = answer(overlap, "--report", run / "report", "--policy", "h100-paper", "--gpu", "h100")
    assert found["gpu"] == "h100"
    by_shape = answer(overlap, "--report", run / "report", "--shape", "make_room", "--keep-at-least", "10%")
    assert by_shape["rule"] == "make_room, keep_at_least 10%"
    done = overlap("explain", "--report", str(run / "report"), "--kernel", "stencil_i*")
    assert (done.returncode, done.stderr) == (0, "")
    assert "because     capped_without_room" in done.stdout
    done = overlap("explain", "--report", str(run / "report"), "--policy", "h100")
    said = " ".join(done.stdout.split())
    assert "100 % is left alone (no_rule)." in said
    done = overlap("explain", "--report", str(run))
    assert (done.returncode, done.stderr.startswith(f"overlap: error: {run}: no launch of a kernel")) == (2, True)


@pytest.mark.parametrize("gpu", ["h100", "mi250x"])
def test_the_trace_of_a_simulated_gpu_says_what_kernels_take(overlap, overlap_run, library, tmp_path, gpu):
    path, log = tmp_path / "trace.json", tmp_path / "timeline"
    variables = {"SIMGPU_TRACE": str(path), "SIMGPU_TIMELINE": str(log)}
    assert overlap_run("--quiet", "--simulate", gpu, "demo-stencil", env=variables).returncode == 0
    found = answer(overlap, "--from", path)
    assert found["gpu"] == gpu
    assert "unknown_footprint" not in {kernel["reason"] for kernel in found["kernels"]}
    taken = (640, 82240) if gpu == "h100" else (256, 0)
    assert (found["communication"]["comm_threads"], found["communication"]["comm_dynamic_smem"]) == taken
    done = overlap("explain", "--from", str(log))
    assert done.returncode == 2
    assert "is what SIMGPU_TIMELINE writes" in done.stderr and "SIMGPU_TRACE" in done.stderr


def test_a_recorded_trace_ships(overlap, library, tmp_path):
    found = json.loads(overlap("explain", "--from", "demo-stencil", "--json", cwd=tmp_path).stdout)
    assert found["gpu"] == "h200"
    (process,) = found["waiting"][0]["processes"]
    assert process["most_us"] > 0.2 * process["span_us"]


def test_a_file_of_that_name_comes_first(overlap, library, tmp_path):
    (tmp_path / "demo-stencil").write_text("no trace")
    done = overlap("explain", "--from", "demo-stencil", cwd=tmp_path)
    assert (done.returncode, "demo-stencil is no trace that we can read" in done.stderr) == (2, True)
