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


def test_real_fatbin(simulate: Any) -> None:
    data = f"open({str(DATA / 'kernels.fatbin')!r}, 'rb').read()"
    run = simulate(f"d = Driver(); answer(d.get('cuFuncGetAttribute', 4, d.kernel({data}, 'bounded')))")
    assert run.answer == 12
