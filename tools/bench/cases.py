"""What `make bench` calls: one row each, with its budget (design: a launch 10 ns, a wait or question 40 ns, a decision
made for the first time 2 us)."""

from __future__ import annotations

from dataclasses import dataclass

LAUNCH, CALL, FIRST = 10.0, 40.0, 2000.0  # nanoseconds
STREAM = 400.0  # of all calls in the life of a stream

DEFAULT = "policy: 1\nname: bench\nstreams: {raise: auto}\n"
OBSERVE = "policy: 1\nname: bench\nstreams: {raise: off}\n"
SHAPING = """policy: 1
name: bench
compute:
  - match: {kernel: "shaped*"}
    shape: {blocks_per_sm: 1}
    when: always
"""
# With overlap windows.
WINDOWS = SHAPING.replace("    when: always\n", "")

Settings = tuple[tuple[str, str], ...]
TABLE: Settings = (("NULL_TABLE", "1"),)
NOT_READY: Settings = (("NULL_NOT_READY", "1"),)
NO_CONTEXT: Settings = (("NULL_NO_CONTEXT", "1"),)
OFF: Settings = (("OVERLAP_RUN", "off"),)


@dataclass(frozen=True)
class Case:
    """One row: what is called under which policy, and its budget in nanoseconds a call (None: none)."""

    name: str
    call: str
    nanoseconds: float | None
    kernel: str = "plain"
    way: str = "proc_address"
    policy: str = DEFAULT
    program: str = "launch"
    streams: int = 0  # alive; 0: two for each thread
    kernels: int = 0  # launched in turn; 0: 64 of them
    sizes: int = 1  # of each kernel
    threads: int = 0  # 0: as many as `--threads` says
    all_calls: int = 2_000_000  # of all threads
    driver: Settings = ()

    @property
    def more(self) -> list[str]:
        """The arguments behind the number of calls."""
        several = [str(self.kernels), str(self.sizes)] if self.kernels else []
        return [str(self.streams), *several] if self.streams or several else []

    @property
    def calls(self) -> int:
        """How many calls one thread makes: every launch several times, in each part that is timed."""
        return max(self.all_calls // (self.threads or 1), 40 * self.kernels * self.sizes)


def hip(name: str, call: str, budget: float | None, kernel: str = "plain", **more: object) -> Case:
    given = {"way": "symbol", "policy": SHAPING, **more}
    return Case(f"HIP: {name}", call, budget, kernel, program="launch_hip", **given)  # type: ignore[arg-type]


def many(name: str, kernels: int, sizes: int = 1, threads: int = 0, budget: float | None = None) -> Case:
    return Case(name, "kernel", budget, kernels=kernels, sizes=sizes, threads=threads)


def alive(name: str, call: str) -> list[Case]:
    """Return rows with 1, 100 and 10,000 streams alive (of the first, two)."""
    return [
        Case(f"{name}, {streams:,} streams", call, CALL, streams=streams, threads=1) for streams in (1, 100, 10_000)
    ]


CASES = (
    Case("launch, by symbol", "kernel", LAUNCH, way="symbol"),
    Case("launch, by dlsym", "kernel", LAUNCH, way="dlsym"),
    Case("launch, by cuGetProcAddress", "kernel", LAUNCH),
    Case("launch, by the shared CUDA runtime", "kernel", LAUNCH, way="runtime"),
    Case("launch, cuLaunchKernelEx", "ex", LAUNCH),
    Case("launch, CUkernel", "cukernel", LAUNCH),
    Case("launch, observe", "kernel", LAUNCH, policy=OBSERVE),
    Case("launch, shaped", "kernel", LAUNCH, "shaped", policy=SHAPING),
    Case("launch, shaped, cuLaunchKernelEx", "ex", LAUNCH, "shaped", policy=SHAPING),
    Case("launch, outside a window", "kernel", LAUNCH, "shaped", policy=WINDOWS),
    Case("launch, inside a window", "inside", LAUNCH, "shaped", policy=WINDOWS, threads=1),
    Case("launch of communication", "kernel", LAUNCH, "ncclDevKernel", threads=1),
    Case("launch on a raised stream", "raised", LAUNCH, threads=1),
    # NVIDIA's driver 580 takes calls on a stream that is given by its handle, where no context is current.
    Case("launch, no context is current", "kernel", LAUNCH, threads=1, driver=NO_CONTEXT),
    Case("launch, no context is current, observe", "kernel", LAUNCH, policy=OBSERVE, threads=1, driver=NO_CONTEXT),
    Case("launch, from 8 libraries in turn by the shared CUDA runtime", "libraries", CALL, way="runtime", threads=1),
    # What a process pays that has turned the library off.
    Case("launch, OVERLAP_RUN=off, by symbol", "kernel", LAUNCH, way="symbol", threads=1, driver=OFF),
    Case("launch, OVERLAP_RUN=off, by cuGetProcAddress", "kernel", LAUNCH, threads=1, driver=OFF),
    Case("launch, OVERLAP_RUN=off, by the shared CUDA runtime", "kernel", LAUNCH, way="runtime", threads=1, driver=OFF),
    Case("launch, 10,000 streams", "kernel", LAUNCH, streams=10_000, threads=1),
    Case("launch, on 16 streams in turn", "turns", LAUNCH, streams=16, threads=1),
    Case("launch, on 100 streams in turn", "turns", None, streams=100, threads=1),
    many("launch, one kernel", 1, budget=LAUNCH),
    many("launch, one kernel of 64 sizes", 1, 64, budget=LAUNCH),
    many("launch, one kernel of 8,000 sizes", 1, 8000),
    *(many(f"launch, {kernels:,} kernels", kernels, budget=LAUNCH) for kernels in (300, 1000, 4000)),
    many("launch, 100,000 kernels", 100_000),
    *(many(f"launch, 64 kernels, {threads} threads", 64, 1, threads, LAUNCH) for threads in (64, 128, 256)),
    *alive("event record", "record"),
    *alive("stream waits for an event", "wait"),
    *alive("the host waits for a stream", "synchronize"),
    *(
        Case(f"the host waits for a stream, {threads} threads", "synchronize", CALL, threads=threads)
        for threads in (8, 64)
    ),
    Case("the host waits for a stream, observe", "synchronize", CALL, policy=OBSERVE, threads=1),
    Case("the host waits for a stream, no context is current", "synchronize", CALL, threads=1, driver=NO_CONTEXT),
    Case("event record, no context is current", "record", CALL, threads=1, driver=NO_CONTEXT),
    *alive("event query", "query"),
    Case("event query, not ready", "query", CALL, threads=1, driver=NOT_READY),
    *alive("stream query", "poll"),
    Case("stream query, not ready", "poll", CALL, threads=1, driver=NOT_READY),
    *alive("blocking copy", "copy"),
    *alive("allocation and release", "allocate"),
    *alive("question of occupancy", "occupancy"),
    Case("question of occupancy, a policy that shapes", "occupancy", CALL, policy=SHAPING, threads=1),
    Case("cuCtxSetCacheConfig, the same value", "cache", CALL, threads=1),
    Case("cuCtxSetCacheConfig, a policy that shapes", "cache", CALL, policy=SHAPING, threads=1),
    Case("cuStreamGetPriority", "priority", CALL, threads=1),
    Case("an event is created, recorded, destroyed", "event", 3 * CALL, threads=1),
    Case("the primary context is retained and released", "retain", 2 * CALL, threads=1),
    Case("a context is pushed and popped", "push", 2 * CALL, threads=1),
    *(
        # Services that load modules all day: no two kernels have the same name.
        Case(
            f"a module is loaded, launched once, unloaded, a name of {length}",
            "module",
            FIRST,
            "n" * (length - 10),
            threads=1,
            all_calls=200_000,
        )
        for length in (20, 300)
    ),
    *(
        Case(f"a stream is created, used, destroyed, {streams:,} streams", "stream", STREAM, streams=streams, threads=1)
        for streams in (1, 100, 10_000)
    ),
    *(
        # Communication opens a window, and the wait closes it, so the launch is decided anew each time.
        Case(
            f"a window, and a wait for the context, {streams:,} streams",
            "context",
            None,
            policy=WINDOWS,
            streams=streams,
            threads=1,
        )
        for streams in (1, 100, 10_000)
    ),
    # CoMD-CUDA paid 1,774 ns a launch in 0.2.0 (observe): cuCtxSetCacheConfig, twice a step, made all decisions anew.
    Case("CoMD's step, of each of 15 launches", "comd", LAUNCH + 5 * CALL / 15, threads=1),
    Case("the same, observe", "comd", LAUNCH + 5 * CALL / 15, policy=OBSERVE, threads=1),
    Case("the same, and its questions of occupancy", "comd_asks", LAUNCH + 20 * CALL / 15, threads=1),
    Case("the same, a policy that shapes", "comd_asks", None, "shaped", policy=SHAPING, threads=1),
    Case("a first launch", "first", FIRST, threads=1, kernels=20_000),
    Case("a first launch, observe", "first", FIRST, policy=OBSERVE, threads=1, kernels=20_000),
    Case("a first launch, shaped", "first", FIRST, "shaped", policy=SHAPING, threads=1, kernels=20_000),
    hip("launch, by symbol", "launch", LAUNCH),
    hip("launch, by dlsym", "launch", LAUNCH, way="dlsym"),
    hip("launch, by hipGetProcAddress", "launch", LAUNCH, way="proc_address"),
    hip("launch, hipModuleLaunchKernel", "module", LAUNCH, way="proc_address"),
    hip("launch, hipExtLaunchKernel", "ext", LAUNCH),
    hip("launch, hipExtModuleLaunchKernel", "ext_module", LAUNCH),
    hip("launch, shaped", "launch", LAUNCH, "shaped"),
    hip("launch, shaped, hipExtModuleLaunchKernel", "ext_module", LAUNCH, "shaped"),
    hip("launch, by symbol and the runtime's table", "launch", 2 * LAUNCH, driver=TABLE),
    hip("launch, inside a window", "launch", LAUNCH, "shaped", policy=WINDOWS, streams=1, threads=1),
    hip("event record", "record", CALL, threads=1),
    hip("stream waits for an event", "wait", CALL, threads=1),
    hip("the host waits for a stream", "synchronize", CALL, threads=1),
)
