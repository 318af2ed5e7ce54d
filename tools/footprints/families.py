"""Which kernels of cuBLASLt can share a multiprocessor with NCCL, by family and GPU: docs/data/cublaslt-nccl.csv.

    python -m tools.footprints.families nvidia_cublas-*.whl nvidia_nccl_cu13-*.whl > docs/data/cublaslt-nccl.csv

Runs `overlap explain --from LIBRARY --json` on the libraries that are in the wheels, once for each size of NCCL's
blocks. Needs `make setup` and `pip install lz4 zstandard`; wheels by `pip download --no-deps nvidia-cublas
nvidia-nccl-cu13`. Nothing is run on a GPU.

Columns: kernels with a launch bound, kernels without one (which are not planned), and for each size of NCCL's blocks,
by threads: kernels beside which a block of NCCL fits, as they are or at a size that keeps at least half of their own
blocks; and kernels for which a size exists, but keeps less than half. Launches are taken to ask for no dynamic shared
memory, which no binary says: these are upper bounds.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyshim.footprints.families import NCCL
from tools.footprints.libraries import CUBLASLT

ROOT = Path(__file__).resolve().parents[2]

# Of cuBLASLt, the first whose pattern is found in a kernel's name.
FAMILIES = (
    ("sm90_xmma GEMM, half precision", r"^sm90_xmma_gemm_b?f16"),
    ("sm90_xmma GEMM, other", r"^sm90_xmma_gemm"),
    ("sm80_xmma GEMM", r"^sm80_xmma_gemm"),
    ("cutlass3x_sm100 GEMM", r"^cutlass3x_sm100"),
    ("ampere GEMM on tensor cores", r"^ampere_\w*(16816|1688)gemm"),
    ("ampere GEMM, other", r"^ampere_\w*gemm"),
    ("xmma symmetric, triangular, Hermitian", r"^sm\d+_xmma_(sy|tr|he)"),
    ("splitKreduce", r"splitKreduce"),
    ("gemv", r"gemv"),
    ("gemm, other", r"gemm|Gemm"),
    ("other", r""),
)
# Threads of NCCL's blocks as launched (libraries/nccl-*.json, not_in_the_binary): as shipped (rings), and with
# NCCL_ALGO=Ring and NCCL_NTHREADS of 256 and 128. The policies -small-comm set 256.
BLOCKS = (544, 288, 160)
DYNAMIC = next(fact["bytes"] for fact in NCCL.not_in_the_binary if fact["what"] == "dynamic_shared_memory")
SHARE = ("room_already", "entry_already", "shaped")


class Counts(NamedTuple):
    kernels: int  # that were planned
    unbound: int  # without a launch bound, so not planned
    share: int
    too_few: int


def explain(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "pyshim", "explain", *arguments, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"families.py: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def unpacked(wheel: Path, pattern: str, folder: Path) -> tuple[str, Path]:
    """Package and version, and the library out of it."""
    with zipfile.ZipFile(wheel) as archive:
        inside = [member for member in archive.namelist() if re.search(pattern, member)]
        if len(inside) != 1:
            raise SystemExit(f"families.py: {wheel}: {len(inside)} files of it are called like {pattern}")
        name, version = wheel.name.split("-")[:2]
        return f"{name.replace('_', '-')} {version}", Path(archive.extract(inside[0], folder))


def counted(answers: Sequence[Mapping[str, Any]]) -> dict[str, Counts]:
    """By family."""
    reasons: dict[str, Counter[str]] = {name: Counter() for name, _ in FAMILIES}
    for answer in answers:
        family = next(name for name, pattern in FAMILIES if re.search(pattern, answer["kernel"]))
        if answer["reason"] != "communication":
            reasons[family][answer["reason"]] += 1
    return {family: _counts(found) for family, found in reasons.items() if found}


def _counts(found: Counter[str]) -> Counts:
    unbound = found["no_threads"]
    share = sum(found[reason] for reason in SHARE)
    return Counts(sum(found.values()) - unbound, unbound, share, found["below_keep"])


def rows(cublaslt: Path, nccl: Path) -> Iterator[tuple[str | int, ...]]:
    """For each GPU and family; GPUs with the same limits have the same numbers and one row."""
    found = []
    for threads in BLOCKS:
        block = ("--comm-threads", str(threads), "--comm-dynamic-smem", str(DYNAMIC))
        answer = explain("--from", str(cublaslt), "--comm-from", str(nccl), "--comm-kernel", "ncclDevKernel_*", *block)
        found.append({group["gpu"]: counted(group["answers"]) for group in answer["groups"]})
    gpus: dict[tuple[tuple[str | int, ...], ...], list[str]] = {}
    for gpu, families in found[0].items():
        own: list[tuple[str | int, ...]] = []
        for family, (kernels, unbound, *_) in families.items():
            cells = [number for one in found for number in one[gpu][family][2:]]
            own.append((family, kernels, unbound, *cells))
        gpus.setdefault(tuple(own), []).append(gpu)
    for same, names in gpus.items():
        yield from ((" ".join(names), *row) for row in same)


def table(wheels: Sequence[Path]) -> str:
    with tempfile.TemporaryDirectory(prefix="families-") as folder:
        cublas, cublaslt = unpacked(wheels[0], CUBLASLT.file, Path(folder))
        package, nccl = unpacked(wheels[1], NCCL.file, Path(folder))
        made = list(rows(cublaslt, nccl))
    sizes = [f"{what} {threads}" for threads in BLOCKS for what in ("share", "too few blocks")]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("libraries", "gpu", "family", "kernels", "no bound", *sizes))
    writer.writerows((f"{cublas}, {package}", *row) for row in made)
    return text.getvalue()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", type=Path, nargs=2, metavar="WHEEL", help="of cuBLAS, then of NCCL")
    print(table(parser.parse_args().wheels), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
