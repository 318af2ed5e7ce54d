"""Triton's AMD backend as it is: kernels compiled for the GPU that the runtime names, launched by its own launcher.

Of PyTorch its driver wants the current device and stream, and nothing else: they are said here instead. Nothing is
computed on a simulated GPU, so what is printed is what the program sees of its kernels.
"""

from __future__ import annotations

import ctypes
import os
import sys

import triton
from triton.backends.amd.driver import HIPDriver, HIPLauncher, HIPUtils
from triton_client import add_kernel, matmul_kernel

NON_BLOCKING = 1


class Driver(HIPDriver):
    def __init__(self, stream: int) -> None:
        self.utils = HIPUtils()
        self.launcher_cls = HIPLauncher
        self.stream = stream

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return self.stream


class Runtime:
    """The same library that Triton opens, for what a framework would do."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(os.environ["TRITON_LIBHIP_PATH"])

    def __getattr__(self, name: str):
        def call(*arguments: object) -> None:
            code = self.library[name](*arguments)
            if code:
                sys.exit(f"{name} answered {code}")

        return call

    def new(self, name: str, *arguments: object) -> int:
        made = ctypes.c_void_p()
        getattr(self, name)(ctypes.byref(made), *arguments)
        return made.value or 0


class Buffer:
    """What Triton needs of a tensor: a type and an address."""

    def __init__(self, hip: Runtime, dtype: str, size: int) -> None:
        self.dtype = dtype
        self.address = hip.new("hipMalloc", ctypes.c_size_t(size))

    def data_ptr(self) -> int:
        return self.address


def show(compiled: object) -> None:
    metadata = compiled.metadata  # type: ignore[attr-defined]
    print(metadata.name, metadata.target.arch, metadata.shared, compiled.n_regs, compiled.n_spills)  # type: ignore[attr-defined]


def main() -> None:
    hip = Runtime()
    stream = hip.new("hipStreamCreateWithFlags", NON_BLOCKING)
    triton.runtime.driver.set_active(Driver(stream))
    x, y, out = (Buffer(hip, "float32", 4 << 20) for _ in range(3))
    a, b, c = (Buffer(hip, kind, 2 << 20) for kind in ("float16", "float16", "float32"))
    for _ in range(3):
        compiled = add_kernel[(4096,)](x, y, out, 1 << 20, BLOCK=256)
    show(compiled)
    for _ in range(3):
        compiled = matmul_kernel[(64, 48)](a, b, c, 48 * 64, 1024, M=64, N=64, K=32, num_stages=2, num_warps=4)
    show(compiled)
    hip.hipStreamSynchronize(ctypes.c_void_p(stream))


main()
