"""Calls that name a stream by its handle belong to the stream's context, whichever context is current or if none is.

NVIDIA's driver takes them so (tests/simgpu/context_check.py), and Netflix's vmaf launches, records and waits with no
current context. Each program here does the same bare and preloaded, and must see the same (iterating.py); more of them
are in words/current_context.txt.
"""

from __future__ import annotations

import sys

import pytest
from interposing import NCCL, PROGRAMS, Build, Done, Runner, same
from iterating import AUTO, STYLE_0, Iterations, raised
from peers import forwarding_driver

from pyshim.start import plan

CHECK = PROGRAMS.parent / "simgpu/context_check.py"
MADE = "n:1 n:2 n:3 r:1:1 r:2:2 r:3:3 K:3:1"  # streams, events and the kernel of a library, with their context current
OWN, NONE = "N:3", "N:0"
CURRENT = {"none": NONE, "another one": "N:1", "of another device": "N:2"}
BESIDE = rf"{MADE} {{current}} begin k:2:8 j:1:1000 s:2"


@pytest.fixture(params=CURRENT.values(), ids=CURRENT)
def current(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def run(iterations: Iterations) -> Iterations:
    """With two devices."""

    def of(words: str, count: int = 8, policy: str = AUTO, **more: object) -> Done:
        return iterations(words, count, policy, env={"SIMGPU": "h100,2"}, **more)

    return of


def test_kernels_are_named_and_measured(current: str, run: Iterations) -> None:
    done = run(f"{MADE} {current} begin {STYLE_0} K:2:8")
    found = {kernel["kernel"]: kernel for kernel in done.report["kernels"]}
    assert set(found) == {"k", "j", "l", NCCL}
    registers = {name: kernel["footprint"]["registers"] for name, kernel in found.items()}
    assert registers == {"k": 32, "j": 32, "l": 8, NCCL: 32}
    assert {stream["device"] for stream in done.report["processes"][0]["streams"]} == {0}


@pytest.mark.parametrize("policy", ["h100-paper", 'compute: [{match: {kernel: "*"}, shape: make_room}]'])
def test_sizes(policy: str, current: str, run: Iterations) -> None:
    """A shape is decided for the device of the stream; a window opens and closes as with the context."""
    words = f"{MADE} c:3 s:3 {{}} begin c:2 j:1:4000 K:1:4000 s:2 j:1:4000"
    own, done = run(words.format(OWN), 4, policy), run(words.format(current), 4, policy)
    assert done.sizes == own.sizes and any(own.sizes) and done.totals["shaped"] == own.totals["shaped"] > 0
    assert done.reasons == own.reasons


DEFAULT = ["j:0:8", "K:0:8", "s:0", "q:0", "r:1:0", "w:0:1", "h:0", "P:0", "A:0", "B:0", "m", "x"]


@pytest.mark.parametrize("default", DEFAULT)
def test_default_streams_belong_to_the_current_context(default: str, current: str, run: Iterations) -> None:
    """The driver refuses with none; the streams beside them are raised all the same."""
    done = run(f"{BESIDE.format(current=current)} {'' if default == 'B:0' else default} end {default}", 40)
    assert raised(done)[-1] == "5"
    assert done.stdout.count("201\n") == (0 if current != NONE or default == "P:0" else 1 if default == "B:0" else 41)
    refused = "jK" if current == NONE else "j" if current == "N:2" else ""  # a function of another device
    assert done.reasons.get("unknown_footprint", 0) == (41 if default[0] in refused else 0)


@pytest.mark.parametrize("policy", ["default", "observe", "h100-paper"])
def test_every_call_answers_as_bare(policy: str, bare: Runner, preloaded: Runner) -> None:
    """200 calls, each with no context current and with another one."""
    words = [str(CHECK), plan.SIMULATED_DRIVER]
    without, done = bare(words, program=sys.executable), preloaded(words, program=sys.executable, policy=policy)
    assert without.stdout.count("\n") == 1 and int(without.stdout.split()[0]) > 200, without.stdout
    same(done, without, ("priority", "dynamic_shared"))


def test_a_stream_whose_creation_was_not_seen_is_asked_once(build: Build, bare: Runner, preloaded: Runner) -> None:
    """The library was not in front of the call that made it."""
    env = {"LD_LIBRARY_PATH": str(forwarding_driver(build, "TELLS").parent)}
    unseen = build.deep()
    program = build("unseen-stream", "unseen_stream.c", link=[plan.SIMULATED_DRIVER])
    without = bare([str(unseen)], program=program, env=env)
    assert (without.status, without.told) == (0, [0])
    done = preloaded([str(unseen)], AUTO, program=program, env=env)
    same(done, without, ("priority",))
    assert done.told == [2], "one question a stream"
    assert raised(done, "small")[-1] == "5" and "unknown_footprint" not in done.reasons
