"""Several kinds of GPU in one process, and GPUs with fewer multiprocessors than their name says."""

from __future__ import annotations

from typing import Any

import pytest

COSTS = '- {kernel: "*", block_us: 10, spread: 0, gain: 2}\n'
SETUP = """
d = Driver(context=False)
contexts = [d.new("cuDevicePrimaryCtxRetain", i) for i in range(d.get("cuDeviceGetCount"))]
def on(i): d.cuCtxSetCurrent(contexts[i])
def attribute(number, i): return d.get("cuDeviceGetAttribute", number, i)
def blocks(function, threads, dynamic=0):
    return d.get("cuOccupancyMaxActiveBlocksPerMultiprocessor", function, threads, dynamic)
both = fatbin([(2, 80, cubin([Kernel("other", 16), Kernel("k", 64)], 80)), (2, 90, cubin([Kernel("k", 32)], 90))])
def library(data):
    lib = P(); d.cuLibraryLoadData(C.byref(lib), data, None, None, 0, None, None, 0); return lib
"""


@pytest.mark.parametrize(
    ("gpu", "names"),
    [
        ("h100+a100", ["H100", "A100"]),
        ("h100+a100:drain", ["H100", "A100"]),
        ("a100+h100+h100", ["A100", "H100", "H100"]),
        ("h100+a100:hold,4", ["H100", "A100", "H100", "A100"]),
        ("h100+a100,1", ["H100"]),
    ],
)
def test_which_device_is_which(simulate: Any, gpu: Any, names: Any) -> None:
    run = simulate(
        SETUP
        + """
def name(i):
    text = C.create_string_buffer(99); d.cuDeviceGetName(text, 99, i); return text.value.decode()
def uuid(i):
    raw = C.create_string_buffer(16); d.cuDeviceGetUuid_v2(raw, i); return raw.raw.hex()
def memory(i):
    on(i); return d.get("cuDeviceTotalMem_v2", i, kind=C.c_size_t)
n = len(contexts)
answer([[name(i) for i in range(n)], [attribute(75, i) for i in range(n)], [attribute(81, i) for i in range(n)],
        len({uuid(i) for i in range(n)}), [memory(i) >> 30 for i in range(n)]])
""",
        gpu=gpu,
    )
    found, major, shared, distinct, memory = run.answer
    assert [text.split()[1].split("-")[0] for text in found] == names
    assert major == [{"H100": 9, "A100": 8}[name] for name in names]
    assert shared == [{"H100": 233472, "A100": 167936}[name] for name in names]
    assert distinct == len(names)
    assert memory == [80] * len(names)


def test_each_device_runs_its_own_code_in_its_own_limits(simulate: Any) -> None:
    run = simulate(
        SETUP
        + """
kernel = d.new("cuLibraryGetKernel", library(both), b"k")
seen = []
for i in range(2):
    on(i)
    function = d.new("cuKernelGetFunction", kernel)
    most = 232448 if i == 0 else 166912
    seen.append([d.get("cuFuncGetAttribute", 4, function), d.get("cuKernelGetAttribute", 4, kernel, i),
                 blocks(kernel, 1024), d.try_("cuKernelSetAttribute", 8, most, kernel, i),
                 d.try_("cuKernelSetAttribute", 8, most + 1, kernel, i), d.get("cuFuncGetAttribute", 8, function),
                 d.launch(kernel, 300, 1024)])
    d.cuCtxSynchronize()
answer(seen)
""",
        gpu="h100+a100",
        costs=COSTS,
    )
    assert run.answer == [[32, 32, 2, 0, 1, 232448, 0], [64, 64, 1, 0, 1, 166912, 0]]
    rows = {row["device"]: row for row in run.timeline}
    assert [rows[i]["registers"] for i in (0, 1)] == [32, 64]
    assert [rows[i]["resident_peak"] for i in (0, 1)] == [2, 1]
    assert [round(rows[i]["end_us"] - rows[i]["start_us"]) for i in (0, 1)] == [20, 30]  # of 264 and of 108 places


def test_code_for_one_kind_only(simulate: Any) -> None:
    """A module needs code for its own device; a library any, until it is used where there is none."""
    run = simulate(
        SETUP
        + """
only = cubin([Kernel("k")], 90)
lib = library(only)
kernel = d.new("cuLibraryGetKernel", lib, b"k")
seen = []
for i in range(2):
    on(i)
    seen.append([d.try_("cuModuleLoadData", C.byref(P()), only), d.launch(kernel),
                 d.try_("cuKernelGetFunction", C.byref(P()), kernel), d.try_("cuLibraryGetModule", C.byref(P()), lib),
                 d.try_("cuKernelGetAttribute", C.byref(C.c_int()), 4, kernel, i)])
nowhere = P()
answer([seen, d.try_("cuLibraryLoadData", C.byref(nowhere), cubin([Kernel("k")], 100), None, None, 0, None, None, 0)])
""",
        gpu="h100+a100",
    )
    assert run.answer == [[[0] * 5, [209] * 5], 209]


def test_clusters_are_the_newer_device_s(simulate: Any) -> None:
    run = simulate(
        SETUP
        + """
kernel = d.new("cuLibraryGetKernel", library(both), b"k")
def launch(i):
    on(i); return d.launch_ex(kernel, 8, attributes=[(4, [4, 1, 1])])
answer([launch(0), launch(1)])
""",
        gpu="h100+a100",
    )
    assert run.answer == [0, 801]


SLICE = """
on(0); k = d.kernel(cubin([Kernel("k", 32)]), "k")
d.launch(k, 40, 1024); d.cuCtxSynchronize()
grid, block = C.c_int(), C.c_int()
d.cuOccupancyMaxPotentialBlockSize(C.byref(grid), C.byref(block), k, None, 0, 0)
count = attribute(16, 0)
cooperative = [d.launch(k, n, 1024, entry="cuLaunchCooperativeKernel") for n in (2 * count, 2 * count + 1)]
answer([count, grid.value, cooperative])
"""


@pytest.mark.parametrize(
    ("environment", "count"),
    [
        pytest.param({"SIMGPU_MULTIPROCESSORS": "16"}, 16, id="a slice"),
        pytest.param({"SIMGPU_MULTIPROCESSORS": "132"}, 132, id="all of it"),
        pytest.param({"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "50"}, 66, id="half, by the multi-process service"),
        pytest.param({"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "12.5"}, 17, id="rounded up"),
        pytest.param({"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "200"}, 132, id="no percentage"),
        pytest.param({"SIMGPU_MULTIPROCESSORS": "16", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25"}, 4, id="of the slice"),
    ],
)
def test_fewer_multiprocessors(simulate: Any, environment: Any, count: Any) -> None:
    run = simulate(SETUP + SLICE, costs=COSTS, **environment)
    assert run.answer == [count, 2 * count, [0, 720]]
    waves = -(-40 // (2 * count))
    assert round(run.timeline[0]["end_us"] - run.timeline[0]["start_us"], 1) == pytest.approx(10 * waves)


@pytest.mark.parametrize(
    ("environment", "code", "line"),
    [
        ({"gpu": "h100+h900"}, 100, "simgpu: SIMGPU: no GPU is called `h900`"),
        ({"gpu": "h100+"}, 100, "simgpu: SIMGPU: no GPU is called ``"),
        ({"gpu": "+".join(["h100"] * 17)}, 100, "simgpu: SIMGPU: more than 16 GPUs"),
        ({"SIMGPU_MULTIPROCESSORS": "133"}, 1, "simgpu: SIMGPU_MULTIPROCESSORS: `133` is not a number from 1 to 132"),
        ({"SIMGPU_MULTIPROCESSORS": "0"}, 1, "simgpu: SIMGPU_MULTIPROCESSORS: `0` is not a number from 1 to 132"),
        ({"gpu": "h100+a100", "SIMGPU_MULTIPROCESSORS": "109"}, 1, "is not a number from 1 to 108"),
        ({"SIMGPU_NO_ATTRIBUTES": "k"}, 1, "simgpu: SIMGPU_NO_ATTRIBUTES: `k` is not GLOB:CODE"),
    ],
)
def test_mistakes(simulate: Any, environment: Any, code: Any, line: Any) -> None:
    run = simulate("answer(Driver(init=False).try_('cuInit', 0))", **environment)
    assert run.answer == code
    assert line in run.stderr
    assert run.stderr.count("simgpu:") == 1
