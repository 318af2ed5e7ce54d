"""What was launched: read from a report folder of ours, or from traces."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pyshim import _native
from pyshim.errors import USAGE, OverlapError
from pyshim.explain.binaries import check_file
from pyshim.explain.used import Kernel, Launched, Overlap, Weight
from pyshim.report.collect import Collected, collect
from pyshim.report.runs import chosen, remark
from pyshim.traces import TracedLaunch, open_trace
from pyshim.traces.measured import read_side
from pyshim.traces.names import driver_name, is_communication

_LARGEST, _LARGEST_GRID = 2**32 - 1, 2**64 - 1
_TAKES = "it takes libraries (.so, .cubin, .fatbin, .co) and traces (.json, .json.gz, .sqlite)"
SHIPPED = {"demo": "demo-stencil", "demo-stencil": "demo-stencil", "demo-step": "demo-step"}  # recorded on two H200
_SQLITE, _GZIP = b"SQLite format 3\0", b"\x1f\x8b"


def shipped(name: str) -> str:
    """The recorded trace that ships under a name, where no file is called so; else the name itself."""
    path = _native.DEMO / f"{SHIPPED.get(name, '')}.json.gz"
    return str(path) if name in SHIPPED and not os.path.exists(name) and path.exists() else name


def called(path: str) -> str:
    """The name under which a trace ships; of others the path."""
    file = Path(path)
    name = file.name.partition(".")[0]
    return name if file.parent == _native.DEMO and name in SHIPPED.values() else path


def is_trace(path: Path) -> bool:
    """Told from a binary by its first bytes; a folder is none. Raises OverlapError where it cannot be read."""
    if os.path.isdir(path):
        return False
    check_file(path, _TAKES)
    try:
        with path.open("rb") as file:
            head = file.read(64)
    except OSError as error:
        raise OverlapError(f"{path}: cannot be read: {error.strerror or error}", _TAKES, USAGE) from None
    return head.startswith((_SQLITE, _GZIP)) or head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def of_traces(paths: Sequence[str]) -> Launched:
    """Of all of them together. Raises OverlapError."""
    kernels: dict[Kernel, Weight] = {}
    gpus: list[str] = []
    notes: list[str] = []
    templates: set[str] = set()
    for path in paths:
        trace = open_trace(path)
        devices: set[int] = set()
        known: dict[TracedLaunch, Weight] = {}
        for launch in trace.launches():
            devices.add(launch.device)
            # Whatever differs from launch to launch and is not asked about.
            alike = launch._replace(device=0, stream="", start_us=0, end_us=0, process=None, correlation=None)
            weight = known.setdefault(alike, Weight())
            weight.launches += 1
            weight.microseconds += max(0.0, launch.end_us - launch.start_us)
        for alike, weight in known.items():
            if "<" in alike.kernel.split("(")[0]:
                templates.add(alike.kernel)
            kernels.setdefault(as_kernel(alike), Weight()).add(weight)
        gpus += [trace.gpus[device] for device in sorted(devices) if device in trace.gpus]
        notes += trace.warnings
        if any(alike.static_shared_memory is None and alike.shared_memory is not None for alike in known):
            notes.append(
                f"{called(path)} has static and dynamic shared memory as one number: sizes are of both together"
            )
    source = called(paths[0]) if len(paths) == 1 else f"{len(paths)} traces"
    if not kernels:
        hint = "torch.profiler records them with activities=[ProfilerActivity.CUDA, ...], nsys with --trace=cuda"
        raise OverlapError(f"{source}: no kernel of a GPU in it", "; ".join(notes) or hint, USAGE)
    overlap = _overlap(paths) if any(kernel.communication for kernel in kernels) else None
    return Launched(source, gpus, kernels, True, notes=notes, overlap=overlap, templates=len(templates))


def _overlap(paths: Sequence[str]) -> Overlap:
    """The mean over all steps, or over all GPUs where some have no steps."""
    sides = [read_side(path) for path in paths]
    gpus = [gpu for side in sides for rank in side.ranks.values() for gpu in rank]
    steps = all(gpu.steps is not None for gpu in gpus)
    times = [one for gpu in gpus for one in gpu.times]
    count = len(times) if steps else len(gpus)
    span, communication, hidden = (
        sum(values) / count for values in zip(*((one.span, one.communication, one.hidden) for one in times))
    )
    return Overlap(steps, span, communication, hidden, any("simulated" in side.kinds for side in sides))


def as_kernel(launch: TracedLaunch) -> Kernel:
    static, dynamic = launch.static_shared_memory, launch.dynamic_shared_memory
    if static is None and launch.shared_memory is not None:
        static, dynamic = 0, launch.shared_memory
    numbers = (_number(value) for value in (launch.threads, launch.registers, static, dynamic))
    return Kernel(driver_name(launch.kernel), "", launch.communication, _number(launch.blocks, _LARGEST_GRID), *numbers)


def _number(value: object, largest: int = _LARGEST) -> int | None:
    """None for what no launch has: a file may say anything."""
    return value if isinstance(value, int) and 0 <= value <= largest else None


def of_run(directory: str) -> Launched:
    """Of all processes of a report folder. Raises OverlapError."""
    collected = chosen(collect(directory))
    kernels: dict[Kernel, Weight] = {}
    gpus: list[str] = []
    policies: list[str] = []
    nameless = 0
    for page in collected.pages:
        devices = {device.index: device for device in page.devices}
        for row in page.rows:
            device = devices.get(row.device) if row.device is not None else None
            if device is None or not row.kernel:
                nameless += row.launches
                continue
            gpus += [device.name] if device.name not in gpus else []
            policies += [device.policy] if device.policy else []
            communication = row.reason == "communication" or row.raised or is_communication(row.kernel)
            told = row.threads > 0 and row.registers > 0
            footprint = (row.threads, row.registers, row.static_shared_memory, row.dynamic_shared_memory)
            numbers = footprint if told else (None, None, None, None)
            kernel = Kernel(row.kernel, row.library, communication, row.blocks or None, *numbers)
            kernels.setdefault(kernel, Weight()).launches += row.launches
    if not kernels:
        hint = f"overlap report {directory} says what there is"
        raise OverlapError(f"{directory}: no launch of a kernel with a name in its pages", hint, USAGE)
    notes = [*remark(collected, "overlap report "), "grids are those of each kernel's last launch"]
    if nameless:
        notes.append(f"{nameless:,} launches of kernels without a name are left out")
    return Launched(directory, gpus, kernels, False, _policy(collected, policies), notes)


def _policy(collected: Collected, names: Sequence[str]) -> str | None:
    """What --policy would say: the file if it is still there, else the name. None: several policies, or none."""
    different = set(names)
    if len(different) != 1:
        return None
    name = different.pop()
    for run in collected.runs:
        for policy in run.policies:
            file = policy.get("file")
            if policy.get("name") == name and file and os.path.isfile(file):
                return file
    # What a page calls its policy is a name; a path, or a list, would lead to any file, and a pipe would be waited for.
    return None if {"/", ","} & set(name) else name
