"""Two communicators at once: each rank gives collectives to both, on two streams that nothing orders, beside products.

    overlap-run -- python -m torch.distributed.run --standalone --nproc-per-node 2 tools/gpu/communicators.py SECONDS

Each rank raises its streams by itself, at a moment of its own, so that the collectives of the two communicators may
start in different orders on different GPUs (docs: limits). Ranks compute for different times, so that orders differ. A
rank that makes no progress for HUNG seconds says so and ends with 3: that is what this program looks for. Maxima
are checked. At the end rank 0 prints {"seconds", "steps", "ranks", "hung": false}.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

BEGUN = progress = time.monotonic()

import torch  # noqa: E402  (its import counts)
import torch.distributed as dist  # noqa: E402

COMMUNICATORS, ELEMENTS, EDGE, CHECKED, HUNG, WRONG = 2, 4 << 20, 4096, 50, 30.0, 3
steps = 0


def watch(rank: int) -> None:
    while time.monotonic() - progress < HUNG:
        time.sleep(1)
    print(f"communicators: rank {rank}: no progress for {HUNG:.0f} s in step {steps}", file=sys.stderr, flush=True)
    os._exit(WRONG)


def main() -> int:
    global progress, steps
    seconds = float(sys.argv[1])  # from BEGUN
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    groups = [dist.new_group(list(range(ranks))) for _ in range(COMMUNICATORS)]
    streams = [torch.cuda.Stream() for _ in groups]
    values = [torch.full((ELEMENTS,), rank + 1.0, device=device) for _ in groups]
    product = torch.randn(EDGE, EDGE, device=device)
    threading.Thread(target=watch, args=(rank,), daemon=True).start()
    begun, on = time.monotonic(), torch.ones(1, device=device)
    while True:
        for _ in range(1 + (steps + rank) % 3):  # of each rank another time
            product @ product
        for stream, value, group in zip(streams, values, groups):
            with torch.cuda.stream(stream):  # nothing is computed there: the default raises the communicators' streams
                dist.all_reduce(value, op=dist.ReduceOp.MAX, group=group)
        for stream in streams:
            stream.synchronize()
        steps += 1
        progress = time.monotonic()
        if steps % CHECKED == 0:
            torch.cuda.synchronize()
            if any(value[0].item() != ranks or value[-1].item() != ranks for value in values):
                print(f"communicators: rank {rank}: a maximum is wrong in step {steps}", file=sys.stderr, flush=True)
                return WRONG
            on.fill_(float(progress - BEGUN < seconds))
            dist.all_reduce(on, op=dist.ReduceOp.MIN)  # all ranks end in the same step
            if not on.item():
                break
    if rank == 0:
        print(json.dumps({"seconds": round(time.monotonic() - begun), "steps": steps, "ranks": ranks, "hung": False}))
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
