"""Times kernels of two priorities on one GPU. Run as a program of its own, never imported: a driver may hang or crash.

    python -I -S measure.py LIBRARY DEVICE SECONDS DESCRIPTOR    # one JSON object to the descriptor

A grid of low priority has many waves, PER_SM blocks on each multiprocessor, and its blocks do not end together. While
it runs, a stream of high priority launches HIGHS blocks one after another, each of which needs a multiprocessor for
itself, and before them one that is no larger than a block of the grid: the control, which must get in at once wherever
priority counts for anything. Between them are gaps: a block so small that it always fits, so that the grid can fill
what was freed. Nothing is read but events: a simulated GPU, where kernels are not executed, has those, too.

No unit is absolute: the block time is that of the grid alone over its waves. Nothing of the package is known here.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from ctypes import byref, c_char_p, c_float, c_int, c_uint, c_void_p, create_string_buffer

PER_SM = 8  # blocks of the grid on a multiprocessor: many, so that holding all of them back costs the grid something
WAVES = 24
HIGHS = 6  # in a grid; with their gaps and waits they take less than it does under every rule that lets them in
TRIALS = 20
FEWEST = 3  # multiprocessors: of two, the one that drains for a high block is half of all that hold would stop
THREADS = 128
BLOCK_US = 100.0
GAPS = (2.0, 1.7, 2.3)  # block times, in turn
HIGH = 0.1  # block times
_SMALL_THREADS = 32
LEFT_FREE = 4096  # bytes of a multiprocessor's shared memory, for the gap's block
CARVEOUT_MOST = 100  # kernels of different carve-outs do not meet on a multiprocessor: tools/gpu/results/carveout.json
# CUdevice_attribute, CUfunction_attribute and flags of cuda.h 13.0.
_ATTRIBUTES = {
    "multiprocessors": 16,
    "threads": 39,
    "priorities": 78,
    "shared": 81,
    "shared_of_a_block": 97,
    "shared_reserved": 111,
}
_MAX_DYNAMIC, CARVEOUT = 8, 9
NON_BLOCKING = 1


class Failed(Exception):
    """A call of the driver that answered something else than 0."""


class Driver:
    def __init__(self, path: str) -> None:
        self.library = ctypes.CDLL(path)

    def __call__(self, name: str, *arguments: object) -> None:
        code = getattr(self.library, name)(*arguments)
        if code:
            text = c_char_p()
            self.library.cuGetErrorName(code, byref(text))
            raise Failed({"error": code, "name": (text.value or b"").decode(), "call": name})


class Times:
    """Pairs of events, read when everything has ended."""

    def __init__(self, cuda: Driver) -> None:
        self.cuda, self.events = cuda, [c_void_p() for _ in range(2 * HIGHS + 4)]
        for event in self.events:
            cuda("cuEventCreate", byref(event), 0)
        self.used = 0

    def record(self, stream: c_void_p) -> c_void_p:
        event = self.events[self.used]
        self.used += 1
        self.cuda("cuEventRecord", event, stream)
        return event

    def between(self, first: c_void_p, second: c_void_p) -> float:
        """Return the microseconds between two events."""
        found = c_float()
        self.cuda("cuEventElapsedTime", byref(found), first, second)
        return found.value * 1e3


class Gpu:
    def __init__(self, cuda: Driver, index: int, ptx: bytes) -> None:
        self.cuda = cuda
        device = c_int()
        cuda("cuDeviceGet", byref(device), index)
        self.limits = {}
        for word, number in _ATTRIBUTES.items():
            value = c_int()
            cuda("cuDeviceGetAttribute", byref(value), number, device)
            self.limits[word] = value.value
        bus = create_string_buffer(64)
        cuda("cuDeviceGetPCIBusId", bus, len(bus), device)
        self.bus = bus.value.decode()
        context = c_void_p()
        cuda("cuDevicePrimaryCtxRetain", byref(context), device)
        cuda("cuCtxSetCurrent", context)
        self.least, self.greatest = c_int(), c_int()
        cuda("cuCtxGetStreamPriorityRange", byref(self.least), byref(self.greatest))
        self.whole = self.limits["shared_of_a_block"]
        per_block = (self.limits["shared"] - LEFT_FREE) // PER_SM // 128 * 128
        self.part = per_block - self.limits["shared_reserved"]
        # Some threads of a multiprocessor are left, too; compute capability 7.5 has 1024.
        self.threads = THREADS if self.limits["threads"] > PER_SM * THREADS else THREADS // 2
        self.grid = WAVES * PER_SM * self.limits["multiprocessors"]
        self.module, self.streams = c_void_p(), (c_void_p(), c_void_p())
        self.kernels: dict[str, c_void_p] = {}
        self.ptx = ptx

    @property
    def obstacle(self) -> str:
        """Why the question cannot be put to it; empty: it can."""
        if not self.limits["priorities"] or self.least.value == self.greatest.value:
            return "no-priorities"
        if self.limits["multiprocessors"] < FEWEST:
            return "few-multiprocessors"
        room = self.limits["shared"] - self.whole - self.limits["shared_reserved"]
        if room >= self.part + self.limits["shared_reserved"]:
            return "no-whole-multiprocessor"
        return ""

    def prepare(self) -> None:
        self.cuda("cuModuleLoadData", byref(self.module), c_char_p(self.ptx))
        for name in ("low", "high", "gap"):
            kernel = c_void_p()
            self.cuda("cuModuleGetFunction", byref(kernel), self.module, f"overlap_probe_{name}".encode())
            self.cuda("cuFuncSetAttribute", kernel, CARVEOUT, CARVEOUT_MOST)
            if name != "gap":
                self.cuda("cuFuncSetAttribute", kernel, _MAX_DYNAMIC, self.whole)
            self.kernels[name] = kernel
        for stream, priority in zip(self.streams, (self.least, self.greatest)):
            self.cuda("cuStreamCreateWithPriority", byref(stream), NON_BLOCKING, priority)

    def launch(self, name: str, stream: c_void_p, cycles: float, blocks: int = 1, shared: int = 0) -> None:
        argument = c_uint(int(cycles))
        parameters = (c_void_p * 1)(ctypes.cast(byref(argument), c_void_p))
        threads = _SMALL_THREADS if name == "gap" else self.threads
        grid = (c_uint(blocks), c_uint(1), c_uint(1), c_uint(threads), c_uint(1), c_uint(1))
        self.cuda("cuLaunchKernel", self.kernels[name], *grid, c_uint(shared), stream, parameters, None)

    def wait(self) -> None:
        for stream in self.streams:
            self.cuda("cuStreamSynchronize", stream)


def _alone(gpu: Gpu, times: Times, name: str, cycles: float, blocks: int, shared: int) -> float:
    """Microseconds of one launch on an idle GPU."""
    times.used, stream = 0, gpu.streams[0]
    first = times.record(stream)
    gpu.launch(name, stream, cycles, blocks, shared)
    last = times.record(stream)
    gpu.wait()
    return times.between(first, last)


def beside_grid(gpu: Gpu, times: Times, cycles: float) -> dict[str, object]:
    """Measure a grid with the control and the high blocks in it: each as start behind the grid's, and length, in us."""
    times.used, (low, high) = 0, gpu.streams
    start = times.record(low)
    gpu.launch("low", low, cycles, gpu.grid, gpu.part)
    end = times.record(low)
    pairs = []
    for number, shared in enumerate((gpu.part, *(gpu.whole,) * HIGHS)):
        gpu.launch("gap", high, GAPS[number % len(GAPS)] * cycles)
        first = times.record(high)
        gpu.launch("high", high, HIGH * cycles, 1, shared)
        pairs.append((first, times.record(high)))
    gpu.wait()
    control, *highs = [(times.between(start, first), times.between(first, last)) for first, last in pairs]
    return {"grid": times.between(start, end), "control": control, "highs": highs}


def measure(cuda: Driver, index: int, seconds: float) -> dict[str, object]:
    cuda("cuInit", 0)
    with open(os.path.join(os.path.dirname(os.path.realpath(__file__)), "kernels.ptx"), "rb") as file:
        gpu = Gpu(cuda, index, file.read())
    found: dict[str, object] = {
        "bus": gpu.bus,
        "obstacle": gpu.obstacle,
        "multiprocessors": gpu.limits["multiprocessors"],
    }
    if gpu.obstacle:
        return found
    gpu.prepare()
    times = Times(cuda)
    # The clock is not asked for: cycles are whatever the GPU makes of them, now that it has left its sleep.
    cycles = 100_000.0
    for _ in range(3):
        cycles *= BLOCK_US * WAVES / _alone(gpu, times, "low", cycles, gpu.grid, gpu.part)
        cycles = min(max(cycles, 1e3), 1e7)
    end = time.monotonic() + seconds
    high = sorted(_alone(gpu, times, "high", HIGH * cycles, 1, gpu.whole) for _ in range(5))[2]
    trials = []
    for _ in range(TRIALS):
        alone = _alone(gpu, times, "low", cycles, gpu.grid, gpu.part)
        trials.append({"alone": alone, **beside_grid(gpu, times, cycles)})
        if time.monotonic() > end:
            break
    return {**found, "waves": WAVES, "high": high, "trials": trials}


if __name__ == "__main__":
    answer: object
    try:
        answer = measure(Driver(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
    except Failed as error:
        answer = error.args[0]
    except (OSError, AttributeError) as error:
        answer = {"not_loaded": str(error)}
    os.write(int(sys.argv[4]), json.dumps(answer).encode())  # noqa: TID251 (the parent's pipe)
