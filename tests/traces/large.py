"""Writes a large trace as Kineto does: python tests/traces/large.py FILE.json.gz [STEPS [KERNELS]]

Of a training step: kernels on the default stream, all-reduces on another one that waits for them, the calls that
launched all of these, operators, Python frames and arrows between them. Lines and keys as libkineto's output_json.cpp
writes them.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path

NAMES = [
    f"void at::native::vectorized_elementwise_kernel<{width}, at::native::{what}Functor<float>, std::array<char*, 3ul>>"
    f"(int, at::native::{what}Functor<float>, std::array<char*, 3ul>)"
    for width in (2, 4, 8)
    for what in ("CUDA_add", "CUDA_mul", "sigmoid", "gelu")
]
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
_HEAD = """{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0, "numSms": 132
    }
  ],
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1727731884000000000,
  "traceEvents": [
"""
_FRAME = """  {
    "ph": "X", "cat": "python_function", "name": "torch/nn/modules/module.py(1747): _call_impl", "pid": 90, "tid": 90,
    "ts": %.3f, "dur": 9.500,
    "args": {
      "Python parent id": 12, "Python id": 13, "Ev Idx": %d
    }
  }"""
_OPERATOR = """  {
    "ph": "X", "cat": "cpu_op", "name": "aten::mul", "pid": 90, "tid": 90,
    "ts": %.3f, "dur": 6.100,
    "args": {
      "External id": %d,"Record function id": 0, "Input Dims": [[4096, 1024], [4096, 1024]], "Ev Idx": %d
    }
  }"""
_CALL = """  {
    "ph": "X", "cat": "cuda_runtime", "name": "%s", "pid": 90, "tid": 90,
    "ts": %.3f, "dur": 4.250,
    "args": {
      "External id": %d, "cbid": 211, "correlation": %d
    }
  },
  {
    "ph": "s", "id": %d, "pid": 90, "tid": 90, "ts": %.3f,
    "cat": "ac2g", "name": "ac2g"
  }"""
_KERNEL = """  {
    "ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": %d,
    "ts": %.3f, "dur": %.3f,
    "args": {
      "External id": %d, "queued": 0, "device": 0, "context": 1, "stream": %d, "correlation": %d,%s
    }
  },
  {
    "ph": "f", "id": %d, "pid": 0, "tid": %d, "ts": %.3f,
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  }"""
_LAUNCHED = (
    ' "registers per thread": 32, "shared memory": 0, "blocks per SM": 15.515152, "warps per SM": 62.060608, '
    '"grid": [%d, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %%": 100'
)
_COLLECTIVE = (
    ', "Collective name": "allreduce", "In msg nelems": 1048576, "Out msg nelems": 1048576, "Group size": 8, '
    '"dtype": "BFloat16", "Process Group Name": "0", "Process Group Description": "default_pg", '
    '"Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]"'
)
_STEP = """  {
    "ph": "X", "cat": "%suser_annotation", "name": "ProfilerStep#%d", "pid": %d, "tid": %d,
    "ts": %.3f, "dur": %.3f,
    "args": {
      "External id": %d
    }
  }"""
_TAIL = """
  ],
  "traceName": "large.json"
}
"""
LENGTH_US = 6.0  # of a kernel, and the pause to the next


def events(steps: int, kernels: int) -> Iterator[str]:
    """kernels: of a step; every twentieth is an all-reduce, and there are two frames and an operator for each."""
    now, number = 1000.0, 100
    for step in range(steps):
        begin = now
        for index in range(kernels):
            number += 1
            reduces = index % 20 == 19
            stream = 20 if reduces else 7
            yield _FRAME % (now, number)
            yield _OPERATOR % (now + 0.5, number, number)
            yield _CALL % ("cudaLaunchKernelExC" if reduces else "cudaLaunchKernel", now + 1, *(number,) * 3, now + 1)
            name = NCCL if reduces else NAMES[(index * 7) % len(NAMES)]
            length = 3 * LENGTH_US if reduces else LENGTH_US - 0.5
            launched = _LAUNCHED % (24 if reduces else 4096 + index % 50) + (_COLLECTIVE if reduces else "")
            values = (stream, now + 20, length, number, stream, number, launched)
            yield _KERNEL % (name, *values, number, stream, now + 20)
            now += LENGTH_US
        yield _STEP % ("", step, 90, 90, begin, now - begin, number)
        yield _STEP % ("gpu_", step, 0, 7, begin + 20, now - begin - 1, number)


def write(path: Path, steps: int, kernels: int) -> Path:
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=4) as file:
        file.write(_HEAD)
        for number, event in enumerate(events(steps, kernels)):
            file.write(f",\n{event}" if number else event)
        file.write(_TAIL)
    return path


if __name__ == "__main__":
    write(Path(sys.argv[1]), *(int(size) for size in sys.argv[2:] or ("60", "7000")))
