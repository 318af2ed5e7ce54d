"""Green contexts: parts of a device whose multiprocessors are kept apart."""

from __future__ import annotations

from typing import Any

import pytest

INVALID_VALUE, INVALID_DEVICE, INVALID_CONTEXT, INVALID_HANDLE, BAD_TYPE, BAD_CONFIGURATION = 1, 101, 201, 400, 914, 915
COSTS = """
- {kernel: "twice", block_us: 20, spread: 0, gain: 2, sharing: 0}
- {kernel: "*", block_us: 10, spread: 0, gain: 2, sharing: 0}
"""
SETUP = """
class Resource(C.Structure):
    _fields_ = [("type", C.c_int), ("inside", C.c_ubyte * 92), ("count", C.c_uint), ("least", C.c_uint),
                ("multiple", C.c_uint), ("rest", C.c_ubyte * 36)]
d = Driver()
m = d.module(cubin([Kernel(n, 32) for n in ("a", "b", "c", "twice")], ARCH))
a, b, c, twice = (d.function(m, n) for n in ("a", "b", "c", "twice"))
whole = Resource(); d.cuDeviceGetDevResource(0, C.byref(whole), 1)
def split(count, groups=99, flags=0, of=whole):
    out, n, rest = (Resource * groups)(), C.c_uint(groups), Resource()
    code = d.try_("cuDevSmResourceSplitByCount", out, C.byref(n), C.byref(of), C.byref(rest), flags, count)
    return code or ([out[i] for i in range(n.value)], rest)
def describe(*parts):
    out = P(); code = d.try_("cuDevResourceGenerateDesc", C.byref(out), (Resource * len(parts))(*parts), len(parts))
    return code or out
def green(*parts): return d.new("cuGreenCtxCreate", describe(*parts), 0, 1)
def stream(context, priority=0): return d.new("cuGreenCtxStreamCreate", context, 1, priority)
def current(context): d.cuCtxSetCurrent(context)
def own(name, handle):
    out = Resource(); d.try_(name, handle, C.byref(out), 1); return out.count
"""


def green(simulate: Any, snippet: str, arch: int = 90, **options: Any) -> Any:
    return simulate(SETUP.replace("ARCH", str(arch)) + snippet, costs=COSTS, **options)


def us(row: dict[str, Any]) -> float:
    return float(round(row["end_us"] - row["start_us"], 2))


@pytest.mark.parametrize(
    ("gpu", "expression", "expected"),
    [
        pytest.param("h100", "[whole.count, whole.least, whole.multiple]", [132, 8, 8], id="the whole of an H100"),
        pytest.param("a100", "[whole.count, whole.least, whole.multiple]", [108, 4, 2], id="the whole of an A100"),
        pytest.param("h100", "[[p.count for p in split(16)[0]], split(16)[1].count]", [[16] * 8, 4], id="sixteen each"),
        pytest.param("h100", "[[p.count for p in split(20, 2)[0]], split(20, 2)[1].count]", [[24, 24], 84],
                     id="rounded up, two wanted"),
        pytest.param("h100", "[p.count for p in split(5, flags=1)[0]]", [6] * 22, id="without co-scheduling"),
        pytest.param("a100", "[p.count for p in split(0)[0]]", [4] * 27, id="as small as it gets"),
        pytest.param("a100", "[len(split(54)[0]), split(54)[1].type]", [2, 0], id="nothing remains"),
    ],
)  # fmt: skip
def test_resources(simulate: Any, gpu: Any, expression: Any, expected: Any) -> None:
    run = green(simulate, f"answer({expression})", arch={"h100": 90, "a100": 80}[gpu], gpu=gpu)
    assert run.answer == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("split(133)", INVALID_VALUE, id="more than there are"),
        pytest.param("split(8, flags=4)", INVALID_VALUE, id="an unknown flag"),
        pytest.param("split(8, of=Resource())", BAD_TYPE, id="a resource that is none"),
        pytest.param("split(8, of=split(64)[0][0])", BAD_CONFIGURATION, id="a part of a part"),
        pytest.param("d.try_('cuDeviceGetDevResource', 0, C.byref(whole), 2)", BAD_TYPE, id="another kind of resource"),
        pytest.param("describe(split(8)[0][0], split(16)[0][0])", BAD_CONFIGURATION, id="parts of two splits"),
        pytest.param("describe(Resource())", BAD_TYPE, id="a description of nothing"),
        pytest.param("d.try_('cuGreenCtxCreate', C.byref(P()), describe(whole), 0, 0)", INVALID_VALUE, id="no flag"),
        pytest.param("d.try_('cuGreenCtxCreate', C.byref(P()), describe(whole), 1, 1)", INVALID_DEVICE,
                     id="another device"),
        pytest.param("d.try_('cuGreenCtxStreamCreate', C.byref(P()), d.context, 1, 0)", INVALID_CONTEXT,
                     id="a stream of a context that is not green"),
        pytest.param("d.try_('cuGreenCtxStreamCreate', C.byref(P()), green(whole), 0, 0)", INVALID_VALUE,
                     id="a blocking stream"),
        pytest.param("d.try_('cuCtxDestroy_v2', green(whole))", INVALID_CONTEXT, id="destroyed as a context"),
    ],
)  # fmt: skip
def test_what_is_refused(simulate: Any, expression: Any, expected: Any) -> None:
    assert green(simulate, f"answer({expression})", gpu="h100,2").answer == expected


def test_kernels_stay_on_their_multiprocessors(simulate: Any) -> None:
    """Two blocks on each of 16 multiprocessors; on those of the rest, and on all."""
    run = green(
        simulate,
        """
parts, rest = split(16, 1)
for handle, name in ((stream(green(*parts)), a), (stream(green(rest)), b), (d.stream(), c)):
    assert d.launch(name, 264, 1024, stream=handle) == 0
    d.cuCtxSynchronize()
""",
    )
    assert [us(row) for row in run.timeline] == [90, 20, 10]  # of 32, 232 and 264 places


def test_parts_do_not_hold_up_each_other(simulate: Any) -> None:
    """A block of higher priority that fits nowhere in its own part holds that part, and none else."""
    run = green(
        simulate,
        """
parts, rest = split(16, 1)
small, large = green(*parts), green(rest)
one, two, three = stream(small), stream(small, -5), stream(large)
d.launch(a, 64, 1024, stream=one)     # two waves on 16
d.launch(twice, 1, 1024, stream=two)  # waits for the first of them to end
d.launch(b, 464, 1024, stream=three)  # two waves on 116, in no one's way
d.cuCtxSynchronize()
""",
    )
    row = {row["kernel"]: row for row in run.timeline}
    assert us(row["b"]) == 20
    assert row["b"]["start_us"] == row["b"]["queued_us"]
    assert row["twice"]["start_us"] == pytest.approx(row["a"]["start_us"] + 10)
    assert row["twice"]["priority"] == -5


@pytest.mark.parametrize("rule", ["hold", "drain", "backfill"])
def test_the_whole_device_and_a_part_of_it(simulate: Any, rule: Any) -> None:
    """A kernel of high priority, confined to 16 multiprocessors and waiting there, leaves the others to a lower one."""
    run = green(
        simulate,
        """
parts, rest = split(16, 1)
high = stream(green(*parts), -5)
d.cuFuncSetAttribute(twice, 8, 200000)
d.launch(a, 264, 1024)                             # all places of the device
d.launch(twice, 16, 1024, 200000, stream=high)     # a whole multiprocessor each
d.launch(b, 232, 1024, stream=d.stream())          # as many as the other 116 have
d.cuCtxSynchronize()
""",
        gpu=f"h100:{rule}",
    )
    row = {row["kernel"]: row for row in run.timeline}
    start = row["a"]["start_us"]
    assert round(row["b"]["start_us"] - start, 2) == 10
    assert round(row["b"]["end_us"] - start, 2) == 20
    assert round(row["twice"]["start_us"] - start, 2) == 10


def test_a_green_context_can_be_current(simulate: Any) -> None:
    run = green(
        simulate,
        """
context = green(split(16, 1)[0][0])
same = d.new("cuCtxFromGreenCtx", context)
before = own("cuCtxGetDevResource", d.context)
current(same)
now = P(); d.cuCtxGetCurrent(C.byref(now))
s = d.stream()
grid, block = C.c_int(), C.c_int()
d.cuOccupancyMaxPotentialBlockSize(C.byref(grid), C.byref(block), a, None, 0, 0)
codes = [d.launch(a, 32, 1024, stream=x) for x in (None, s)] + [d.launch(a, 32, 1024, entry="cuLaunchKernel_ptsz")]
cooperative = [d.launch(a, n, 1024, stream=s, entry="cuLaunchCooperativeKernel") for n in (32, 33)]
d.cuCtxSynchronize()
of = [d.ask("cuStreamGetGreenCtx", s, P).value == context.value, d.ask("cuStreamGetCtx", s, P).value == same.value]
counts = [own("cuCtxGetDevResource", same), own("cuGreenCtxGetDevResource", context)]
device = d.get("cuCtxGetDevice")
current(d.context)
d.launch(b, 264, 1024); d.cuCtxSynchronize()
answer([before, now.value == same.value, grid.value, codes, cooperative, of, counts, device,
        d.ask("cuStreamGetGreenCtx", None, P).value])
""",
    )
    assert run.answer == [132, True, 32, [0, 0, 0], [0, 720], [True, True], [16, 16], 0, None]
    *inside, outside = run.timeline
    assert [us(row) for row in inside] == [10] * 4
    assert [row["start_us"] for row in inside] == sorted(row["start_us"] for row in inside)
    assert us(outside) == 10


def test_a_destroyed_one(simulate: Any) -> None:
    """Its streams stay, and so do their multiprocessors; the context is bad, also as the current one."""
    run = green(
        simulate,
        """
context = green(split(16, 1)[0][0])
s = stream(context)
current(context)
d.cuGreenCtxDestroy(context)
bad = [d.try_("cuGreenCtxDestroy", context), d.try_("cuCtxSynchronize"), d.try_("cuCtxSetCurrent", context)]
current(d.context)
d.launch(a, 264, 1024, stream=s); d.cuStreamSynchronize(s)
answer([bad, d.ask("cuStreamGetGreenCtx", s, P).value])
""",
    )
    assert run.answer == [[INVALID_CONTEXT] * 3, None]
    assert us(run.timeline[0]) == 90


def test_graphs_run_where_they_were_captured(simulate: Any) -> None:
    run = green(
        simulate,
        """
context = green(split(16, 1)[0][0])
s, t = stream(context), d.stream()
def capture(function, where):
    d.cuStreamBeginCapture_v2(where, 0); d.launch(function, 264, 1024, stream=where)
    g = P(); d.cuStreamEndCapture(where, C.byref(g)); return d.instantiate(g)
inside, outside = capture(a, s), capture(b, t)
for graph, where in ((inside, t), (outside, s)):
    d.cuGraphLaunch(graph, where); d.cuCtxSynchronize()
""",
    )
    assert [us(row) for row in run.timeline] == [90, 10]


def test_clusters_of_a_part(simulate: Any) -> None:
    run = green(
        simulate,
        """
from simgpu_client import Attribute, Config
s = stream(green(split(16, 1)[0][0]))
attrs = (Attribute * 1)(); attrs[0].id = 4
for i, n in enumerate((8, 1, 1)): attrs[0].value[i] = n
n = C.c_int()
d.cuOccupancyMaxActiveClusters(C.byref(n), a, C.byref(Config(64, 1, 1, 1024, 1, 1, 0, s, attrs, 1)))
answer([n.value, d.launch_ex(a, 64, 1024, stream=s, attributes=[(4, [8, 1, 1])])])
""",
    )
    assert run.answer == [4, 0]
    assert us(run.timeline[0]) == 20
