"""What `make bench` launches: one row each, with its budget."""

from __future__ import annotations

from dataclasses import dataclass

POLICY = """policy: 1
name: bench
when: always
communication: {priority: highest}
compute:
  - match: {kernel: "shaped*"}
    shape: {blocks_per_sm: 1}
"""
# With overlap windows.
WINDOWS = POLICY.replace("when: always", "when: overlapping")

# Priority until a sign that it may cost: each thread looks for signs behind its collectives.
AUTO = WINDOWS.replace("priority: highest", "priority: auto")

# And streams that somebody waits for are raised.
CRITICAL = f"{WINDOWS}critical: auto\n"

# Only communication itself is looked at.
OBSERVE = "policy: 1\nname: bench\ncommunication: {priority: inherit}\n"

Settings = tuple[tuple[str, str], ...]
SEVERAL: Settings = (("NULL_DEVICES", "2"),)
CAPTURING: Settings = (("NULL_CAPTURING", "1"),)
TABLE: Settings = (("NULL_TABLE", "1"),)


@dataclass(frozen=True)
class Case:
    """One row: what is launched, and the budget that holds for it (nanoseconds, instructions)."""

    name: str
    way: str
    call: str
    kernel: str
    nanoseconds: float | None
    instructions: int | None
    driver: Settings = ()
    every: int = 0  # calls between two launches of communication on another stream; 0: none
    windows: bool = False
    program: str = "launch"
    kernels: int = 0  # launched in turn; 0: 64 of them
    sizes: int = 1  # of each kernel
    threads: int = 0  # 0: as many as `--threads` says
    critical: bool = False  # a stream that the host waits for every so many calls
    auto: bool = False  # `priority: auto`
    observe: bool = False

    @property
    def policy(self) -> str:
        if self.observe:
            return OBSERVE
        return CRITICAL if self.critical else AUTO if self.auto else WINDOWS if self.windows else POLICY

    @property
    def more(self) -> list[str]:
        """The arguments behind the number of calls."""
        if self.kernels:
            return [str(self.every), str(self.kernels), str(self.sizes)]
        return [str(self.every)] if self.every else []

    @property
    def calls(self) -> int:
        """How many calls one thread makes: every launch several times, in each part that is timed."""
        return max(2_000_000 // (self.threads or 1), 40 * self.kernels * self.sizes)


def hip(
    name: str,
    way: str,
    call: str,
    kernel: str,
    nanoseconds: float | None,
    instructions: int | None,
    driver: Settings = (),
    every: int = 0,
    windows: bool = False,
) -> Case:
    return Case(f"HIP: {name}", way, call, kernel, nanoseconds, instructions, driver, every, windows, "launch_hip")


def critical(name: str, call: str, nanoseconds: float | None = None) -> Case:
    return Case(f"critical: {name}", "proc_address", call, "plain", nanoseconds, None, every=256, critical=True)


def spaced(name: str, kernel: str, every: int, nanoseconds: float | None = None) -> Case:
    """Return a row of launches with a collective, and the record of an event, every so many of them."""
    name = f"windows: {name}, a collective every {every}"
    return Case(name, "proc_address", "kernel", kernel, nanoseconds, None, every=every, windows=True, auto=True)


def asleep(name: str, call: str, observe: bool = True) -> Case:
    """Return a row without any communication: nothing follows from what its calls order."""
    return Case(
        f"asleep: {name}", "proc_address", call, "plain", None, None, threads=1, critical=not observe, observe=observe
    )


def many(name: str, kernels: int, sizes: int = 1, threads: int = 0) -> Case:
    """Return a row of many kernels, sizes or threads, each of which may cost twice what the first row costs."""
    return Case(name, "proc_address", "kernel", "plain", 6, None, kernels=kernels, sizes=sizes, threads=threads)


CASES = (
    Case("left alone, by symbol", "symbol", "kernel", "plain", 3, 60),
    Case("left alone, by dlsym", "dlsym", "kernel", "plain", 3, 60),
    Case("left alone, by cuGetProcAddress", "proc_address", "kernel", "plain", 3, 60),
    Case("shaped and proven", "proc_address", "kernel", "shaped", 3, 60),
    Case("left alone, cuLaunchKernelEx", "proc_address", "ex", "plain", 3, 60),
    Case("rebuilt: shaped, cuLaunchKernelEx", "proc_address", "ex", "shaped", 10, None),
    Case("rebuilt: priority raised", "proc_address", "kernel", "ncclDevKernel", 10, None),
    Case("rebuilt: priority raised, cuLaunchKernelEx", "proc_address", "ex", "ncclDevKernel", 10, None),
    Case("not yet proven (a stream that captures)", "proc_address", "kernel", "shaped", 10, None, CAPTURING),
    Case("several devices, CUkernel", "proc_address", "cukernel", "plain", None, None, SEVERAL),
    many("one kernel", 1),
    many("one kernel of 64 sizes", 1, 64),
    many("one kernel of 1,000 sizes", 1, 1000),
    many("1,000 kernels", 1000),
    many("20,000 kernels", 20_000),
    many("100,000 kernels", 100_000),
    many("64 kernels, 33 threads", 64, 1, 33),
    many("64 kernels, 256 threads", 64, 1, 256),
    Case("windows: a step of nine calls", "proc_address", "step", "shaped", None, None, (), 0, True),
    Case("windows: left alone", "proc_address", "kernel", "plain", 6, None, (), 256, True),
    Case("windows: outside", "proc_address", "kernel", "shaped", 6, None, (), 0, True),
    Case("windows: inside", "proc_address", "kernel", "shaped", 6, None, (), 256, True),
    Case("windows: inside, cuLaunchKernelEx", "proc_address", "ex", "shaped", 10, None, (), 256, True),
    Case("windows: outside, cuLaunchKernelEx", "proc_address", "ex", "shaped", 6, None, (), 0, True),
    spaced("left alone", "plain", 20, 6),
    spaced("left alone", "plain", 5),
    spaced("inside", "shaped", 20, 6),
    Case("windows: communication, raised", "proc_address", "kernel", "ncclDevKernel", 15, None, (), 0, True),
    Case("windows: event record", "proc_address", "record", "plain", 15, None, (), 256, True),
    Case("windows: stream wait", "proc_address", "wait", "plain", 15, None, (), 256, True),
    critical("a launch on another stream while one is raised", "beside"),
    critical("a launch on the raised stream", "critical"),
    critical("the host waits for the raised stream", "synchronize"),
    critical("event query", "query"),
    asleep("event record", "record"),
    asleep("stream wait", "wait"),
    asleep("the host waits for a stream", "synchronize"),
    asleep("event query", "query"),
    asleep("blocking copy", "copy"),
    asleep("an exchange through the host", "exchange"),
    asleep("an exchange through the host, critical: auto", "exchange", observe=False),
    hip("left alone, by symbol", "symbol", "launch", "plain", 3, 60),
    hip("left alone, by dlsym", "dlsym", "launch", "plain", 3, 60),
    hip("left alone, by hipGetProcAddress", "proc_address", "launch", "plain", 3, 60),
    hip("left alone, hipModuleLaunchKernel", "proc_address", "module", "plain", 3, 60),
    hip("left alone, hipExtLaunchKernel", "symbol", "ext", "plain", 3, 60),
    hip("left alone, hipExtModuleLaunchKernel", "symbol", "ext_module", "plain", 3, 60),
    hip("shaped and proven", "symbol", "launch", "shaped", 3, 60),
    hip("shaped and proven, hipModuleLaunchKernel", "proc_address", "module", "shaped", 3, 60),
    hip("shaped and proven, hipExtModuleLaunchKernel", "symbol", "ext_module", "shaped", 3, 60),
    hip("by symbol and the runtime's table", "symbol", "launch", "plain", 6, None, TABLE),
    hip("by symbol and the runtime's table, hipModuleLaunchKernel", "symbol", "module", "plain", 6, None, TABLE),
    hip("not yet proven (a stream that captures)", "symbol", "launch", "shaped", 10, None, CAPTURING),
    hip("communication", "symbol", "ext", "ncclDevKernel", 10, None),
    hip("several devices", "symbol", "launch", "plain", None, None, SEVERAL),
    hip("several devices, hipModuleLaunchKernel", "proc_address", "module", "plain", None, None, SEVERAL),
    hip("windows: left alone", "symbol", "launch", "plain", 6, None, (), 256, True),
    hip("windows: outside", "symbol", "launch", "shaped", 6, None, (), 0, True),
    hip("windows: inside", "symbol", "launch", "shaped", 6, None, (), 256, True),
    hip("windows: inside, hipExtModuleLaunchKernel", "symbol", "ext_module", "shaped", 6, None, (), 256, True),
    hip("windows: communication", "symbol", "ext", "ncclDevKernel", None, None, (), 0, True),
    hip("windows: event record", "symbol", "record", "plain", None, None, (), 256, True),
    hip("windows: stream wait", "symbol", "wait", "plain", None, None, (), 256, True),
)
