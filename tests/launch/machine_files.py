"""Files of a machine with NVIDIA's driver, below a folder."""

from __future__ import annotations

from pathlib import Path

from pyshim.launch import driver

VERSION = "580.159.04"


def write_driver(root: Path) -> None:
    version = root / driver.PROC[1:]
    version.parent.mkdir(parents=True)
    version.write_text(f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {VERSION}  Release Build\nGCC 15\n")


def write_gpu(root: Path, address: str, model: str) -> None:
    folder = root / driver.GPUS[1:] / address
    folder.mkdir(parents=True)
    (folder / "information").write_text(f"Model: \t\t {model}\nIRQ:   \t\t 41\n")
