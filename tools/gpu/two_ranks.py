"""Two real ranks of NCCL on one GPU, threads of one process, beside matrix products. One JSON line a case.

    LD_PRELOAD=libnccl.so.2 [HP=1] [NCCL_...] [overlap-run --policy P] python -m tools.gpu.two_ranks [ROUNDS [CASE]]

Needs NCCL >= 2.30.3, which takes several ranks of one GPU as an experiment, in the place of PyTorch's own: hence
LD_PRELOAD. Two processes would take turns on the GPU. HP=1: NCCL's streams are of the greatest priority. Nothing
promises that both ranks' kernels get their places, so the process ends itself after GUARD seconds (60), by SIGALRM.

A sample: ms from a common start until both parts have ended. `communication`, `computation`: each alone; `together`,
and of it `together_communication` and `together_computation`, until that part has ended.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
from collections.abc import Callable

signal.alarm(int(os.environ.get("GUARD", "60")))
for name, value in {
    "NCCL_MULTI_RANK_GPU_ENABLE": "1",
    "NCCL_NVLS_ENABLE": "0",
    "NCCL_MAX_CTAS": "16",
    "NCCL_MNNVL_ENABLE": "0",
    "NCCL_IB_DISABLE": "1",
    "NCCL_SOCKET_IFNAME": "lo",
    "CUDA_DEVICE_MAX_CONNECTIONS": "32",
}.items():
    os.environ.setdefault(name, value)

import torch  # noqa: E402  (settings first)
import torch.distributed as dist  # noqa: E402

RANKS, ELEMENTS, COLLECTIVES, WARM = 2, 64 << 20, 2, 2
PARTS = ("communication", "computation", "together")


def cases() -> dict[str, Callable[[], None]]:
    """Products of tensor cores, in grids of one wave, and products in fp32, in grids of many."""
    half = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    single = torch.randn(4096, 4096, device="cuda")
    half_out, single_out = torch.empty_like(half), torch.empty_like(single)

    def tensor_cores() -> None:
        for _ in range(4):
            torch.mm(half, half, out=half_out)

    def fp32() -> None:
        for _ in range(2):
            torch.mm(single, single, out=single_out)

    return {"bf16 products": tensor_cores, "fp32 products": fp32}


def nccl_version() -> str:
    """Of the library that runs, 2.30.7; torch.cuda.nccl.version() says what PyTorch was built with."""
    number = ctypes.c_int()
    ctypes.CDLL(None).ncclGetVersion(ctypes.byref(number))
    return f"{number.value // 10000}.{number.value // 100 % 100}.{number.value % 100}"


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    torch.cuda.set_device(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    computations = {name: case for name, case in cases().items() if sys.argv[2:] in ([], [name])}
    jobs = [(case, part) for case in computations for _ in range(rounds + WARM) for part in PARTS]
    store, barrier = dist.HashStore(), threading.Barrier(RANKS + 1)
    start = torch.cuda.Event(enable_timing=True)
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(RANKS + 1)]

    def rank(number: int) -> None:
        torch.cuda.set_device(0)
        options = dist.ProcessGroupNCCL.Options(is_high_priority_stream=bool(int(os.environ.get("HP", "0"))))
        group = dist.ProcessGroupNCCL(dist.PrefixStore("ranks", store), number, RANKS, options)
        values = torch.full((ELEMENTS,), float(number + 1), device="cuda")
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            group.allreduce([values]).wait()
            stream.synchronize()
            assert values[0].item() == values[-1].item() == 3.0
            values.zero_()
            stream.synchronize()
            for _, part in jobs:
                barrier.wait()
                if part != "computation":
                    stream.wait_event(start)
                    for _ in range(COLLECTIVES):
                        group.allreduce([values]).wait()
                    ends[number].record(stream)
                barrier.wait()
        barrier.wait()

    threads = [threading.Thread(target=rank, args=(number,), daemon=True) for number in range(RANKS)]
    for thread in threads:
        thread.start()
    samples: dict[str, dict[str, list[float]]] = {case: {} for case in computations}

    def keep(case: str, name: str, *until: torch.cuda.Event) -> None:
        samples[case].setdefault(name, []).append(max(start.elapsed_time(end) for end in until))

    for case, part in jobs:
        torch.cuda.synchronize()
        start.record()
        barrier.wait()
        if part != "communication":
            computations[case]()
            ends[RANKS].record()
        barrier.wait()
        torch.cuda.synchronize()
        if part == "communication":
            keep(case, part, *ends[:RANKS])
        elif part == "computation":
            keep(case, part, ends[RANKS])
        else:
            keep(case, part, *ends)
            keep(case, "together_communication", *ends[:RANKS])
            keep(case, "together_computation", ends[RANKS])
    barrier.wait()
    for case, parts in samples.items():
        kept = {part: [round(ms, 4) for ms in values[WARM:]] for part, values in parts.items()}
        print(json.dumps({"case": case, "nccl": nccl_version(), **kept}), flush=True)
    os._exit(0)  # the groups of ranks that are threads are not taken apart in order


if __name__ == "__main__":
    sys.exit(main())
