"""Overlap windows on HIP as programs see them: what is shaped, reasons in the report, fields of the trace, findings.
The program is the interpreter of ../../programs/windows.c; its operations are those of ../../windows/operations.py."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hip_interposing import Hip, World, rule
from interposing import Done

from pyshim.report import collect, findings
from tests.windows.targets import Target, compile_to

POLICY = rule("{blocks_per_sm: 1}", kernel="k", when="overlapping")
ALWAYS = rule("{blocks_per_sm: 1}", kernel="k", when="always")
AUTO = rule("{blocks_per_sm: 1}", "communication: {priority: auto}", "k", "overlapping")
# Streams 0 to 2 are like those of torch, 3 and 4 blocking ones.
STREAMS = "ns0,1,0,0 ns1,1,0,0 ns2,1,0,0 ns3,0,0,0 ns4,0,0,0 " + " ".join(f"e--,{n},0,0" for n in range(8)) + " "
K, C = "ks1,0,0,0 ", "cs0,0,0,0 "
WAIT = "rs0,0,0,0 ws1,0,0,0 "
BACK = "rs1,1,0,0 ws0,1,0,0 "


class Ran(NamedTuple):
    done: Done
    pages: Path
    remarks: list[str]

    @property
    def reasons(self) -> dict[str, int]:
        return {reason: count for reason, count in self.done.reasons.items() if reason != "communication"}


Windowed = Callable[..., Ran]


@pytest.fixture
def windowed(hip: Hip, world: World, tmp_path: Path) -> Windowed:
    """windowed(program, policy=POLICY, runtime=7, trace=False)"""
    numbers = itertools.count()

    def run(line: str, policy: str = POLICY, runtime: int = 7, trace: bool = False) -> Ran:
        number = next(numbers)
        lines = tmp_path / f"lines{number}"
        lines.write_text(f"{line}\n")
        folder = world.folder / f"windows{runtime}"
        folder.mkdir(exist_ok=True)
        program = folder / "windows-amd"
        if not program.exists():
            compile_to(folder, Target("amd", runtime=runtime))
        env = {"SIMGPU_MULTIPROCESSORS": "2", "SIMGPU_INVALID": "crashes", **({"OVERLAP_TRACE": "1"} if trace else {})}
        done = hip(["-c", f"exec {program} < {lines}"], policy, str(runtime), program="/bin/sh", env=env)
        assert done.status == 0, done.stderr
        assert not {*done.stdout.split()} - {"0"}, f"a call failed: {line} {done.stdout}"
        assert done.totals["raised"] == 0, "HIP has no priority of a launch"
        pages = tmp_path / f"report{number}"
        return Ran(done, pages, findings.remarks(collect.collect(str(pages))))

    return run


@pytest.mark.parametrize("runtime", [5, 6, 7])
def test_only_what_can_overlap_is_shaped(runtime: int, windowed: Windowed) -> None:
    ran = windowed(STREAMS + K * 2 + C + K * 3 + "ks0,0,0,0 " * 4 + WAIT + K * 5, runtime=runtime)
    assert ran.reasons == {"launched_before": 2, "shaped": 3, "same_stream": 4, "not_overlapping": 5}
    assert sum(ran.done.reasons.values()) == ran.done.totals["launches"] == 15
    assert [launch["dynamic_shared"] > 0 for launch in ran.done.launches] == [False] * 3 + [True] * 3 + [False] * 9


def test_a_window_closes_after_512(windowed: Windowed) -> None:
    ran = windowed(STREAMS + C + K * 700 + C + "ks1,0,1,0 " * 10)
    assert ran.reasons == {"shaped": 522, "window_expired": 188}


# The answer to each launch of k. i: inside, shaped; o: outside, left alone.
PROGRAMS = {
    "nothing orders": (C + K, "i"),
    "hipModuleLaunchKernel": ("cs0,0,1,0 ks1,0,1,0 " + WAIT + "ks1,0,1,0", "io"),
    "hipExtLaunchKernel and hipExtModuleLaunchKernel": ("Cs0,0,0,0 Ks1,1,1,0 ws1,0,0,0 Ks1,1,1,0 ks2,0,0,0", "ioi"),
    "the first launch of all, waited for by its event": ("Cs0,0,0,0 ws1,0,0,0 " + K, "o"),
    "hipStreamWaitEvent": (C + WAIT + K + "ks2,0,0,0", "oi"),
    "hipStreamWaitEvent, per-thread names": (C + "rt0,0,0,0 wt1,0,0,0 kt1,0,0,0 ks2,0,0,0", "oi"),
    "hipStreamSynchronize": (C + K + "ys0,0,0,0 " + K, "io"),
    "hipStreamSynchronize of another": (C + "ys2,0,0,0 " + K, "i"),
    "hipEventSynchronize": (C + "rs0,0,0,0 Y--,0,0,0 " + K, "o"),
    "hipEventSynchronize, recorded before": ("rs0,0,0,0 " + C + "Y--,0,0,0 " + K, "i"),
    "hipDeviceSynchronize": (C + "cs2,0,0,0 S--,0,0,0 " + K, "o"),
    "hipMemcpyWithStream": (C + "As0,0,0,0 " + K, "o"),
    "hipMemcpy, communication non-blocking": (C + "dl0,0,0,0 " + K, "i"),
    "hipMemcpy, communication blocking": ("cs3,0,0,0 dl0,0,0,0 " + K, "o"),
    "hipStreamWaitValue32": ("vs1,0,0,0 " + C + K + "Vs2,0,0,0", "o"),
    "null stream behind a blocking one": ("cs3,0,0,0 kl0,0,0,0 ", "o"),
    "null stream beside a non-blocking one": ("cs0,0,0,0 kl0,0,0,0 ", "i"),
    "blocking behind the null stream": ("cl0,0,0,0 ks3,0,0,0 ks1,0,0,0 ", "oi"),
    "two blocking with the null stream between": ("cs3,0,0,0 al0,0,0,0 ks4,0,0,0 ", "o"),
    "hipStreamPerThread": ("cP0,0,0,0 kp0,0,0,0 ks1,0,0,0 ks3,0,0,0 kl0,0,0,0", "oiio"),
    "captured": ("bs0,0,0,0 rs0,0,0,0 ws1,0,0,0 cs0,0,0,0 " + K + BACK + "ks0,0,0,0 Es0,0,0,0", "io"),
    "a graph with communication": (
        "bs0,0,0,0 cs0,0,0,0 Es0,0,0,0 " + K + "gs2,0,0,0 " + K + "rs2,0,0,0 ws1,0,0,0 " + K,
        "oio",
    ),
    "a graph without": ("bs0,0,0,0 as0,0,0,0 Es0,0,0,0 gs2,0,0,0 " + K, "o"),
    "a stream that is gone": (C + "xs0,0,0,0 ns0,1,0,0 " + K, "i"),
}


@pytest.mark.parametrize("trace", [False, True], ids=["", "traced"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_in_a_window(name: str, trace: bool, windowed: Windowed) -> None:
    """A trace asks about every launch, so it must not be what makes the answers right."""
    program, expected = PROGRAMS[name]
    ran = windowed(STREAMS + program, trace=trace)
    computation = [launch for launch in ran.done.launches if launch["kernel"] == "k" and not launch["graph"]]
    assert "".join("oi"[launch["dynamic_shared"] > 0] for launch in computation) == expected
    assert ran.reasons.get("shaped", 0) == expected.count("i")
    assert sum(ran.reasons.values()) == len(expected)


def test_the_trace_says_what_overlaps(windowed: Windowed, overlap: Callable[..., Any]) -> None:
    line = STREAMS + K + C + K + "cs2,0,0,0 " + K + WAIT + K + "rs2,1,0,0 ws1,1,0,0 " + K
    ran = windowed(line, trace=True)
    said = overlap("report", str(ran.pages), "--launches", "--json")
    assert said.returncode == 0, said.stderr
    launches = [json.loads(text) for text in said.stdout.splitlines()]
    first, second = [launch["sequence"] for launch in launches if launch["kernel"] != "k"]
    computation = [launch for launch in launches if launch["kernel"] == "k"]
    assert [launch["overlapping"] for launch in computation] == [False, True, True, True, False]
    assert [launch["could_overlap"] for launch in computation] == [None, first, second, second, None]
    assert [launch["launched"] > launch["asked"] for launch in computation] == [False, True, True, True, False]
    assert {launch["priority"] for launch in launches} == {None}
    always = windowed(line, ALWAYS, trace=True)
    said = overlap("report", str(always.pages), "--launches", "--json")
    assert {json.loads(text)["overlapping"] for text in said.stdout.splitlines() if '"k"' in text} == {None}


def test_same_stream(windowed: Windowed) -> None:
    ran = windowed(STREAMS + (C + "ks0,0,0,0 " * 4) * 10)
    assert ran.done.totals["communication_same_stream"] in (9, 10)
    assert [said for said in ran.remarks if said.startswith("same stream: ")]


def test_waited_for_at_once(windowed: Windowed) -> None:
    ran = windowed(STREAMS + (C + WAIT + K * 4 + BACK) * 10)
    assert ran.done.totals["communication_waited_for"] in (9, 10)
    assert [said for said in ran.remarks if said.startswith("waited for at once: ")]


@pytest.mark.parametrize("policy", [POLICY, AUTO], ids=["inherit", "auto"])
def test_what_overlaps_is_not_found(policy: str, windowed: Windowed) -> None:
    ran = windowed(STREAMS + (C + K * 4 + WAIT + K) * 10, policy)
    assert not [said for said in ran.remarks if said.startswith(("same stream", "waited for"))]
    assert ran.done.totals["communication_same_stream"] == ran.done.totals["communication_waited_for"] == 0
