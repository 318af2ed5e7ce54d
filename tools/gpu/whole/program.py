"""What a program of PyTorch is for the measurement: its step, and its computation and communication alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Program:
    """whole and computation return tensors; those of whole are the same in every step, and make the digest."""

    whole: Callable[[], list[Any]]
    computation: Callable[[], Any]
    communication: Callable[[], Any]


def wait(work: Any) -> None:
    """For a collective, which is None where communication is left out."""
    if work:
        work.wait()
