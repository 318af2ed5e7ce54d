"""Calls that name a stream by its handle belong to the stream's context, whichever context is current or if none is.

NVIDIA's driver takes them so (tests/simgpu/context_check.c), and Netflix's vmaf launches, records and waits with no
current context. Each program here does the same bare and preloaded, and must see the same (iterating.py).
"""

from __future__ import annotations

import pytest
from interposing import NCCL, PROGRAMS, Build, Done, Runner, same
from iterating import AUTO, HOST, STYLE_0, Iterations, raised
from peers import forwarding_driver

from pyshim.start import plan

MADE = "n:1 n:2 n:3 r:1:1 r:2:2 r:3:3 K:3:1"  # streams, events and the kernel of a library, with their context current
OWN, NONE = "N:3", "N:0"
CURRENT = {"none": NONE, "another one": "N:1", "of another device": "N:2"}
WAITED = "k:2:8 j:1:1000 s:2 r:1:1 e:1"
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


def again(words: str, count: int) -> str:
    return " ".join([words] * count)


@pytest.mark.parametrize("wait", ["s:2", "q:2", "r:3:2 e:3", "r:3:2 Q:3", "r:3:2 w:3:3", "r:3:2 w:1:3"])
def test_who_waits(wait: str, current: str, run: Iterations) -> None:
    done = run(f"{MADE} {current} begin {HOST.format(wait=wait)}", 12)
    assert (done.status, done.stdout) == (0, "")
    assert raised(done) == "0" * 8 + "5" * 4 and set(raised(done, "j")) == {"0"}
    assert "unknown_footprint" not in done.reasons


def test_communication_behind_a_boundary(current: str, run: Iterations) -> None:
    """Also by the handle of a library's kernel, which belongs to no context; copies beside."""
    done = run(f"{MADE} {current} begin {STYLE_0} K:2:8 A:1 A:2 h:1")
    assert (done.status, done.stdout) == (0, "")
    assert raised(done) == raised(done, NCCL) == "0" + "5" * 7
    assert raised(done, "l") == "0" + "5" * 8, "the first one was launched beforehand, the next one after the judgement"
    assert done.totals["communication"] == 8 and done.totals["raised"] == 7 + 7 + 8


def test_kernels_are_named_and_measured(current: str, run: Iterations) -> None:
    done = run(f"{MADE} {current} begin {STYLE_0} K:2:8")
    found = {kernel["kernel"]: kernel for kernel in done.report["kernels"]}
    assert set(found) == {"k", "j", "l", NCCL}
    assert {kernel["footprint"]["registers"] for kernel in found.values()} == {32}
    assert {stream["device"] for stream in done.report["processes"][0]["streams"]} == {0}


@pytest.mark.parametrize("policy", ["h100-paper", 'compute: [{match: {kernel: "*"}, shape: make_room}]'])
def test_sizes(policy: str, current: str, run: Iterations) -> None:
    """A shape is decided for the device of the stream; a window opens and closes as with the context."""
    words = f"{MADE} c:3 s:3 {{}} begin c:2 j:1:4000 K:1:4000 s:2 j:1:4000"
    own, done = run(words.format(OWN), 4, policy), run(words.format(current), 4, policy)
    assert done.sizes == own.sizes and any(own.sizes) and done.totals["shaped"] == own.totals["shaped"] > 0
    assert done.reasons == own.reasons


def test_what_the_program_reads_back(current: str, run: Iterations) -> None:
    done = run(f"{MADE} {current} begin {STYLE_0} P:1 P:2 end t:3:2 P:3 a:3:-2 P:3 t:2:3 P:2 k:2:8")
    assert done.stdout == "priority 0 0\n" * 16 + "priority 0 0\n" + "priority -2 -2\n" * 2
    assert raised(done) == "0" + "5" * 7 + "2"


def test_a_capture(current: str, run: Iterations) -> None:
    """All streams have the program's priorities while it is open. Instantiation needs a current context."""
    done = run(f"{MADE} {current} {again(STYLE_0, 6)} B:3 k:2:8 k:3:8 P:2 k:2:8 E k:2:8 B:3 k:3:8 G begin", 0)
    assert done.stdout.startswith("priority 0 0\n") and ("G: 201\n" in done.stdout) is (current == NONE)
    assert raised(done) == "0" + "5" * 5 + "000" + "5" + "0"


def test_a_graph(current: str, run: Iterations) -> None:
    """The first one of unknown work that a stream launches ends its raise."""
    done = run(f"{MADE} B:3 c:3 k:3:8 G {current} {again(WAITED, 9)} begin g:2 k:2:8", 1)
    assert (done.status, done.stdout) == (0, "")
    assert raised(done)[-3:] == "500" and done.totals["graph_launches"] == 1


def test_a_stream_ends(current: str, run: Iterations) -> None:
    """What is created at its address, later, is another stream."""
    done = run(f"{MADE} {current} {again(STYLE_0, 6)} d:2 {OWN} n:2 {current} P:2 k:2:8 begin", 0)
    assert raised(done) == "0" + "5" * 5 + "0"
    streams = [launch["stream"] for launch in done.launches if launch["kernel"] == "k"]
    assert streams[0] == streams[-1] and done.totals["raised"] == 10


def test_it_does_not_matter_what_is_current_at_which_time(run: Iterations) -> None:
    done = run(f"{MADE} begin k:2:8 N:0 j:1:1000 N:1 s:2 N:3 r:1:1 N:2 w:2:1", 12)
    assert (done.status, done.stdout) == (0, "")
    assert raised(done) == "0" * 8 + "5" * 4
    done = run(f"{MADE} {again(f'{WAITED} {NONE} {WAITED} {OWN}', 4)} begin N:1 k:2:8 N:0 k:2:8 N:2 k:2:8 N:3 k:2:8", 3)
    assert raised(done)[8:] == "5" * 12


DEFAULT = ["j:0:8", "K:0:8", "s:0", "q:0", "r:1:0", "w:0:1", "h:0", "P:0", "A:0", "B:0", "m", "x"]


@pytest.mark.parametrize("default", DEFAULT)
def test_default_streams_belong_to_the_current_context(default: str, current: str, run: Iterations) -> None:
    """The driver refuses with none; the streams beside them are raised all the same."""
    done = run(f"{BESIDE.format(current=current)} {'' if default == 'B:0' else default} end {default}", 40)
    assert raised(done)[-1] == "5"
    assert done.stdout.count("201\n") == (0 if current != NONE or default == "P:0" else 1 if default == "B:0" else 41)
    refused = "jK" if current == NONE else "j" if current == "N:2" else ""  # a function of another device
    assert done.reasons.get("unknown_footprint", 0) == (41 if default[0] in refused else 0)


def test_the_driver_refuses(current: str, run: Iterations) -> None:
    """Another context's stream under a kernel of this one, and more than may be."""
    done = run(f"{MADE} v:2 k:1:8 k:2:8 {current} {again('k:2:8 j:1:1000 s:2', 20)} v:0 {current} k:2:8 begin", 0)
    assert raised(done)[-2] == "5" and raised(done)[-1] == "0"


@pytest.mark.parametrize("policy", ["default", "observe", "h100-paper"])
def test_every_call_answers_as_bare(policy: str, build: Build, bare: Runner, preloaded: Runner) -> None:
    """200 calls, each with no context current and with another one."""
    headers = f"-I{PROGRAMS.parents[1] / 'tools/simgpu'}"
    check = build("context_check", "../simgpu/context_check.c", headers, link=[plan.SIMULATED_DRIVER])
    without, done = bare(program=check), preloaded(program=check, policy=policy)
    assert without.stdout.count("\n") == 1 and int(without.stdout.split()[0]) > 200, without.stdout
    same(done, without, ("priority", "dynamic_shared"))


def test_a_stream_whose_creation_was_not_seen_is_asked_once(build: Build, bare: Runner, preloaded: Runner) -> None:
    """The library was not in front of the call that made it."""
    env = {"LD_LIBRARY_PATH": str(forwarding_driver(build, "TELLS").parent)}
    unseen = build.library("libunseen-stream.so", "unseen_stream.c", "-DUNSEEN", link=[plan.SIMULATED_DRIVER])
    program = build("unseen-stream", "unseen_stream.c", link=[plan.SIMULATED_DRIVER])
    without = bare([str(unseen)], program=program, env=env)
    assert (without.status, without.told) == (0, [0])
    done = preloaded([str(unseen)], AUTO, program=program, env=env)
    same(done, without, ("priority",))
    assert done.told == [2], "one question a stream"
    assert raised(done, "small")[-1] == "5" and "unknown_footprint" not in done.reasons
