"""NCCL and RCCL: which files there are, of which version, what a block of them takes, and what changes that."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pyshim import preload
from pyshim.doctor import amd, binary, gpus, packages
from pyshim.doctor.line import Line, ok, some, warn
from pyshim.doctor.loader import Loader
from pyshim.doctor.machine import Machine
from pyshim.errors import OverlapError
from pyshim.footprints import collectives
from pyshim.footprints.collectives import Collective
from pyshim.launch import program, variables

NAMES = ("libnccl.so.2", "librccl.so.1")
# Where a program is told which file to open.
_TOLD = ("VLLM_NCCL_SO_PATH",)
_VERSION = re.compile(rb'(NCCL|RCCL) version (\d+\.\d+(?:\.\d+)?)(?:[^\0]{0,40}ROCm "(\d+\.\d+\.\d+))?')
# A variable, which of its values matter, and what they do. Sources: NCCL's env.rst and src (tuning.cc, enqueue.cc,
# init.cc of 2.28.9), RCCL's rccl_wrap.cc.
_SIZES = (
    "NCCL_ALGO", "NCCL_PROTO", "NCCL_NTHREADS", "NCCL_LL128_NTHREADS", "NCCL_MIN_CTAS", "NCCL_MAX_CTAS",
    "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_CGA_CLUSTER_SIZE", "NCCL_NVLS_ENABLE", "NCCL_CTA_POLICY",
    "RCCL_UNROLL_FACTOR", "RCCL_THREADS_PER_BLOCK", "RCCL_MSCCL_ENABLE", "RCCL_MSCCLPP_ENABLE",
)  # fmt: skip
_ORDER = "NCCL_LAUNCH_ORDER_IMPLICIT"


class Found(NamedTuple):
    path: str
    library: str  # NCCL, RCCL
    version: str  # 2.28.9; empty: not known
    rocm: str = ""  # of RCCL: 7.2.4

    def __str__(self) -> str:
        return f"{self.library} {self.version or 'of an unknown version'}"


def found(machine: Machine) -> list[Found]:
    """Return libraries in the order in which a program would take them."""
    return [_read(machine, path) for path in dict.fromkeys(os.path.realpath(path) for path in _paths(machine))]


def _paths(machine: Machine) -> Iterator[str]:
    for entry in preload.split(machine.environment.get("LD_PRELOAD", "")):
        if os.path.basename(entry).startswith(("libnccl.so", "librccl.so")) and os.path.isfile(entry):
            yield entry
    for name in _TOLD:
        if os.path.isfile(machine.environment.get(name, "")):
            yield machine.environment[name]
    loader = Loader(machine.environment, machine.root)
    end = _program(machine)
    if end is None or packages.is_python(end):
        folders = packages.folders(end, machine.environment) if end else machine.packages
        yield from packages.collectives(folders)
    else:
        yield from (library.path for library in loader.walk(end).loaded if library.name in NAMES)
    for name in NAMES:
        path = loader.by_name(name)
        if path:
            yield path
    for name in NAMES:
        path = machine.path(f"/opt/rocm/lib/{name}")
        if os.path.isfile(path):
            yield path


def _program(machine: Machine) -> str | None:
    """Return the program that PROGRAM runs in the end; None where there is none."""
    if not machine.command:
        return None
    try:
        return program.runs(program.find(machine.command[0], machine.environment), machine.environment)[0]
    except OverlapError:
        return None


def _read(machine: Machine, path: str) -> Found:
    library = "RCCL" if "rccl" in os.path.basename(path) else "NCCL"
    match = binary.match(path, _VERSION)
    if match:
        return Found(path, match[1].decode(), match[2].decode(), (match[3] or b"").decode())
    number = gpus.ask("nccl", path, machine.environment, machine.patience).version
    return Found(path, library, _dotted(number) if number else "")


def _dotted(number: int) -> str:
    """As ncclGetVersion counts: 22809 is 2.28.9, and 2708 was 2.7.8."""
    step = 1000 if number < 10000 else 10000
    return f"{number // step}.{number % step // 100}.{number % 100}"


def libraries(machine: Machine) -> Iterator[Line]:
    every = found(machine)
    if not every:
        yield ok("no NCCL or RCCL is found here; a program may bring its own")
        return
    versions = {(one.library, one.version) for one in every if one.version}
    if len(versions) > len({library for library, _ in versions}):
        named = "; ".join(f"{one.version or 'unknown'} in {one.path}" for one in every)
        yield warn(
            f"{every[0].library} in several versions: {named}",
            "all ranks must load the same one; after a run, NCCL_DEBUG=VERSION says which it was",
        )
    else:
        for one in every:
            yield ok(f"{one} ({one.path})")
    for architecture, key in _gpus(machine):
        for one in every:
            if one.library == collectives.library_of(architecture).name:
                yield from _footprint(one, architecture, key)
                break


def _gpus(machine: Machine) -> list[tuple[str, str]]:
    """Architectures that are here, each with the key of a known GPU of that kind."""
    from pyshim.policy.gpus import known

    keys = {gpu.architecture: gpu.key for gpu in reversed(known())}
    return [(a, keys[a]) for a in dict.fromkeys(gpu.architecture for gpu in machine.gpus()) if a in keys]


def _footprint(one: Found, architecture: str, key: str) -> Iterator[Line]:
    table = _table(one)
    blocks = [block for block in collectives.of_table(table, architecture) if block.usual]
    if not blocks:
        return
    block = blocks[0]
    known = one.version == table["version"] or one.rocm == table["version"]
    by = "" if known else f" (counted as {table['library']} {table['version']}, the nearest that is known)"
    takes = f"{block.threads} threads of {block.registers} registers and {block.static + block.dynamic:,} bytes"
    beside, of, name = _beside(block, architecture, key)
    if not of:
        yield ok(f"a block of {one} takes {takes} of shared memory on {architecture}{by}")
        return
    least = "none" if not beside else f"{100 * beside // of} % at most"
    yield ok(
        f"a block of {one} takes {takes} of shared memory on {architecture}{by}; of {name}'s GEMM kernels {least} can "
        "have a block beside it on one multiprocessor"
    )


def _table(one: Found) -> dict[str, Any]:
    """Of that version, else of the newest before it, else the oldest."""
    tables = collectives.tables(one.library.lower())
    wanted = _numbers(one.rocm or one.version)
    older = [table for table in tables if not wanted or _numbers(table["version"]) <= wanted]
    return (older or tables)[-1 if older else 0]


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]


def _beside(block: Collective, architecture: str, key: str) -> tuple[int, int, str]:
    """How many kernels of the GEMM library fit beside it with no dynamic shared memory, of how many; its name."""
    from pyshim.explain.answer import Explainer

    name = "cublaslt" if architecture.startswith("sm_") else "rocblas"
    tables = collectives.tables(name)
    if not tables:
        return 0, 0, ""
    rows = [row for row in tables[-1]["rows"] if "gemm" in row["family"].lower() or name == "rocblas"]
    image = collectives.image_for(architecture, {row["architecture"] for row in rows})
    explainer = Explainer({})
    beside = of = 0
    for row in rows:
        if row["architecture"] != image or not row["threads"]:
            continue
        answer = explainer.answer({
            "gpu": key, "threads": row["threads"], "registers": row["registers"]["median"],
            "static_smem": row["static_shared_memory"]["median"], "comm_threads": block.threads,
            "comm_registers": block.registers, "comm_static_smem": block.static, "comm_dynamic_smem": block.dynamic,
        })  # fmt: skip
        of += row["kernels"]
        beside += row["kernels"] if int(str(answer["beside_after_drain"])) > 0 else 0
    return beside, of, f"{tables[-1]['library']} {tables[-1]['version']}"


def settings(machine: Machine) -> Iterator[Line]:
    """Check variables of NCCL and RCCL, and files that set them."""
    environment = machine.environment
    files = variables.nccl_files(environment, machine.path(variables.ETC))
    said = [f"{name}={environment[name]}" for name in _SIZES if environment.get(name)]
    said += [f"{name} by {files[name]}" for name in _SIZES if name in files and not environment.get(name)]
    if said:
        yield ok(f"{', '.join(said)}: changes what communication takes; must be equal on all ranks")
    yield from _threads(machine, files)
    if machine.set(_ORDER) == "1":
        yield warn(
            f"{_ORDER}=1: communicators of one GPU wait for each other in the order of the host's launches, until all "
            "blocks of the one before have a place (CUDA 12.3 and newer), or until it has ended",
            "unset it, unless several communicators run at once and deadlock without it",
        )
    if (machine.set(amd.TORCH) or "0") != "0" and not machine.is_amd():
        yield ok(
            f"{amd.TORCH}={machine.set(amd.TORCH)}: streams that PyTorch makes for communication have high priority; "
            "collectives with async_op=False do not run on them (PyTorch 2.8 and newer)"
        )
    others = sorted(set(files) - set(_SIZES))
    if others:
        paths = ", ".join(sorted({files[name] for name in others}))
        yield ok(f"{paths} sets {some(others)}")
    if not (said or others or machine.set(_ORDER)):
        yield ok("no variable or file of NCCL changes what communication takes")


def _threads(machine: Machine, files: Iterable[str]) -> Iterator[Line]:
    """NCCL_NTHREADS is for rings, and not for send and receive. Which numbers it may be: getNthreads of tuning.cc."""
    value = machine.set("NCCL_NTHREADS")
    if value and not machine.is_amd() and not _possible(value):
        yield warn(
            f"NCCL_NTHREADS={value}: NCCL takes 64 to 512, in multiples of 32, and another number in place of this one",
            "256 makes its blocks smaller; the same on all ranks",
        )
    algorithm = (machine.set("NCCL_ALGO") or "").lower()
    if value and algorithm != "ring" and "NCCL_ALGO" not in files:
        yield warn(
            f"NCCL_NTHREADS={value} acts on rings only; trees and NVLS keep 640 threads",
            "NCCL_ALGO=Ring on all ranks, too (policies called -small-comm do both, with --all-ranks)",
        )


def _possible(threads: str) -> bool:
    """As strtoll takes numbers; what is not positive stands for the default."""
    try:
        number = int(threads, 0)
    except ValueError:
        return False
    return number <= 0 or (64 <= number <= 512 and number % 32 == 0)
