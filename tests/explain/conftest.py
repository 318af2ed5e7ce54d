"""An explainer per module, and the requests that many tests begin with."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from gpu_def import KEYS

from pyshim.explain.answer import Explainer

# 128x128 tiles of a GEMM, two of which an H100 holds, beside NCCL 2.21.
GEMM = {
    "gpu": "h100",
    "threads": 128,
    "registers": 224,
    "dynamic_smem": 49152,
    "comm_threads": 288,
    "comm_registers": 96,
    "comm_static_smem": 20832,
    "comm_dynamic_smem": 82240,
}


class Asked(Explainer):
    """Tests may ask with numbers, which options of the command line write in words."""

    def answer(self, request: Mapping[str, Any]) -> dict[str, object]:
        return super().answer({name: str(value) for name, value in request.items()})


@pytest.fixture(scope="module")
def explainer(library: Any) -> Explainer:
    return Asked({})


@pytest.fixture
def request_of() -> Callable[..., dict[str, Any]]:
    """request_of(threads=64) -> the GEMM's request with other numbers; None takes a key away."""

    def make(**changes: Any) -> dict[str, Any]:
        return {name: str(value) for name, value in {**GEMM, **changes}.items() if value is not None}

    return make


@pytest.fixture
def answer(explainer: Explainer, request_of: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """answer(threads=64) -> what is said to that request."""
    return lambda **changes: explainer.answer(request_of(**changes))


@pytest.fixture(scope="session")
def gpu_keys() -> list[str]:
    return KEYS


@pytest.fixture(scope="session")
def random_request(gpu_keys: list[str]) -> Callable[[random.Random], dict[str, Any]]:
    """random_request(source) -> a kernel beside NCCL or RCCL or something smaller; some say more than they need to."""

    def make(source: random.Random) -> dict[str, Any]:
        gpu = source.choice(gpu_keys)
        nccl = (source.choice((160, 288, 544, 640)), 96, source.choice((6176, 7104, 20832, 21568, 36800)), 82240)
        communication = (256, source.choice((280, 316, 356)), 19808, 0) if gpu.startswith("mi") else nccl
        if source.random() < 0.4:
            communication = (32 * source.randint(1, 20), source.randint(16, 128), source.randint(0, 30_000), 0)
        threads = 32 * source.randint(1, 32) if source.random() < 0.9 else source.randint(1, 2000)
        asked: dict[str, Any] = {
            "gpu": gpu,
            "threads": threads,
            "registers": source.randint(8, min(256, 70_000 // threads)),  # nearly all can be launched
            "static_smem": source.choice((0, 0, 1024, 16384, source.randint(0, 48000))),
            "dynamic_smem": source.choice((0, 16384, 49152, source.randint(0, 160_000))),
        }
        names = ("comm_threads", "comm_registers", "comm_static_smem", "comm_dynamic_smem")
        asked.update(zip(names, communication))
        if source.random() < 0.3:
            asked["shape"] = source.choice(("blocks_per_sm=1", "blocks_per_sm=50%", "leave"))
        if source.random() < 0.1:
            asked["blocks"] = source.randint(1, 100_000)
        return asked

    return make
