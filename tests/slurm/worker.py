"""A few training steps, as far as Slurm, torchrun and the GPU's driver can tell: torchrun starts it, PyTorch's gloo
connects the ranks, and each launches sweeps and exchanges on a simulated GPU. No number in it means anything.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "simgpu"))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from simgpu_client import Driver, P  # noqa: E402

STEPS, LAYERS, WAVES = 3, 4, 8
dist.init_process_group("gloo")
here = torch.ones(1) * dist.get_rank()
dist.all_reduce(here)
assert here.item() == sum(range(dist.get_world_size()))

driver = Driver("libcuda.so.1", context=False)
driver.cuCtxSetCurrent(driver.new("cuDevicePrimaryCtxRetain", int(os.environ["LOCAL_RANK"])))
module = driver.module((ROOT / "pyshim" / "_lib" / "demo" / "stencil.ptx").read_bytes())
sweep = driver.function(module, "stencil_interior")
exchange = driver.function(module, "ncclDevKernel_SendRecv")
compute, communication, ready = driver.stream(), driver.stream(), driver.event()
values = [P() for _ in range(5)]
for _ in range(STEPS):
    for _ in range(LAYERS):
        assert driver.launch(sweep, 132 * 3 * WAVES, 512, stream=compute, values=values) == 0
        driver.cuEventRecord(ready, compute)
        driver.cuStreamWaitEvent(communication, ready, 0)
        assert driver.launch(exchange, 16, 640, stream=communication, values=values) == 0
    driver.cuCtxSynchronize()
    dist.barrier()
dist.destroy_process_group()
