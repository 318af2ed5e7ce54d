"""Which of the packages that use GPUs a Python has: read from its folders, that Python is not started."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pyshim.launch.driver import names, text

# Options of Python: those after which no file is run, and those with a value, in the same word or in the next.
_NO_SCRIPT, _WITH_VALUE = "cmVh?", "WX"
_PYTHON = re.compile(r"python(?:3(?:\.(\d+))?)?[a-z]*\Z")
# Names of distributions, with every - and . as _.
_KNOWN = re.compile(
    r"torch|jax|jaxlib|jax_(?:cuda|rocm)\w*_(?:plugin|pjrt)|cupy(?:_\w+)?|triton|tensorflow|vllm|deepspeed|"
    r"nvidia_nccl_cu\d+|numba_cuda|transformer_engine\w*"
)
_DISTRIBUTION = re.compile(r"([A-Za-z0-9][\w.]*?)-([^-]+)\.dist-info")
# By which file a package reaches GPUs; the first that is there.
ENTRANCES = (
    ("torch", "torch/lib/libtorch_cuda.so"),
    ("torch", "torch/lib/libtorch_hip.so"),
    ("jax", "jax_plugins/xla_cuda12/xla_cuda_plugin.so"),
    ("jax", "jax_plugins/xla_cuda13/xla_cuda_plugin.so"),
    ("jax", "jax_plugins/xla_rocm7/xla_rocm_plugin.so"),
    ("jax", "jax_plugins/xla_rocm60/xla_rocm_plugin.so"),
)
COLLECTIVES = (
    "nvidia/nccl/lib/libnccl.so.2",
    "torch/lib/libnccl.so.2",
    "torch/lib/librccl.so",
    "torch/lib/librccl.so.1",
    "jaxlib/rocm/librccl.so.1",
)


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


class Package(NamedTuple):
    name: str
    version: str
    folder: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def is_python(path: str) -> bool:
    return bool(_PYTHON.match(os.path.basename(path)))


def folders(interpreter: str, environment: Mapping[str, str]) -> list[str]:
    """Return the existing folders where it looks for packages, in its order."""
    return list(dict.fromkeys(path for path in _folders(interpreter, environment) if os.path.isdir(path)))


def _folders(interpreter: str, environment: Mapping[str, str]) -> Iterator[str]:
    yield from filter(None, environment.get("PYTHONPATH", "").split(":"))
    prefix = os.path.dirname(os.path.dirname(os.path.abspath(interpreter)))
    settings = _settings(os.path.join(prefix, "pyvenv.cfg"))
    base = os.path.dirname(os.path.dirname(os.path.realpath(interpreter)))
    version = _version(interpreter, prefix, settings)
    yield from _below(prefix, version)
    if settings and settings.get("include-system-site-packages", "").lower() != "true":
        return
    if environment.get("HOME") and version and environment.get("PYTHONNOUSERSITE") is None:
        yield f"{environment['HOME']}/.local/lib/python3.{version}/site-packages"
    for place in (base, "/usr/local") if base == "/usr" else (base,):
        yield from _below(place, version)


def _below(prefix: str, version: str) -> Iterator[str]:
    for lib in ("lib", "lib64"):
        for name in ("site-packages", "dist-packages"):
            yield f"{prefix}/{lib}/python3.{version}/{name}"
            yield f"{prefix}/{lib}/python3/{name}"  # Debian's


def _version(interpreter: str, prefix: str, settings: Mapping[str, str]) -> str:
    """Return the minor number, as 11."""
    said = settings.get("version_info") or settings.get("version") or ""
    for name in (said and f"python{said}", os.path.basename(os.path.realpath(interpreter))):
        found = re.match(r"python3\.(\d+)", name)
        if found:
            return found[1]
    found_folders = [re.fullmatch(r"python3\.(\d+)", name) for name in names(f"{prefix}/lib")]
    return max((found[1] for found in found_folders if found), key=int, default="")


def _settings(path: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text(path).splitlines() if "=" in line)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def installed(places: list[str]) -> list[Package]:
    """Return the first package of each name."""
    found: dict[str, Package] = {}
    for folder in places:
        for entry in names(folder):
            match = _DISTRIBUTION.fullmatch(entry)
            if match:
                name = re.sub(r"[-.]", "_", match[1]).lower()
                if _KNOWN.fullmatch(name):
                    found.setdefault(name, Package(name.replace("_", "-"), match[2], folder))
    return list(found.values())


def collectives(places: Iterable[str]) -> list[str]:
    """Return the files of NCCL and RCCL in packages."""
    return [path for folder in places for name in COLLECTIVES if os.path.isfile(path := os.path.join(folder, name))]


def entrances(places: list[str]) -> list[tuple[str, str]]:
    """Return (package, file) by which packages reach GPUs."""
    return [(name, path) for folder in places for name, file in ENTRANCES if os.path.isfile(path := f"{folder}/{file}")]


def built_for(package: Package) -> str:
    """Return what PyTorch was built for: CUDA 13.0, HIP 7.2; empty for the CPU, or another package."""
    if package.name != "torch":
        return ""
    version = text(os.path.join(package.folder, "torch", "version.py"))
    for word, pattern in (("CUDA", r"^cuda\b[^=]*=\s*'([^']+)'"), ("HIP", r"^hip\b[^=]*=\s*'([^']+)'")):
        found = re.search(pattern, version, re.M)
        if found:
            return f"{word} {found[1]}"
    return "no GPU"
