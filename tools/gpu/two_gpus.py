"""Real collectives of two GPUs beside real computation: what each arm's step takes, and whether it computes the same.

    python -m tools.gpu.two_gpus OUTPUT.json [--rounds N] [--profile [--launches]]
        --arm 'NAME: [VARIABLE=VALUE ...] [COMMAND]'
    python -m tools.gpu.two_gpus two_gpus.json --arm 'bare:' --arm 'default: overlap-run --report DIR'

An arm is two processes, one a GPU, with the command in front of them and the variables set. All arms are started at
once, wait, and take turns (A B C C B A ...), so that what drifts hits all alike. A step is timed by events on the
stream of computation; the host runs ahead, as in training. Sizes are chosen once, by the first arm, so that computation
to communication is about the ratio that the name of a case says.

Variables of this program, for an arm: TWO_GPUS_KINDS=A,B: takes part in these kinds of cases only, so that what its
processes have seen of others does not matter; TWO_GPUS_BLAS=cublaslt: that library for products; TWO_GPUS_LEAVE=N: its
products leave N multiprocessors to others; TWO_GPUS_COUNT=1: the profiler counts all kernels of the process.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.gpu.overlap.turns import Ranks, say, serve
from tools.gpu.two_gpus_cases import (
    ALONE,
    CASES,
    STEPS,
    WARM,
    Case,
    concurrency,
    events_of,
    kernels_of,
    launches_of,
)

# ---- a rank ----


def rank_main() -> int:
    import torch
    import torch.distributed as dist

    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    counting = "TWO_GPUS_COUNT" in os.environ
    counted = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True)
    if counting:
        counted.start()
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    torch.backends.cuda.matmul.allow_tf32 = False
    if "TWO_GPUS_BLAS" in os.environ:
        torch.backends.cuda.preferred_blas_library(os.environ["TWO_GPUS_BLAS"])
    if "TWO_GPUS_LEAVE" in os.environ:
        torch._C._set_sm_carveout_experimental(int(os.environ["TWO_GPUS_LEAVE"]))
    token = torch.zeros(1, device="cuda")
    dist.all_reduce(token)
    torch.cuda.synchronize()
    cases: dict[tuple[str, int], Case] = {}

    def case_of(kind: str, size: int) -> Case:
        if (kind, size) not in cases:
            cases.clear()
            torch.cuda.empty_cache()
            cases[kind, size] = Case(kind, size)
        return cases[kind, size]

    def turn(request: dict[str, Any]) -> dict[str, Any]:
        case = case_of(request["kind"], request["size"])
        dist.all_reduce(token)
        case.timed(case.step, WARM)
        answer: dict[str, Any] = {"steps_ms": case.timed(case.step, request.get("steps", STEPS))}
        if request.get("digest"):
            answer["digest"] = case.digest()
        if request.get("alone"):
            case.communicates = False
            answer["computation_ms"] = case.timed(case.step, ALONE)
            case.communicates = True
            case.reduce_all()
            answer["communication_ms"] = case.timed(case.reduce_all, ALONE)
        if request.get("profile"):
            kinds = [torch.profiler.ProfilerActivity.CUDA]
            with torch.profiler.profile(activities=kinds) as profiler:
                case.timed(case.step, 3)
            events = events_of(profiler)
            answer["profile"] = concurrency(kernels_of(events))
            if request.get("launches"):
                answer["profile"]["launches"] = launches_of(events)
        torch.cuda.synchronize()
        return answer

    versions = {"torch": torch.__version__, "cuda": torch.version.cuda, "nccl": torch.cuda.nccl.version()}
    serve({"ready": rank, "gpu": torch.cuda.get_device_name(rank), **versions}, turn)
    cases.clear()
    torch.cuda.synchronize()
    if counting:
        counted.stop()
        say({"kernels": len(kernels_of(events_of(counted)))})
    dist.destroy_process_group()
    return 0


# ---- the one that starts them ----


class Arm(Ranks):
    """One that the command line describes."""

    def __init__(self, description: str, port: int) -> None:
        name, _, rest = description.partition(":")
        words = shlex.split(rest)
        variables = {}
        while words and "=" in words[0] and not words[0].startswith("-"):
            key, _, value = words.pop(0).partition("=")
            variables[key] = value
        self.kinds = [kind for kind in variables.get("TWO_GPUS_KINDS", "").split(",") if kind]
        super().__init__(name, [*words, sys.executable, "-m", "tools.gpu.two_gpus", "--rank"], variables, 2, port)


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def sizes(first: Arm, kinds: list[str]) -> Iterator[tuple[str, str, int]]:
    """Sizes at which computation takes about communication times the ratio, from two sizes of the first arm."""
    small, large = 1024, 4096
    for kind in kinds:
        ratios, times = CASES[kind], []
        for size in (small, large):
            answer = first.ask({"kind": kind, "size": size, "steps": 1, "alone": True})[0]
            if answer is None:
                return
            times.append((median(answer["computation_ms"]), median(answer["communication_ms"])))
        (low, communication), (high, _) = times
        power = 2 if kind == "forward_attention" else 1
        slope = (high - low) / (large**power - small**power)
        for name, ratio in ratios.items():
            wanted = (ratio * communication - low) / slope + small**power
            yield kind, name, max(128, min(32768, round(max(wanted, 1) ** (1 / power) / 128) * 128))


def main() -> int:
    if sys.argv[1:] == ["--rank"]:
        return rank_main()
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--limit", type=float, default=120, help="seconds after which no further case is begun")
    parser.add_argument("--only", action="append", choices=list(CASES), help="kinds of cases")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--launches", action="store_true", help="with --profile: every launch of it")
    parser.add_argument("--arm", action="append", required=True)
    options = parser.parse_args()
    begun = time.monotonic()
    arms = [Arm(description, 29600 + index) for index, description in enumerate(options.arm)]
    result: dict[str, Any] = {"arms": {}, "cases": []}
    for arm in arms:
        ready = arm.answers(120)
        result["arms"][arm.name] = {"ready": ready}
    print(f"[{time.monotonic() - begun:.0f}s] all ready", file=sys.stderr, flush=True)
    for kind, ratio, size in list(sizes(arms[0], options.only or list(CASES))):
        if time.monotonic() - begun > options.limit:
            print("no time for", kind, ratio, file=sys.stderr)
            continue
        case: dict[str, Any] = {"kind": kind, "ratio": ratio, "size": size, "arms": {}}
        taking_part = [arm for arm in arms if not arm.kinds or kind in arm.kinds]
        for number in range(options.rounds):
            for arm in taking_part if number % 2 == 0 else reversed(taking_part):
                last = number == options.rounds - 1
                request = {"kind": kind, "size": size, "digest": number == 0 or last, "alone": number < 2}
                kept = case["arms"].setdefault(arm.name, {"ranks": [{}, {}]})
                for rank, answer in enumerate(arm.ask(request)):
                    if answer is None:
                        continue
                    for key in ("steps_ms", "computation_ms", "communication_ms"):
                        if key in answer:
                            kept["ranks"][rank].setdefault(key, []).extend(round(v, 4) for v in answer[key])
                    if "digest" in answer:
                        kept["ranks"][rank].setdefault("digests", []).append(answer["digest"])
        result["cases"].append(case)
        options.output.write_text(json.dumps(result) + "\n")
        print(f"[{time.monotonic() - begun:.0f}s] {kind} {ratio} {size}", file=sys.stderr, flush=True)
        for name, kept in case["arms"].items():
            times = {key: values for key, values in kept["ranks"][0].items() if key != "digests"}
            line = {key: round(median(values), 3) for key, values in times.items()}
            digests = [sorted(set(rank.get("digests", ()))) for rank in kept["ranks"]]
            print(f"  {name:12} {line} {digests}", file=sys.stderr, flush=True)
    # A profiler may stay in its process, so it comes last.
    for case in result["cases"] if options.profile else ():
        if case["ratio"] == "1:1":
            for arm in arms:
                if arm.kinds and case["kind"] not in arm.kinds:
                    continue
                request = {"kind": case["kind"], "size": case["size"], "steps": 1, "profile": True}
                answer = arm.ask({**request, "launches": options.launches})[0]
                if answer:
                    case["arms"][arm.name]["profile"] = answer["profile"]
    print(f"[{time.monotonic() - begun:.0f}s] profiled", file=sys.stderr, flush=True)
    for arm in arms:
        codes = arm.end()
        errors = [[line.rstrip() for line in lines[-4:]] for lines in arm.errors]
        result["arms"][arm.name].update(exit_codes=codes, errors=errors, broken=arm.broken, last=arm.last)
        print(arm.name, codes, arm.broken, arm.last, file=sys.stderr)
    options.output.write_text(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
