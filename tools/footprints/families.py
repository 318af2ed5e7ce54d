"""Which kernels of cuBLASLt can share a multiprocessor with NCCL, by family and GPU: the table families.md.

    python tools/footprints/families.py nvidia_cublas-*.whl nvidia_nccl_cu13-*.whl [--output FILE]

Runs `overlap explain --from LIBRARY --json` on the libraries that are in the wheels, once for each size of NCCL's
blocks. Needs `make setup` and `pip install lz4 zstandard`; wheels by `pip download --no-deps nvidia-cublas
nvidia-nccl-cu13`. Without --output it prints the table.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import textwrap
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # as a script, this has only its own folder to import from

from pyshim.footprints.families import CUBLASLT, NCCL  # noqa: E402

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
# NCCL's blocks as launched: threads, and what makes them so (libraries/nccl-*.json, not_in_the_binary).
BLOCKS = (
    (544, "as shipped (rings)"),
    (288, "`NCCL_ALGO=Ring NCCL_NTHREADS=256`"),
    (160, "`NCCL_ALGO=Ring NCCL_NTHREADS=128`"),
)
DYNAMIC = next(fact["bytes"] for fact in NCCL.not_in_the_binary if fact["what"] == "dynamic_shared_memory")
WIDTH = 118
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


def computation(cublaslt: Path, nccl: Path) -> Iterator[str]:
    """The table of families: a row for each and GPU."""
    found = []
    for threads, _ in BLOCKS:
        block = (
            "--comm-kernel",
            "ncclDevKernel_*",
            "--comm-threads",
            str(threads),
            "--comm-dynamic-smem",
            str(DYNAMIC),
        )
        answer = explain("--from", str(cublaslt), "--comm-from", str(nccl), *block)
        found.append({group["gpu"]: counted(group["answers"]) for group in answer["groups"]})
    yield f"| GPU | family | kernels | no bound | {' | '.join(words for _, words in BLOCKS)} |"
    yield f"|---|---|---:|---:|{'---:|' * len(BLOCKS)}"
    gpus: dict[str, list[str]] = {}  # by rows: GPUs with the same limits have the same
    for gpu, families in found[0].items():
        rows = []
        for family, (kernels, unbound, *_) in families.items():
            cells = [one[gpu][family] for one in found]
            said = " | ".join(f"{cell.share:,} + {cell.too_few:,}" if kernels else "-" for cell in cells)
            rows.append(f"{family} | {kernels:,} | {unbound:,} | {said} |")
        gpus.setdefault("\n".join(rows), []).append(gpu)
    for text, names in gpus.items():
        yield from (f"| {', '.join(names)} | {row}" for row in text.split("\n"))


def communication(nccl: Path) -> Iterator[str]:
    """The table of NCCL's own kernels."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for group in explain("--from", str(nccl), "--threads", "544")["groups"]:
        for answer in group["answers"]:
            family = next((one.name for one in NCCL.families if re.search(one.pattern, answer["kernel"])), "other")
            own = groups.setdefault((answer["architecture"], family), [])
            if answer not in own:  # several GPUs run the same image
                own.append(answer)
    yield "| image | family | kernels | registers of a thread | static shared memory |"
    yield "|---|---|---:|---:|---:|"
    for (image, family), own in sorted(
        groups.items(), key=lambda item: (int(item[0][0].split("_")[1][:2]), item[0][1])
    ):
        spans = [_span([answer[name] for answer in own]) for name in ("registers", "static_shared_memory")]
        kernels = len({answer["kernel"] for answer in own})
        yield f"| {image} | {family} | {kernels:,} | {spans[0]} | {spans[1]} |"


def _span(values: list[int]) -> str:
    least, most = min(values), max(values)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def document(wheels: Sequence[Path]) -> str:
    with tempfile.TemporaryDirectory(prefix="families-") as folder:
        cublas, cublaslt = unpacked(wheels[0], CUBLASLT.file, Path(folder))
        package, nccl = unpacked(wheels[1], NCCL.file, Path(folder))
        own, others = "\n".join(computation(cublaslt, nccl)), "\n".join(communication(nccl))
    nvjet = next(fact["source"] for fact in CUBLASLT.not_in_the_binary if fact["family"] == "nvjet")
    paragraphs = (
        f"Written by `tools/footprints/families.py` out of {cublas} and {package} (PyPI), by `overlap explain --from "
        "LIBRARY --json`; nothing was run on a GPU. Registers, static shared memory and launch bounds are what the "
        "binaries say. Kernels without a launch bound are counted, and not planned.",
        "A cell is **can share + too few**: kernels beside which a block of NCCL fits, as they are or at a size that "
        "keeps at least half of their own blocks; and kernels for which a size exists, but keeps less than half. "
        "Beside all others no size does it. A launch is taken to ask for **no dynamic shared memory** by itself, which "
        "no binary says: GEMMs ask for much, so these are upper bounds. The policies `h100-small-comm` and so on set "
        "the second column of sizes on all ranks (`--all-ranks`).",
        f"nvjet, cuBLASLt's newest GEMMs, is not here: {nvjet}.",
    )
    prose = "\n\n".join(textwrap.fill(paragraph, WIDTH, break_on_hyphens=False) for paragraph in paragraphs)
    return f"""\
# Which kernels of cuBLASLt share a multiprocessor with NCCL

{prose}

{own}

## NCCL itself

Communication is never shaped. What it takes, beside {DYNAMIC:,} bytes of dynamic shared memory (empty kernels, of
4 registers, are for other images):

{others}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", type=Path, nargs=2, metavar="WHEEL", help="of cuBLAS, then of NCCL")
    parser.add_argument("--output", type=Path, metavar="FILE")
    options = parser.parse_args()
    text = document(options.wheels)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
