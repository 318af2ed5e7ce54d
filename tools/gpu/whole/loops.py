"""Two loops of PyTorch and NCCL on one GPU: raising communication speeds up the first, and slows down the second.

The rank sends to itself. Explicit splits make NCCL's SendRecv kernel of that; equal splits would be a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from tools.gpu.whole.program import Program
from tools.gpu.whole.programs import GAINING, LOOPS

TIMES = 8  # collectives of a step
CYCLES_A_MS = 1_980_000


def products() -> Callable[[], Tensor]:
    """Return single-precision products without tensor cores, 4096 x 4096 x 1024: grids of many waves."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.preferred_blas_library("cublas")
    a, b = torch.randn(4096, 1024, device="cuda"), torch.randn(1024, 4096, device="cuda")
    c = torch.empty(4096, 4096, device="cuda")
    return lambda: torch.mm(a, b, out=c)


def attention() -> Callable[[], Tensor]:
    """Return flash attention, bf16, 32 heads of 128, 6144 tokens, causal."""
    q, k, v = (torch.randn(1, 32, 6144, 128, device="cuda", dtype=torch.bfloat16) for _ in range(3))

    def body() -> Tensor:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    return body


def passes(send: Callable[[], None], main: Any, side: Any) -> bool:
    """Return whether a collective can overtake what main does: not where streams share a hardware queue."""
    before, after, end = (torch.cuda.Event(enable_timing=True) for _ in range(3))
    with torch.cuda.stream(main):
        before.record()
        torch.cuda._sleep(3 * CYCLES_A_MS)
        end.record()
    side.wait_event(before)
    with torch.cuda.stream(side):
        send()
        after.record()
    torch.cuda.synchronize()
    return float(after.elapsed_time(end)) > 0.5


def two_streams(send: Callable[[], None]) -> tuple[Any, Any]:
    for _ in range(4):
        main = torch.cuda.Stream()
        for _ in range(4):
            side = torch.cuda.Stream()
            if passes(send, main, side):
                return main, side
    return main, side


def loop(name: str) -> Program:
    """Eight kernels and eight collectives a step.

    GAINING: a kernel and a collective begin together, and both are needed before the next two. LOSING: a collective
    behind each kernel, beside the next one.
    """
    torch.manual_seed(7)
    compute = products() if name == GAINING else attention()
    torch.manual_seed(20)
    count = LOOPS[name] // 2
    source = torch.randn(count, device="cuda", dtype=torch.bfloat16)
    target = torch.zeros_like(source)

    def send() -> None:
        dist.all_to_all_single(target, source, [count], [count], async_op=True).wait()

    send()
    torch.cuda.synchronize()
    main, side = two_streams(send)
    torch.cuda.set_stream(main)

    def step() -> list[Any]:
        for _ in range(TIMES):
            ready = main.record_event() if name == GAINING else None
            result = compute()
            side.wait_event(ready or main.record_event())
            with torch.cuda.stream(side):
                send()
            if name == GAINING:
                main.wait_stream(side)
        main.wait_stream(side)
        return [result, target]

    def repeated(body: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(TIMES):
                body()

        return run

    return Program(step, repeated(compute), repeated(send))
