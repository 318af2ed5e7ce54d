"""Streams that wait for values in memory, and write them: as calls, in captures, and as nodes of graphs."""

from __future__ import annotations

from typing import Any

import pytest

INVALID_VALUE, NOT_READY, TIMEOUT, NOT_SUPPORTED = 1, 600, 702, 801
GEQ, EQ, AND, NOR = 0, 1, 2, 3
BATCH = 12

COSTS = '- {kernel: "*", block_us: 3200, spread: 0, gain: 1}\n'  # one block of 32 on a multiprocessor: 100 us
SETUP = """
d = Driver()
m = d.module(cubin([Kernel(n, 64) for n in "abc"]))
a, b, c = (d.function(m, n) for n in "abc")
s, t = d.stream(), d.stream()
flag = P(); d.cuMemHostAlloc(C.byref(flag), 64, 0)
word, wide = C.c_uint.from_address(flag.value), C.c_ulonglong.from_address(flag.value)
class Op(C.Structure):
    _fields_ = [("operation", C.c_int), ("address", C.c_ulonglong), ("value", C.c_ulonglong), ("flags", C.c_uint),
                ("alias", C.c_ulonglong), ("pad", C.c_ulonglong)]
def ops(*each): return (Op * len(each))(*[Op(kind, flag.value + offset, value, flags)
                                          for kind, offset, value, flags in each])
def end(s):
    graph = P(); d.cuStreamEndCapture(s, C.byref(graph)); return graph
"""


def starts(run: Any) -> dict[str, float]:
    return {row["kernel"]: row["start_us"] for row in run.timeline}


def ends(run: Any) -> dict[str, float]:
    return {row["kernel"]: row["end_us"] for row in run.timeline}


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("form", ["", "_v2", "_ptsz", "_v2_ptsz"])
def test_a_wait_holds_its_stream_until_a_write_of_another(simulate: Any, bits: Any, form: Any) -> None:
    run = simulate(
        SETUP
        + f"wait, write = 'cuStreamWaitValue{bits}{form}', 'cuStreamWriteValue{bits}{form}'\n"
        + """
d.__getattr__(wait)(s, flag, 7, 1); d.launch(a, stream=s)
d.launch(b, stream=t); d.__getattr__(write)(t, flag, 7, 0); d.launch(c, stream=t)
before = word.value
d.cuCtxSynchronize()
answer([before, wide.value])
""",
        costs=COSTS,
    )
    assert run.answer == [0, 7]  # the write is done when the stream comes to it
    assert starts(run)["a"] == starts(run)["c"] == ends(run)["b"]


def test_the_host_satisfies_a_wait(simulate: Any) -> None:
    run = simulate(
        SETUP
        + """
d.cuStreamWaitValue32_v2(s, flag, 1, 0); d.launch(a, stream=s)
states = [d.try_("cuStreamQuery", s) for _ in range(9)]
word.value = 1
d.cuStreamSynchronize(s)
answer([states, word.value])
""",
        costs=COSTS,
    )
    assert run.answer == [[NOT_READY] * 9, 1]
    row = run.kernel("a")
    assert row["start_us"] - row["queued_us"] == 20  # nine calls and the tenth, 2 us each


def test_a_wait_that_nothing_can_satisfy_is_an_error_of_who_waits(simulate: Any) -> None:
    run = simulate(
        SETUP
        + """
e = d.event()
d.cuStreamWaitValue32_v2(s, flag, 1, 1); d.launch(a, stream=s); d.cuEventRecord(e, s)
d.launch(b, stream=t)
codes = [d.try_("cuStreamSynchronize", s), d.try_("cuCtxSynchronize"), d.try_("cuEventSynchronize", e),
         d.try_("cuStreamSynchronize", t), d.try_("cuMemFreeHost", flag), d.try_("cuStreamQuery", s)]
word.value = 1
answer([codes, d.try_("cuCtxSynchronize"), d.try_("cuMemFreeHost", flag)])
""",
        costs=COSTS,
    )
    assert run.answer == [[TIMEOUT, TIMEOUT, TIMEOUT, 0, TIMEOUT, NOT_READY], 0, 0]
    assert "simgpu: a stream waits for a value in memory that no work on the device will write" in run.stderr


def test_a_process_may_end_while_a_stream_waits(simulate: Any) -> None:
    run = simulate(SETUP + "d.cuStreamWaitValue32_v2(s, flag, 1, 1); d.launch(a, stream=s); d.launch(b, stream=t)")
    assert list(starts(run)) == ["b"]


@pytest.mark.parametrize(
    ("bits", "memory", "value", "kind", "satisfied"),
    [
        (32, 5, 5, GEQ, True),
        (32, 4, 5, GEQ, False),
        (32, 1, 0xFFFFFFFF, GEQ, True),  # wraps around
        (32, 0xFFFFFFFF, 1, GEQ, False),
        (64, 1, 0xFFFFFFFFFFFFFFFF, GEQ, True),
        (64, 0xFFFFFFFF, 1, GEQ, True),
        (64, 1 << 63, 1, GEQ, True),
        (64, 0, 1, GEQ, False),
        (32, 5, 5, EQ, True),
        (32, 6, 5, EQ, False),
        (32, 6, 4, AND, True),
        (32, 6, 9, AND, False),
        (32, 0xFFFFFFF0, 0x0F, NOR, False),
        (32, 0xFFFFFFE0, 0x0F, NOR, True),
        (64, 0xFFFFFFFF, 0, NOR, True),
    ],
)
def test_what_satisfies(simulate: Any, bits: Any, memory: Any, value: Any, kind: Any, satisfied: Any) -> None:
    run = simulate(
        SETUP
        + f"wide.value = {memory}; d.cuStreamWaitValue{bits}_v2(s, flag, C.c_ulonglong({value}), {kind})\n"
        + "answer(d.try_('cuStreamSynchronize', s))"
    )
    assert run.answer == (0 if satisfied else TIMEOUT)


def test_a_batch_goes_in_order(simulate: Any) -> None:
    run = simulate(
        SETUP
        + """
d.cuStreamBatchMemOp_v2(s, 4, ops((2, 8, 1, 0), (1, 0, 1, 1), (5, 16, 2, 1), (6, 0, 0, 0)), 0); d.launch(a, stream=s)
d.cuStreamWaitValue32_v2(t, P(flag.value + 8), 1, 1)    # the first of the batch
d.launch(b, stream=t)
d.cuStreamWriteValue32_v2(t, flag, 1, 0)
d.cuCtxSynchronize()
answer([word.value, C.c_uint.from_address(flag.value + 8).value, C.c_ulonglong.from_address(flag.value + 16).value])
""",
        costs=COSTS,
    )
    assert run.answer == [1, 1, 2]
    assert starts(run)["a"] == ends(run)["b"]


def test_a_batch_that_waits_again_has_written(simulate: Any) -> None:
    """The first waits for what the second writes before its own second wait."""
    run = simulate(
        SETUP
        + """
d.cuStreamWaitValue32_v2(s, flag, 1, 1); d.launch(a, stream=s)
d.cuStreamBatchMemOp_v2(t, 3, ops((1, 8, 1, 1), (2, 0, 1, 0), (1, 16, 1, 1)), 0); d.launch(b, stream=t)
u = d.stream(); d.launch(c, 2, stream=u)
d.cuStreamWriteValue32_v2(u, P(flag.value + 8), 1, 0); d.launch(c, stream=u)
codes = [d.try_("cuStreamSynchronize", x) for x in (s, t)]
d.cuStreamWriteValue32_v2(u, P(flag.value + 16), 1, 0)
answer([codes, d.try_("cuStreamSynchronize", t)])
""",
        costs=COSTS,
    )
    assert run.answer == [[0, TIMEOUT], 0]
    one = next(row for row in run.timeline if row["kernel"] == "c" and row["blocks"] == 1)
    assert run.kernel("a")["start_us"] == one["start_us"]


def test_copies_take_their_place_among_waits_and_writes(simulate: Any) -> None:
    """One copy satisfies a wait when it ends; one behind a write of its stream reads what was written."""
    run = simulate(
        SETUP
        + """
device = P(); d.cuMemAlloc_v2(C.byref(device), 64)
locked = P(); d.cuMemAllocHost_v2(C.byref(locked), 16)
three, early, late, last = ((C.c_uint * 1).from_address(locked.value + 4 * n) for n in range(4))
three[0], early[0], late[0], last[0] = 3, 99, 99, 99
d.cuStreamWaitValue32_v2(s, device, 3, 1); d.launch(a, stream=s)
d.launch(b, stream=t); d.cuMemcpyDtoHAsync_v2(early, device, 4, t)
d.cuMemcpyHtoDAsync_v2(device, three, 4, t); d.launch(c, stream=t)
d.cuStreamWriteValue32_v2(s, device, 4, 0); d.cuMemcpyDtoHAsync_v2(late, device, 4, s)
before = [early[0], late[0]]
code = d.try_("cuStreamSynchronize", s)
blocking = d.stream(flags=0); d.launch(a, 2, stream=blocking); d.cuStreamWriteValue32_v2(blocking, device, 5, 0)
d.cuMemcpyDtoH_v2(last, device, 4)
answer([before, code, early[0], late[0], last[0]])
""",
        costs=COSTS,
    )
    assert run.answer == [[99, 99], 0, 0, 4, 5]
    first = next(row for row in run.timeline if row["kernel"] == "a")
    assert first["start_us"] == run.kernel("c")["start_us"] > run.kernel("b")["end_us"]


def test_what_is_refused(simulate: Any) -> None:
    run = simulate(
        SETUP
        + """
def wait(address, flags=0): return d.try_("cuStreamWaitValue32_v2", s, P(address), 1, flags)
def batch(count, what, flags=0): return d.try_("cuStreamBatchMemOp_v2", s, count, what, flags)
here = flag.value
answer([wait(0), wait(4096), wait(here + 2), wait(here, 4), wait(here + 64),
        d.try_("cuStreamWaitValue64_v2", s, P(here + 4), 1, 0),
        d.try_("cuStreamWriteValue32_v2", s, flag, 1, 2), batch(0, ops()), batch(257, ops(*[(2, 0, 0, 0)] * 257)),
        batch(1, None), batch(1, ops((2, 0, 0, 0)), 1), batch(1, ops((9, 0, 0, 0))), wait(here, 1 << 30),
        batch(1, ops((3, 0, 0, 0))), d.try_("cuStreamWaitValue32_v2", P(64), flag, 1, 0),
        [d.get("cuDeviceGetAttribute", n, 0) for n in (92, 93, 94, 98, 122, 123)]])
"""
    )
    assert run.answer == [INVALID_VALUE] * 12 + [NOT_SUPPORTED] * 2 + [400, [1, 1, 1, 0, 1, 1]]


def test_in_a_capture_they_are_nodes(simulate: Any) -> None:
    run = simulate(
        SETUP
        + """
d.cuStreamBeginCapture_v2(s, 0)
d.cuStreamWaitValue32_v2(s, flag, 7, 1); d.launch(a, stream=s); d.cuStreamWriteValue64_v2(s, flag, 9, 0)
graph = end(s)
kinds = [d.ask("cuGraphNodeGetType", n) for n in d.nodes_of(graph)]
exe = d.instantiate(d.new("cuGraphClone", graph)); d.cuGraphDestroy(graph)
d.cuGraphLaunch(exe, s)
stuck = d.try_("cuStreamSynchronize", s)
d.launch(b, stream=t); d.cuStreamWriteValue32_v2(t, flag, 7, 0)
d.cuCtxSynchronize()
answer([kinds, stuck, wide.value])
""",
        costs=COSTS,
    )
    assert run.answer == [[BATCH, 0, BATCH], TIMEOUT, 9]
    assert starts(run)["a"] == ends(run)["b"]


def test_nodes_are_added_read_and_set(simulate: Any) -> None:
    run = simulate(
        SETUP
        + """
class Batch(C.Structure): _fields_ = [("ctx", P), ("count", C.c_uint), ("each", C.POINTER(Op)), ("flags", C.c_uint)]
def params(*each):
    made = Batch(None, len(each), ops(*each), 0); made.kept = each; return made
graph = d.new("cuGraphCreate", 0)
first = d.new("cuGraphAddBatchMemOpNode", graph, None, 0, C.byref(params((2, 0, 5, 0), (2, 8, 6, 0))))
later = params((2, 16, 8, 0)); second = d.add(graph, NodeParams.of(12, later), [first])
exe = d.instantiate(graph)
def run():
    d.cuGraphLaunch(exe, s); d.cuStreamSynchronize(s)
    return [C.c_uint.from_address(flag.value + at).value for at in (0, 8, 16)]
seen = [run()]
d.cuGraphExecBatchMemOpNodeSetParams(exe, second, C.byref(params((2, 16, 9, 0)))); seen.append(run())
d.cuGraphBatchMemOpNodeSetParams(first, C.byref(params((2, 0, 10, 0)))); seen.append(run())
read = Batch(); d.cuGraphBatchMemOpNodeGetParams(first, C.byref(read))
bad = [d.try_("cuGraphAddBatchMemOpNode", C.byref(P()), graph, None, 0, C.byref(p))
       for p in (params(), params((2, 2, 0, 0)), Batch(None, 1, ops((2, 0, 0, 0)), 1))]
bad.append(d.try_("cuGraphAddBatchMemOpNode", C.byref(P()), graph, None, 0, None))
answer([seen, read.count, read.each[0].operation, read.each[0].value, bad])
"""
    )
    assert run.answer == [[[5, 6, 8], [5, 6, 9], [5, 6, 9]], 1, 2, 10, [INVALID_VALUE] * 4]


def test_the_result_depends_on_the_order_of_calls_alone(simulate: Any) -> None:
    program = """
import time
for i in range(40):
    d.cuStreamWaitValue32_v2(s, flag, i, 0); d.launch(a, 1 + i, stream=s)
    d.launch(b, 40 - i, stream=t); d.cuStreamWriteValue32_v2(t, flag, i, 0)
    if DELAY: time.sleep(0.002)
d.cuCtxSynchronize()
"""
    runs = [simulate(f"DELAY = {delay}\n" + SETUP + program) for delay in (False, True)]
    assert len(runs[0].timeline) == 80
    assert runs[0].timeline == runs[1].timeline
