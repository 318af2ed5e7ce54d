"""Triton as it is, without PyTorch: a vector addition and a matrix product, compiled by its own ptxas and launched.

Nothing is computed on a simulated GPU, so what is printed is what the program sees of its kernels.
"""

from __future__ import annotations

import ctypes
import os
import sys

import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def matmul_kernel(a, b, c, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, K):
        left = tl.load(a + rows[:, None] * k + start + inner[None, :])
        right = tl.load(b + (start + inner)[:, None] * n + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total)


class Buffer:
    """What Triton needs of a tensor: a type and an address."""

    def __init__(self, dtype: str, size: int) -> None:
        self.dtype = dtype
        address = ctypes.c_uint64()
        driver = ctypes.CDLL(os.path.join(os.environ["TRITON_LIBCUDA_PATH"], "libcuda.so.1"))
        if driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)):
            sys.exit("no memory")
        self.address = address.value

    def data_ptr(self) -> int:
        return self.address


def show(compiled: object) -> None:
    print(compiled.name, compiled.metadata.shared, compiled.n_regs, compiled.n_spills)  # type: ignore[attr-defined]


def main() -> None:
    triton.runtime.driver.active.get_current_device()
    x, y, out = (Buffer("float32", 4 << 20) for _ in range(3))
    a, b, c = (Buffer(kind, 2 << 20) for kind in ("float16", "float16", "float32"))
    for _ in range(3):
        compiled = add_kernel[(4096,)](x, y, out, 1 << 20, BLOCK=256)
    show(compiled)
    for _ in range(3):
        compiled = matmul_kernel[(64, 48)](a, b, c, 48 * 64, 1024, M=64, N=64, K=32, num_stages=3, num_warps=4)
    show(compiled)


if __name__ == "__main__":
    main()
