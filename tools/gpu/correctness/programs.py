"""What is run bare and behind the library: the one table of programs, and of policies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent

# As overlap-run takes them: shipped ones, and the file that changes most.
AGGRESSIVE = "one-block"
POLICIES = {
    "default": "default",
    "observe": "observe",
    "h200-paper": "h200-paper",
    AGGRESSIVE: str(HERE / "policies" / "one-block.yaml"),
}
SANITIZED = "compute-sanitizer --tool memcheck --target-processes all --error-exitcode 99 --log-file {work}/sanitizer"


@dataclass(frozen=True)
class Program:
    """Words of `command`: {bin} folder of built programs, {gpu} tools/gpu, {python}, {work} a folder of this run."""

    name: str
    command: str
    needs: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    status: int = 0  # with which it ends by itself
    wrap: str = ""  # a command in front, of overlap-run too
    policies: tuple[str, ...] = tuple(POLICIES)
    counted: str = "cupti"  # who else counts launches, under AGGRESSIVE: cupti, torch.profiler, or nobody
    launches: bool = True  # it does, so that the library sees some
    shaped: bool = False  # AGGRESSIVE must find something to shape, or it was not tried
    limit: int = 120  # seconds
    variables: tuple[tuple[str, str], ...] = ()


# In order of what is most telling. `shaped`: kinds with grids of many waves that nothing protects.
SHAPED_KINDS = ("plain", "extended", "captured", "threads")
OTHER_KINDS = ("persistent", "resident", "cooperative", "cluster", "cluster-by-attribute", "dependent", "refused")
TORCH = {
    "torch, eager": "eager_float32 eager_bfloat16 batched_products reductions",
    "torch, autograd of attention and convolution": "attention attention_backward convolution",
    "torch.compile": "compiled",
    "torch, CUDA graphs": "captured captured_first",
    "cuBLASLt": "cublaslt_epilogues",
    "cuDNN": "convolution cudnn_recurrent cudnn_attention",
    "Triton": "triton_kernels",
    "torch, scans, sorts, transforms": "scans_and_sorts float_scan transforms",
    "torch, eight threads": "many_threads",
}
PROFILED = ("torch, eager", "cuBLASLt", "cuDNN", "Triton")
BESIDE = "eager_bfloat16 triton_kernels reductions many_threads"


def table() -> list[Program]:
    made = [
        Program(f"nvcc, {kind}", f"{{bin}}/kinds {kind}", builds=("kinds",), shaped=kind in SHAPED_KINDS, limit=60)
        for kind in SHAPED_KINDS + OTHER_KINDS
    ]
    made += [
        Program("nvcc, all kinds, shared cudart", "{bin}/kinds_shared", builds=("kinds_shared",), shaped=True),
        Program("nvcc, a kernel that traps", "{bin}/kinds trapped", builds=("kinds",), status=3),
        Program("nvcc, leaves in the middle", "{bin}/kinds leaves", builds=("kinds",), status=7, counted="nobody"),
    ]
    torch = "{python} {gpu}/torch_programs.py /dev/stdout "
    made += [Program(name, torch + names, ("torch",), limit=150) for name, names in TORCH.items()]
    made += [
        Program(
            f"{name}, under torch.profiler",
            "{python} {gpu}/count_kernels.py {work}/kernels.json {gpu}/torch_programs.py /dev/stdout " + TORCH[name],
            ("torch",),
            policies=(AGGRESSIVE,),
            counted="torch.profiler",
            limit=150,
        )
        for name in PROFILED
    ]
    beside = (("TORCH_PROGRAMS_BESIDE", "1"),)
    made += [
        Program("torch beside a collective", torch + BESIDE, ("torch",), variables=beside, limit=150),
        Program("NCCL, SendRecv to itself", "{python} {gpu}/self_sendrecv.py", ("torch",)),
        Program("CuPy", "{python} {gpu}/correctness/cupy_program.py", ("cupy",), shaped=True),
        Program("JAX", "{python} {gpu}/jax_program.py", ("jax",)),
        Program(
            "nvcc, all kinds, under compute-sanitizer",
            "{bin}/kinds "
            + " ".join(name for name in SHAPED_KINDS + OTHER_KINDS if name != "refused"),  # an error to it
            ("compute-sanitizer",),
            ("kinds",),
            wrap=SANITIZED,
            policies=(AGGRESSIVE, "default"),
            counted="nobody",
            shaped=True,
        ),
        Program(
            "Triton, under compute-sanitizer",
            torch + "triton_kernels",
            ("torch", "compute-sanitizer"),
            wrap=SANITIZED,
            policies=(AGGRESSIVE,),
            counted="nobody",
            limit=150,
        ),
    ]
    made.append(
        Program(
            "driver, errors", "{bin}/driver {bin}/kernels.cubin", builds=("driver", "kernels.cubin"), counted="nobody"
        )
    )
    return made
