"""PROGRAM is a Python: which packages for GPUs it finds, asked of that Python itself; none of them is imported."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable

from pyshim.doctor import child
from pyshim.doctor.machine import Machine
from pyshim.launch import driver

# What uses GPUs, and nvidia.nccl.
_NAMES = ("torch", "jax", "cupy", "tensorflow", "numba", "triton", "nvidia.nccl")
_LOOK = """
import sys
sys.path = [folder for folder in sys.path if folder]  # not the current one
import importlib.util, json, os
def place(name):
    try:
        found = importlib.util.find_spec(name)
    except Exception:
        return None
    return next(iter(found.submodule_search_locations or ()), None) if found else None
os.write(int(sys.argv[1]), json.dumps({name: place(name) for name in sys.argv[2:]}).encode())
"""
_PYTHON = re.compile(r"(python|pypy)[\d.]*t?\Z")
# Of CPython's command line (Using Python, 1.1): letters after which no script follows, and letters with a value.
_NO_SCRIPT, _WITH_VALUE = "cmhV?", "WX"


def is_python(path: str) -> bool:
    return bool(_PYTHON.match(os.path.basename(path)))


def places(machine: Machine, python: str) -> dict[str, str] | None:
    """Return the folder of each package that this Python, or a script that starts one, finds; None: it does not say."""
    environment = {**machine.environment, "OVERLAP_RUN": "off", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        outcome = child.run([python, "-c", _LOOK, "{answer}", *_NAMES], environment, machine.patience)
        found = json.loads(outcome.answer)
    except (OSError, ValueError):
        return None
    return {name: folder for name, folder in found.items() if isinstance(folder, str)}


def pytorch(folder: str) -> tuple[str, str]:
    """Return PyTorch's version, and what it was built for: CUDA 13.0, HIP 7.2; empty for the CPU."""
    said = driver.text(os.path.join(folder, "version.py"))
    version = re.search(r"^__version__ = '([^']+)'", said, re.M)
    for word, pattern in (("CUDA", r"^cuda\b[^=]*=\s*'([^']+)'"), ("HIP", r"^hip\b[^=]*=\s*'([^']+)'")):
        found = re.search(pattern, said, re.M)
        if found:
            return version[1] if version else "", f"{word} {found[1]}"
    return version[1] if version else "", ""


def script(arguments: Iterable[str]) -> str:
    """Return the file among the arguments of a Python that it is to run; empty with -m, -c or no argument."""
    words = iter(arguments)
    for word in words:
        if word == "--check-hash-based-pycs":
            next(words, "")
        elif word == "--":
            return next(words, "")
        elif word == "-" or word.startswith("--"):
            return ""
        elif not word.startswith("-"):
            return word
        else:
            for index, letter in enumerate(word[1:], 2):
                if letter in _NO_SCRIPT:
                    return ""
                if letter in _WITH_VALUE:
                    if index == len(word):
                        next(words, "")
                    break
    return ""
