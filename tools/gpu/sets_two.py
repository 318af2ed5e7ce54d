"""The sets that take two GPUs, as in sets.py."""

from __future__ import annotations

from tools.gpu.steps import Set, Step, steps

BEHIND = "overlap-run --policy h200 -- "
NVCC = ("nvcc",)
TORCH = ("torch",)
OURS = ("overlap-run",)

SETS = (
    Set(
        "two-gpus",
        "two ranks, real collectives: what do steps take, bare and behind the library?",
        ("two_gpus.py", "two_gpus_cases.py"),
        200,
        (
            Step(
                "two GPUs",
                "{python} -m tools.gpu.two_gpus {work}/two.json --rounds {rounds} --arm bare: --arm 'own: "
                "TORCH_NCCL_HIGH_PRIORITY=1' --arm 'h200: overlap-run --policy h200 --report {work}/report'",
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
            "{gpu}/profile_step.py --out {work}/h200",
            "overlap report --compare {work}/bare {work}/h200 --json",
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
                Step(f"explain {name}", f"overlap explain --json --from {{work}}/traces/stencil-{name}-events.json.gz")
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
