"""Triton as it is on AMD, without PyTorch (which says to Triton which device and stream are current): one kernel,
compiled for the GPU that the runtime names, and launched."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import triton
import triton.language as tl
from triton.backends.amd.driver import HIPDriver, HIPLauncher, HIPUtils


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


class Buffer:
    """What Triton needs of a tensor: a type and an address."""

    def __init__(self, dtype: str, size: int) -> None:
        self.dtype = dtype
        self.address = ctypes.c_void_p()
        runtime = ctypes.CDLL(os.environ["TRITON_LIBHIP_PATH"])
        assert runtime.hipMalloc(ctypes.byref(self.address), ctypes.c_size_t(size)) == 0

    def data_ptr(self) -> int | None:
        return self.address.value


def main() -> None:
    driver: Any = HIPDriver.__new__(HIPDriver)
    driver.utils, driver.launcher_cls = HIPUtils(), HIPLauncher
    driver.get_current_device = lambda: 0
    driver.get_current_stream = lambda device: 0
    triton.runtime.driver.set_active(driver)
    x, y, out = (Buffer("float32", 4 << 20) for _ in range(3))
    compiled = add_kernel[(4096,)](x, y, out, 1 << 20, BLOCK=256)
    print(compiled.name, driver.get_current_target().arch, compiled.n_regs > 0)


main()
