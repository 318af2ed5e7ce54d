"""A rank that launches one kernel on a simulated GPU, and waits for nobody."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "simgpu"))

from simgpu_client import Driver, P  # noqa: E402

driver = Driver("libcuda.so.1", context=False)
driver.cuCtxSetCurrent(driver.new("cuDevicePrimaryCtxRetain", 0))
module = driver.module((ROOT / "pyshim" / "_lib" / "demo" / "stencil.ptx").read_bytes())
sweep = driver.function(module, "stencil_interior")
assert driver.launch(sweep, 132, 512, stream=driver.stream(), values=[P() for _ in range(5)]) == 0
driver.cuCtxSynchronize()
