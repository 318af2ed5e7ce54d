"""Real collectives of two GPUs beside real computation: what each arm's step takes, and whether it computes the same.

    python two_gpus.py OUTPUT.json [--rounds N] [--profile [--launches]] --arm 'NAME: [VARIABLE=VALUE ...] [COMMAND]'
    python two_gpus.py two_gpus.json --arm 'bare:' --arm 'h200: overlap-run --policy h200 --report DIR'

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
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

WIDTH, LAYERS, BATCH, WARM, STEPS, ALONE = 8192, 8, 4096, 3, 8, 5
RATIOS = {"2:1": 2.0, "1:1": 1.0, "1:2": 0.5}
CASES = {
    "backward": RATIOS,
    "pairs": {"8:1": 8.0, **RATIOS},
    "synchronous": {"1:1": 1.0},
    "blocking_calls": {"1:1": 1.0},
    "sharded": {"2:1": 2.0, "1:1": 1.0},
    "forward_attention": RATIOS,
    "simt_products": RATIOS,
}
SERVED = "answer "  # what a rank prints before an answer; all else on its output is somebody else's


# ---- a rank ----


class Case:
    """Matrices of one case, its step, and the step without communication."""

    def __init__(self, kind: str, size: int) -> None:
        import torch
        import torch.distributed as dist

        self.torch, self.dist, self.size = torch, dist, size
        torch.manual_seed(20 + dist.get_rank())
        made = {"device": "cuda", "dtype": torch.bfloat16}
        self.results: list[Any] = []
        self.step, self.reduce_all = getattr(self, kind)(made)

    def reduce(self, tensor: Any) -> Any:
        return self.dist.all_reduce(tensor, async_op=self.asynchronous) if self.communicates else None

    def wait(self, works: list[Any]) -> None:
        for work in works:
            if work is not None:
                work.wait()

    communicates = asynchronous = True

    def backward(self, made: dict[str, Any]) -> tuple[Callable[[], None], Callable[[], None]]:
        """DDP, size: tokens. A layer's two products, an elementwise kernel; its gradient is reduced beside the next."""
        torch = self.torch
        activations = torch.randn(self.size, WIDTH, **made)
        mask = torch.rand(self.size, WIDTH, **made)
        weights = [torch.randn(WIDTH, WIDTH, **made) * WIDTH**-0.5 for _ in range(LAYERS)]
        buckets = [torch.empty(WIDTH, WIDTH, **made) for _ in range(LAYERS)]
        flows = [torch.randn(self.size, WIDTH, **made) for _ in range(2)]
        seed = torch.randn(self.size, WIDTH, **made)
        self.results = buckets

        def step() -> None:
            works = []
            flows[0].copy_(seed)
            for layer in range(LAYERS):
                flow, following = flows[layer % 2], flows[1 - layer % 2]
                flow.mul_(mask)
                torch.mm(flow.t(), activations, out=buckets[layer])
                works.append(self.reduce(buckets[layer]))
                torch.mm(flow, weights[layer], out=following)
            self.wait(works)

        return step, lambda: self.wait([self.reduce(bucket) for bucket in buckets])

    def forward_attention(self, made: dict[str, Any]) -> tuple[Callable[[], None], Callable[[], None]]:
        """Grids of many waves beside sums: attention and elementwise kernels. size: tokens."""
        torch = self.torch
        heads = 64
        length = max(256, self.size)
        q, k, v = (torch.randn(1, heads, length, 64, **made) for _ in range(3))
        outputs = [torch.empty_like(q) for _ in range(LAYERS)]
        sources = [torch.randn(WIDTH, WIDTH, **made) for _ in range(LAYERS)]
        buckets = [torch.empty(WIDTH, WIDTH, **made) for _ in range(LAYERS)]
        self.results = [*buckets, *outputs]

        def step() -> None:
            works = []
            for layer in range(LAYERS):
                buckets[layer].copy_(sources[layer])
                works.append(self.reduce(buckets[layer]))
                made_now = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                torch.add(made_now, q, out=outputs[layer])
            self.wait(works)

        return step, lambda: self.wait([self.reduce(bucket) for bucket in buckets])

    def simt_products(self, made: dict[str, Any]) -> tuple[Callable[[], None], Callable[[], None]]:
        """Grids of many waves beside sums: products in float32 without tensor cores. size: tokens."""
        torch = self.torch
        made = {**made, "dtype": torch.float32}
        inner = 1024
        a = torch.randn(self.size, inner, **made)
        weight = torch.randn(inner, WIDTH, **made)
        outputs = [torch.empty(self.size, WIDTH, **made) for _ in range(2)]
        sources = [torch.randn(WIDTH // 2, WIDTH, **made) for _ in range(LAYERS)]
        buckets = [torch.empty(WIDTH // 2, WIDTH, **made) for _ in range(LAYERS)]
        self.results = [*buckets, *outputs]

        def step() -> None:
            works = []
            for layer in range(LAYERS):
                buckets[layer].copy_(sources[layer])
                works.append(self.reduce(buckets[layer]))
                torch.mm(a, weight, out=outputs[layer % 2])
            self.wait(works)

        return step, lambda: self.wait([self.reduce(bucket) for bucket in buckets])

    def pairs(self, made: dict[str, Any], halves: int = 2) -> tuple[Callable[[], None], Callable[[], None]]:
        """Tensor-parallel layers of two halves of a batch: a half's sum beside the other's products. size: hidden."""
        torch = self.torch
        hidden = self.size  # this rank's half
        up = [torch.randn(WIDTH, hidden, **made) * WIDTH**-0.5 for _ in range(LAYERS // 2)]
        down = [torch.randn(hidden, WIDTH, **made) * hidden**-0.5 for _ in range(LAYERS // 2)]
        inputs = [torch.randn(BATCH, WIDTH, **made) for _ in range(halves)]
        flows = [[torch.empty(BATCH, WIDTH, **made) for _ in range(2)] for _ in range(halves)]
        inner = [torch.empty(BATCH, hidden, **made) for _ in range(halves)]
        self.results = [flow for pair in flows for flow in pair]

        def step() -> None:
            works: list[Any] = [None] * halves
            for half in range(halves):
                flows[half][0].copy_(inputs[half])
            for layer in range(LAYERS // 2):
                for half in range(halves):
                    self.wait([works[half]])
                    source, target = flows[half][layer % 2], flows[half][1 - layer % 2]
                    torch.mm(source, up[layer], out=inner[half])
                    torch.nn.functional.relu_(inner[half])
                    torch.mm(inner[half], down[layer], out=target)
                    works[half] = self.reduce(target)
                    if halves == 1:
                        self.wait(works)
            self.wait(works)

        def reduce_all() -> None:
            self.wait([self.reduce(flows[half][1]) for _ in range(LAYERS // 2) for half in range(halves)])

        return step, reduce_all

    def synchronous(self, made: dict[str, Any]) -> tuple[Callable[[], None], Callable[[], None]]:
        """Tensor-parallel layers whose sum is waited for at once: nothing overlaps."""
        return self.pairs(made, halves=1)

    def blocking_calls(self, made: dict[str, Any]) -> tuple[Callable[[], None], Callable[[], None]]:
        """The same with async_op=False: since PyTorch 2.8 on the stream of computation itself."""
        self.asynchronous = False
        return self.pairs(made, halves=1)

    def sharded(self, made: dict[str, Any]) -> tuple[Callable[[], None], Callable[[], None]]:
        """As FSDP2: weights gathered a layer ahead on one stream, gradients scattered on another. size: tokens."""
        torch, dist = self.torch, self.dist
        rank, rows = dist.get_rank(), WIDTH // 2
        shards = [torch.randn(WIDTH, WIDTH, **made)[rank * rows :][:rows] * WIDTH**-0.5 for _ in range(LAYERS)]
        whole = [torch.zeros(WIDTH, WIDTH, **made) for _ in range(2)]
        gradients = [torch.empty(WIDTH, WIDTH, **made) for _ in range(2)]
        scattered = [torch.empty(rows, WIDTH, **made) for _ in range(LAYERS)]
        flows = [torch.randn(self.size, WIDTH, **made) for _ in range(LAYERS + 1)]
        errors = [torch.randn(self.size, WIDTH, **made) for _ in range(2)]
        seed = torch.randn(self.size, WIDTH, **made)
        self.results = [*scattered, flows[LAYERS], errors[LAYERS % 2]]
        gathers, scatters = torch.cuda.Stream(), torch.cuda.Stream()
        gathered = [torch.cuda.Event() for _ in range(2)]
        used = [torch.cuda.Event() for _ in range(2)]
        sent = [torch.cuda.Event() for _ in range(2)]

        def gather(layer: int) -> None:
            with torch.cuda.stream(gathers):
                gathers.wait_event(used[layer % 2])
                if self.communicates:
                    dist.all_gather_into_tensor(whole[layer % 2], shards[layer])
                gathered[layer % 2].record()

        def scatter(layer: int) -> None:
            scatters.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(scatters):
                if self.communicates:
                    dist.reduce_scatter_tensor(scattered[layer], gradients[layer % 2])
                sent[layer % 2].record()

        def over(order: list[int], body: Callable[[int], None]) -> None:
            gather(order[0])
            for place, layer in enumerate(order):
                if place + 1 < len(order):
                    gather(order[place + 1])
                torch.cuda.current_stream().wait_event(gathered[layer % 2])
                body(layer)

        def forward(layer: int) -> None:
            torch.mm(flows[layer], whole[layer % 2], out=flows[layer + 1])
            used[layer % 2].record()
            torch.nn.functional.relu_(flows[layer + 1])

        def backward(layer: int) -> None:
            torch.mm(errors[layer % 2], whole[layer % 2].t(), out=errors[1 - layer % 2])
            used[layer % 2].record()
            torch.cuda.current_stream().wait_event(sent[layer % 2])
            torch.mm(flows[layer].t(), errors[layer % 2], out=gradients[layer % 2])
            scatter(layer)

        def step() -> None:
            over(list(range(LAYERS)), forward)
            errors[(LAYERS - 1) % 2].copy_(seed)
            over(list(reversed(range(LAYERS))), backward)
            torch.cuda.current_stream().wait_stream(scatters)

        def reduce_all() -> None:
            for layer in range(LAYERS):
                dist.all_gather_into_tensor(whole[layer % 2], shards[layer])
                dist.all_gather_into_tensor(whole[layer % 2], shards[layer])
                dist.reduce_scatter_tensor(scattered[layer], gradients[layer % 2])

        return step, reduce_all

    def timed(self, body: Callable[[], None], count: int) -> list[float]:
        """Milliseconds of each call, by events on the stream of computation; the host runs ahead."""
        torch = self.torch
        events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
        events[0].record()
        for event in events[1:]:
            body()
            event.record()
        torch.cuda.synchronize()
        return [before.elapsed_time(after) for before, after in zip(events, events[1:])]

    def digest(self) -> str:
        torch = self.torch
        total = 0
        for index, result in enumerate(self.results):
            words = result.view(-1).view(torch.int32)
            for part in words.split(1 << 24):
                places = torch.arange(part.numel(), device="cuda", dtype=torch.int32) * -1640531527 + index
                total = (total * 31 + int((part ^ places).sum(dtype=torch.int64).item())) % (1 << 64)
        return f"{total:016x}"


def events_of(profiler: Any) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        made: list[dict[str, Any]] = json.loads(Path(path).read_text())["traceEvents"]
        return made


def kernels_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event.get("cat") == "kernel"]


def launches_of(events: list[dict[str, Any]]) -> list[list[Any]]:
    """In the order in which they were launched: name, start, microseconds, stream, blocks, threads."""
    called = {
        event["args"]["correlation"]: event["ts"]
        for event in events
        if event.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in event.get("args", {})
    }
    found = []
    for event in sorted(kernels_of(events), key=lambda event: called.get(event["args"]["correlation"], 0)):
        arguments = event["args"]
        sizes = (arguments["grid"], arguments["block"])
        blocks, threads = (size[0] * size[1] * size[2] for size in sizes)
        found.append([event["name"][:80], event["ts"], event["dur"], arguments["stream"], blocks, threads])
    return found


def concurrency(events: list[dict[str, Any]]) -> dict[str, Any]:
    """From a profile: how long NCCL's kernels ran, and how long while computation ran."""
    communication = [e for e in events if "nccl" in str(e["name"])]
    computation = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if "nccl" not in str(e["name"]))
    beside = []
    for kernel in communication:
        start, end = kernel["ts"], kernel["ts"] + kernel["dur"]
        beside.append(sum(max(0.0, min(end, stop) - max(start, begin)) for begin, stop in computation))
    kernels: dict[str, dict[str, Any]] = {}
    for event in events:
        arguments = event["args"]
        kept = kernels.setdefault(str(event["name"])[:90], {"count": 0, "us": []})
        kept["count"] += 1
        kept["us"].append(round(event["dur"], 1))
        kept.update(
            {k: arguments[k] for k in ("grid", "block", "registers per thread", "shared memory") if k in arguments}
        )
    for kept in kernels.values():
        kept["us"] = sorted(kept["us"])[len(kept["us"]) // 2]
    return {
        "communication_us": [round(e["dur"], 1) for e in communication],
        "beside_computation_us": [round(value, 1) for value in beside],
        "kernels": kernels,
    }


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
    print(SERVED + json.dumps({"ready": rank, "gpu": torch.cuda.get_device_name(rank), **versions}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if request == "end":
            break
        print(SERVED + json.dumps(turn(request)), flush=True)
    cases.clear()
    torch.cuda.synchronize()
    if counting:
        counted.stop()
        print(SERVED + json.dumps({"kernels": len(kernels_of(events_of(counted)))}), flush=True)
    dist.destroy_process_group()
    return 0


# ---- the one that starts them ----


class Arm:
    def __init__(self, description: str, port: int) -> None:
        self.name, _, rest = description.partition(":")
        words = shlex.split(rest)
        variables = {}
        while words and "=" in words[0] and not words[0].startswith("-"):
            key, _, value = words.pop(0).partition("=")
            variables[key] = value
        self.kinds = [kind for kind in variables.get("TWO_GPUS_KINDS", "").split(",") if kind]
        self.said: list[Queue[str]] = []
        self.errors: list[list[str]] = [[], []]
        self.processes = []
        for rank in range(2):
            environment = {
                **os.environ,
                **variables,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": "2",
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
            }
            command = [*words, sys.executable, os.path.abspath(__file__), "--rank"]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            process: Any = subprocess.Popen(command, env=environment, **pipes)  # type: ignore[call-overload, unused-ignore]
            self.processes.append(process)
            self.said.append(Queue())
            Thread(target=self.listen, args=(process, self.said[rank]), daemon=True).start()
            Thread(target=self.errors[rank].extend, args=(process.stderr,), daemon=True).start()
        self.broken = ""

    def listen(self, process: Any, said: Queue[str]) -> None:
        for line in process.stdout:
            if line.startswith(SERVED):
                said.put(line[len(SERVED) :])
        said.put("null")

    def answers(self, patience: float) -> list[Any]:
        made: list[Any] = []
        end = time.monotonic() + patience
        for said in self.said:
            try:
                made.append(json.loads(said.get(timeout=max(0.1, end - time.monotonic()))))
            except Empty:
                made.append(None)
        if None in made and not self.broken:
            self.broken = "no answer"
            print(f"{self.name}: no answer", *(errors[-3:] for errors in self.errors), file=sys.stderr)
        return made

    def ask(self, request: Any, patience: float = 40) -> list[Any]:
        if self.broken:
            return [None, None]
        for process in self.processes:
            try:
                process.stdin.write(json.dumps(request) + "\n")
                process.stdin.flush()
            except OSError:
                self.broken = "ended"
        return self.answers(patience)

    def end(self) -> list[int]:
        for process in self.processes:
            try:
                process.stdin.write('"end"\n')
                process.stdin.close()
            except OSError:
                pass
        codes = []
        for process in self.processes:
            try:
                codes.append(process.wait(timeout=30))
            except subprocess.TimeoutExpired:
                process.kill()
                codes.append(-999)
        self.last = [json.loads(said.get(timeout=10)) for said in self.said]
        return codes


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
