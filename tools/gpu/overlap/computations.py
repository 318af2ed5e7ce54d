"""The computation of the suite's cells by libraries: cuBLAS, Triton, PyTorch's own kernels, a piece of a model.

Each is made on the current device, with the same values in every process, and computes the same bits each time:

    body()       launches it, on the current stream
    results      tensors that it writes
    reset()      back to where it began, where it changes its own input
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

WHAT = {
    "cublas-4096": "cuBLASLt, bf16, 4096 x 4096 x 4096",
    "cublas-8192": "cuBLASLt, bf16, 8192 x 8192 x 8192",
    "llm-up": "cuBLASLt, bf16, 2048 tokens, 4096 to 28672: gate and up of an 8B model",
    "llm-qkv": "cuBLASLt, bf16, 8192 tokens, 4096 to 6144: query, key and value of an 8B model",
    "simt": "cuBLAS, fp32 without tensor cores, 4096 x 4096 x 1024",
    "triton": "Triton, bf16, 4096 x 4096 x 4096, tiles of 64 x 128",
    "attention": "flash attention 2, bf16, 32 heads of 128, 6144 tokens, causal",
    "norm-swiglu": "RMSNorm of 16384 x 4096 and SwiGLU of 16384 x 14336, bf16",
    "elementwise": "the sum of two bf16 tensors of 256 Mi values",
    "adam": "Adam (foreach) of 16 tensors of 4 Mi fp32 values",
    "llama": "two layers of an 8B model, 1024 tokens, forward and backward",
}
# Of cuBLASLt a number of multiprocessors can be asked for.
ON_FEWER_SMS = ("cublas-4096", "cublas-8192", "llm-up", "llm-qkv")


class Computation:
    def __init__(self, kind: str) -> None:
        import torch

        self.torch, self.kind = torch, kind
        torch.manual_seed(7)
        # Or the backward of flash attention adds in an order of chance. Without filling what is merely allocated.
        torch.use_deterministic_algorithms(kind == "llama")
        torch.utils.deterministic.fill_uninitialized_memory = False
        torch.backends.cuda.preferred_blas_library("cublas" if kind == "simt" else "cublaslt")
        self.made = {"device": "cuda", "dtype": torch.bfloat16}
        self.results: list[Any] = []
        self.reset: Callable[[], None] = lambda: None
        self.ready: Callable[[], None] = lambda: None  # llama: called whenever gradients of a bucket are there
        makers: dict[str, Callable[[], Callable[[], None]]] = {
            "cublas-4096": lambda: self.product(4096, 4096, 4096),
            "cublas-8192": lambda: self.product(8192, 8192, 8192),
            "llm-up": lambda: self.product(2048, 28672, 4096),
            "llm-qkv": lambda: self.product(8192, 6144, 4096),
            "simt": self.simt,
            "triton": self.triton,
            "attention": self.attention,
            "norm-swiglu": self.norm,
            "elementwise": self.elementwise,
            "adam": self.adam,
            "llama": self.llama,
        }
        self.body = makers[kind]()

    def normal(self, *shape: int, **other: Any) -> Any:
        return self.torch.randn(*shape, **{**self.made, **other})

    def product(self, m: int, n: int, k: int) -> Callable[[], None]:
        a, b = self.normal(m, k), self.normal(k, n)
        c = self.torch.empty(m, n, **self.made)
        self.results = [c]
        return lambda: self.torch.mm(a, b, out=c)

    def simt(self) -> Callable[[], None]:
        self.torch.backends.cuda.matmul.allow_tf32 = False
        kind = {"dtype": self.torch.float32}
        a, b = self.normal(4096, 1024, **kind), self.normal(1024, 4096, **kind)
        c = self.torch.empty(4096, 4096, device="cuda")
        self.results = [c]
        return lambda: self.torch.mm(a, b, out=c)

    def triton(self) -> Callable[[], None]:
        from tools.gpu.overlap.triton_product import product

        a, b = self.normal(4096, 4096), self.normal(4096, 4096)
        c = self.torch.empty(4096, 4096, **self.made)
        self.results = [c]
        return lambda: product(a, b, c)

    def attention(self) -> Callable[[], None]:
        q, k, v = (self.normal(1, 32, 6144, 128) for _ in range(3))
        self.results = [self.torch.empty_like(q)]

        def body() -> None:
            self.results[0] = self.attend(q, k, v)

        return body

    def attend(self, q: Any, k: Any, v: Any) -> Any:
        from torch.nn.attention import SDPBackend, sdpa_kernel

        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return self.torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    def norm(self) -> Callable[[], None]:
        functional = self.torch.nn.functional
        x, weight = self.normal(16384, 4096), self.normal(4096)
        gate, up = self.normal(16384, 14336), self.normal(16384, 14336)
        out = self.torch.empty_like(gate)
        self.results = [self.torch.empty_like(x), out]

        def body() -> None:
            self.results[0] = functional.rms_norm(x, (4096,), weight)
            self.torch.mul(functional.silu(gate), up, out=out)

        return body

    def elementwise(self) -> Callable[[], None]:
        a, b = self.normal(1 << 28), self.normal(1 << 28)
        c = self.torch.empty_like(a)
        self.results = [c]
        return lambda: self.torch.add(a, b, out=c)

    def adam(self) -> Callable[[], None]:
        torch = self.torch
        kind = {"dtype": torch.float32}
        first = [self.normal(1 << 22, **kind) for _ in range(16)]
        gradients = [self.normal(1 << 22, **kind) for _ in range(16)]
        weights = [one.clone().requires_grad_() for one in first]
        for weight, gradient in zip(weights, gradients):
            weight.grad = gradient
        optimizer = torch.optim.Adam(weights, lr=1e-3, foreach=True)
        self.results = [weight.detach() for weight in weights]

        def reset() -> None:
            optimizer.state.clear()
            for mine, given in zip(self.results, first):
                mine.copy_(given)

        self.reset = reset
        return lambda: optimizer.step()

    def llama(self) -> Callable[[], None]:
        """Two layers; self.ready() is called four times, when the gradients of half a layer are there."""
        torch, functional = self.torch, self.torch.nn.functional
        tokens, hidden, heads, kv_heads, inner = 1024, 4096, 32, 8, 14336
        shapes = [(hidden, hidden + 2 * kv_heads * 128), (hidden, hidden), (hidden, 2 * inner), (inner, hidden)]
        layers = [[(self.normal(*shape) * shape[0] ** -0.5).requires_grad_() for shape in shapes] for _ in range(2)]
        norms = [[torch.ones(hidden, **self.made) for _ in range(2)] for _ in range(2)]
        seed, source = self.normal(tokens, hidden), self.normal(tokens, hidden)
        left = [0]

        def gathered(_: Any) -> None:
            left[0] += 1
            if left[0] % 2 == 0:
                self.ready()

        weights = [weight for layer in layers for weight in layer]
        for weight in weights:
            weight.register_post_accumulate_grad_hook(gathered)

        def layer_of(x: Any, layer: list[Any], norm: list[Any]) -> Any:
            first = functional.rms_norm(x, (hidden,), norm[0]) @ layer[0]
            q, k, v = first.split([hidden, kv_heads * 128, kv_heads * 128], dim=-1)
            q, k, v = (one.view(1, tokens, -1, 128).transpose(1, 2) for one in (q, k, v))
            k, v = (one.repeat_interleave(heads // kv_heads, dim=1) for one in (k, v))
            x = x + self.attend(q, k, v).transpose(1, 2).reshape(tokens, hidden) @ layer[1]
            gate, up = (functional.rms_norm(x, (hidden,), norm[1]) @ layer[2]).split(inner, dim=-1)
            return x + (functional.silu(gate) * up) @ layer[3]

        def body() -> None:
            for weight in weights:
                weight.grad = None
            x = source
            for layer, norm in zip(layers, norms):
                x = layer_of(x, layer, norm)
            x.backward(seed)
            self.results = [weight.grad for weight in weights]

        return body
