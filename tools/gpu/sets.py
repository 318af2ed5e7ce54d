"""The sets of measurements that tools/gpu/run knows, most important first: the one place to add one.

Words of a command: {python}; {gpu}: this folder; {bin}: where `builds` are; {cubin}: the question kernels; {names}: of
the driver's entry points; {nccl}: the library; {rounds}; {limit}: seconds that are left to the set; {work}: a folder of
its own; {out}: its file of results. NAME=VALUE in front sets a variable.
"""

from __future__ import annotations

from pathlib import Path

from tools.gpu import sets_two
from tools.gpu.steps import CUBIN, Set, Step, asked, steps

SUITE = "--rounds {rounds} --limit {limit} --out {out}"
BEHIND = "overlap-run --policy default -- "
POLICIES = ("default", "h200-paper", "{gpu}/overlap/policies/make-room.yaml")
ORDER_CASES = "state launch launch-stream not-retained retained-launch retained-kernel retained-stream retained-event "
ORDER_CASES += "retained-attribute retained-module"
WHOLE_ONE = "gaining-loop-alone losing-loop host-copy halo-stream computing-stream third-stream host-stream equal "
WHOLE_ONE += "swapped transpose --sizes 128 256 512 --starts 2"
NVCC = ("nvcc",)
TORCH = ("torch",)
OURS = ("overlap-run",)

SETS = (
    Set(
        "raise-cost",
        "what do launches, waits and copies cost on a raised stream, by how it was raised?",
        ("raise_cost.cu",),
        40,
        steps("{bin}/raise_cost {rounds}"),
        NVCC,
        ("raise_cost",),
        rounds=21,
    ),
    Set(
        "dispatch-rule",
        "while a high-priority block fits nowhere, do lower ones go on? which ways of raising work?",
        ("dispatch_rule.cu",),
        15,
        steps("{bin}/dispatch_rule {rounds}"),
        NVCC,
        ("dispatch_rule",),
        rounds=20,
    ),
    Set(
        "correctness",
        "does real software compute the same behind the library? is every launch seen, our occupancy the driver's?",
        ("correctness/kinds.cu", "correctness/cupy_program.py", "occupancy.cu", "compare_occupancy.py"),
        220,
        (Step("correctness", "{python} -m tools.gpu.correctness --build {bin} --limit {limit} --out {out}"),),
        NVCC + OURS,
        ("kinds", "kinds_shared", "libinjection.so", "occupancy", "driver_questions", CUBIN),
    ),
    Set(
        "overlap-standins",
        "stand-ins of communication beside computation: which arm gains what?",
        ("overlap/standins.py",),
        320,
        (Step("standins", "{python} -m tools.gpu.overlap.standins run " + SUITE),),
        ("cc",) + OURS,
        rounds=30,
    ),
    Set(
        "overlap-libraries",
        "the same with NCCL and PyTorch, one rank that sends to itself",
        ("overlap/libraries.py",),
        260,
        (Step("libraries", "{python} -m tools.gpu.overlap.libraries --gpus 1 " + SUITE),),
        TORCH + OURS,
        rounds=20,
    ),
    Set(
        "queue-order",
        "who enters first: in the tail or earlier, and does a head that does not fit block those behind it?",
        ("queue_order.cu",),
        5,
        steps("{bin}/queue_order {rounds}"),
        NVCC,
        ("queue_order",),
        rounds=20,
    ),
    Set(
        "raised",
        "what does communication wait, what does its waiting cost computation, which control shortens it?",
        ("raised.cu",),
        30,
        steps(*(f"{{bin}}/raised {what} {{rounds}}" for what in ("cost", "clusters", "controls"))),
        NVCC,
        ("raised",),
        rounds=10,
    ),
    Set(
        "neighbours",
        "who shares a multiprocessor, and does the planner say the same?",
        ("neighbours.cu", "neighbours_check.py", "pack.py"),
        30,
        (
            Step("neighbours", "sh -c '{bin}/neighbours {rounds} | tee {work}/lines'"),
            Step("pack", "sh -c '\"{python}\" -m tools.gpu.pack neighbours ./neighbours {work}/lines >{work}/packed'"),
            Step("the planner", "{python} {gpu}/neighbours_check.py {work}/packed"),
        ),
        NVCC + OURS,
        ("neighbours",),
        rounds=3,
    ),
    Set(
        "quantisation",
        "what does communication that is there first cost a grid of one wave?",
        ("quantisation.cu",),
        5,
        steps("{bin}/quantisation {rounds}"),
        NVCC,
        ("quantisation",),
        rounds=10,
    ),
    Set(
        "refill",
        "how long does a freed place stay empty, how far apart do blocks end?",
        ("refill.cu",),
        5,
        steps("{bin}/refill {rounds}"),
        NVCC,
        ("refill",),
        rounds=5,
    ),
    Set(
        "carveout",
        "whom does the carve-out keep from sharing a multiprocessor?",
        ("carveout.cu",),
        10,
        steps("{bin}/carveout {rounds}"),
        NVCC,
        ("carveout",),
        rounds=3,
    ),
    Set(
        "room",
        "does room that a policy makes let communication in, and what does it cost?",
        ("room.cu",),
        20,
        steps("{bin}/room {rounds}", *(f"overlap-run --policy {name} -- {{bin}}/room {{rounds}}" for name in POLICIES)),
        NVCC + OURS,
        ("room",),
        rounds=10,
    ),
    Set(
        "nccl-start",
        "how long does NCCL's own kernel wait behind a long one, launched or as a graph?",
        ("nccl_start.py",),
        60,
        steps(
            "{python} -m tools.gpu.nccl_start {rounds}",
            "TORCH_NCCL_HIGH_PRIORITY=1 {python} -m tools.gpu.nccl_start {rounds}",
            "NCCL_CGA_CLUSTER_SIZE=1 TORCH_NCCL_HIGH_PRIORITY=1 {python} -m tools.gpu.nccl_start {rounds}",
            BEHIND + "{python} -m tools.gpu.nccl_start {rounds}",
        ),
        TORCH + ("cupy",) + OURS,
        rounds=20,
    ),
    Set(
        "self-sendrecv",
        "NCCL beside matrix products, one GPU, one rank",
        ("self_sendrecv.py",),
        40,
        steps(
            "{python} {gpu}/self_sendrecv.py {rounds}",
            "TORCH_NCCL_HIGH_PRIORITY=1 {python} {gpu}/self_sendrecv.py {rounds}",
            "NCCL_CGA_CLUSTER_SIZE=0 {python} {gpu}/self_sendrecv.py {rounds}",
            BEHIND + "{python} {gpu}/self_sendrecv.py {rounds}",
        ),
        TORCH + OURS,
        rounds=5,
    ),
    Set(
        "driver-questions",
        "addresses, captures, error codes, limits, graphs, handles, clusters",
        ("driver_questions.cu", "reload.c"),
        10,
        asked(
            "driver_questions",
            "capture streams errors clusters graph nodes handles churn launch get set name module occupancy "
            "kernel-name kernel-get limits mixed mixed-captured lazy",
        )
        + (Step("names", "sh -c '{bin}/driver_questions names {cubin} {names}'"), Step("reload", "{bin}/reload")),
        NVCC + ("cc",),
        ("driver_questions", CUBIN, "reload"),
    ),
    Set(
        "order-questions",
        "what makes work wait, which host calls wait, captures, costs of calls, resets",
        ("order_questions.cu",),
        15,
        asked(
            "order_questions",
            "barriers host captured graph-event capture-ids reuse costs contexts capture-priority update-priority",
        )
        + tuple(
            Step(f"reset {case}", f"{{bin}}/order_questions reset {{cubin}} {case}", may_crash=True)
            for case in ORDER_CASES.split()
        ),
        NVCC,
        ("order_questions", CUBIN),
    ),
    Set(
        "launch-latency",
        "what does a launch cost, bare and behind the library, by the driver and by cudart?",
        ("launch_latency.cu",),
        10,
        steps(
            *("{bin}/launch_latency {cubin} {rounds}", BEHIND + "{bin}/launch_latency {cubin} {rounds}") * 5,
        ),
        NVCC + OURS,
        ("launch_latency", CUBIN),
        rounds=4000,
    ),
    Set(
        "graph-cost",
        "what do graphs cost to capture, instantiate and launch, bare and behind the library?",
        ("graph_cost.cu",),
        15,
        steps("{bin}/graph_cost {cubin} {rounds}", BEHIND + "{bin}/graph_cost {cubin} {rounds}"),
        NVCC + OURS,
        ("graph_cost", CUBIN),
        rounds=10,
    ),
    Set(
        "occupancy",
        "is our occupancy the driver's, and does the planner keep its promises?",
        ("occupancy.cu", "compare_occupancy.py"),
        5,
        steps("{python} -m tools.gpu.compare_occupancy {bin}/occupancy --samples {rounds}"),
        NVCC + OURS,
        ("occupancy",),
        rounds=1500,
    ),
    Set(
        "programs",
        "do the programs of PyTorch and JAX compute the same bits, and did the library see every launch?",
        ("torch_programs.py", "jax_program.py", "count_kernels.py"),
        150,
        (
            Step("bare", "{python} {gpu}/torch_programs.py {work}/bare.json", "bare.json"),
            Step("default", BEHIND + "{python} {gpu}/torch_programs.py {work}/default.json", "default.json"),
            Step(
                "counted",
                "overlap-run --policy default --report {work}/report -- "
                "{python} {gpu}/count_kernels.py {work}/kernels.json {gpu}/torch_programs.py {work}/counted.json",
                "kernels.json",
            ),
            Step("report", "overlap report {work}/report --json"),
            Step("JAX, bare", "XLA_PYTHON_CLIENT_PREALLOCATE=false {python} {gpu}/jax_program.py"),
            Step(
                "JAX, default",
                "XLA_PYTHON_CLIENT_PREALLOCATE=false overlap-run --policy default -- {python} {gpu}/jax_program.py",
            ),
        ),
        TORCH + ("jax",) + OURS,
    ),
    Set(
        "two-ranks",
        "two real ranks on one GPU, beside products of one wave and of many: which control helps?",
        ("two_ranks.py",),
        60,
        (
            Step("plain", "sh -c 'LD_PRELOAD=$NEWER_NCCL exec {python} {gpu}/two_ranks.py {rounds}'"),
            Step("own priority", "HP=1 sh -c 'LD_PRELOAD=$NEWER_NCCL exec {python} {gpu}/two_ranks.py {rounds}'"),
            Step(
                "default",
                "sh -c 'LD_PRELOAD=$NEWER_NCCL exec overlap-run -- {python} {gpu}/two_ranks.py {rounds}'",
            ),
        ),
        TORCH + OURS + ("$NEWER_NCCL",),
        rounds=20,
    ),
    Set(
        "contexts",
        "which processes have a context, and which only count or watch the GPUs?",
        ("context_files.py",),
        60,
        (Step("contexts", "{python} {gpu}/context_files.py {work}/found.json {bin}/link", "found.json"),),
        TORCH + OURS + NVCC + ("cc",),
        ("driver_questions",),
    ),
    Set(
        "profilers",
        "do profilers and the library run beside each other, and does each see the other's doing?",
        ("profilers.py", "injection.c"),
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
        "read-files",
        "is what `overlap doctor` says of the machine true?",
        (),
        30,
        (
            Step("doctor", "overlap doctor --json"),
        ),
        TORCH + OURS,
    ),
    Set(
        "whole-one",
        "whole programs on one GPU, each its own neighbour: what do the default and their own priorities gain?",
        (*sets_two.PARTS, "whole/loops.py"),
        520,
        (Step("whole", sets_two.MEASURE + f" --only {WHOLE_ONE}"),),
        NVCC + TORCH + OURS,
        ("stencil", "stencil32", "transpose", "libstencil.so", "libtranspose.so"),
        rounds=10,
    ),
    Set(
        "whole-costs",
        "what do starts, memory, launches and waits cost by policy?",
        ("whole/costs.py", "launch_latency.cu"),
        150,
        (Step("costs", "{python} -m tools.gpu.whole.costs --built {bin} --nccl {nccl} " + SUITE),),
        NVCC + OURS,
        ("stencil", "launch_latency", CUBIN),
        rounds=5,
    ),
    Set(
        "comd",
        "a miniapp that is not ours, CoMD-CUDA: what does it take by arm, and what do its own priorities gain?",
        ("comd.py",),
        1500,
        (Step("comd", "{python} -m tools.gpu.comd --processes {rounds} --limit {limit} --out {out}"),),
        OURS + ("$COMD",),
        rounds=7,
    ),
    *sets_two.SETS,
)
BY_NAME = {one.name: one for one in SETS}


def absent(one: Set) -> list[str]:
    """Programs of it that this checkout does not have."""
    here = Path(__file__).resolve().parent
    return [f"tools/gpu/{name}, which this checkout lacks" for name in one.programs if not (here / name).exists()]
