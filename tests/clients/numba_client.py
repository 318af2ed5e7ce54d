"""numba-cuda as it is: kernels compiled by its own NVVM and linker, launched on streams; copies, events, an atomic.

Nothing is computed on a simulated GPU, so what is printed is what the program sees of its kernels and its memory.
"""

from __future__ import annotations

import numpy as np
from numba import cuda, float32


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = a * x[i] + y[i]


@cuda.jit
def block_sum(x, out):
    shared = cuda.shared.array(256, float32)
    i = cuda.grid(1)
    shared[cuda.threadIdx.x] = x[i] if i < x.size else 0
    cuda.syncthreads()
    step = 128
    while step:
        if cuda.threadIdx.x < step:
            shared[cuda.threadIdx.x] += shared[cuda.threadIdx.x + step]
        cuda.syncthreads()
        step //= 2
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(out, 0, shared[0])


def main() -> None:
    print(cuda.get_current_device().name)
    x = cuda.to_device(np.arange(1 << 20, dtype=np.float32))
    y, out = cuda.to_device(np.ones(1 << 20, np.float32)), cuda.to_device(np.zeros(1, np.float32))
    stream, start, end = cuda.stream(), cuda.event(), cuda.event()
    start.record(stream)
    for _ in range(3):
        saxpy[4096, 256, stream](np.float32(2), x, y)
        block_sum[4096, 256, stream](x, out)
    end.record(stream)
    block_sum[1, 256](x, out)
    end.synchronize()
    for kernel in (saxpy, block_sum):
        registers, shared = kernel.get_regs_per_thread(), kernel.get_shared_mem_per_block()
        print(kernel.py_func.__name__, list(registers.values()), list(shared.values()))
    print("time passed:", start.elapsed_time(end) > 0, "copied:", float(x.copy_to_host()[-1]))


main()
