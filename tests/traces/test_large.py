"""Large traces: they are read without a decoder, which changes nothing; of very many records, the first steps are
looked at, or those that are asked for."""

from __future__ import annotations

import gzip
import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from large import write
from made import GEMM, NCCL, K, kineto, kineto_events, step
from made_waits import Program, boundary, collective, copy, interior

from pyshim.diagnosis import chosen
from pyshim.diagnosis.chosen import load
from pyshim.errors import OverlapError
from pyshim.profiles import chrome_file, open_trace, rows, window
from pyshim.profiles.record import Activity, Trace

DATA = Path(__file__).with_name("data")
_KERNELS = [*step(1000, [100, 120, 80], [(40, 300)]), K(None, 900, 20), *step(3000, [100, 120, 80], [(40, 250)])]


def both(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Activity], Trace]:
    """What the decoder reads, which is what is read without it."""
    read: list[tuple[list[Activity], object]] = []
    for small in (1 << 60, -1):
        monkeypatch.setattr(chrome_file, "_SMALL", small)
        trace = open_trace(str(path))
        records = list(trace.activity())
        read.append((records, (trace.ending, trace.gpus, trace.rank, trace.warnings)))
    assert read[0] == read[1]
    return records, trace


@pytest.mark.parametrize("path", sorted(DATA.glob("*.json.gz")), ids=lambda path: path.name)
def test_real_ones_are_read_alike(path, monkeypatch):
    assert both(path, monkeypatch)[0]


@pytest.mark.parametrize(("indent", "last"), [(None, []), (1, []), (2, []), (None, [{}]), (2, [{}])])
def test_read_alike_in_pieces_of_any_size(tmp_path, monkeypatch, indent, last):
    """last: XLA's profiler, and our own trace.c, write an empty event behind all others."""
    events = kineto_events(_KERNELS, [(1, 900.0, 1500.0), (2, 2900.0, 1500.0)], gpu_steps=True)
    events[5:5] = [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "args": {"x": [{"ph": "X", "y": [{}]}], "z": 1}}]
    whole = {"traceEvents": events + last, "distributedInfo": {"rank": 3}, "x": [{"name": 1}, {"name": 2}]}
    path = tmp_path / "t"
    path.write_text(json.dumps(whole, indent=indent))
    expected, trace = both(path, monkeypatch)
    assert (trace.rank, trace.torn) == (3, False)
    for size in (*range(1, 60, 3), 200, 1000):
        monkeypatch.setattr(window, "_BYTES", size)
        trace = open_trace(str(path))
        assert (list(trace.activity()), trace.rank, trace.warnings) == (expected, 3, [])


def test_where_the_list_ends_is_looked_for_once(tmp_path, monkeypatch):
    """Not at each event that the decoder reads, where fields of the file stand behind (87 MB never ended)."""
    odd = [{"cat": "a", "ph": "i", "ts": number, "args": {"x": [{"y": number}]}} for number in range(300)]
    path = tmp_path / "t"
    path.write_text(json.dumps({"traceEvents": [*kineto_events(_KERNELS), *odd], "x": [{"name": 1}], "y": 1}))
    asked: list[int] = []
    ends = rows._ends
    monkeypatch.setattr(rows, "_ends", lambda text, begin, brace: asked.append(brace) or ends(text, begin, brace))
    both(path, monkeypatch)
    assert len(asked) < 3 * len(odd)


def test_events_in_any_order_of_keys(tmp_path, monkeypatch):
    dice = random.Random(1)
    events: list[dict[str, Any]] = []
    for event in kineto_events(_KERNELS * 3):
        items = list(event.items())
        if dice.random() < 0.5:
            dice.shuffle(items)
        events.append(dict(items))
    path = kineto(tmp_path / "t.json", events)
    assert len(both(path, monkeypatch)[0]) == 3 * len(_KERNELS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"gemm_2"', '"gemm"2"'),
        ('"gemm_2"', '"gemm\\"}, {\\"ph\\": \\"X"'),
        ('"gemm_2"', '"gemm}, {"'),
        ('"ts": 200.0', '"ts": 2e2'),
        ('"ts": 200.0', '"ts": "200.0"'),
        ('"ts": 200.0', '"ts": 1e300'),
        ('"ts": 200.0', '"ts": NaN'),
        ('"ts": 200.0', '"ts": nan'),
        ('"dur": 41.0', '"dur": -1'),
        ('"correlation": 1,', '"correlation": 99999999999999999999999,'),
        ('"correlation": 1,', '"correlation": 1e3,'),
        ('"correlation": 1,', '"correlation": {"a": "b"},'),
        ('"correlation": 1,', ""),
    ],
)
def test_odd_events_are_read_alike(tmp_path, monkeypatch, old, new):
    text = json.dumps(kineto_events([K(f"gemm_{number}", 100.0 * number, 40.0 + number % 2) for number in range(1, 4)]))
    text = text.replace('"correlation": 2,', '"correlation": 2, "rank": 0, ')
    assert old in text
    (tmp_path / "t").write_text(text.replace(old, new))
    both(tmp_path / "t", monkeypatch)


def test_a_torn_large_file(tmp_path, monkeypatch):
    text = kineto(tmp_path / "whole", kineto_events(_KERNELS)).read_text()
    for end in range(400, len(text) - 3, 41):
        (tmp_path / "torn").write_text(text[:end])
        _, trace = both(tmp_path / "torn", monkeypatch)
        assert trace.torn


def test_what_it_gives_to_the_decoder(tmp_path, monkeypatch):
    """Nearly nothing of what Kineto writes: that is why it is fast."""
    path = write(tmp_path / "large.json.gz", 4, 500)
    decoded: list[str] = []
    plain = rows.decode
    monkeypatch.setattr(chrome_file, "_SMALL", 1)
    monkeypatch.setattr(rows, "decode", lambda text, at: decoded.append("form") or plain(text, at))
    monkeypatch.setattr(window, "decode", lambda text, at: decoded.append("event") or plain(text, at))
    records = list(open_trace(str(path)).activity())
    assert len(records) == 4 * 500 * 2 + 2 * 4
    assert len(decoded) < len(records) / 5, f"{decoded.count('form')} forms, {decoded.count('event')} events"
    assert records == both(path, monkeypatch)[0]


_PEAK = """
import sys
from pyshim.cli import explain, main
from pyshim.diagnosis import chosen, look

def peak():  # not ru_maxrss, which has what the process was before exec: a copy of that of the tests
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) // 1024

chosen.MOST, before = 40_000, peak()
status = main(["explain", sys.argv[1], "--json"])
print(peak() - before, file=sys.stderr)
sys.exit(status)
"""


def test_memory_of_a_large_trace(tmp_path, python):
    """100,000 records of 300,000 events, packed, of which 40,000 are looked at: all of them would be 40 MB."""
    path = write(tmp_path / "large.json.gz", 20, 2500)
    done = python("-c", _PEAK, str(path))
    assert done.returncode == 0, done.stderr
    assert "holds 100,000 records: this is about steps 0 to " in " ".join(done.stderr.split())
    assert int(done.stderr.split()[-1]) < 30


# ---- steps ----


def program(count: int) -> Program:
    made = Program()
    for number in range(1, count + 1):
        at = 1000.0 * number
        made.launch(interior(at + 4, 76), at + 1)
        made.launch(boundary(at + 70, 5), at + 3)
        made.launch(collective(at + 76, 9), at + 4)
        made.launch(copy(at + 86, 9), at + 5)
        made.record(1, 20, at + 7)
        made.wait(7, 1, at + 8)
        made.steps.append((number, at, 1000.0))
    return made


def kept(path: Path, steps: str | None) -> tuple[list[float], Trace]:
    """The starts of the first work of each step that is looked at, in thousands."""
    loaded = load(str(path), steps)
    (records,) = loaded.processes.values()
    assert {work.correlation for work in records.works} <= {call.correlation for call in records.calls}
    starts = [work.start_us // 1000 for work in records.works if getattr(work, "kernel", "").startswith("interior")]
    assert len(records.waits) in (len(starts), len(starts) - 1)
    return starts, loaded.trace


@pytest.mark.parametrize("form", ["kineto", "nsys"])
@pytest.mark.parametrize(("asked", "steps"), [("3-5", [3, 4, 5]), ("4", [4]), (" 7 - 99 ", [7, 8, 9]), ("1-2", [1, 2])])
def test_the_steps_that_are_asked_for(tmp_path, form, asked, steps):
    path = getattr(program(9), form)(tmp_path / "trace")
    starts, trace = kept(path, asked)
    assert [start for start in starts if start in steps] == steps
    assert set(starts) - set(steps) <= {steps[-1] + 1} and len(trace.warnings) == 2 * ("99" in asked)


def test_the_answer_is_of_these_steps(tmp_path, overlap):
    path = program(9).kineto(tmp_path / "trace.json")
    (said,) = json.loads(overlap("explain", str(path), "--steps", "3-5", "--json").stdout)["processes"]
    assert said["steps"]["count"] if isinstance(said["steps"], dict) else said["count"] == 3
    assert said["span_us"] == pytest.approx(1000)


@pytest.mark.parametrize("form", ["kineto", "nsys"])
@pytest.mark.parametrize("host_steps", [False, True])
@pytest.mark.parametrize("asked", ["2", "3-4", "8", "8-9", "6-9"])
def test_a_chosen_step_lasts_until_the_next_begins(tmp_path, overlap, form, host_steps, asked):
    """It ends in idle time, which belongs to it: the host waits, and the next step begins later."""
    path = getattr(program(9), form)(tmp_path / "trace")
    if host_steps and form == "kineto":
        path.write_text(path.read_text().replace("gpu_user_annotation", "user_annotation"))
    (whole,) = json.loads(overlap("explain", str(path), "--json").stdout)["processes"]
    done = overlap("explain", str(path), "--steps", asked, "--json")
    (said,) = json.loads(done.stdout)["processes"]
    assert said["span_us"] == pytest.approx(1000, abs=1)
    assert said["shares"] == pytest.approx(whole["shares"], abs=1) and said["saves_us"] == pytest.approx(
        whole["saves_us"], abs=1
    )
    assert said["idle"]["host_us"] == pytest.approx(whole["idle"]["host_us"], abs=5)
    assert said["count"] == {"2": 1, "3-4": 2, "8": 1, "8-9": 1, "6-9": 3}[asked]
    assert ("it is left out" in done.stderr) == asked.endswith("-9")


def test_the_last_step_of_a_trace_ends_at_a_time_that_is_not_known(tmp_path, overlap):
    path = program(9).kineto(tmp_path / "trace.json")
    path.write_text(path.read_text().replace("gpu_user_annotation", "user_annotation"))
    done = overlap("explain", str(path), "--steps", "9", "--json")
    note = "step 9 is the last one, and when the next would have begun is not known: it ends here with its last work"
    assert note in json.loads(done.stdout)["notes"][0]


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ("5-3", "--steps 5-3 is no range of steps"),
        ("x", "--steps x is no range of steps"),
        ("-1", "--steps -1 is no range of steps"),
        ("12-14", "has no such steps: its ranges ProfilerStep# are steps 1 to 9"),
    ],
)
def test_a_mistake_about_steps(tmp_path, overlap, asked, error):
    path = program(9).kineto(tmp_path / "trace.json")
    done = overlap("explain", str(path), f"--steps={asked}")
    assert (done.returncode, done.stdout) == (2, "")
    assert error in " ".join(done.stderr.split()), done.stderr


def test_steps_of_a_trace_that_has_none(tmp_path, overlap):
    path = kineto(tmp_path / "t.json", kineto_events([K(GEMM, 100.0, 40.0)]))
    done = overlap("explain", str(path), "--steps", "3")
    assert done.returncode == 2 and "has no steps to choose from" in done.stderr


def test_of_very_many_records_the_first_steps_are_looked_at(tmp_path, monkeypatch):
    path = program(9).kineto(tmp_path / "trace.json")
    of_step = 4 + 6 + 1
    monkeypatch.setattr(chosen, "MOST", 4 * of_step)
    starts, trace = kept(path, None)
    assert [start for start in starts if start < 5] == [1, 2, 3, 4]
    assert trace.warnings == [
        f"{path} holds {9 * of_step} records: this is about steps 1 to 4 of 9 alone; --steps chooses others"
    ]


def test_of_very_many_records_without_steps_the_first_are_looked_at(tmp_path, monkeypatch):
    made = program(9)
    made.steps.clear()
    path = made.kineto(tmp_path / "trace.json")
    monkeypatch.setattr(chosen, "MOST", 44)
    starts, trace = kept(path, None)
    assert starts == [1, 2, 3, 4]
    assert "holds 99 records: this is about the first " in trace.warnings[0]


def test_steps_without_numbers_are_counted(tmp_path):
    events = kineto_events([K(GEMM, 100.0 * at, 90.0) for at in range(1, 9)])
    events += [
        {"ph": "X", "cat": "gpu_user_annotation", "name": "iteration", "ts": 100.0 * at, "dur": 99, "pid": 0, "tid": 7}
        for at in range(1, 9)
    ]
    loaded = load(str(kineto(tmp_path / "t.json", events)), "2-3")
    (records,) = loaded.processes.values()
    assert [work.start_us for work in records.works] == [200.0, 300.0, 400.0], "the first of the next marks the end"
    assert [one.start_us for one in records.ranges] == [200.0, 300.0]


# ---- files of several processes, and folders ----


def merged(path: Path, same_gpu: bool = False, ranks: bool = False) -> Path:
    """Of two ranks, with the same numbers of calls. ranks: as TraceLens merges them, with the rank in each event."""
    events: list[dict[str, Any]] = []
    for rank in (0, 1):
        for number in range(1, 9):
            at, stream = 100.0 * number + 150 * rank, 7 if number % 2 else 20
            told = {"rank": rank} if ranks else {}
            call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 50 + rank, "tid": 1, "ts": at}
            events.append({**call, "dur": 2.0, "args": {"correlation": number, **told}})
            device = 0 if same_gpu else rank
            place = {"device": device, "stream": stream, "correlation": number, **told}
            name = NCCL if number % 2 == 0 else GEMM
            row = {"ph": "X", "cat": "kernel", "name": name, "pid": device, "tid": stream, "ts": at + 10, "dur": 30.0}
            events.append({**row, "args": place})
    path.write_text(json.dumps({"traceEvents": events}))
    return path


@pytest.mark.parametrize("ranks", [False, True])
def test_a_file_of_several_ranks_is_taken_apart(tmp_path, overlap, ranks):
    path = merged(tmp_path / "merged.json", ranks=ranks, same_gpu=ranks)
    loaded = load(str(path))
    assert len(loaded.processes) == 2
    for shift, records in zip((0, 150), loaded.processes.values()):
        assert [work.start_us for work in records.works] == [100.0 * number + 10 + shift for number in range(1, 9)]
        assert [call.start_us for call in records.calls] == [100.0 * number + shift for number in range(1, 9)]
    said = json.loads(overlap("explain", str(path), "--json").stdout)
    assert len(said["processes"]) == 2


def test_a_file_of_several_ranks_that_cannot_be_told_apart_is_refused(tmp_path):
    with pytest.raises(OverlapError, match="holds the traces of 2 processes under the same numbers"):
        load(str(merged(tmp_path / "merged.json", same_gpu=True)))


def test_subfolders_and_ranks_without_kernels(tmp_path, overlap):
    for rank in (2, 10):
        (tmp_path / f"node-{rank}").mkdir()
        program(rank + 7).kineto(tmp_path / f"node-{rank}" / "trace.json")
    kineto(tmp_path / "rank0.json", [event for event in kineto_events([]) if event.get("cat") == "cpu_op"])
    (tmp_path / "config.json").write_text('{"model": {"layers": 3}}')
    said = json.loads(overlap("explain", str(tmp_path), "--json").stdout)
    assert len(said["processes"]) == 2
    notes = "\n".join(said["notes"])
    assert f"{tmp_path / 'rank0.json'}: no kernel of a GPU in it" in notes
    assert "config.json" not in notes, "it is no trace"


def test_ten_thousand_files_are_no_folder_of_traces(tmp_path, monkeypatch):
    from pyshim.profiles import folder

    monkeypatch.setattr(folder, "_MOST", 3)
    for number in range(5):
        (tmp_path / f"{number}.json").write_text("{}")
    with pytest.raises(OverlapError, match="holds more than 3 files"):
        folder.files(str(tmp_path), [])


def test_large_writes_what_kineto_writes(tmp_path):
    path = write(tmp_path / "t.json.gz", 2, 20)
    with gzip.open(path) as file:
        whole = json.load(file)
    assert {event.get("cat") for event in whole["traceEvents"]} >= {"kernel", "cuda_runtime", "cpu_op", "ac2g"}
    assert sys.getsizeof(whole)
