"""mnist.py SCRIPT: run an example of JAX with random digits in place of MNIST, which it would download."""

import pathlib
import runpy
import sys

import numpy as np

sys.path.insert(0, ".")
import datasets  # beside the script


def digits():
    """Images of 784 points, and a label that depends on them, for training and test."""
    draw = np.random.RandomState(0)
    for count in (60000, 10000):
        images = draw.rand(count, 784).astype(np.float32)
        yield images
        yield np.eye(10, dtype=np.float32)[(images[:, :10]).argmax(1)]


datasets.mnist = lambda: tuple(digits())
runpy.run_path(str(pathlib.Path(sys.argv[1])), run_name="__main__")
