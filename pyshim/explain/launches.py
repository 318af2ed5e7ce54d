"""Kernels that a run or a trace launched, and what would be done with each, weighed by time or number of launches.

Nothing is run, and no GPU is needed. In: a report folder or traces; out: Use.
"""

from __future__ import annotations

import fnmatch
import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pyshim.errors import USAGE, OverlapError
from pyshim.explain import communication, kernels, planner
from pyshim.explain.answer import Explainer, gpu_called
from pyshim.explain.communication import Block
from pyshim.explain.kernels import trace_name
from pyshim.explain.planner import Decision, Footprint
from pyshim.explain.request import COMMUNICATION, Request, read
from pyshim.explain.screen import plural
from pyshim.policy import library
from pyshim.policy.gpus import KnownGpu, known
from pyshim.report.collect import Collected, collect
from pyshim.traces import TracedLaunch, open_trace
from pyshim.traces.measured import read_side
from pyshim.traces.names import driver_name, is_communication
from pyshim.traces.waiting import Found, find

# What a launch comes to, best first.
BESIDE, WINDOW, LATER, NEVER, LEFT, UNKNOWN = "beside", "window", "later", "never", "left", "unknown"
OUTCOMES = (BESIDE, WINDOW, LATER, NEVER, LEFT, UNKNOWN)

_OF_REASON = {"room_already": BESIDE, "shaped": WINDOW, "capped_without_room": NEVER}
_LARGEST, _LARGEST_GRID = 2**32 - 1, 2**64 - 1
_NAMED = 3  # kernels, of those that are in a trace
# As the library leaves them out of what it measures of communication (shim/gpu/device.c).
_ONE_RANK, _NEARLY_ALL = "*oneRankReduce*", 0.9


class Kernel(NamedTuple):
    """Launches that are alike. None: not known."""

    name: str  # as the driver gives it
    library: str
    communication: bool
    blocks: int | None  # of the grid
    threads: int | None
    registers: int | None
    static: int | None
    dynamic: int | None

    @property
    def footprint(self) -> Footprint | None:
        """One block, if all its numbers are known."""
        if self.threads is None or self.registers is None or self.static is None or self.dynamic is None:
            return None
        return Footprint(self.threads, self.registers, self.static, self.dynamic)


class Weight(NamedTuple):
    """Launches, and their time on the GPU."""

    launches: int = 0
    microseconds: float = 0.0

    def plus(self, launches: int, microseconds: float) -> Weight:
        """Return the sum."""
        return Weight(self.launches + launches, self.microseconds + microseconds)


class Overlap(NamedTuple):
    """What a trace says of communication: microseconds of a step, or of all that is in it, on average."""

    steps: bool
    span: float
    communication: float
    hidden: float  # of it, beside computation
    simulated: bool


@dataclass(frozen=True)
class Launched:
    """Everything that was launched on GPUs of one kind. timed: the microseconds are known."""

    source: str  # what it was read from
    gpus: Sequence[str]  # their names, as drivers say them
    kernels: Mapping[Kernel, Weight]
    timed: bool
    policy: str | None = None  # under which it ran
    notes: Sequence[str] = ()
    overlap: Overlap | None = None  # None: it was not measured, or nothing communicates
    templates: int = 0  # kernels whose names lack their template's arguments, as a profiler wrote them

    def weigh(self, weight: Weight) -> float:
        """Return what shares are of: microseconds, or launches if no time was measured."""
        return weight.microseconds if self.timed else weight.launches


@dataclass(frozen=True)
class Judged:
    """What would be done with the launches of one kernel."""

    kernel: Kernel
    weight: Weight
    outcome: str
    decision: Decision
    when: str | None = None  # the policy's rule shapes it then; None: no rule does


@dataclass(frozen=True)
class Use:
    """What would be done with everything that was launched."""

    launched: Launched
    gpu: KnownGpu
    communication: Block
    judged: Sequence[Judged]  # computation, the most of it first
    request: Request  # what requests about its kernels have in common
    talking: Weight  # what the communication kernels took
    settings: Mapping[str, Mapping[str, Weight]]  # of its library, on all ranks: the totals of computation then
    waiting: Sequence[Found] = ()  # of each trace

    def totals(self) -> dict[str, Weight]:
        """Return the weight of each outcome."""
        return _totals(self.judged)

    def only(self) -> Request | None:
        """Return, if all launches are of one kernel whose numbers are known, the request about its commonest."""
        first = self.judged[0].kernel
        if first.footprint is None or any(one.kernel._replace(blocks=first.blocks) != first for one in self.judged):
            return None
        request = self.request.of(self.gpu.key, first.name, first.library or None, first.footprint)
        return request._replace(blocks=first.blocks).beside(self.communication.takes)


def of_traces(paths: Sequence[str]) -> Launched:
    """Return what all traces hold together. Raise OverlapError."""
    found: dict[Kernel, Weight] = {}
    gpus: list[str] = []
    notes: list[str] = []
    templates: set[str] = set()
    for path in paths:
        trace = open_trace(path)
        devices: set[int] = set()
        alike: dict[TracedLaunch, Weight] = {}
        for launch in trace.launches():
            devices.add(launch.device)
            # Without what differs from launch to launch and is not asked about.
            key = launch._replace(device=0, stream="", start_us=0, end_us=0, process=None, correlation=None)
            alike[key] = alike.get(key, Weight()).plus(1, max(0.0, launch.end_us - launch.start_us))
        for launch, weight in alike.items():
            if "<" in launch.kernel.split("(")[0]:
                templates.add(launch.kernel)
            kernel = as_kernel(launch)
            found[kernel] = found.get(kernel, Weight()).plus(*weight)
        gpus += [trace.gpus[device] for device in sorted(devices) if device in trace.gpus]
        notes += trace.warnings
        if any(launch.static_shared_memory is None and launch.shared_memory is not None for launch in alike):
            one = "has static and dynamic shared memory as one number: sizes are of both together"
            notes.append(f"{trace_name(path)} {one}")
    source = trace_name(paths[0]) if len(paths) == 1 else f"{len(paths)} traces"
    if not found:
        hint = "torch.profiler records them with activities=[ProfilerActivity.CUDA, ...], nsys with --trace=cuda"
        raise OverlapError(f"{source}: no kernel of a GPU in it", "; ".join(notes) or hint, USAGE)
    overlap = _overlap(paths) if any(kernel.communication for kernel in found) else None
    return Launched(source, gpus, found, True, notes=notes, overlap=overlap, templates=len(templates))


def _overlap(paths: Sequence[str]) -> Overlap:
    """Return the mean over all steps, or over all GPUs if some have no steps."""
    sides = [read_side(path) for path in paths]
    gpus = [gpu for side in sides for rank in side.ranks.values() for gpu in rank]
    steps = all(gpu.steps is not None for gpu in gpus)
    times = [one for gpu in gpus for one in gpu.times]
    count = len(times) if steps else len(gpus)
    span, communication, hidden = (
        sum(values) / count for values in zip(*((one.span, one.communication, one.hidden) for one in times))
    )
    return Overlap(steps, span, communication, hidden, any(side.simulated for side in sides))


def as_kernel(launch: TracedLaunch) -> Kernel:
    """Return the kernel of a launch, without numbers that no launch can have."""
    static, dynamic = launch.static_shared_memory, launch.dynamic_shared_memory
    if static is None and launch.shared_memory is not None:
        static, dynamic = 0, launch.shared_memory
    numbers = (_number(value) for value in (launch.threads, launch.registers, static, dynamic))
    return Kernel(driver_name(launch.kernel), "", launch.communication, _number(launch.blocks, _LARGEST_GRID), *numbers)


def _number(value: object, largest: int = _LARGEST) -> int | None:
    """Return the number, or None if no launch can have it: a file may say anything."""
    return value if isinstance(value, int) and 0 <= value <= largest else None


def of_run(directory: str) -> Launched:
    """Return what all processes of a report folder launched. Raise OverlapError."""
    collected = collect(directory)
    found: dict[Kernel, Weight] = {}
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
            communication = row.reason == "communication" or is_communication(row.kernel)
            told = row.threads > 0 and row.registers > 0
            footprint = (row.threads, row.registers, row.static_shared_memory, row.dynamic_shared_memory)
            numbers = footprint if told else (None, None, None, None)
            kernel = Kernel(row.kernel, row.library, communication, row.blocks or None, *numbers)
            found[kernel] = found.get(kernel, Weight()).plus(row.launches, 0.0)
    if not found:
        hint = f"overlap report {directory} says what there is"
        raise OverlapError(f"{directory}: no launch of a kernel with a name in its pages", hint, USAGE)
    notes = ["grids are those of each kernel's last launch"]
    if nameless:
        notes.append(f"{nameless:,} launches of kernels without a name are left out")
    return Launched(directory, gpus, found, False, _policy(collected, policies), notes)


def _policy(collected: Collected, names: Sequence[str]) -> str | None:
    """Return what --policy would be: the file if it still exists, else the name; None for several policies or none."""
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


def judge(launched: Launched, asked: Mapping[str, object], pattern: str | None, explainer: Explainer) -> Use:
    """Return what would be done with everything that was launched. Raise OverlapError, and Mistake for wrong options.

    asked: options, of which `gpu` and `policy` override what the run or the trace says; pattern: of kernels.
    """
    if asked.get("policy") is None and launched.policy and not {"shape", "keep_at_least"} & asked.keys():
        asked = {**asked, "policy": launched.policy}
    request = read(asked)
    gpu = _gpu(launched, request)
    if request.policy is not None:
        explainer.check_for(request.policy, gpu)
    block = _communication(launched, gpu, request)
    matches = kernels.matcher(pattern) if pattern is not None else lambda name: True
    own, talking = [], Weight()
    for kernel, weight in launched.kernels.items():
        if kernel.communication:
            talking = talking.plus(*weight)
        elif matches(kernel.name) or matches(kernels.readable(kernel.name)):  # as it is shown
            own.append((kernel, weight))
    if not own:
        what = f"no kernel in it is called like {pattern}" if pattern else "no kernel in it computes"
        ordered = sorted(launched.kernels.items(), key=lambda item: (-item[1].microseconds, -item[1].launches))
        names = list(dict.fromkeys(kernels.readable(kernel.name) for kernel, _ in ordered if not kernel.communication))
        some = f"{', '.join(names[:_NAMED])}{', ...' if len(names) > _NAMED else ''}"
        hint = f"{plural(len(names), 'kernel')} in it: {some}"
        hint = hint if names else "all that ran is communication, which is never shaped"
        raise OverlapError(f"{launched.source}: {what}", hint, USAGE)

    def judge_all(block: Block) -> list[Judged]:
        common = request.beside(block.takes)
        return [_judged(kernel, weight, gpu, common, explainer) for kernel, weight in own]

    judged = sorted(judge_all(block), key=lambda one: -launched.weigh(one.weight))
    if launched.templates and request.policy is not None:
        are = "1 kernel is a template" if launched.templates == 1 else f"{launched.templates:,} kernels are templates"
        note = f"{are} whose arguments the trace does not have as the driver says them; a rule whose pattern asks for "
        launched = replace(launched, notes=[*launched.notes, f"{note}those is not found"])
    settings = {name: _totals(judge_all(other)) for name, other in communication.settings_for(block, gpu)}
    return Use(launched, gpu, block, judged, request, talking, settings)


@functools.cache
def gpu_of_driver(name: str) -> KnownGpu | None:
    """Return the GPU with a driver's name, or whose shipped policy is for that name: H100 PCIe has h100's limits."""
    same = (gpu for gpu in known() if gpu.name == name)
    alike = (
        gpu
        for gpu in known()
        for policy in library.load(gpu.key, {})
        if any(fnmatch.fnmatchcase(name, glob) for glob in policy.gpus)
    )
    return next(same, None) or next(alike, None)


def _gpu(launched: Launched, request: Request) -> KnownGpu:
    hint = "--gpu G says it; `overlap policy list` has those that are known"
    if request.gpu is not None:
        return gpu_called(request.gpu)
    names = list(dict.fromkeys(launched.gpus))
    if not names:
        raise OverlapError(f"{launched.source} does not say on which GPU it was", hint, USAGE)
    found = {name: gpu_of_driver(name) for name in names}
    strange = next((name for name, gpu in found.items() if gpu is None), None)
    if strange is not None:
        raise OverlapError(f"{launched.source} is of {strange}, whose limits are not known", hint, USAGE)
    gpus = {gpu for gpu in found.values() if gpu is not None}
    if len(gpus) > 1:
        raise OverlapError(f"{launched.source} is of several kinds of GPU: {', '.join(names)}", hint, USAGE)
    return gpus.pop()


def _communication(launched: Launched, gpu: KnownGpu, request: Request) -> Block:
    """Return the block as given; else the most that its own communication kernels take; else the usual one."""
    if not request.said.isdisjoint(COMMUNICATION):
        request.need(COMMUNICATION)
    given = communication.given_block(request)
    if given:
        return given
    ran_on = [other.vendor for name in launched.gpus if (other := gpu_of_driver(name))]
    own = [
        kernel.footprint
        for kernel in launched.kernels
        if kernel.communication and kernel.footprint and not fnmatch.fnmatchcase(kernel.name, _ONE_RANK)
    ]
    most = gpu.shared_memory_per_block * _NEARLY_ALL
    own = [block for block in own if block.static + block.dynamic <= most]
    if not own or gpu.vendor not in (ran_on or [gpu.vendor]):  # another library communicates on another vendor's GPU
        return communication.usual_block(gpu)
    largest = Footprint(*(max(column) for column in zip(*own)))
    return Block("its own communication kernels, the most that they take", largest)


def _judged(kernel: Kernel, weight: Weight, gpu: KnownGpu, common: Request, explainer: Explainer) -> Judged:
    if kernel.footprint is None:
        return Judged(kernel, weight, UNKNOWN, Decision("leave", "unknown_footprint"))
    request = common.of(gpu.key, kernel.name, kernel.library or None, kernel.footprint)
    found = explainer.look(request._replace(blocks=kernel.blocks))
    control, reason = found.decision.control, found.decision.reason
    outcome = _OF_REASON.get(reason) or (LATER if control == "priority" else "")
    if not outcome:
        outcome = NEVER if reason.startswith("no_room_") or reason == "below_keep" else LEFT
    when = found.rule.when if found.acts and found.rule and common.policy is not None else None
    return Judged(kernel, weight, outcome, found.decision, when)


def weight_of(judged: Iterable[Judged]) -> Weight:
    """Return the sum of the weights."""
    found = Weight()
    for one in judged:
        found = found.plus(*one.weight)
    return found


def _totals(judged: Sequence[Judged]) -> dict[str, Weight]:
    return {outcome: weight_of(one for one in judged if one.outcome == outcome) for outcome in OUTCOMES}


def waits_of(paths: Sequence[str], gpu: KnownGpu) -> list[Found]:
    """Return the priority inversions of each trace, by the limits of this GPU. Raise OverlapError."""

    @functools.cache
    def blocks(block: Footprint) -> int | None:
        return planner.occupancy(gpu, block)[0] * gpu.multiprocessors or None  # 0: it cannot have been launched

    def resident(launch: TracedLaunch) -> int | None:
        block = as_kernel(launch).footprint
        return None if block is None else blocks(block)

    return [find(path, resident) for path in paths]
