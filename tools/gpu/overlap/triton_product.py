"""A matrix product in Triton, of tiles small enough that several blocks sit on a multiprocessor."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

TILE = {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 32, "num_warps": 4, "num_stages": 3}


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def product_kernel(a, b, c, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):  # type: ignore[no-untyped-def]
    """c = a @ b, all row-major; sizes are multiples of the tile's."""
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a_at = a + row[:, None] * k + inner[None, :]
    b_at = b + inner[:, None] * n + column[None, :]
    sum_ = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, k, BLOCK_K):
        sum_ = tl.dot(tl.load(a_at), tl.load(b_at), sum_)
        a_at += BLOCK_K
        b_at += BLOCK_K * n
    tl.store(c + row[:, None] * n + column[None, :], sum_.to(tl.bfloat16))


def product(a: Any, b: Any, out: Any) -> None:
    """bf16, (m, k) @ (k, n) into (m, n)."""
    (m, k), n = a.shape, b.shape[1]
    grid = (m // TILE["BLOCK_M"], n // TILE["BLOCK_N"])
    product_kernel[grid](a, b, out, n, k, **TILE)
