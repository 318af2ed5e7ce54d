"""What lets NCCL's own SendRecv start sooner behind a long kernel? nccl_start.py under each setting, and pairs of two.

    python -m tools.gpu.nccl_start_matrix --out FILE [--rounds N] [--limit SECONDS]

Every setting is a process; all are started at once and take turns in an order of chance, one measurement of each case
in a turn, so samples pair by index. Settings that are policies need overlap-run in PATH; without it they are left
out, and the file says so. `rows` of the file: all samples of each setting and case, in us. Cases `..., by itself`: what
the long kernel takes, which shaping makes longer.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from tools.gpu.machine import describe
from tools.gpu.overlap.turns import Ranks

HERE = Path(__file__).resolve().parent
WAYS = ("launched", "graph")
BEHIND = (
    *("1 block of all", "2 blocks", "4 blocks", "8 blocks", "1 block of 115,713 bytes"),
    *("cuBLAS, bf16", "cuBLAS, fp32", "Triton, bf16"),
)
SEED = 1


class Setting(NamedTuple):
    environment: dict[str, str]
    policy: dict[str, Any] | None = None  # as in a policy file


def policy(rule: dict[str, Any], priority: str = "inherit") -> dict[str, Any]:
    compute = [{"match": {"kernel": "*"}, **rule}] if rule else []
    communication = {"kernels": ["all"], "priority": priority}
    return {"policy": 1, "name": "asked", "when": "always", "communication": communication, "compute": compute}


ONE_BLOCK = {"shape": {"blocks_per_sm": 1}}
# The controls of which every pair is tried. NCCL_CGA_CLUSTER_SIZE=0: no clusters.
CONTROLS = {
    "priority": Setting({"TORCH_NCCL_HIGH_PRIORITY": "1"}),
    "no clusters": Setting({"NCCL_CGA_CLUSTER_SIZE": "0"}),
    "256 threads": Setting({"NCCL_NTHREADS": "256"}),
    "one block": Setting({}, policy(ONE_BLOCK)),
}


def both(first: Setting, second: Setting) -> Setting:
    return Setting({**first.environment, **second.environment}, first.policy or second.policy)


def settings() -> dict[str, Setting]:
    made = {"as it is": Setting({}), **CONTROLS}
    for one, other in itertools.combinations(CONTROLS, 2):
        made[f"{one} + {other}"] = both(CONTROLS[one], CONTROLS[other])
    raised = CONTROLS["priority"]
    made["128 threads"] = Setting({"NCCL_NTHREADS": "128"})
    made["clusters of one"] = Setting({"NCCL_CGA_CLUSTER_SIZE": "1"})
    made["priority + clusters of one"] = both(raised, made["clusters of one"])
    made["priority + 16 blocks of NCCL"] = both(raised, Setting({"NCCL_MIN_CTAS": "16", "NCCL_MAX_CTAS": "16"}))
    made["raised by the library"] = Setting({}, policy({}, "highest"))
    made["priority + one block, carve-out as it is"] = both(
        raised, Setting({}, policy({**ONE_BLOCK, "carveout": "keep"}))
    )
    for shape in ("make_room", "quick_entry"):
        rule = {"shape": shape, "keep_at_least": "1%"}
        made[f"priority + {shape}"] = both(raised, Setting({}, policy(rule)))
    return made


def order(names: list[str], rounds: int) -> list[list[str]]:
    dice = random.Random(SEED)
    return [dice.sample(names, len(names)) for _ in range(rounds)]


def start(folder: Path, left_out: list[str]) -> dict[str, Ranks]:
    made: dict[str, Ranks] = {}
    for number, (name, setting) in enumerate(settings().items()):
        command = [sys.executable, "-m", "tools.gpu.nccl_start", "serve"]
        if setting.policy:
            if not shutil.which("overlap-run"):
                left_out.append(f"{name}: overlap-run is not in PATH")
                continue
            file = folder / f"policy{number}.yaml"
            file.write_text(json.dumps(setting.policy))
            command = ["overlap-run", "--quiet", "--policy", str(file), *command]
        made[name] = Ranks(name, command, setting.environment, 1, 29500 + number)
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--limit", type=float, default=90, help="seconds after which no further round is begun")
    options = parser.parse_args()
    begun = time.monotonic()
    left_out: list[str] = []
    result: dict[str, Any] = {"version": 1, "set": "nccl-start-matrix", "machine": describe(), "left_out": left_out}
    result["settings"] = {"rounds": options.rounds, "seed": SEED}
    samples: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        processes = start(Path(folder), left_out)
        for ranks in processes.values():
            ranks.answers(120)
        for row in order(list(processes), options.rounds):
            if time.monotonic() - begun > options.limit:
                left_out.append("rounds: no time")
                break
            for name in row:
                for case, values in (processes[name].ask({"ways": WAYS, "lows": BEHIND})[0] or {}).items():
                    samples.setdefault((name, case), []).extend(round(value, 1) for value in values)
        for name, ranks in processes.items():
            ranks.end()
            if ranks.broken:
                left_out.append(f"{name}: {ranks.broken}: {ranks.errors[0][-1:]}")
    known = settings()
    result["rows"] = [
        {
            "setting": name,
            "environment": known[name].environment,
            "policy": known[name].policy,
            "case": case,
            "median_us": statistics.median(values),
            "samples_us": values,
        }
        for (name, case), values in samples.items()
    ]
    options.out.write_text(json.dumps(result) + "\n")
    return 0 if samples else 1


if __name__ == "__main__":
    sys.exit(main())
