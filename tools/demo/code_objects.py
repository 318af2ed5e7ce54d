"""Write the kernels of stencil.c for simulated GPUs of AMD: footprints and no code.

python -m tools.demo.code_objects FILE
"""

from __future__ import annotations

import sys
from pathlib import Path

from tools.simgpu.hip.code_object import Kernel, bundle, code_object

KERNELS = (
    Kernel("stencil_interior", vgprs=32, arguments=[8, 8, 4, 4, 4]),
    Kernel("stencil_boundary", vgprs=32, arguments=[8, 8, 4, 4]),
    # As RCCL's kernel for gfx90a: tools/docs/planned.py.
    Kernel("ncclDevKernel_SendRecv", vgprs=96, static_shared=19808, max_threads=256, arguments=[8, 4]),
)

if __name__ == "__main__":
    images = {architecture: code_object(KERNELS, architecture) for architecture in ("gfx90a", "gfx942")}
    Path(sys.argv[1]).write_bytes(bundle(images))
