"""The sets that take two GPUs, as in sets.py.

What was not measured yet, with the most seconds that each may take; the build takes 60 more:

    tools/gpu/run --limit 700 whole-loops whole-small  # 280 + 300

WHOLE_MPI names MPICH's folder for one of the cells of whole-small.
"""

from __future__ import annotations

from tools.gpu.steps import Set, Step, steps

BEHIND = "overlap-run --policy default -- "
NVCC = ("nvcc",)
TORCH = ("torch",)
OURS = ("overlap-run",)

SUITE = "--rounds {rounds} --limit {limit} --out {out}"
MEASURE = "{python} -m tools.gpu.whole.measure --built {bin} --nccl {nccl} " + SUITE
PARTS = tuple(f"whole/{name}" for name in ("measure.py", "rank.py", "jax_rank.py", "tracing.py", "stencil.cu"))
WHOLE = (
    "stencil",
    "stencil32",
    "solver",
    "transpose",
    "mpi_stencil",
    "libstencil.so",
    "libsolver.so",
    "libtranspose.so",
)
SMALL = "halo-stream computing-stream host-stream solver mpi-stencil"

SETS = (
    Set(
        "overlap-two-gpus",
        "NCCL and PyTorch beside each other on two GPUs: which arm gains what?",
        ("overlap/libraries.py",),
        300,
        (Step("libraries", "{python} -m tools.gpu.overlap.libraries --gpus 2 " + SUITE),),
        TORCH + OURS,
        gpus=2,
        rounds=20,
    ),
    Set(
        "critical",
        "stencils and training steps: what do streams that are waited for gain by being raised?",
        ("critical.py", "whole/stencil.cu", "whole/rank.py"),
        480,
        (
            Step(
                "critical",
                "{python} -m tools.gpu.critical run --program {bin}/stencil --nccl {nccl} --rounds {rounds} "
                "--limit {limit} --out {out}",
            ),
        ),
        NVCC + TORCH + OURS,
        ("stencil",),
        gpus=2,
        rounds=8,
    ),
    Set(
        "whole",
        "whole programs under every policy: what do they gain, what could they, what was expected?",
        PARTS,
        1300,
        (Step("whole", MEASURE),),
        NVCC + TORCH + OURS,
        WHOLE,
        gpus=2,
        rounds=10,
    ),
    Set(
        "whole-loops",
        "a loop that priority speeds up, one that it slows down, and JAX: what does the default do?",
        (*PARTS, "whole/loops.py"),
        280,
        (Step("loops", MEASURE + " --only gaining-loop losing-loop pmap --starts 1"),),
        TORCH + OURS,
        gpus=2,
        rounds=10,
    ),
    Set(
        "whole-small",
        "of these the seven cells with 128 points, started three times: is it chance what they lose?",
        PARTS,
        300,
        (Step("small", MEASURE + f" --only {SMALL} --sizes 128 --starts 3"),),
        NVCC + TORCH + OURS,
        WHOLE[:5],
        gpus=2,
        rounds=10,
    ),
    Set(
        "two-gpus",
        "two ranks, real collectives: what do steps take, bare and behind the library?",
        ("two_gpus.py", "two_gpus_cases.py"),
        200,
        (
            Step(
                "two GPUs",
                "{python} -m tools.gpu.two_gpus {work}/two.json --rounds {rounds} --arm bare: --arm 'own: "
                "TORCH_NCCL_HIGH_PRIORITY=1' --arm 'default: overlap-run --policy default --report {work}/report'",
                "two.json",
            ),
        ),
        TORCH + OURS,
        gpus=2,
        rounds=4,
    ),
    Set(
        "profile-step",
        "steps like those of DDP under torch.profiler: what do they take, what does communication hide?",
        ("profile_step.py",),
        60,
        steps(
            "{python} -m torch.distributed.run --standalone --nproc-per-node 2 {gpu}/profile_step.py --out {work}/bare",
            BEHIND + "{python} -m torch.distributed.run --standalone --nproc-per-node 2 "
            "{gpu}/profile_step.py --out {work}/default",
            "overlap report --compare {work}/bare {work}/default --json",
        ),
        TORCH + OURS,
        gpus=2,
    ),
    Set(
        "stencil-traces",
        "a stencil that exchanges boundary planes: what waits in its traces, what does raising its halo streams save?",
        ("stencil_trace.cu", "stencil_trace.py"),
        90,
        (
            Step(
                "traces",
                "{python} {gpu}/stencil_trace.py {bin}/libstencil_trace.so --out {work}/traces",
                "traces/times.json",
            ),
            *(
                Step(f"explain {name}", f"overlap explain --json {{work}}/traces/stencil-{name}-events.json.gz")
                for name in ("nccl", "nccl-raised", "host", "host-raised")
            ),
        ),
        TORCH + NVCC + OURS,
        ("libstencil_trace.so",),
        gpus=2,
    ),
    Set(
        "ranks",
        "are reports of torchrun's ranks true, by every way in, and where one rank differs?",
        ("ranks.py",),
        180,
        (
            Step("site", "{python} {gpu}/../site/install {work}/site"),
            Step("ranks", "{python} {gpu}/ranks.py {work}/site {work}/ranks.json", "ranks.json"),
        ),
        TORCH + OURS,
        gpus=2,
    ),
)
