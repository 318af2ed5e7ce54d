"""Every name of the API, cuGetProcAddress, the environment, devices, fork and exit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = (ROOT / "tools/simgpu/api.def").read_text()
PROCS = [(b, int(v), int(p), s) for s, b, v, p in re.findall(r"^ENTRY\((\w+), (\w+), (\d+), (\d)\)", TABLE, re.M)]


def test_proc_address_of_every_row(simulate: Any) -> None:
    """Each version of each name is the exported symbol itself."""
    assert len(PROCS) == TABLE.count("\nENTRY(")
    run = simulate(
        f"rows = {PROCS!r}\n"
        """
d = Driver(init=False)
wrong = []
for base, version, per_thread, symbol in rows:
    address, status = P(), C.c_int(9)
    flags = 2 if per_thread else 1
    code = d.try_("cuGetProcAddress_v2", base.encode(), C.byref(address), version, flags, C.byref(status))
    if code or status.value or address.value != C.cast(getattr(d.lib, symbol), P).value: wrong.append([base, version])
answer(wrong)
""",
        SIMGPU_DRIVER_VERSION=str(max(version for _, version, _, _ in PROCS)),
    )
    assert run.answer == []


@pytest.mark.parametrize(
    ("name", "version", "flags", "symbol", "status", "driver"),
    [
        ("cuLaunchKernel", 13000, 0, "cuLaunchKernel", 0, 13000),
        ("cuLaunchKernel", 13000, 1, "cuLaunchKernel", 0, 13000),
        ("cuLaunchKernel", 13000, 2, "cuLaunchKernel_ptsz", 0, 13000),
        ("cuLaunchKernel", 6000, 2, "cuLaunchKernel", 0, 13000),
        ("cuMemcpyHtoD", 13000, 2, "cuMemcpyHtoD_v2_ptds", 0, 13000),
        ("cuCtxCreate", 12000, 0, "cuCtxCreate_v3", 0, 13000),
        ("cuCtxCreate", 3000, 0, "cuCtxCreate", 0, 13000),
        ("cuGetProcAddress", 11080, 0, "cuGetProcAddress", 0, 13000),
        ("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2", 0, 13000),
        ("cuLaunchKernelEx", 11000, 0, None, 2, 13000),
        ("cuLaunchKernel_ptsz", 13000, 0, None, 1, 13000),
        ("cuLaunchKernel_ptsz", 13000, 2, None, 1, 13000),
        ("cuCtxDestroy_v2", 13000, 0, None, 1, 13000),
        ("cuGetProcAddress_v2", 13000, 0, None, 1, 13000),
        ("cuNoSuchThing", 13000, 0, None, 1, 13000),
        ("", 0, 0, None, 1, 13000),
        # cuStreamGetDevice came with CUDA 12.8, cuCtxGetDevice of any context with CUDA 13.
        ("cuStreamGetDevice", 13000, 0, None, 1, 12040),
        ("cuStreamGetDevice", 13000, 0, "cuStreamGetDevice", 0, 12080),
        ("cuCtxGetDevice", 13000, 0, "cuCtxGetDevice", 0, 12080),
        ("cuCtxGetDevice", 13000, 0, "cuCtxGetDevice_v2", 0, 13000),
    ],
)
def test_proc_address_versions(
    simulate: Any, name: Any, version: Any, flags: Any, symbol: Any, status: Any, driver: int
) -> None:
    """What is not there is a success without an address, except for the form with four arguments."""
    run = simulate(
        f"name, version, flags, symbol = {name!r}, {version}, {flags}, {symbol!r}\n"
        """
d = Driver(init=False)
found = []
for passed in (C.byref(status := C.c_int(9)), None):
    address = P(1)
    code = d.try_("cuGetProcAddress_v2", name.encode(), C.byref(address), version, flags, passed)
    expected = C.cast(getattr(d.lib, symbol), P).value if symbol else None
    found.append([code, address.value == expected])
v1 = P(1); code = d.try_("cuGetProcAddress", name.encode(), C.byref(v1), version, flags)
answer([found, status.value, [code, v1.value == expected]])
""",
        SIMGPU_DRIVER_VERSION=str(driver),
    )
    code = 0 if symbol else 500
    assert run.answer == [[[0, True]] * 2, status, [code, True]]


@pytest.mark.parametrize(
    ("environment", "code", "line"),
    [
        ({"gpu": "h900"}, 100, "simgpu: SIMGPU: no GPU is called `h900`; known: a40 l40s a100"),
        ({"gpu": "h100,99"}, 100, "simgpu: SIMGPU: `99` is not a number of GPUs from 1 to 16"),
        ({"SIMGPU_REFUSE": "k"}, 1, "simgpu: SIMGPU_REFUSE: `k` is not GLOB:BYTES"),
        ({"SIMGPU_DRIVER_VERSION": "new"}, 1, "simgpu: SIMGPU_DRIVER_VERSION: `new` is not a version such as 12080"),
        (
            {"costs": "# fine\n- {kernel: a, block_us: -1}\n"},
            1,
            "costs.yaml:2:25: block_us is a number from 1e-06 to 1e+12",
        ),
        (
            {"costs": "- {kernel: a, blocks_us: 1}\n"},
            1,
            "costs.yaml:1:26: unknown key; known: kernel block_us spread gain bytes_per_block sharing",
        ),
        (
            {"costs": "- {kernel: a,   bytes_per_block: 4K}\n"},
            1,
            "costs.yaml:1:34: bytes_per_block is a number from 0 to 1e+12",
        ),
        ({"costs": "- {kernel: a, spread: 1}\n"}, 1, "costs.yaml:1:23: spread is a number from 0 to 0.999999"),
        ({"costs": "- {kernel: a, gain: 2 block_us: 1}\n"}, 1, "costs.yaml:1:23: `,` or `}` expected"),
        ({"costs": "- {kernel: a} b\n"}, 1, "costs.yaml:1:15: something follows the closing `}`"),
        ({"costs": "- {block_us: 1}\n"}, 1, "costs.yaml:1:3: `kernel` is missing"),
        ({"costs": "- {kernel: 'a}\n"}, 1, "costs.yaml:1:12: a value is missing or its quote is not closed"),
        ({"costs": "kernel: a\n"}, 1, "costs.yaml:1:1: a line must begin with `- {`"),
    ],
)
def test_mistakes_in_the_environment_are_one_line(simulate: Any, environment: Any, code: Any, line: Any) -> None:
    run = simulate("d = Driver(init=False); answer(d.try_('cuInit', 0))", **environment)
    assert run.answer == code
    assert run.stderr.count("simgpu:") == 1
    assert line in run.stderr


def test_a_forked_child_is_not_initialized_and_does_not_hang(simulate: Any) -> None:
    run = simulate(
        """
d = Driver()
k = d.kernel(cubin([Kernel("k")]), "k")
d.launch(k, 1000)
child = os.fork()
if child == 0:
    os._exit(d.try_("cuInit", 0) * 10 + d.try_("cuCtxSynchronize"))
status = os.WEXITSTATUS(os.waitpid(child, 0)[1])
d.cuCtxSynchronize()
answer(status)
"""
    )
    assert run.answer == 33
    assert len(run.timeline) == 1
