"""Cubins, fat binaries and PTX: what is read from good ones, and that broken ones are errors, never crashes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).resolve().parent / "data"

READ = """
d = Driver()
m = P(); d.cuModuleLoad(C.byref(m), PATH.encode())
def facts(name):
    f = d.function(m, name)
    return [d.get("cuFuncGetAttribute", n, f) for n in (4, 1, 0)]
"""


@pytest.mark.parametrize(("gpu", "arch", "registers"), [("a100", 80, [10, 10]), ("h100", 90, [10, 12])])
def test_facts_of_a_real_cubin(simulate: Any, gpu: Any, arch: Any, registers: Any) -> None:
    """Registers, static shared memory and bounds as ptxas -v prints them."""
    path = str(DATA / f"kernels.sm_{arch}.cubin")
    run = simulate(
        f"PATH = {path!r}\n{READ}\nanswer([facts('saxpy'), facts('bounded'), facts('_Z5empty1SPi')])", gpu=gpu
    )
    saxpy, bounded, empty = run.answer
    assert saxpy == [registers[0], 1024, 1024]
    assert bounded == [registers[1], 0, 128]
    assert empty[1:] == [0, 1024]


def test_globals(simulate: Any) -> None:
    path = str(DATA / "kernels.sm_90.cubin")
    run = simulate(
        f"PATH = {path!r}\n{READ}\n"
        """
at, size, value = P(), C.c_size_t(), C.c_int()
d.cuModuleGetGlobal_v2(C.byref(at), C.byref(size), m, b"counter")
d.cuMemcpyDtoH_v2(C.byref(value), at, 4)
answer([size.value, value.value, d.try_("cuModuleGetGlobal_v2", C.byref(at), None, m, b"nothing"),
        d.try_("cuModuleGetFunction", C.byref(P()), m, b"nothing")])
"""
    )
    assert run.answer == [4, 7, 500, 500]


LOAD = """
d = Driver()
def load(data):
    m = P()
    code = d.try_("cuModuleLoadData", C.byref(m), data)
    return code if code else d.get("cuFuncGetAttribute", 4, d.function(m, "k"))
"""


@pytest.mark.parametrize(
    ("gpu", "image", "expected"),
    [
        pytest.param("h100", "cubin([Kernel('k', 77)], 90)", 77, id="the same architecture"),
        pytest.param("h100", "cubin([Kernel('k', 77)], 80)", 209, id="another major architecture"),
        pytest.param("a40", "cubin([Kernel('k', 77)], 80)", 77, id="a smaller minor"),
        pytest.param("a40", "cubin([Kernel('k', 77)], 89)", 209, id="a greater minor"),
        pytest.param("a100", "cubin([Kernel('k', 77)], 80, old=True)", 77, id="registers in sh_info"),
        pytest.param("a40", "fatbin([(2, 80, cubin([Kernel('k', 11)], 80)), (2, 86, cubin([Kernel('k', 22)], 86)),"
                     "(2, 90, cubin([Kernel('k', 33)], 90))])", 22, id="the best entry of a fat binary"),
        pytest.param("h100", "fatbin([(2, 80, cubin([Kernel('k', 11)], 80))])", 209, id="no entry fits"),
        pytest.param("h100", "fatbin([(2, 80, cubin([Kernel('k')], 80)), (1, 80, b'.version 8\\n.entry k() { }\\0')])",
                     32,
                     id="PTX where no binary fits"),
        pytest.param("h100", "b'.version 8.0 .visible .entry k(\\n .param .u32 a,\\n .param .u64 b) .maxntid 64 { }'",
                     32, id="PTX text"),
        pytest.param("h100", "b'nonsense'", 200, id="neither"),
        pytest.param("h100", "b''", 200, id="nothing"),
    ],
)  # fmt: skip
def test_loading(simulate: Any, gpu: Any, image: Any, expected: Any) -> None:
    assert simulate(LOAD + f"answer(load({image}))", gpu=gpu).answer == expected


def test_real_fatbin_and_ptx(simulate: Any) -> None:
    run = simulate(
        f"folder = {str(DATA)!r}\n"
        """
d = Driver()
def registers(name):
    with open(os.path.join(folder, name), "rb") as file: data = file.read()
    return d.get("cuFuncGetAttribute", 4, d.kernel(data, "bounded"))
answer([registers("kernels.fatbin"), registers("kernels.ptx")])
"""
    )
    assert run.answer == [12, 32]


def test_library_entry_points(simulate: Any) -> None:
    run = simulate(
        """
d = Driver()
lib = P(); d.cuLibraryLoadData(C.byref(lib), cubin([Kernel("a"), Kernel("b")]), None, None, 0, None, None, 0)
n = d.get("cuLibraryGetKernelCount", lib)
kernels = (P * 2)(); d.cuLibraryEnumerateKernels(kernels, 2, lib)
names = []
for kernel in kernels:
    name = C.c_char_p(); d.cuKernelGetName(C.byref(name), P(kernel)); names.append(name.value.decode())
function = d.new("cuKernelGetFunction", P(kernels[0]))
same = d.new("cuLibraryGetModule", lib).value == d.new("cuFuncGetModule", function).value
d.cuLibraryUnload(lib)
answer([n, names, same, d.launch(function), d.launch(P(kernels[0])), d.try_("cuLibraryUnload", lib)])
"""
    )
    assert run.answer == [2, ["a", "b"], True, 400, 400, 400]
