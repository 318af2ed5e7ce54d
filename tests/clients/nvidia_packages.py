"""Where the package index has put NVIDIA's libraries and headers; a test that needs one that is missing is skipped."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

RUNTIMES = {12: "nvidia-cuda-runtime-cu12", 13: "nvidia-cuda-runtime"}


def file_of(package: str, name: str) -> Path:
    try:
        files = importlib.metadata.files(package) or ()
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"the package {package} is not installed")
    for file in files:
        if file.name == name:
            return Path(str(file.locate())).resolve()
    pytest.skip(f"{name} is not in the package {package}")


def runtime_library(version: int) -> Path:
    return file_of(RUNTIMES[version], f"libcudart.so.{version}")


def runtime_folder(version: int) -> Path:
    return runtime_library(version).parent
