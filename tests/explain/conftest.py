"""An explainer per module, and the requests that many tests begin with."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from typing import Any

import pytest

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


@pytest.fixture(scope="module")
def explainer(library: Any) -> Explainer:
    return Explainer({})


@pytest.fixture
def request_of() -> Callable[..., dict[str, Any]]:
    """request_of(threads=64) -> the GEMM's request with other numbers; None takes a key away."""

    def make(**changes: Any) -> dict[str, Any]:
        return {name: value for name, value in {**GEMM, **changes}.items() if value is not None}

    return make


@pytest.fixture
def answer(explainer: Explainer, request_of: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """answer(threads=64) -> what is said to that request."""
    return lambda **changes: explainer.answer(request_of(**changes))


@pytest.fixture(scope="session")
def gpu_keys() -> list[str]:
    return ["a40", "l40s", "a100", "h100", "h200", "b200", "mi250x", "mi300x"]


@pytest.fixture(scope="session")
def bench() -> Any:
    """tools/bench/explain.py, which makes random requests."""
    return importlib.import_module("tools.bench.explain")


@pytest.fixture(scope="session")
def random_request(bench: Any) -> Callable[[random.Random], dict[str, Any]]:
    return bench.request
