"""A few steps of a program of PyTorch, in a process of its own a rank: what `overlap tune` runs over and over.

    python -m tools.gpu.whole.steps fsdp [--ranks 2] [--batches 5] [--steps 4]

Rank 0 prints a line for each batch: `fsdp 47.6 ms a step`. Most of a run is its start, so this process imports no
PyTorch, starts all ranks at once, and a rank ends without taking anything down.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys

HOST = "127.0.0.1"


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind((HOST, 0))
        return int(bound.getsockname()[1])


def rank(options: argparse.Namespace) -> None:
    import torch
    import torch.distributed as dist

    from tools.gpu.whole.layers import DEVICE, GPU
    from tools.gpu.whole.rank import PROGRAMS, timed

    if GPU:
        torch.cuda.set_device(DEVICE)
    dist.init_process_group("nccl" if GPU else "gloo", **({"device_id": DEVICE} if GPU else {}))
    program = PROGRAMS[options.program]()
    for took in timed(program.whole, options.batches, options.steps):
        if dist.get_rank() == 0:
            print(f"{options.program} {took:.3f} ms a step", flush=True)
    dist.barrier()
    os._exit(0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=("ddp", "fsdp", "tensor", "pipeline"))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4)
    options = parser.parse_args()
    if "RANK" in os.environ:
        rank(options)
    shared = {"WORLD_SIZE": str(options.ranks), "MASTER_ADDR": HOST, "MASTER_PORT": str(free_port())}
    shared |= {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tools.gpu.whole.steps", *sys.argv[1:]]
    ranks = [
        subprocess.Popen(command, env={**os.environ, **shared, "RANK": str(at), "LOCAL_RANK": str(at)})
        for at in range(options.ranks)
    ]
    status = 0
    for process in ranks:
        status = status or process.wait()
        if status:
            for other in ranks:  # which would wait for it
                other.kill()
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main())
