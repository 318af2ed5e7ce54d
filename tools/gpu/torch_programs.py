"""Programs of many kinds, and a digest of what each computes: run it bare and behind overlap-run, and compare.

    python -m tools.gpu.torch_programs OUTPUT.json [NAME ...]

Same seeds, same digests: a digest that differs between two bare runs belongs to a program that is not deterministic.
TORCH_PROGRAMS_BESIDE=1: each program runs beside a collective of one rank that nothing has waited for, so that its
launches are in an overlap window.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl
from torch import nn
from torch.nn import functional

PROGRAMS: dict[str, Callable[[], Iterable[Any]]] = {}


def program(function: Callable[[], Iterable[Any]]) -> Callable[[], Iterable[Any]]:
    PROGRAMS[function.__name__] = function
    return function


def model(width: int = 2048, kind: torch.dtype = torch.float32) -> nn.Module:
    layers: list[nn.Module] = []
    for _ in range(3):
        layers += [nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()]
    return nn.Sequential(*layers).to(device="cuda", dtype=kind)


def train(network: Any, parameters: list[Any], kind: torch.dtype, steps: int = 3) -> list[Any]:
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    data = torch.randn(4096, 2048, device="cuda", dtype=kind)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        loss = network(data).float().square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses + [parameter.detach() for parameter in parameters]


@program
def eager_float32() -> Iterable[Any]:
    network = model()
    return train(network, list(network.parameters()), torch.float32)


@program
def eager_bfloat16() -> Iterable[Any]:
    network = model(kind=torch.bfloat16)
    return train(network, list(network.parameters()), torch.bfloat16)


@program
def compiled() -> Iterable[Any]:
    network = model()
    return train(torch.compile(network), list(network.parameters()), torch.float32)


@program
def captured() -> Iterable[Any]:
    """Replay a whole training step in a CUDA graph."""
    network = model()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, capturable=True)
    data = torch.randn(4096, 2048, device="cuda")

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = network(data).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = step()
    for _ in range(5):
        graph.replay()
    return [loss.detach(), *(parameter.detach() for parameter in network.parameters())]


@program
def captured_first() -> Iterable[Any]:
    """Kernels whose very first launch is inside a capture."""
    data = torch.arange(1 << 24, device="cuda", dtype=torch.float32)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        a = torch.lgamma(data + 1)
        b = torch.erfinv(torch.tanh(a * 1e-9))
        c = b.cummax(0).values + torch.expm1(b)
    outputs = []
    for _ in range(3):
        graph.replay()
        outputs.append(c.clone())
    return outputs


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def product_kernel(a, b, c, size, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def] # its compiler reads them
    row, column = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    rows, columns, inner = row + tl.arange(0, BLOCK), column + tl.arange(0, BLOCK), tl.arange(0, 32)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, size, 32):
        left = tl.load(a + rows[:, None] * size + start + inner[None, :])
        right = tl.load(b + (start + inner[:, None]) * size + columns[None, :])
        total += tl.dot(left, right)
    tl.store(c + rows[:, None] * size + columns[None, :], total)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def softmax_kernel(x, y, width, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + tl.program_id(0) * width + columns, mask=columns < width, other=-float("inf"))
    values = tl.exp(values - tl.max(values, 0))
    tl.store(y + tl.program_id(0) * width + columns, values / tl.sum(values, 0), mask=columns < width)


@program
def triton_kernels() -> Iterable[Any]:
    size = 2048
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.float16) for _ in range(2))
    c = torch.empty(size, size, device="cuda")
    x = torch.randn(8192, 1000, device="cuda")
    y = torch.empty_like(x)
    for stages in (2, 4):
        product_kernel[(size // 64, size // 64)](a, b, c, size, BLOCK=64, num_warps=4, num_stages=stages)
    softmax_kernel[(8192,)](x, y, 1000, BLOCK=1024)
    return [c, y]


@program
def attention() -> Iterable[Any]:
    q, k, v = (torch.randn(4, 16, 2048, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    return [functional.scaled_dot_product_attention(q, k, v, is_causal=causal) for causal in (False, True)]


@program
def attention_backward() -> Iterable[Any]:
    q, k, v = (torch.randn(2, 16, 1024, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    functional.scaled_dot_product_attention(q, k, v).float().sum().backward()
    return [q.grad, k.grad, v.grad]


@program
def cublaslt_epilogues() -> Iterable[Any]:
    """Products with what comes after them in one kernel, and eight-bit ones: cuBLASLt."""
    made = {"device": "cuda", "dtype": torch.bfloat16}
    a, b, bias = torch.randn(4096, 2048, **made), torch.randn(2048, 4096, **made), torch.randn(4096, **made)
    one = torch.ones((), device="cuda")
    eight, other = (x.clamp(-8, 8).to(torch.float8_e4m3fn) for x in (a, b.t().contiguous()))
    return [
        torch.addmm(bias, a, b),
        torch._addmm_activation(bias, a, b, use_gelu=True),
        torch._scaled_mm(eight, other.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16),
    ]


@program
def cudnn_recurrent() -> Iterable[Any]:
    network = nn.LSTM(256, 512, num_layers=2, batch_first=True).cuda()
    output, (hidden, cell) = network(torch.randn(64, 50, 256, device="cuda"))
    output.square().mean().backward()
    return [output.detach(), hidden.detach(), cell.detach(), *(parameter.grad for parameter in network.parameters())]


@program
def cudnn_attention() -> Iterable[Any]:
    from torch.nn.attention import (
        SDPBackend,
        sdpa_kernel,
    )

    q, k, v = (torch.randn(4, 16, 1024, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return [functional.scaled_dot_product_attention(q, k, v, is_causal=causal) for causal in (False, True)]


@program
def convolution() -> Iterable[Any]:
    network = nn.Sequential(nn.Conv2d(16, 64, 3), nn.ReLU(), nn.Conv2d(64, 64, 5, stride=2)).cuda()
    with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True):
        result = network(torch.randn(32, 16, 128, 128, device="cuda"))
        result.square().mean().backward()
    return [result.detach(), *(parameter.grad for parameter in network.parameters())]


@program
def scans_and_sorts() -> Iterable[Any]:
    """What adds up in the order of the data whatever the order of the blocks."""
    x = torch.randn(1 << 24, device="cuda")
    whole = torch.randint(0, 1 << 20, (1 << 22,), device="cuda")
    return [
        whole.cumsum(0),
        whole.bincount(),
        whole.unique(),
        x.cummax(0).values,
        x.sort().values,
        x.topk(1000).values,
        x.view(1 << 12, -1).logcumsumexp(1),
        x.view(1 << 12, -1).softmax(1),
        x.nonzero(),
    ]


@program
def float_scan() -> Iterable[Any]:
    """Run a scan that looks back at blocks that happen to be done: not deterministic by itself."""
    return [torch.randn(1 << 24, device="cuda").cumsum(0)]


@program
def reductions() -> Iterable[Any]:
    x = torch.randn(1 << 26, device="cuda")
    y = x.view(1 << 13, -1)
    return [
        x.sum(),
        x.max(),
        x.std(),
        y.sum(0),
        y.sum(1),
        y.argmax(0),
        y.norm(dim=1),
        (x > 0).all(),
        y.median(1).values,
    ]


@program
def transforms() -> Iterable[Any]:
    x = torch.randn(64, 1 << 16, device="cuda")
    matrix = torch.randn(512, 512, device="cuda")
    return [torch.view_as_real(torch.fft.fft(x)), torch.linalg.qr(matrix).R, torch.linalg.inv(matrix)]


@program
def batched_products() -> Iterable[Any]:
    a, b = (torch.randn(256, 256, 256, device="cuda") for _ in range(2))
    c, d = (torch.randn(3000, 3000, device="cuda", dtype=torch.float64) for _ in range(2))
    return [torch.bmm(a, b), c @ d, a.half() @ b.half(), (a[0].bfloat16() @ b[0].bfloat16())]


@program
def many_threads() -> Iterable[Any]:
    """Eight threads, a stream each, the same kernels at the same time."""
    outputs: list[Any] = [None] * 8

    def work(index: int) -> None:
        stream = torch.cuda.Stream()
        generator = torch.Generator(device="cuda").manual_seed(index)
        with torch.cuda.stream(stream):
            x = torch.randn(2048, 2048, device="cuda", generator=generator)
            for _ in range(20):
                x = torch.tanh(x @ x * 0.01)
            outputs[index] = x
        stream.synchronize()

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outputs


def digest(outputs: Iterable[Any]) -> str:
    made = hashlib.sha256()
    for output in outputs:
        made.update(output.detach().contiguous().view(-1).view(torch.uint8).cpu().numpy().tobytes())
    return made.hexdigest()[:16]


def collective() -> Callable[[], Any]:
    """Start NCCL's SendRecv from this rank to itself."""
    import torch.distributed as dist

    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": os.environ.get("MASTER_PORT", "29517")}
    os.environ.update(address)
    dist.init_process_group("nccl", rank=0, world_size=1, device_id=torch.device("cuda:0"))
    source = torch.randn(1 << 26, device="cuda", dtype=torch.bfloat16)
    target = torch.empty_like(source)
    size = [source.numel()]
    return lambda: dist.all_to_all_single(target, source, size, size, async_op=True)


def main() -> int:
    results: dict[str, str] = {}
    begin = collective() if "TORCH_PROGRAMS_BESIDE" in os.environ else lambda: None
    for name, function in PROGRAMS.items():
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        torch.manual_seed(20090)
        work = begin()
        try:
            results[name] = digest(function())
        except Exception as error:
            traceback.print_exc()
            results[name] = f"{type(error).__name__}: {str(error)[:200]}"
        torch.cuda.synchronize()
        del work
    if "TORCH_PROGRAMS_BESIDE" in os.environ:
        torch.distributed.destroy_process_group()
    Path(sys.argv[1]).write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
