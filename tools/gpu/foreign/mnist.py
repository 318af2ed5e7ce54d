"""mnist.py SCRIPT: run an example of JAX with random digits in place of MNIST, which it would download."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

sys.path.insert(0, ".")
import datasets  # beside the script


def digits() -> Iterator[npt.NDArray[np.float32]]:
    """Images of 784 points, and a label that depends on them, for training and test."""
    draw = np.random.RandomState(0)
    for count in (60000, 10000):
        images = draw.rand(count, 784).astype(np.float32)
        yield images
        yield np.eye(10, dtype=np.float32)[(images[:, :10]).argmax(1)]


datasets.mnist = lambda: tuple(digits())
runpy.run_path(sys.argv[1], run_name="__main__")
