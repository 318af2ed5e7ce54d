"""Random calls of a driver, with and without the library: tests/fuzz/differ.py. A million are `make fuzz`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz import differ, differ_rows
from tools.checks import fuzz

HERE = Path(__file__).resolve().parent
# One answer is wrong, and one call less reaches the driver.
TAMPERING = """
int cuCtxGetCacheConfig(int *config) { if (config) *config = 3; return config ? 0 : 1; }
int cuLaunchCooperativeKernel(void) { return 1; }
int cuLaunchCooperativeKernel_ptsz(void) { return 1; }
"""


def test_thousands_of_calls_are_the_same() -> None:
    command = [sys.executable, "-m", "tests.fuzz.differ", "--calls", "20000", "--seed", "1000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]


def test_make_fuzz_calls_every_driver() -> None:
    assert {driver for driver, _ in fuzz.CALLS.values()} == differ.DRIVERS.keys()


@pytest.fixture
def tampered(tmp_path: Path) -> Path:
    source, library = tmp_path / "tampering.c", tmp_path / "tampering.so"
    source.write_text(TAMPERING, encoding="ascii")
    subprocess.run(["cc", "-shared", "-fPIC", "-w", str(source), "-o", str(library)], check=True)
    return library


def test_a_planted_difference_is_found_shrunk_and_repeated(tampered: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    words = [sys.executable, "-m", "tests.fuzz.differ", "--library", str(tampered)]
    search = [*words, "--calls", "20000", "--policy", "observe"]
    done = subprocess.run(
        search,
        env={**differ.os.environ, "FUZZ_STATE": str(state)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == differ.FOUND, done.stderr
    size, _, _ = differ.State.HEAD.unpack(state.read_bytes()[: differ.State.HEAD.size])
    finding = json.loads(state.read_bytes()[differ.State.HEAD.size :][:size])
    assert 0 < len(finding["only"]) < 30
    assert differ.command_of(finding) in done.stdout
    kept = tmp_path / "calls-kept"
    kept.write_text(json.dumps(finding), encoding="ascii")
    again = [*words, "--repeat", str(kept)]
    assert subprocess.run(again, capture_output=True, timeout=300, check=False).returncode == differ.FOUND
    repaired = [sys.executable, "-m", "tests.fuzz.differ", "--repeat", str(kept)]
    assert subprocess.run(repaired, capture_output=True, timeout=300, check=False).returncode == 0


def test_a_hook_whose_arguments_nothing_makes_is_told(tmp_path: Path) -> None:
    more = tmp_path / "more.def"
    more.write_text("CALL(cuOfTomorrow, (CUstream stream, struct CUtomorrow *when))\n", encoding="ascii")
    with pytest.raises(differ_rows.Uncovered, match=r"cuOfTomorrow: struct CUtomorrow \* when: none of arg_"):
        differ_rows.source("cuda", more)


LINE = {"entry": "cuLaunchKernel", "result": 0, "kernel": "gemm", "dynamic_shared": 0, "priority": 0, "stream": "#0"}
LINE |= {"graph": False}
COMMUNICATION = {**LINE, "kernel": "ncclDevKernel_AllReduce"}
GRAPH = {**LINE, "graph": True}


@pytest.mark.parametrize(
    ("without", "within", "policy", "allowed"),
    [
        (LINE, {**LINE, "dynamic_shared": 5}, "default", True),
        (LINE, {**LINE, "dynamic_shared": 5}, "observe", False),
        ({**LINE, "dynamic_shared": 5}, LINE, "default", False),
        (LINE, {**LINE, "priority": -5}, "default", True),  # on a stream that something waits for
        (LINE, {**LINE, "priority": -4}, "default", False),
        ({**LINE, "priority": -1}, {**LINE, "priority": -5}, "default", False),  # the program's own
        ({**LINE, "priority": -1}, {**LINE, "priority": -5}, "everything", True),  # created so
        (LINE, {**LINE, "stream": "#1"}, "default", False),
        (LINE, {**LINE, "result": 1}, "default", False),
        (LINE, {**LINE, "entry": "cuLaunchKernelEx"}, "default", False),
        (COMMUNICATION, {**COMMUNICATION, "priority": -5}, "default", True),
        (COMMUNICATION, {**COMMUNICATION, "dynamic_shared": 5}, "default", False),
        (GRAPH, {**GRAPH, "priority": -5}, "default", True),  # of known work, on a stream that something waits for
        (GRAPH, {**GRAPH, "priority": -5}, "observe", False),
        (GRAPH, {**GRAPH, "priority": -4}, "default", False),
        (GRAPH, {**GRAPH, "dynamic_shared": 5}, "everything", False),
    ],
)
def test_what_a_policy_may_change_in_the_log(without, within, policy, allowed):
    logs = [json.dumps({**line, "blocks": 1}).encode() for line in (without, within)]
    assert (differ.logs_differ(policy, *logs) is None) == allowed


AGAIN = {**LINE, "blocks": 1, "threads": 1, "cooperative": False}


def test_a_refused_launch_is_made_again() -> None:
    refused = json.dumps({**AGAIN, "dynamic_shared": 5, "result": 701}).encode()
    asked = json.dumps(AGAIN).encode()
    assert differ.logs_differ("default", asked, refused + b"\n" + asked) is None
    assert differ.logs_differ("observe", asked, refused + b"\n" + asked)
    assert differ.logs_differ("default", asked, asked + b"\n" + asked)
    assert differ.logs_differ("default", asked + b"\n" + asked, asked)
