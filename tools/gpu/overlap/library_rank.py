"""One rank of libraries.py: makes a cell, runs it as it is asked to, and says what each sample took.

Three streams: `main` for computation, `side` on which the collective is called (PyTorch then runs it on a stream of
its own), and that one; chosen so that no two of them share a hardware queue, or nothing would overlap. A sample begins
behind a short kernel that only waits, so that the host is ahead of the GPU, and with two ranks behind a collective, so
that both begin at once. Communication is ready where computation's own event says so; its time is from there to its
end, its waiting included.

How a cell can be run (`way`): computation, communication, sequential (the collective on main's turn), plain,
order (the collective is launched first, and computation waits for ORDER_US behind what it waits for, so that the
collective is placed by then), sm-target (cuBLASLt is asked to leave multiprocessors alone), copy-engine
(cudaMemcpyAsync instead of the collective). priority, or '+priority' behind it: with a process group whose stream has
the greatest priority.
"""

from __future__ import annotations

import gc
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from tools.gpu.overlap.computations import Computation
from tools.gpu.overlap.turns import serve
from tools.gpu.two_gpus_cases import digest_of, events_of, kernels_of

ORDER_US, CYCLES_A_US = 10.0, 1980.0
TIMES = {"one": 1, "loop": 8, "pairs": 8, "step": 4, "graph": 4}  # collectives of a cell


class Collective:
    """Bytes that this rank sends: to itself where it is alone, else all of a sum over the ranks."""

    def __init__(self) -> None:
        self.groups = {"": dist.group.WORLD}
        self.alone = dist.get_world_size() == 1
        self.source = self.target = torch.empty(0, device="cuda", dtype=torch.bfloat16)
        self.copied: Any = None

    def size(self, count: int) -> None:
        """Buffers for count bytes."""
        values = count // 2
        if values == self.source.numel():
            return
        self.source = self.target = torch.empty(0, device="cuda", dtype=torch.bfloat16)
        self.copied = None
        torch.manual_seed(20 + dist.get_rank())
        self.source = torch.randn(values, device="cuda", dtype=torch.bfloat16)
        self.target = torch.empty_like(self.source)
        self.reset()

    def reset(self) -> None:
        if self.alone:
            self.target.zero_()
        else:
            self.target.copy_(self.source)

    def group(self, name: str) -> Any:
        """Made when it is wanted: a program that sets priorities itself is left alone by the rule."""
        if name not in self.groups:
            options = dist.ProcessGroupNCCL.Options(is_high_priority_stream=True)
            self.groups[name] = dist.new_group(backend="nccl", pg_options=options)
        return self.groups[name]

    def start(self, group: str) -> None:
        """On the current stream, which then waits for it."""
        values, chosen = self.source.numel(), self.group(group)
        if self.alone:  # explicit splits, or it is a copy
            work = dist.all_to_all_single(self.target, self.source, [values], [values], group=chosen, async_op=True)
        else:
            work = dist.all_reduce(self.target, op=dist.ReduceOp.AVG, group=chosen, async_op=True)
        work.wait()

    def copy(self) -> None:
        """The same bytes to the next GPU; that memory is taken where it is wanted."""
        if self.copied is None:
            where = torch.device("cuda", (torch.cuda.current_device() + 1) % dist.get_world_size())
            self.copied = self.target if self.alone else torch.empty_like(self.source, device=where)
        self.copied.copy_(self.source, non_blocking=True)


class Cell:
    """One computation beside collectives, in one pattern. Everything is made while `main` is the current stream."""

    def __init__(self, computation: Computation, collective: Collective, side: Any, pattern: str, leave: int) -> None:
        self.computation, self.collective, self.pattern, self.leave = computation, collective, pattern, leave
        self.main, self.side = torch.cuda.current_stream(), side
        self.sent: Any = None  # event behind the last collective
        self.graphs: dict[str, tuple[Any, list[Any]]] = {}
        self.marks: dict[str, list[tuple[Any, Any]]] = {}
        self.timing = False

    def run(self, way: str) -> None:
        """Launch all of it; main waits for all of it."""
        if way in self.graphs:
            self.graphs[way][0].replay()
            return
        self.way = way.partition("+")[0]
        self.group = "priority" if "priority" in way else ""
        torch._C._set_sm_carveout_experimental(self.leave if self.way == "sm-target" else None)
        body: Callable[[], None] = getattr(self, {"graph": "step", "one": "pairs"}.get(self.pattern, self.pattern))
        body()
        torch._C._set_sm_carveout_experimental(None)

    def pairs(self) -> None:
        """Computation and collective begin together; both are needed before the next two."""
        for _ in range(TIMES[self.pattern]):
            ready = self.mark(self.main)
            if self.way == "order":
                self.communicate(ready)
                self.delay()
                self.compute()
            else:
                self.compute()
                self.communicate(ready)
            self.join()

    def loop(self) -> None:
        """A collective behind each computation, beside the next one."""
        for _ in range(TIMES[self.pattern]):
            self.compute()
            self.communicate(self.mark(self.main))
            self.delay()
        self.join()

    def step(self) -> None:
        """Collectives when gradients are there."""

        def ready() -> None:  # by a thread of autograd
            with torch.cuda.stream(self.main):
                self.communicate(self.mark(self.main))
                self.delay()

        self.computation.ready = ready
        if self.way == "communication":
            for _ in range(TIMES[self.pattern]):
                ready()
        self.compute()
        self.join()

    def delay(self) -> None:
        if self.way == "order":
            torch.cuda._sleep(int(ORDER_US * CYCLES_A_US))

    def compute(self) -> None:
        if self.way != "communication":
            before = self.mark(self.main)
            self.computation.body()
            self.keep("computation", before, self.mark(self.main))

    def communicate(self, ready: Any) -> None:
        if self.way == "computation":
            return
        if self.way == "sequential":
            ready = self.mark(self.main)
            self.collective.start(self.group)
            self.keep("communication", ready, self.mark(self.main))
            return
        self.side.wait_event(ready)
        with torch.cuda.stream(self.side):
            if self.way == "copy-engine":
                self.collective.copy()
            else:
                self.collective.start(self.group)
        self.sent = self.mark(self.side)
        self.keep("communication", ready, self.sent)

    def join(self) -> None:
        if self.sent is not None:
            self.main.wait_event(self.sent)
            self.sent = None

    def mark(self, stream: Any) -> Any:
        event = torch.cuda.Event(enable_timing=self.timing)
        event.record(stream)
        return event

    def keep(self, part: str, before: Any, after: Any) -> None:
        if self.timing:
            self.marks.setdefault(part, []).append((before, after))

    def prepare(self, ways: list[str]) -> float:
        """Run all of them, and capture graphs; return the host's ms for the slowest, over all ranks."""
        slowest = 0.0
        for way in ways:
            for _ in range(3):
                begun = time.perf_counter()
                self.run(way)
                last = time.perf_counter() - begun
                torch.cuda.synchronize()
            if self.pattern == "graph":
                made = torch.cuda.CUDAGraph()
                with torch.cuda.graph(made, stream=self.main):
                    self.run(way)
                self.graphs[way] = (made, list(self.computation.results))
                last = 0.1e-3
            slowest = max(slowest, last)
        longest = torch.tensor([slowest * 1e3], device="cuda")
        dist.all_reduce(longest, op=dist.ReduceOp.MAX)
        return float(longest.item())

    def sample(self, way: str, ahead_ms: float) -> dict[str, float]:
        """ms of the whole and, where they can be told apart, of its parts."""
        self.timing, self.marks = self.pattern != "graph", {}
        if not self.collective.alone:
            dist.all_reduce(TOKEN[0])
        torch.cuda._sleep(int((ahead_ms + 0.1) * 1e3 * CYCLES_A_US))
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        self.run(way)
        end.record()
        torch.cuda.synchronize()
        made = {"ms": start.elapsed_time(end)}
        for part, pairs in self.marks.items() if self.timing else ():
            made[f"{part}_ms"] = sum(before.elapsed_time(after) for before, after in pairs)
        self.timing, self.marks = False, {}
        return {key: round(value, 4) for key, value in made.items()}

    def check(self, way: str) -> str:
        """Return a digest of the results of computation and communication, from the same initial data."""
        self.computation.reset()
        self.collective.reset()
        self.run(way)
        torch.cuda.synchronize()
        results = self.graphs[way][1] if way in self.graphs else self.computation.results
        other = [] if way in ("computation", "copy-engine") else [self.collective.target]
        return str(digest_of([] if way == "communication" else results)) + str(digest_of(other))

    def close(self) -> None:
        for graph, _ in self.graphs.values():
            graph.reset()  # or taking the communicator down waits for ever
        self.graphs.clear()


TOKEN: list[Any] = []


class Rank:
    """Answers requests; keeps the last computation and the last cell."""

    def __init__(self, collective: Collective, side: Any) -> None:
        self.collective, self.side = collective, side
        self.computation: Computation | None = None
        self.cell: Cell | None = None

    def forget(self) -> None:
        torch.cuda.synchronize()
        if self.cell is not None:
            self.cell.close()
        self.cell = self.computation = None
        self.collective.size(0)
        gc.collect()  # closures of a computation refer to it
        torch.cuda.empty_cache()

    def make(self, kind: str, pattern: str, count: int, leave: int) -> Cell:
        if self.computation is None or self.computation.kind != kind or pattern == "graph":
            self.forget()
            self.computation = Computation(kind)
        if self.cell is not None:
            self.cell.close()
        self.collective.size(count)
        self.cell = Cell(self.computation, self.collective, self.side, pattern, leave)
        return self.cell

    def turn(self, request: dict[str, Any]) -> dict[str, Any]:
        """do: prepare, samples, check, alone (how long parts take by themselves), kernels (from a profile), forget."""
        answer = getattr(self, request.pop("do"))(**request)
        torch.cuda.synchronize()
        return answer or {}

    def prepare(self, kind: str, pattern: str, bytes: int, leave: int, ways: list[str]) -> dict[str, Any]:
        self.ahead = self.make(kind, pattern, bytes, leave).prepare(ways) * 1.2
        return {"host_ms": self.ahead}

    def samples(self, ways: list[str]) -> dict[str, Any]:
        assert self.cell is not None
        self.cell.sample(ways[0], self.ahead)  # others had the GPU meanwhile
        return {way: self.cell.sample(way, self.ahead) for way in ways}

    def check(self, ways: list[str]) -> dict[str, Any]:
        assert self.cell is not None
        return {way: self.cell.check(way) for way in ways}

    def alone(self, kind: str, pattern: str, sizes: list[int]) -> dict[str, Any]:
        """Medians of 5: of the computation, and of all the cell's collectives of each size."""
        found = []
        for count in sizes:
            cell = self.make(kind, pattern, count, 0)
            ahead = cell.prepare(["computation", "communication"])
            for way in ("computation", "communication"):
                found.append(sorted(cell.sample(way, ahead)["ms"] for _ in range(5))[2])
        return {"computation_ms": found[0], "communication_ms": found[1::2]}

    def kernels(self, kind: str) -> dict[str, Any]:
        """The longest kernel of each: what a launch of it takes."""
        cell = self.make(kind, "step" if kind == "llama" else "one", 64 << 20, 0)
        cell.prepare(["sequential"])
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
            cell.run("sequential")
            torch.cuda.synchronize()
        events = kernels_of(events_of(profiler))
        parts = {"communication": [e for e in events if "nccl" in e["name"]]}
        parts["computation"] = [e for e in events if "nccl" not in e["name"]]
        return {part: facts_of(max(them, key=lambda e: e["dur"])) for part, them in parts.items() if them}

    def end(self) -> None:
        self.forget()
        self.collective.groups.clear()


def facts_of(event: dict[str, Any]) -> dict[str, Any]:
    """static and dynamic shared memory are one number in a profile."""
    arguments = event["args"]
    return {
        "symbol": str(event["name"])[:160],
        "threads": math.prod(arguments["block"]),
        "registers": arguments.get("registers per thread"),
        "shared": arguments.get("shared memory"),
        "blocks": math.prod(arguments["grid"]),
    }


def passes(collective: Collective, main: Any, side: Any) -> bool:
    """Can a collective overtake, on all ranks, what main does meanwhile? Not where streams share a hardware queue."""
    before, after, end = (torch.cuda.Event(enable_timing=True) for _ in range(3))
    with torch.cuda.stream(main):
        before.record()
        torch.cuda._sleep(int(3e3 * CYCLES_A_US))
        end.record()
    side.wait_event(before)
    with torch.cuda.stream(side):
        collective.start("")
        after.record()
    torch.cuda.synchronize()
    early = torch.tensor([float(after.elapsed_time(end) > 0.5)], device="cuda")
    dist.all_reduce(early, op=dist.ReduceOp.MIN)
    return bool(early.item())


def two_streams(collective: Collective) -> tuple[Any, Any, int]:
    """Return main, side, and how many pairs were tried until a collective could pass; -1 if it never could."""
    tries = 0
    for _ in range(4):
        main = torch.cuda.Stream()
        for _ in range(4):
            side = torch.cuda.Stream()
            tries += 1
            if passes(collective, main, side):
                return main, side, tries
    return main, side, -1


def main() -> int:
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # or PyTorch refuses to promise the same bits
    place = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(place)
    dist.init_process_group("nccl", device_id=torch.device("cuda", place))
    TOKEN.append(torch.zeros(1, device="cuda"))
    collective = Collective()
    collective.size(1 << 20)
    collective.start("")
    torch.cuda.synchronize()
    stream, side, tries = two_streams(collective)
    with torch.cuda.stream(stream):
        rank = Rank(collective, side)
        serve({"rank": dist.get_rank(), "gpu": torch.cuda.get_device_name(), "tries": tries}, rank.turn)
        rank.end()
        torch.cuda.synchronize()
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
