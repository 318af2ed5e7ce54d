"""Build stencil.ptx of stencil.cu. It is committed: run this after a change.

    python tools/demo/build_ptx.py [--nvcc NVCC]

Drivers compile PTX for whichever GPU there is. It is for compute capability 8.0 and newer, and marked as version 7.8,
which drivers from CUDA 11.8 on know.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
VERSION = "7.8"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvcc", default="nvcc")
    options = parser.parse_args()
    target = HERE / "stencil.ptx"
    command = [options.nvcc, "-ptx", "-arch=compute_80", "-std=c++17", "-O3", "-o", str(target), "stencil.cu"]
    subprocess.run(command, cwd=HERE, check=True)
    text = re.sub(r"(?m)^\.version .*$", f".version {VERSION}", target.read_text(encoding="utf-8"))
    target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
