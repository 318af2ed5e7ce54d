"""A torn file is answered about by its whole steps alone, as the whole file is by `--steps`; else it is refused."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from made import GEMM, K, kineto, kineto_events, nsys

from pyshim.diagnosis.chosen import Records, load
from pyshim.diagnosis.look import TraceAnswer, look
from pyshim.diagnosis.torn import Recorded, whole_steps
from pyshim.errors import OverlapError
from pyshim.profiles.record import Call

DATA = Path(__file__).parent / "data"
ABOUT = re.compile(r"it ends in the middle: this is about steps? (\d+)(?: to (\d+))? of 10 alone")
REFUSED = "it ends in the middle, and no whole step is in what is there"
PARTS = 40
# In which a profiler may write its sorts of records.
SORTS = {
    "user_annotation": "ranges",
    "gpu_user_annotation": "GPU ranges",
    "kernel": "kernels",
    "gpu_memcpy": "copies",
    "gpu_memset": "copies",
    "cuda_runtime": "calls",
    "cuda_driver": "calls",
    "cuda_sync": "waits",
}
ORDERS = [
    ("ranges", "kernels", "copies", "calls", "waits", "GPU ranges"),
    ("ranges", "calls", "kernels", "copies", "waits", "GPU ranges"),
    ("ranges", "waits", "calls", "copies", "kernels", "GPU ranges"),
    ("ranges", "GPU ranges", "waits", "kernels", "calls", "copies"),
    ("ranges", "copies", "kernels", "calls", "GPU ranges", "waits"),
]


def cut(tmp_path: Path, name: str, part: float) -> Path:
    """Return a file with the first part of the characters of a real trace."""
    data = gzip.decompress((DATA / f"{name}.json.gz").read_bytes())
    torn = tmp_path / "torn.json"
    torn.write_bytes(data[: int(part * len(data))])
    return torn


def summary(answer: TraceAnswer) -> dict[str, Any]:
    one = answer.worst
    return {
        "verdict": answer.verdicts[0].kind,
        "span": pytest.approx(one.span_us, rel=0.001),
        "count": one.count,
        "collectives": sum(kind.count for kind in one.kinds),
        "exposed": pytest.approx(one.shares.exposed_us, rel=0.01, abs=1),
    }


# Where the waits come at the end of a file, and without waits.
@pytest.mark.parametrize("name", ["bare-rank0", "stencil-host-events", "stencil-nccl-events", "stencil-host-plain"])
def test_the_whole_steps_of_a_file_that_is_cut_anywhere(tmp_path, name):
    seen, refused = set(), 0
    for number in range(1, PARTS):
        torn = cut(tmp_path, name, number / PARTS)
        try:
            found = look([str(torn)])
        except OverlapError as error:
            assert error.sentence == f"{torn}: {REFUSED}"
            assert (error.hint or "").startswith("copy it again")
            refused += 1
            continue
        said = ABOUT.search(" ".join(found.notes))
        assert said, found.notes
        steps = f"{said[1]}-{said[2] or said[1]}"
        if steps not in seen:
            seen.add(steps)
            assert summary(found) == summary(look([str(DATA / f"{name}.json.gz")], steps)), steps
    assert seen and refused


def records_of(path: Path, steps: str | None = None) -> tuple[Records, str]:
    loaded = load(str(path), steps)
    (records,) = loaded.processes.values()
    return records, " ".join(loaded.trace.warnings)


def launches(records: Records) -> list[Call]:
    """Return the calls that launched: others, such as polls by NCCL's own thread, change no step."""
    numbers = {work.correlation for work in records.works}
    return [call for call in records.calls if call.correlation in numbers]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", ["bare-rank0", "stencil-host-events"])
def test_no_record_of_a_step_is_missing_in_whatever_order_a_file_is_written(tmp_path, name, order):
    """Each sort of records by itself, cut after every few of them."""
    events = json.loads(gzip.decompress((DATA / f"{name}.json.gz").read_bytes()))["traceEvents"]
    events = [event for event in events if event.get("cat") in SORTS]
    events.sort(key=lambda event: order.index(SORTS[event["cat"]]))
    whole, torn = tmp_path / "whole.json", tmp_path / "torn.json"
    whole.write_text(json.dumps([event for event in events if event["cat"] != "gpu_user_annotation"]))
    by_steps: dict[str, Records] = {}  # of the whole file
    for number in range(1, PARTS + 1):
        torn.write_text(json.dumps(events[: number * len(events) // PARTS])[:-1])
        try:
            found, notes = records_of(torn)
        except OverlapError as error:
            assert error.sentence == f"{torn}: {REFUSED}"
            continue
        said = ABOUT.search(notes)
        assert said, notes
        steps = f"{said[1]}-{said[2] or said[1]}"
        if steps not in by_steps:
            by_steps[steps], _ = records_of(whole, steps)
        expected = by_steps[steps]
        assert (found.works, launches(found)) == (expected.works, launches(expected)), (number, steps)
        if found.waits:
            assert found.waits == expected.waits, (number, steps)
    assert by_steps


def test_a_copy_that_stopped_is_refused(tmp_path, overlap):
    """As a newcomer had it: 40,000 bytes of a compressed trace, which end in the first step."""
    torn = tmp_path / "cut.json.gz"
    torn.write_bytes((DATA / "bare-rank0.json.gz").read_bytes()[:40_000])
    done = overlap("explain", str(torn))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"overlap: error: {torn}: {REFUSED}\noverlap: help: copy it again")


def test_a_torn_file_with_operators_alone_is_not_said_to_lack_activities(tmp_path, overlap):
    done = overlap("explain", str(cut(tmp_path, "bare-rank0", 0.15)))
    assert done.returncode == 2 and REFUSED in done.stderr
    assert "activities" not in done.stderr and "operators" not in done.stderr


def test_a_torn_file_without_steps_is_refused(tmp_path, overlap):
    done = overlap("explain", str(cut(tmp_path, "comd-70", 0.9)))
    assert done.returncode == 2 and REFUSED in done.stderr


def test_steps_that_the_end_cuts_cannot_be_chosen(tmp_path, overlap):
    torn = cut(tmp_path, "bare-rank0", 0.7)
    done = overlap("explain", str(torn), "--steps", "9-11")
    assert (done.returncode, done.stdout) == (2, "")
    assert "it ends in the middle" in done.stderr and re.search(r"--steps 3-\d$", done.stderr, re.MULTILINE)
    done = overlap("explain", str(torn), "--steps", "3-4", "--json")
    assert json.loads(done.stdout)["processes"][0]["count"] == 2


def test_what_is_not_known_of_a_torn_file_is_to_be_copied(tmp_path, overlap):
    """No advice to record what may be in the original."""
    done = overlap("explain", str(cut(tmp_path, "stencil-host-plain", 0.8)), env={"COLUMNS": "500"})
    assert done.stdout.startswith("not known: ")
    assert "copy the trace again: this file is torn" in done.stdout and "cuptiActivityEnable" not in done.stdout


def test_a_torn_rank_is_passed_over_with_its_reason(tmp_path, overlap):
    shutil.copy(DATA / "bare-rank0.json.gz", tmp_path / "rank0.json.gz")
    data = (DATA / "bare-rank0.json.gz").read_bytes()
    (tmp_path / "rank1.json.gz").write_bytes(data[:40_000])
    done = overlap("explain", str(tmp_path))
    assert done.returncode == 0 and done.stdout.startswith("no: waited for at once")
    said = " ".join(done.stderr.split())
    assert f"rank1.json.gz: {REFUSED}: it was passed over" in said
    (tmp_path / "rank0.json.gz").write_bytes(data[:40_000])
    done = overlap("explain", str(tmp_path))
    assert done.returncode == 2 and REFUSED in " ".join(done.stderr.split())


def test_a_torn_database_is_to_be_copied_again(tmp_path, overlap):
    path = nsys(tmp_path / "export.sqlite", [K(GEMM, 100.0, 40.5)] * 600)
    with path.open("r+b") as file:
        file.truncate(12_000)
    done = overlap("explain", str(path))
    assert done.returncode == 2 and "it is shorter than it says" in done.stderr
    assert "overlap: help: copy it again\n" in done.stderr


def test_a_whole_file_is_said_to_be_torn_nowhere(tmp_path, overlap):
    steps = [(number, 100.0 * number, 100.0) for number in range(1, 5)]
    path = kineto(tmp_path / "t.json", kineto_events([K(GEMM, 100.0 * one, 90.0) for one, *_ in steps], steps))
    done = overlap("explain", str(path))
    assert done.returncode == 0 and "torn" not in done.stdout + done.stderr


def test_a_step_whose_calls_by_another_thread_are_missing_is_not_whole():
    """Each thread's calls may be written by themselves: work 3 has none, although calls of later steps are there."""
    calls = [(number, "cudaLaunchKernel") for number in (1, 2, 4, 5, 6)]
    starts = [(10.0, 1), (11.0, 2), (30.0, 4), (31.0, 5), (50.0, 6)]
    bounds = (0.0, 20.0, 40.0, 60.0)
    assert whole_steps(Recorded([1, 2, 3, 4, 5, 6], calls, []), starts, bounds) == (0, 1)
    assert whole_steps(Recorded([1, 2, 4, 5, 6], calls, []), starts, bounds) == (0, 2)
