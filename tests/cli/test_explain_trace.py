"""overlap explain TRACE on the screen: the verdict, the lines that carry it, options, files, folders of ranks.

What is found is tested in tests/traces and tests/explain."""

from __future__ import annotations

import gzip
import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from made import GEMM, NCCL, K, kineto, kineto_events, step
from made_waits import Program, boundary, by_host, chain, collective, copy, interior, steps

from pyshim.diagnosis import estimate
from pyshim.diagnosis.look import look
from pyshim.errors import OverlapError
from pyshim.profiles.chrome import KinetoTrace

GOLDEN = Path(__file__).parent / "golden"
ROOT = Path(__file__).resolve().parents[2]
STEP = str(ROOT / "tests/traces/data/bare-rank0.json.gz")  # of a training step on two H200
CUDA = [
    "cudaDeviceGetStreamPriorityRange(&least, &greatest);  // greatest is the smaller number; flags as before",
    "cudaStreamCreateWithPriority(&stream, flags, greatest);",
]
LABELS = ("also", "step", "idle", "exposed", "ranks", "behind", "fault", "next", "write")
NOT_ASKED = re.compile(r"nccl|rccl|communicat|shap|make_room|resident", re.IGNORECASE)

BY_DEFAULT = "overlap-run torchrun ... train.py does it by default"
TWICE = (  # traces made by hand are of rank 0
    "overlap: this is about {}, and not all of the traces are of ranks of its run: rank 0 is in 2 of them; --full has "
    "a row for each\n"
)


def halo(count: int = 5, start: float = 70.0, stream: int = 20, size: int = 1, priority: int | None = None) -> Program:
    """Boundary kernels in front of collectives stand behind the interior: tests/traces/test_waiting.py."""

    def one(program: Program, at: float) -> None:
        program.launch(interior(at + 4, 76, stream=15)._replace(priority=priority and 0), at + 1)
        front = boundary(at + start, 5, stream)._replace(grid=(500 * size, 1, 1), priority=priority)
        program.launch(front, at + 3)
        program.launch(collective(at + start + 6, 89 - start, stream), at + 5)
        program.record(1, stream, at + 7)
        program.wait(15, 1, at + 8)
        program.launch(copy(at + 95, 1, stream=15), at + 9)  # which waits for the collective

    return steps(Program(), one, count)


def no_torch(path: Path) -> None:
    """Leave in a trace nothing of PyTorch."""
    text = path.read_text().replace('"cpu_op"', '"other"').replace('"backend"', '"other"')
    path.write_text(text.replace("ProfilerStep#", "step "))


def lines(overlap, *arguments, said: str = "", **more) -> list[str]:
    done = overlap("explain", *map(str, arguments), **more)
    assert (done.returncode, done.stderr) == (0, said), done.stderr
    return done.stdout.splitlines()


def told(overlap, *arguments, **more) -> dict[str, list[str]]:
    """The answer by its labels, the verdict under "verdict"; each line whole, whatever the width."""
    found: dict[str, list[str]] = {}
    label = "verdict"
    for line in lines(overlap, *arguments, **more):
        if line[:8].strip() in LABELS:
            label = line[:8].strip()
            found[label] = [line[8:]]
        elif label == "write" and label in found:
            found[label].append(line[8:])
        elif label in found:
            found[label][-1] += f" {line.strip()}"
        else:
            found[label] = [line]
    return found


def answer(overlap, *arguments, **more):
    return json.loads("\n".join(lines(overlap, *arguments, "--json", **more)))


# ---- six lines ----


def test_the_trace_that_readme_asks_about(overlap, library):
    """None of its lines speaks of what the program does not have: it has no communication kernel; nothing is shaped."""
    found = told(overlap, "demo-stencil")
    assert found == {
        "verdict": [
            "yes: raise streams 29, 31, about 24 % of a step, of the 51 % that they wait "
            f"({estimate.words(at_most=False)})"
        ],
        "also": ["copies 15 %, the host is late 7.1 % of a step"],
        "step": ["0.398 ms a step: computation 76 %, copies 15 %, idle 9.4 %"],
        "behind": [
            "relax_planes on streams 29, 31 is queued, ready to run, for 0.204 ms a step behind relax_planes on "
            "streams 28, 30; the host waits for it"
        ],
        "next": [
            "overlap-run PROGRAM does it by default (these streams carry 0.5 % of the computation together; the "
            "limit is 60 %), or write it, in PyTorch as torch.cuda.Stream(priority=-1)"
        ],
        "write": CUDA,
    }
    every = "\n".join(lines(overlap, "demo-stencil", "--full"))
    assert every.startswith("\n".join(lines(overlap, "demo-stencil"))[:200]) and not NOT_ASKED.search(every)


def test_the_screens_are_golden(overlap, library, tmp_path):
    halo().nsys(tmp_path / "export.sqlite")
    for name, more in (("waiting", ()), ("waiting-full", ("--full",))):
        said = lines(overlap, "export.sqlite", *more, cwd=tmp_path, env={"COLUMNS": "80"})
        golden = GOLDEN / f"explain-{name}.txt"
        if os.environ.get("OVERLAP_WRITE_GOLDEN"):
            golden.write_text("\n".join([*said, ""]), encoding="utf-8")
        assert said == golden.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (
            halo(),
            f"{BY_DEFAULT} (this stream carries 0.5 % of the computation; the limit is 50 %), or write it",
        ),
        (
            halo(size=150),
            f"{BY_DEFAULT} (this stream carries 42 % of the computation; the limit is 50 %), or write it",
        ),
        (halo(stream=7), "7 is a default stream, which nothing raises: put this work on another one"),
    ],
)
def test_the_streams_to_raise(overlap, library, tmp_path, program, line):
    found = told(overlap, program.kineto(tmp_path / "trace.json"))
    assert found["verdict"][0].startswith("yes: raise stream ") and found["next"] == [line]


def two_thirds(program: Program, at: float, first: int = 21) -> None:
    program.launch(interior(at + 4, 76, stream=15, waves=10), at + 1)
    for index, stream in enumerate((20, first)):
        small = boundary(at + 70 + index, 5, stream)._replace(grid=(10560, 1, 1))
        program.launch(small, at + 3 + index)
        program.launch(collective(at + 80 + index, 5, stream), at + 5 + index)


@pytest.mark.parametrize("first", [21, 7])
def test_streams_that_are_small_one_by_one_only(first, overlap, library, tmp_path):
    """The default policy raises none of streams with more than 60 % together; the default stream, 7, does not count."""
    path = steps(Program(), lambda program, at: two_thirds(program, at, first)).kineto(tmp_path / "trace.json")
    if first == 7:
        found = told(overlap, path)
        assert found["verdict"][0].startswith("yes: raise streams 20, 7, about ")
        assert found["next"] == ["7 is a default stream, which nothing raises: put this work on another one"]
        return
    found = told(overlap, path, "--full")
    assert not found["verdict"][0].startswith("yes") and "write" not in found, "no estimate, and no code"
    every = " ".join(lines(overlap, path, "--full"))
    assert "Streams 20, 21 carry too much of the computation together: the default raises none of them." in every
    assert answer(overlap, path)["processes"][0]["saves_us"] == 0


def test_communication_alone_is_raised_beside_them(overlap, library, tmp_path):
    def one(program: Program, at: float) -> None:
        two_thirds(program, at)
        program.launch(collective(at + 70, 5, 22), at + 6.5)
        program.synchronize(22, at + 7, at + 76)

    found = told(overlap, steps(Program(), one).kineto(tmp_path / "trace.json"))
    assert found["verdict"][0].startswith("yes: raise stream 22, about ")
    assert found["next"] == [
        "overlap-run torchrun ... train.py does it by default (this stream carries no computation), or write it"
    ]


def test_a_stream_of_copies_alone_is_not_said_to_be_raised(overlap, library, tmp_path):
    def one(program: Program, at: float) -> None:
        program.launch(interior(at + 4, 76, stream=15), at + 1)
        program.launch(copy(at + 60, 15, 20), at + 3)
        program.synchronize(20, at + 5, at + 76)

    found = told(overlap, steps(Program(), one).kineto(tmp_path / "trace.json"))
    assert found["next"] == ["overlap-run raises only streams that launch kernels, too: write it"]


def test_each_gpu_of_a_process_has_its_own_limit(overlap, library, tmp_path):
    def one(program: Program, at: float) -> None:
        for device, large, small, size in ((0, 15, (20, 21), 10560), (1, 35, (40,), 500)):
            program.launch(interior(at + 4, 76, large, waves=10)._replace(device=device), at + 1 + 6 * device)
            for index, stream in enumerate(small):
                work = boundary(at + 70 + index, 5, stream)._replace(grid=(size, 1, 1), device=device)
                program.launch(work, at + 3 + index + 6 * device)
                program.launch(collective(at + 80 + index, 5, stream)._replace(device=device), at + 5 + 6 * device)

    found = told(overlap, steps(Program(), one).kineto(tmp_path / "trace.json"))
    assert found["verdict"][0].startswith("yes: raise stream 40, at most ")  # GPU 1 is not named
    assert found["next"] == [
        f"{BY_DEFAULT} (this stream carries 4.5 % of the computation; the limit is 50 %), or write it"
    ]


def test_a_program_with_priorities_of_its_own(overlap, library, tmp_path):
    program = halo(priority=-1)
    program.kernels = [one._replace(priority=-1) if one.stream == 15 else one for one in program.kernels]
    program.kernels = [one._replace(priority=0) if one.stream == 20 else one for one in program.kernels]
    found = told(overlap, program.kineto(tmp_path / "trace.json"))
    assert found["next"] == ["overlap-run does not if the program itself set the priorities in the trace: write it"]
    assert found["write"] == [
        "stream = torch.cuda.Stream(priority=-1)  # the smaller number is the greater priority",
        "TORCH_NCCL_HIGH_PRIORITY=1 torchrun ... train.py  # for the streams of NCCL",
        "front = torch.cuda.Stream(priority=0)  # for stream 15, in front",
    ]
    assert found["fault"] == [
        "stream 20 has priority 0, and stream 15 in front of it -1: the smaller number is the greater priority"
    ]


@pytest.mark.parametrize(("waiting", "front"), [(0, -5), (-2, -2)])
def test_a_stream_in_front_with_a_priority_is_to_be_lowered(overlap, library, tmp_path, waiting, front):
    program = halo(priority=-1)
    given = {15: front, 20: waiting}
    program.kernels = [one._replace(priority=given.get(one.stream, one.priority)) for one in program.kernels]
    path = program.kineto(tmp_path / "trace.json")
    no_torch(path)
    lower = "cudaStreamCreateWithPriority(&front, flags, least);  // for stream 15, in front"
    assert told(overlap, path)["write"] == [*CUDA, lower]


def test_the_lines_that_an_author_writes(overlap, library, tmp_path):
    """In PyTorch, in CUDA, in HIP."""
    path = halo().kineto(tmp_path / "trace.json")
    assert told(overlap, path)["write"] == [
        "stream = torch.cuda.Stream(priority=-1)  # the smaller number is the greater priority",
        "TORCH_NCCL_HIGH_PRIORITY=1 torchrun ... train.py  # for the streams of NCCL",
    ]
    by_the_host = steps(Program(), by_host).kineto(tmp_path / "host.json")
    assert told(overlap, by_the_host)["write"][1] == "with torch.cuda.stream(stream): ...  # the work that waits"
    path.write_text(path.read_text().replace('"cpu_op"', '"other"'))
    assert told(overlap, path)["write"][0].startswith("stream = torch."), "it has torch.distributed"
    path.write_text(path.read_text().replace('"backend"', '"other"'))
    found = told(overlap, path)
    assert found["write"] == CUDA, "torch.profiler alone may trace a library in CUDA"
    assert found["next"][0].startswith(BY_DEFAULT), "its steps are Python's, and it communicates"
    assert found["next"][0].endswith("or write it, in PyTorch as torch.cuda.Stream(priority=-1)")
    no_torch(path)
    assert told(overlap, path)["write"] == CUDA
    path.write_text(path.read_text().replace("NVIDIA H200", "AMD Instinct MI300X"))
    amd = told(overlap, path)
    assert amd["write"] == [line.replace("cuda", "hip") for line in CUDA]
    assert amd["next"] == ["overlap-run cannot, because HIP takes a priority only when a stream is created: write it"]


def test_what_is_at_least_so_is_said_so(overlap, library, tmp_path):
    """Without the records of events it is not known for what a stream waited."""
    (found,) = told(overlap, halo().kineto(tmp_path / "trace.json", "plain"))["behind"]
    assert found == (
        "boundary on stream 20 is queued, ready to run, for at least 0.064 ms a step behind interior on stream 15; "
        "communication waits for it"
    )


def test_a_step_of_training_has_an_answer(overlap, library):
    """No work is queued there; its all-reduces are waited for as soon as they begin."""
    found = told(overlap, STEP)
    assert found == {
        "verdict": ["no: waited for at once: 0.494 of 2.373 ms of all-reduces started only when the result was needed"],
        "step": [
            "13.47 ms a step: computation 95 % (14 % with communication beside it), exposed communication 3.9 %, "
            "copies 0.2 %, idle 0.8 %"
        ],
        "exposed": [
            "0.520 of 2.373 ms of 4 all-reduces of 134 MB (started only when needed 95 %, behind one wave 5.0 %)"
        ],
        "next": [
            "issue it with async_op=True as early as its input is there, and wait() where the result is needed; "
            "overlap tune --set nccl -- torchrun ... train.py tries NCCL's settings"
        ],
    }


def test_a_trace_without_calls_says_so(overlap, library, tmp_path):
    path = kineto(tmp_path / "t.json", kineto_events(step(0, [2000.0, 500.0], [(10.0, 5000.0)])))
    found = told(overlap, path)
    missing = "the trace has no calls of the host that launched its kernels"
    assert found["verdict"] == [f"not known: 50 % of the trace is exposed communication, and {missing}"]
    assert found["next"][0].startswith("record again: torch.profiler records them with activities=")
    (process,) = answer(overlap, path)["processes"]
    assert (process["told"], process["inversions"], process["untold"]) == (False, [], [missing])


@pytest.mark.parametrize("name", ["NVIDIA H900", "AMD Instinct MI999X", ""])
def test_the_trace_of_any_gpu(overlap, library, tmp_path, name):
    path = halo().kineto(tmp_path / "trace.json")
    path.write_text(path.read_text().replace('"NVIDIA H200"', f'"{name}"' if name else "7"))
    assert "is queued, ready to run, for 0.064 ms a step" in told(overlap, path)["behind"][0]
    assert answer(overlap, path)["gpus"] == [name] * bool(name)


def test_a_long_name_does_not_make_a_long_line(overlap, library, tmp_path):
    path = halo().kineto(tmp_path / "trace.json")
    path.write_text(path.read_text().replace("boundary(", "b" * 500 + "(").replace("interior(", "i" * 500 + "("))
    assert max(map(len, lines(overlap, path))) <= 110
    assert "b" * 500 in answer(overlap, path)["processes"][0]["inversions"][0]["kernel"]


@pytest.mark.parametrize("host_steps", [False, True])
def test_a_trace_is_read_once(library, tmp_path, monkeypatch, host_steps):
    """Also where its steps are ranges of the host, which calls place on the GPU."""
    path = halo().kineto(tmp_path / "trace.json")
    if host_steps:
        path.write_text(path.read_text().replace("gpu_user_annotation", "user_annotation"))
    read = []
    events = KinetoTrace.read
    monkeypatch.setattr(KinetoTrace, "read", lambda file, store: read.append(file.path) or events(file, store))
    found = look([str(path)])
    assert read == [str(path)]
    assert found.worst.steps == "ProfilerStep#" and found.worst.saves_us > 0


def test_what_no_trace_needs_is_not_loaded(clean_environment):
    """Policies, reports, terminals: two thirds of the time of a short answer."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "pyshim", "explain", "demo-stencil"],
        capture_output=True, text=True, env=clean_environment, cwd=ROOT, check=True,
    )  # fmt: skip
    loaded = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    assert "pyshim.diagnosis.find" in loaded
    assert not {name for name in loaded if re.match(r"yaml|rich|sqlite3|psutil|pyshim\.(policy|report|stats\.)", name)}


# ---- ranks ----


def test_a_folder_of_ranks_has_one_answer(overlap, library, tmp_path):
    """Of the rank that has most to gain; files that are no traces are passed over."""
    for rank, start in ((0, 7.0), (1, 70.0), (10, 40.0)):
        path = halo(start=start).kineto(tmp_path / f"rank{rank}.json")
        whole = json.loads(path.read_text())
        path.write_text(json.dumps({**whole, "distributedInfo": {"rank": rank}}))
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / ".hidden.json").write_text("nothing")
    (tmp_path / "torn.json").write_text("")
    passed_over = f"overlap: {tmp_path}/torn.json is empty: it was passed over\n"
    found = told(overlap, tmp_path, said=passed_over)
    assert found["verdict"][0].startswith("yes: raise stream 20") and found["step"][0].startswith(
        "rank 1: 0.100 ms a step"
    )
    assert "is queued, ready to run, for 0.064 ms" in found["behind"][0]
    said = answer(overlap, tmp_path, said=passed_over)
    assert [one["rank"] for one in said["processes"]] == [0, 1, 10], "in the order of their numbers"
    assert said["worst"] == 1
    assert said["notes"] == [f"{tmp_path}/torn.json is empty: it was passed over"]
    every = "\n".join(lines(overlap, tmp_path, "--full"))
    assert re.search(r"^rank 10 +0\.100 ms +0\.049 ms", every, re.MULTILINE), every


def test_a_rank_whose_trace_is_cut_is_not_the_one_that_counts(overlap, library, tmp_path):
    halo(start=40.0).kineto(tmp_path / "rank0.json")
    whole = halo().kineto(tmp_path / "rank1.json")
    text = whole.read_text()
    whole.write_text(text[: text.rindex('"cat": "cuda_sync"')])
    alone = "this is about steps 1 to 2 of 4 alone, which the end leaves whole; copy it again"
    note = f"overlap: {whole}: it ends in the middle: {alone}\n"
    found = told(overlap, tmp_path, said=note + TWICE.format("rank0.json"))
    assert found["step"][0].startswith("rank0.json: ") and "is queued, ready to run, for 0.034 ms" in found["behind"][0]
    found = told(overlap, whole, said=note)
    assert "is queued, ready to run, for at least 0.064 ms" in found["behind"][0], "there is no other"
    assert ", of the whole steps of a torn file: " in found["step"][0]


def test_a_rank_whose_trace_is_whole_counts_whatever_else_is_said_of_it(overlap, library, tmp_path):
    halo(start=40.0).kineto(tmp_path / "rank0.json")
    whole = halo().kineto(tmp_path / "rank1.json")
    events = json.loads(whole.read_text())
    events["traceEvents"].append({"ph": "X", "cat": "kernel", "name": boundary(0, 1).name, "ts": 1e300, "dur": 1})
    whole.write_text(json.dumps(events))
    note = f"overlap: {whole}: 1 event has no usable time (in line 1): left out\n"
    note += TWICE.format("rank1.json")
    assert told(overlap, tmp_path, said=note)["step"][0].startswith("rank1.json: ")


def test_what_is_waited_for_only_shortly_is_not_blamed_on_the_kernel_in_front(overlap, library, tmp_path):
    program = Program()
    for number, at in enumerate(range(1000, 6000, 1000)):
        program.launch(interior(at + 4, 502), at + 1)
        program.launch(boundary(at + 504, 5), at + 3)
        program.synchronize(20, at + 499, at + 510)
        if number:
            program.steps.append((number, at, 1000.0))
    path = program.kineto(tmp_path / "trace.json")
    found = told(overlap, path)
    assert not found["verdict"][0].startswith("yes") and "write" not in found
    assert "is queued, ready to run, for 0.498 ms a step" in found["behind"][0]
    why = "; raised, it would save next to nothing: nothing waits for it that long"
    assert found["verdict"][0].startswith("no: computation") != found["behind"][0].endswith(why), found
    said = " ".join(lines(overlap, path, "--full"))
    assert "Raising would save next to nothing (0.010 of 1.000 ms a step): nothing waits for it that long." in said


def test_what_waits_for_blocks_all_the_same_is_said(overlap, library, tmp_path):
    """A block takes 364 of 400 us, and four kernels each wait for the host before: 182 us, and then 73 for each."""
    program = Program()
    for at in range(29000, 90000, 1000):
        chain(program, at, parts=4, waves=1.1)
    program.kernels.insert(0, boundary(1000, 5))
    program.kernels = [
        one._replace(priority=-5) if one.stream == 15 else one._replace(priority=-2, grid=(50, 1, 1))
        for one in program.kernels
    ]
    found = lines(overlap, program.kineto(tmp_path / "trace.json"), "--full")
    said = " ".join(found)
    assert "Raising would save next to nothing (" in said and "in all): raised, it still waits until blocks" in said
    assert "Raised, work would still wait 23." in said, found
    assert not any(line.startswith("fault") for line in found), "other priorities would gain nothing"
    assert "The first 28.00 ms are left out as set-up: next to no kernel ran." in said
    assert " in all, without 28.00 ms of set-up: computation" in said


def test_set_up_and_tear_down_are_left_out_and_told(overlap, library, tmp_path):
    program = Program()
    for at in range(29000, 90000, 1000):
        chain(program, at, parts=4)
    program.kernels += [boundary(at, 5)._replace(correlation=9000) for at in (1000, 110_000)]
    said = " ".join(" ".join(lines(overlap, program.kineto(tmp_path / "trace.json"), "--full")).split())
    assert " in all, without 48.59 ms of set-up and tear-down: computation" in said
    assert "The first 28.00 ms are left out as set-up" in said and "The last 20.58 ms are left out as tear-down" in said


def test_what_saves_next_to_nothing_is_not_to_be_written(overlap, library, tmp_path):
    """The stream in front is busy all the time."""

    def one(program: Program, at: float) -> None:
        by_host(program, at)
        program.launch(interior(at + 72, 31.5), at + 2)

    path = steps(Program(), one).kineto(tmp_path / "trace.json")
    assert "write" not in told(overlap, path)
    assert "the GPU and the streams in front have other work all the same." in " ".join(lines(overlap, path, "--full"))


def test_several_traces_are_named_by_their_files(overlap, library, tmp_path):
    halo(start=7.0).kineto(tmp_path / "alone.json")
    halo().kineto(tmp_path / "waits.json")
    found = told(overlap, tmp_path / "alone.json", tmp_path / "waits.json", said=TWICE.format("waits.json"))
    assert found["step"][0].startswith("waits.json: 0.100 ms a step") and "0.064 ms" in found["behind"][0]


def test_a_folder_without_traces(overlap, library, tmp_path):
    done = overlap("explain", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"overlap: error: {tmp_path} holds no trace\noverlap: help: torch.profiler ")


def test_a_folder_that_may_not_be_read(tmp_path, monkeypatch):
    def denied(folder: str) -> None:
        raise PermissionError(13, "Permission denied", folder)

    monkeypatch.setattr(os, "scandir", denied)
    with pytest.raises(OverlapError, match=f"^{tmp_path} cannot be read: Permission denied$"):
        look([str(tmp_path)])


# ---- what it reads ----


def test_the_profilers_trace_and_nsys_say_the_same(overlap, library, tmp_path):
    plain = halo().kineto(tmp_path / "trace.json")
    (tmp_path / "packed").write_bytes(gzip.compress(plain.read_bytes()))
    paths = [plain, tmp_path / "packed", halo().nsys(tmp_path / "export.bin")]
    found = [answer(overlap, path)["processes"][0] for path in paths]
    for one in found:
        assert one.pop("path") and one.pop("name") and one.pop("rank") in (0, None)
        assert one.pop("steps") in ("ProfilerStep#", "step #")
        assert one.pop("copies")["pageable_us"] == 0  # the rows of nsys say no kind of memory here
    assert found[0] == found[1] == found[2]
    (minor,) = found[0]["minor"]
    assert (minor["stream"], minor["waited_us"]) == ("20", 64) and 0 < minor["share"] < 0.01
    assert {one["kernel"].partition("(")[0]: one["launches"] for one in found[0]["kernels"]} == {
        "interior": 5,
        "boundary": 5,
        NCCL.partition("(")[0]: 5,
    }


@pytest.mark.parametrize("name", ["demo-stencil", STEP])
def test_a_recorded_trace_ships(overlap, library, tmp_path, name):
    found = answer(overlap, name, cwd=tmp_path)
    assert found["source"] == name and found["gpus"] == ["NVIDIA H200"]
    (process,) = found["processes"]
    assert (process["saves_us"] > 0.2 * process["span_us"]) == (name != STEP)


def test_a_file_of_that_name_comes_first(overlap, library, tmp_path):
    (tmp_path / "demo-stencil").write_text("no trace")
    done = overlap("explain", "demo-stencil", cwd=tmp_path)
    assert (done.returncode, "demo-stencil is no trace that we can read" in done.stderr) == (2, True)


@pytest.mark.parametrize("gpu", ["h100", "mi250x"])
def test_the_trace_of_a_simulated_gpu(overlap, overlap_run, library, tmp_path, gpu):
    path = tmp_path / "trace.json"
    variables = {"SIMGPU_TRACE": str(path)}
    assert overlap_run("--quiet", "--simulate", gpu, "demo-stencil", env=variables).returncode == 0
    found = answer(overlap, path)
    assert found["simulated"] and None not in {one["shared_memory"] for one in found["processes"][0]["kernels"]}
    said = told(overlap, path)
    # The default raises the stream of the exchange; on AMD it cannot.
    assert said["verdict"][0].startswith("yes: ") == (gpu == "mi250x") == ("write" in said)
    assert "(simulated)" in said["step"][0]
    assert overlap("explain", str(path)).stderr == ""
    assert overlap_run("--quiet", "--simulate", gpu, "demo-stencil", env=variables).returncode == 0
    added = "holds 2 processes: SIMGPU_TRACE adds to a file that is there; this is about one of them"
    assert overlap("explain", str(path)).stderr == f"overlap: {path} {added}\n"


@pytest.mark.parametrize("gpu", ["h100", "mi250x"])
@pytest.mark.parametrize("how", ["stream", "event", "poll", "poll-stream", "blocking"])
def test_the_hosts_waits_in_the_trace_of_a_simulated_gpu(overlap, overlap_run, library, tmp_path, how, gpu):
    """However the host waits for the exchange, the stream of the exchange is the one to raise."""
    path = tmp_path / "trace.json"
    words = ("demo-stencil", "-", "plain", "20", f"host-staged/{how}")
    options = ("--quiet", "--simulate", gpu, "--policy", "observe")
    assert overlap_run(*options, *words, env={"SIMGPU_TRACE": str(path)}).returncode == 0
    (process,) = answer(overlap, path)["processes"]
    assert process["told"] and process["saves_us"] > 0.1 * process["span_us"]
    assert "the host" in {waiter for found in process["inversions"] for waiter in found["waiters"]}
    assert len(process["minor"]) == 1 and process["minor"][0]["share"] < 0.5


def test_a_pipe_is_refused_at_once(overlap, library, tmp_path):
    pipe, trace = tmp_path / "pipe", kineto(tmp_path / "trace.json", kineto_events([K(GEMM, 0, 5.0)]))
    os.mkfifo(pipe)
    for arguments in ([pipe], [trace, pipe]):
        done = overlap("explain", *map(str, arguments))
        said = f"overlap: error: {pipe} is a pipe, a socket or a device\noverlap: help: keep the trace in a file\n"
        assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    done = overlap("explain", "/dev/stdin", input=trace.read_text())
    assert (done.returncode, "/dev/stdin is a pipe, a socket or a device" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("none", "{} cannot be read: No such file"),
        ("empty", "{} is empty"),
        ("cpu.json", "{}: no kernel of a GPU in it"),
        ("torn.json", "{}: it ends in the middle, and no whole step is in what is there"),
        ("other.sqlite", "{} is a database of something else than nsys"),
    ],
)
def test_what_is_no_trace_is_one_sentence(overlap, library, tmp_path, name, error):
    (tmp_path / "empty").write_bytes(b"")
    empty = kineto(tmp_path / "cpu.json", kineto_events([]))
    (tmp_path / "torn.json").write_bytes(empty.read_bytes()[:100])
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as database:
        database.execute("CREATE TABLE t (a)")
    done = overlap("explain", str(tmp_path / name))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"overlap: error: {error.format(tmp_path / name)}")


def test_numbers_that_no_launch_has_are_not_known(overlap, library, tmp_path):
    launches = [
        K("a", 0, 1.0, registers=10**12, grid=(10**30, 1, 1)),
        K("b\x00c\ud800", 2, 1.0, block=(-5, 1, 1)),
        K(NCCL, 6, 1.0, registers=-1),
    ]
    path = kineto(tmp_path / "t.json", kineto_events(launches))
    assert len(answer(overlap, path)["processes"][0]["kernels"]) == 3
    lines(overlap, path, "--full")


# ---- options ----


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([STEP, "--gpu", "h100"], "--gpu was removed"),
        (["--full"], "no TRACE is named"),
        (["--html", "x.html"], "no TRACE is named"),
        ([], "no TRACE is named"),
        (["--from", STEP], "unrecognized arguments: --from"),
        (["--report", "x"], "unrecognized arguments: --report"),
        ([STEP, "--force"], "--force needs --html FILE"),
    ],
)
def test_options_that_do_not_go_together(overlap, library, arguments, error):
    done = overlap("explain", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"overlap: error: {error}")


@pytest.mark.parametrize(
    ("file", "error"),
    [
        ("README.md", "README.md is no trace that we can read"),
        ("/bin/ls", "/bin/ls is no trace that we can read"),
        ("/dev/null", "/dev/null is a pipe, a socket or a device"),
    ],
)
def test_a_mistake_about_files_is_one_sentence(overlap, library, file, error):
    done = overlap("explain", file, cwd=ROOT)
    assert (done.returncode, done.stdout) == (2, "")
    first, *hints = done.stderr.splitlines()
    assert first.startswith(f"overlap: error: {error}")
    assert all(hint.startswith("overlap: help: ") for hint in hints) and len(hints) <= 1
