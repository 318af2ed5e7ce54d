"""Clusters, and the attributes of functions that decide what fits."""

from __future__ import annotations

from typing import Any

import pytest

INVALID_VALUE, NOT_PERMITTED, NOT_SUPPORTED, BAD_CLUSTER, TOO_LARGE = 1, 800, 801, 912, 720
SETUP = """
ARCH, FIXED = 90, (2, 1, 1)
from simgpu_client import Attribute, Config
d = Driver()
lib = P()
code = cubin([Kernel("k", 32), Kernel("wide", 32), Kernel("fixed", 32, cluster=FIXED)], ARCH)
d.cuLibraryLoadData(C.byref(lib), code, None, None, 0, None, None, 0)
k, wide, fixed = (d.new("cuKernelGetFunction", d.new("cuLibraryGetKernel", lib, n)) for n in (b"k", b"wide", b"fixed"))
def config(blocks=64, threads=1024, dynamic=0, cluster=None, stream=None):
    attrs = (Attribute * 1)(); attrs[0].id = 4
    for i, value in enumerate(cluster or ()): attrs[0].value[i] = value
    return Config(blocks, 1, 1, threads, 1, 1, dynamic, stream, attrs, 1 if cluster else 0)
def ask(name, function, **what):
    n = C.c_int()
    return d.try_("cuOccupancy" + name, C.byref(n), function, C.byref(config(**what))) or [n.value]
def active(function, size=None, **what):
    return ask("MaxActiveClusters", function, cluster=size and (size, 1, 1), **what)
def potential(function, **what): return ask("MaxPotentialClusterSize", function, **what)
def launch(function, blocks=16, cluster=None, **what):
    return d.launch_ex(function, blocks, attributes=[(4, cluster)] if cluster else [], **what)
def set_(function, **values):
    numbers = dict(dynamic=8, carveout=9, width=11, height=12, depth=13, larger=14, policy=15)
    return [d.try_("cuFuncSetAttribute", function, numbers[n], v) for n, v in values.items()]
"""


def answers(simulate: Any, expression: str, gpu: str = "h100", **environment: str) -> Any:
    setup = SETUP.replace("90, (2, 1, 1)", "80, ()") if gpu == "a100" else SETUP
    return simulate(f"{setup}\nanswer([{expression}])", gpu=gpu, **environment).answer


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("launch(k, 16, [8, 1, 1]), launch(k, 16, [16, 1, 1])", [0, BAD_CLUSTER], id="eight are portable"),
        pytest.param("set_(wide, larger=1), launch(wide, 16, [16, 1, 1]), launch(wide, 64, [32, 1, 1])",
                     [[0], 0, BAD_CLUSTER], id="sixteen by permission"),
        pytest.param("launch(k, 16, [2, 2, 1]), launch(k, 16, [0, 1, 1]), launch(k, 9, [2, 1, 1])",
                     [BAD_CLUSTER, BAD_CLUSTER, BAD_CLUSTER], id="a grid of whole clusters"),
        pytest.param("launch(fixed, 16), launch(fixed, 16, [2, 1, 1]), launch(fixed, 16, [4, 1, 1]), launch(fixed, 15)",
                     [0, 0, BAD_CLUSTER, BAD_CLUSTER], id="required by the code"),
        pytest.param("set_(k, width=4, height=1, depth=1), launch(k, 16), launch(k, 16, [2, 1, 1]), launch(k, 6)",
                     [[0, 0, 0], 0, BAD_CLUSTER, BAD_CLUSTER], id="required by an attribute"),
        pytest.param("set_(fixed, width=4), set_(k, width=-1), set_(k, policy=3), set_(k, policy=2)",
                     [[NOT_PERMITTED], [INVALID_VALUE], [INVALID_VALUE], [0]], id="what may be set"),
        pytest.param("set_(k, width=4), launch(k, 16)", [[0], BAD_CLUSTER], id="half a requirement"),
        pytest.param("active(k, 1), active(k, 4), active(k, 8)", [[264], [66], [33]], id="active clusters"),
        pytest.param("active(k), active(fixed), active(fixed, 2), active(fixed, 4)",
                     [BAD_CLUSTER, [132], [132], BAD_CLUSTER], id="active clusters of what is required"),
        pytest.param("set_(k, dynamic=200000), active(k, 8, dynamic=200000), active(k, 8, dynamic=200001)",
                     [[0], [16], [0]], id="active clusters with shared memory"),
        pytest.param("potential(k), potential(fixed), set_(wide, larger=1), potential(wide)",
                     [[8], [2], [0], [16]], id="potential cluster size"),
        pytest.param("d.launch_ex(k, 16, attributes=[(4, [2, 1, 1]), (11, [4, 1, 1]), (5, [1])]),"
                     "d.launch_ex(k, 16, attributes=[(4, [2, 1, 1]), (11, [3, 1, 1])]),"
                     "d.launch_ex(k, 20, attributes=[(4, [2, 1, 1]), (11, [8, 1, 1])])",
                     [0, INVALID_VALUE, INVALID_VALUE], id="a preferred size"),
        pytest.param("set_(k, dynamic=200000), [d.launch_ex(k, n, 1024, 200000, attributes=[(4, [8, 1, 1]), (2, [1])])"
                     " for n in (128, 136)]",
                     [[0], [0, TOO_LARGE]], id="cooperative clusters: those of eight leave four multiprocessors out"),
    ],
)  # fmt: skip
def test_clusters(simulate: Any, expression: Any, expected: Any) -> None:
    assert answers(simulate, expression) == expected


def test_clusters_that_fit_nowhere(simulate: Any) -> None:
    """A slice of four multiprocessors: a cluster of eight blocks that take one each is too large."""
    expression = "set_(k, dynamic=200000), active(k, 8, dynamic=200000), potential(k, dynamic=200000), "
    expression += "launch(k, 8, [8, 1, 1], dynamic=200000), launch(k, 8, [4, 1, 1], dynamic=200000)"
    found = answers(simulate, expression, SIMGPU_MULTIPROCESSORS="4")
    assert found == [[0], [0], [4], BAD_CLUSTER, 0]


def test_older_gpus_have_none(simulate: Any) -> None:
    expression = "active(k, 4), potential(k), launch(k, 16, [4, 1, 1]), set_(k, width=2, height=1, depth=1), launch(k)"
    assert answers(simulate, expression, gpu="a100") == [NOT_SUPPORTED] * 3 + [[0, 0, 0], NOT_SUPPORTED]


def test_a_required_cluster_is_placed_as_one(simulate: Any) -> None:
    run = simulate(f"{SETUP}\nlaunch(fixed, 16); launch(k, 16, [4, 1, 1]); launch(k)")
    assert [row["cluster"] for row in run.launches] == [2, 4, 1]


OCCUPANCY = """
def blocks(threads=128, dynamic=0, function=None):
    return d.get("cuOccupancyMaxActiveBlocksPerMultiprocessor", function or k, threads, dynamic)
def room(count, threads=128):
    return d.get("cuOccupancyAvailableDynamicSMemPerBlock", k, count, threads, kind=C.c_size_t)
handle = d.new("cuLibraryGetKernel", lib, b"k")
"""


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("blocks(128, 49152), blocks(128, 49153)", [4, 0], id="no more than the function allows"),
        pytest.param("set_(k, dynamic=60000), blocks(128, 60000), blocks(128, 60001)", [[0], 3, 0], id="raised"),
        pytest.param("set_(k, dynamic=1000), blocks(128, 1000), blocks(128, 1001)", [[0], 16, 0], id="lowered"),
        pytest.param("room(1), set_(k, dynamic=100000), room(1), room(4)", [49152, [0], 100000, 57344],
                     id="room for a block"),
        pytest.param("blocks(128, 8192), set_(k, carveout=25), blocks(128, 8192), set_(k, carveout=0), "
                     "blocks(128, 8192)",
                     [16, [0], 7, [0], 1], id="a carve-out that the program asked for"),
        pytest.param("set_(k, carveout=0), set_(k, carveout=-1), blocks(128, 8192)", [[0], [0], 16], id="none again"),
        pytest.param("d.try_('cuKernelSetAttribute', 8, 60000, handle, 0), blocks(128, 60000, handle), "
                     "blocks(128, 60000)",
                     [0, 3, 3], id="by either handle"),
        pytest.param("d.try_('cuKernelSetAttribute', 9, 0, handle, 0), blocks(128, 8192), set_(k, carveout=100), "
                     "blocks(128, 8192)", [0, 1, [0], 16], id="the function's own is stronger than the kernel's"),
    ],
)  # fmt: skip
def test_occupancy_follows_the_function(simulate: Any, expression: Any, expected: Any) -> None:
    run = simulate(f"{SETUP}{OCCUPANCY}\nanswer([{expression}])")
    assert run.answer == expected


@pytest.mark.parametrize(
    ("function", "attributes", "peak"),
    [
        pytest.param(None, [], 9, id="no preference"),
        pytest.param(100, [], 9, id="all"),
        pytest.param(25, [], 2, id="a quarter"),
        pytest.param(0, [], 1, id="none: one block at a time"),
        pytest.param(100, [(14, [0])], 1, id="the launch is stronger than the function"),
        pytest.param(0, [(14, [-1])], 9, id="and may have no preference"),
    ],
)
def test_a_small_carve_out_limits_residence(simulate: Any, function: Any, attributes: Any, peak: Any) -> None:
    """24 KiB of dynamic shared memory; launched, asked for its clusters, and as a node of a graph."""
    run = simulate(
        f"{SETUP}\nfunction, attributes = {function}, {attributes}\n"
        """
if function is not None: set_(k, carveout=function)
d.launch_ex(k, 132 * 20, 128, 24576, attributes=attributes); d.cuCtxSynchronize()
given = (Attribute * 2)()
for at, (number, values) in enumerate([(4, [1, 1, 1]), *attributes]):
    given[at].id = number
    for i, value in enumerate(values): given[at].value[i] = value & 0xFFFFFFFF
n = C.c_int()
asked = Config(132, 1, 1, 128, 1, 1, 24576, None, given, 1 + len(attributes))
d.cuOccupancyMaxActiveClusters(C.byref(n), k, C.byref(asked))
both = [(2, [1]), *attributes]
cooperative = [d.launch_ex(k, n.value + more, 128, 24576, attributes=both) for more in (0, 1)]
s = d.stream(); d.cuStreamBeginCapture_v2(s, 0)
d.launch_ex(k, 132 * 20, 128, 24576, s, attributes)
g = P(); d.cuStreamEndCapture(s, C.byref(g)); d.cuGraphLaunch(d.instantiate(g), s); d.cuCtxSynchronize()
answer([n.value // 132, cooperative])
"""
    )
    assert run.answer == [peak, [0, TOO_LARGE]]
    assert [row["resident_peak"] for row in run.timeline if row["blocks"] == 132 * 20] == [peak, peak]


@pytest.mark.parametrize("code", [913, 801])
def test_kernels_that_tell_nothing(simulate: Any, code: Any) -> None:
    run = simulate(
        f"{SETUP}"
        """
handles = [d.new("cuLibraryGetKernel", lib, n) for n in (b"k", b"wide")]
value = C.c_int(77)
answer([[d.try_("cuFuncGetAttribute", C.byref(value), n, f) for f in (k, wide) for n in (0, 4, 8)],
        [d.try_("cuKernelGetAttribute", C.byref(value), 4, h, 0) for h in handles],
        d.launch(k), d.try_("cuFuncSetAttribute", k, 8, 1000)])
""",
        SIMGPU_NO_ATTRIBUTES=f"k:{code}",
    )
    assert run.answer == [[code] * 3 + [0] * 3, [code, 0], 0, 0]
