"""A rank of a program of PyTorch.

    RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29700 python -m tools.gpu.whole.rank ddp

A request is [part, batches, steps], its answer {"ms": milliseconds of a step, by batch}. The last answer is a digest of
one step's results.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from tools.gpu.turns import say, serve
from tools.gpu.whole.experts import experts
from tools.gpu.whole.layers import DEVICE, GPU
from tools.gpu.whole.loops import loop
from tools.gpu.whole.program import Program
from tools.gpu.whole.programs import LOOPS
from tools.gpu.whole.recommender import recommender
from tools.gpu.whole.training import LAYERS, ddp, fsdp, pipeline, tensor

PROGRAMS: dict[str, Callable[[], Program]] = {
    "ddp": ddp,
    "fsdp": fsdp,
    "fsdp-8": partial(fsdp, 2 * LAYERS),
    "tensor": tensor,
    "pipeline": pipeline,
    "recommender": recommender,
    "experts": experts,
    **{name: partial(loop, name) for name in LOOPS},
}
WARM = 2  # steps before each turn


def wait() -> None:
    if GPU:
        torch.cuda.synchronize()


def timed(body: Callable[[], Any], batches: int, steps: int) -> list[float]:
    took = []
    for _ in range(WARM):
        body()
    for _ in range(batches):
        wait()
        dist.barrier()
        wait()
        begun = time.perf_counter()
        for _ in range(steps):
            body()
        wait()
        took.append((time.perf_counter() - begun) * 1e3 / steps)
    return took


def digest(results: list[Any]) -> str:
    made = hashlib.sha256()
    for result in results:
        made.update(result.detach().contiguous().view(-1).view(torch.uint8).cpu().numpy().tobytes())
    return made.hexdigest()[:16]


def main() -> None:
    if GPU:
        torch.cuda.set_device(DEVICE)
    dist.init_process_group("nccl" if GPU else "gloo", **({"device_id": DEVICE} if GPU else {}))
    program = PROGRAMS[sys.argv[1]]()

    def turn(request: Any) -> dict[str, Any]:
        part, batches, steps = request
        return {"ms": timed(getattr(program, part), batches, steps)}

    serve({"torch": torch.__version__}, turn)
    results = program.whole()
    wait()
    say({"digest": digest(results)})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
