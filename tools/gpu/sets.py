"""The sets of measurements that tools/gpu/run knows, most important first: the one place to add one.

Words of a command: {python}; {gpu}: this folder; {bin}: where `builds` are; {cubin}: the kernels of kernels.cu; {nccl}:
the library; {rounds}; {limit}: seconds that are left to the set; {work}: a folder of its own; {out}: its file of
results. NAME=VALUE in front sets a variable.
"""

from __future__ import annotations

from dataclasses import dataclass

CUBIN = "kernels.cubin"


@dataclass(frozen=True)
class Step:
    """One process. file: JSON that it leaves in {work}, kept beside what it printed."""

    name: str
    command: str
    file: str = ""


@dataclass(frozen=True)
class Set:
    name: str
    question: str
    seconds: int  # about so long on an H200, without the build
    steps: tuple[Step, ...]  # or one that writes {out} itself, with the same head
    needs: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    gpus: int = 1
    rounds: int | None = None  # what {rounds} is, unless --rounds says otherwise

    @property
    def limit(self) -> int:
        """Seconds after which it is cut. A command that is told its limit takes what it gets."""
        told = any("{limit}" in step.command for step in self.steps)
        return self.seconds if told else 2 * self.seconds + 20

    @property
    def writes_itself(self) -> bool:
        return any("{out}" in step.command for step in self.steps)


NVCC, TORCH, OURS = ("nvcc",), ("torch",), ("overlap-run",)
LATENCY = "{bin}/launch_latency {cubin} {rounds}"
LATENCIES = (("bare", LATENCY), ("default", f"overlap-run --policy default -- {LATENCY}"), ("bare, again", LATENCY))
NO_CONTEXT = "{bin}/no_context {rounds}"
NO_CONTEXTS = (
    ("bare", ""),
    ("observe", "overlap-run --quiet --policy observe -- "),
    ("default", "overlap-run --quiet --policy default -- "),
    ("bare, again", ""),
)
LARGE_BLOCKS = (4000, 400)  # small kernels stand behind the large one; both fit, so that only the cost of calls differs
MEASURE = (
    "{python} -m tools.gpu.whole.measure --built {bin} --nccl {nccl} --rounds {rounds} --limit {limit} --out {out}"
)
WHOLE_ONE = "gaining-loop-alone losing-loop host-copy halo-stream computing-stream third-stream host-stream equal "
WHOLE_ONE += "swapped transpose --sizes 128 256 512 --starts 2"
PYTHON = "ddp fsdp tensor pipeline recommender experts gaining-loop-alone losing-loop"

SETS = (
    Set(
        "correctness",
        "does real software compute the same behind the library? is every launch seen, our occupancy the driver's?",
        220,
        (Step("correctness", "{python} -m tools.gpu.correctness --build {bin} --limit {limit} --out {out}"),),
        NVCC + OURS,
        ("kinds", "kinds_shared", "libinjection.so", "occupancy", "driver", CUBIN),
    ),
    Set(
        "launch-latency",
        "what does a launch cost, bare and behind the library, by the driver and by cudart?",
        20,
        tuple(Step(f"{arm}, {turn + 1}", command) for turn in range(5) for arm, command in LATENCIES),
        NVCC + OURS,
        ("launch_latency", CUBIN),
        rounds=4000,
    ),
    Set(
        "no-context",
        "a program that launches and waits with no current context: what does it gain, what does a call cost?",
        120,
        tuple(
            Step(f"{blocks} blocks, {arm}, {turn + 1}", f"{before}{NO_CONTEXT} {blocks}")
            for turn in range(7)
            for blocks in LARGE_BLOCKS
            for arm, before in NO_CONTEXTS
        )
        + (
            Step("counted", f"overlap-run --policy default --report {{work}}/report -- {NO_CONTEXT}"),
            Step("report", "overlap report {work}/report --json"),
        ),
        OURS,
        ("no_context",),
        rounds=2000,
    ),
    Set(
        "profilers",
        "do profilers and the library run beside each other, and does each see the other's doing?",
        240,
        (
            Step(
                "profilers",
                "{python} -m tools.gpu.profilers {work}/arms {work}/rows.json --limit {limit}",
                "rows.json",
            ),
        ),
        TORCH + OURS + NVCC,
    ),
    Set(
        "whole-one",
        "whole programs on one GPU, each its own neighbour: what do the default and their own priorities gain?",
        520,
        (Step("whole", f"{MEASURE} --only {WHOLE_ONE}"),),
        NVCC + TORCH + OURS,
        ("stencil", "stencil32", "transpose"),
        rounds=10,
    ),
    Set(
        "foreign",
        "programs of other authors: what does the default change, what do their own priorities, what does it cost?",
        1500,
        (
            Step(
                "foreign",
                "{python} -m tools.gpu.foreign --trace {bin}/libtrace.so --processes {rounds} --limit {limit} "
                "--out {out}",
            ),
        ),
        NVCC + OURS + ("$FOREIGN",),
        ("libtrace.so",),
        rounds=7,
    ),
    Set(
        "whole",
        "stencils, transpose and solver on two GPUs: what do the default, their own priorities and the paper gain?",
        570,
        (Step("whole", f"{MEASURE} --skip {PYTHON}"),),
        NVCC + TORCH + OURS,
        ("stencil", "stencil32", "solver", "transpose"),
        gpus=2,
        rounds=10,
    ),
    Set(
        "training",
        "the same of training steps, a recommender, experts and two loops",
        570,
        (Step("training", f"{MEASURE} --only {PYTHON} --starts 1"),),
        TORCH + OURS,
        gpus=2,
        rounds=10,
    ),
    Set(
        "tuned",
        "what does `overlap tune` keep for training steps on two GPUs without peer access, and is it right?",
        460,
        (Step("tuned", "NCCL_P2P_DISABLE=1 {python} -m tools.gpu.tuned --limit {limit} --out {out}"),),
        TORCH + OURS,
        gpus=2,
    ),
    Set(
        "communicators",
        "do two communicators at once, which nothing orders, ever hang when each rank raises by itself?",
        640,
        (
            Step(
                "communicators",
                "overlap-run --policy default --report {work}/report -- {python} -m torch.distributed.run --standalone "
                "--nproc-per-node 2 {gpu}/communicators.py {limit}",
            ),
            Step("report", "overlap report {work}/report --json"),
        ),
        TORCH + OURS,
        gpus=2,
    ),
)
BY_NAME = {one.name: one for one in SETS}
