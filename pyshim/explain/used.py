"""Kernels that were launched, by a run of ours or in a trace that somebody has: what would be done with each launch,
weighed by their number and, where it is known, their time on the GPU. Nothing is run, and no GPU is needed."""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pyshim.errors import USAGE, OverlapError
from pyshim.explain import beside, binaries
from pyshim.explain.answer import Explainer
from pyshim.explain.beside import Block
from pyshim.explain.parts import plural
from pyshim.explain.request import Mistake, read
from pyshim.explain.shape import named
from pyshim.policy import library
from pyshim.policy.gpus import KnownGpu, known, matching
from pyshim.traces.waiting import Found

# What a launch comes to, best first.
BESIDE, WINDOW, LATER, NEVER, LEFT, UNKNOWN = "beside", "window", "later", "never", "left", "unknown"
OUTCOMES = (BESIDE, WINDOW, LATER, NEVER, LEFT, UNKNOWN)
_OF_REASON = {"room_already": BESIDE, "entry_already": BESIDE, "shaped": WINDOW, "capped_without_room": NEVER}
_NAMED = 3  # kernels, of those that are in a trace
# As the library leaves them out of what it measures of communication (shim/vendor/common/device.c).
_ONE_RANK, _NEARLY_ALL = "*oneRankReduce*", 0.9


class Kernel(NamedTuple):
    """Of launches that are alike. None: not known."""

    name: str  # as the driver gives it
    library: str
    communication: bool
    blocks: int | None  # of the grid
    threads: int | None
    registers: int | None
    static: int | None
    dynamic: int | None

    @property
    def footprint(self) -> tuple[int, ...] | None:
        """Threads, registers, static and dynamic bytes."""
        numbers = (self.threads, self.registers, self.static, self.dynamic)
        return tuple(number for number in numbers if number is not None) if None not in numbers else None


@dataclass
class Weight:
    launches: int = 0
    microseconds: float = 0.0

    def add(self, other: Weight) -> None:
        self.launches += other.launches
        self.microseconds += other.microseconds


class Overlap(NamedTuple):
    """What a trace says of communication: microseconds of a step, or of all that is in it, on average."""

    steps: bool
    span: float
    communication: float
    hidden: float  # of it, beside computation
    simulated: bool


@dataclass
class Launched:
    """Everything that was launched on GPUs of one kind. timed: the microseconds are known."""

    source: str  # what it was read from
    gpus: Sequence[str]  # their names, as drivers say them
    kernels: dict[Kernel, Weight]
    timed: bool
    policy: str | None = None  # under which it ran
    notes: list[str] = field(default_factory=list)
    overlap: Overlap | None = None  # None: nobody measured it, or nothing communicates
    templates: int = 0  # kernels whose names lack their template's arguments, as a profiler wrote them


class Judged(NamedTuple):
    kernel: Kernel
    weight: Weight
    outcome: str
    control: str
    reason: str
    dynamic: int
    blocks: int
    native: int
    when: str | None = None  # the policy's rule shapes it then; None: no rule does


@dataclass
class Use:
    launched: Launched
    gpu: KnownGpu
    rule: str
    communication: Block
    judged: list[Judged]  # computation, the most of it first
    asked: dict[str, object]  # what requests about one of its kernels have in common
    talking: Weight  # what the communication kernels took
    settings: dict[str, dict[str, Weight]]  # of its library, on all ranks: what would become of computation then
    waiting: list[Found] = field(default_factory=list)  # of each trace

    def totals(self) -> dict[str, Weight]:
        return _totals(self.judged)

    def only(self) -> dict[str, object] | None:
        """Where all launches are of one kernel whose numbers are known, the request about its commonest."""
        first = self.judged[0].kernel
        if first.footprint is None or any(one.kernel._replace(blocks=first.blocks) != first for one in self.judged):
            return None
        return {**self.asked, **dict(zip(beside.NAMES, self.communication.numbers)), **_request(first)}

    def weigh(self, weight: Weight) -> float:
        """What shares are of: time, or launches where nobody measured time."""
        return weight.microseconds if self.launched.timed else weight.launches


def judge(launched: Launched, asked: Mapping[str, object], pattern: str | None, explainer: Explainer) -> Use:
    """asked: options, of which `gpu` and `policy` stand over what the run or the trace says. Raises OverlapError, and
    Mistake for options that are wrong."""
    if asked.get("policy") is None and launched.policy and not {"shape", "keep_at_least"} & asked.keys():
        asked = {**asked, "policy": launched.policy}
    values = read(asked)
    gpu = _gpu(launched, values, explainer)
    values["gpu"] = gpu.key
    if "policy" in values:
        explainer.check_for(values["policy"], gpu.key)
    block = _communication(launched, gpu, values, explainer)
    matches = binaries.called(pattern) if pattern is not None else lambda name: True
    own, talking = [], Weight()
    for kernel, weight in launched.kernels.items():
        if kernel.communication:
            talking.add(weight)
        elif matches(kernel.name) or matches(binaries.readable(kernel.name)):  # as it is shown
            own.append((kernel, weight))

    def judge_all(block: Block) -> list[Judged]:
        asked = {**values, **dict(zip(beside.NAMES, block.numbers))}
        return [_judged(kernel, weight, asked, explainer) for kernel, weight in own]

    judged = judge_all(block)
    if not judged:
        what = f"no kernel in it is called like {pattern}" if pattern else "no kernel in it computes"
        raise OverlapError(f"{launched.source}: {what}", _names_in(launched), USAGE)
    if launched.templates and "policy" in values:
        are = "1 kernel is a template" if launched.templates == 1 else f"{launched.templates:,} kernels are templates"
        launched.notes.append(
            f"{are} whose arguments the trace does not have as the driver says them; a rule whose pattern asks for "
            "those is not found"
        )
    settings = {name: _totals(judge_all(other)) for name, other in beside.settings_for(block, gpu, explainer)}
    common = {**asked, "gpu": gpu.key}
    use = Use(launched, gpu, named(values), block, judged, common, talking, settings)
    judged.sort(key=lambda one: -use.weigh(one.weight))
    return use


def _names_in(launched: Launched) -> str:
    """What could have been asked for."""
    ordered = sorted(launched.kernels.items(), key=lambda item: (-item[1].microseconds, -item[1].launches))
    names = list(dict.fromkeys(binaries.readable(kernel.name) for kernel, _ in ordered if not kernel.communication))
    if not names:
        return "all that ran is communication, which is never shaped"
    return f"{plural(len(names), 'kernel')} in it: {', '.join(names[:_NAMED])}{', ...' if len(names) > _NAMED else ''}"


@functools.cache
def gpu_called(name: str) -> KnownGpu | None:
    """The one that is known under a driver's name, or whose default policy is for it: H100 PCIe has h100's limits."""
    same = next((gpu for gpu in known() if gpu.name == name), None)
    if same is not None:
        return same
    for policy in library.load(library.AUTO, {}):
        if any(fnmatch.fnmatchcase(name, glob) for glob in policy.gpus):
            return next(iter(matching(policy.gpus)), None)
    return None


def _gpu(launched: Launched, values: Mapping[str, Any], explainer: Explainer) -> KnownGpu:
    hint = "--gpu G says it; `overlap gpus` lists those that are known"
    if "gpu" in values:
        key = explainer.key_of(values["gpu"])
        return next(gpu for gpu in known() if gpu.key == key)
    names = list(dict.fromkeys(launched.gpus))
    if not names:
        raise OverlapError(f"{launched.source} does not say on which GPU it was", hint, USAGE)
    found = {name: gpu_called(name) for name in names}
    strange = next((name for name, gpu in found.items() if gpu is None), None)
    if strange is not None:
        raise OverlapError(f"{launched.source} is of {strange}, whose limits are not known", hint, USAGE)
    gpus = {gpu for gpu in found.values() if gpu is not None}
    if len(gpus) > 1:
        raise OverlapError(f"{launched.source} is of several kinds of GPU: {', '.join(names)}", hint, USAGE)
    return gpus.pop()


def _communication(launched: Launched, gpu: KnownGpu, values: dict[str, Any], explainer: Explainer) -> Block:
    """As told; else the most that its own communication kernels take; else the usual."""
    told = [name for name in values if name in ("comm_threads", "comm_registers")]
    if len(told) == 1:
        raise Mistake("", "missing required option", "", tuple({"comm_threads", "comm_registers"} - set(told)))
    given = beside.given(gpu, values, explainer)
    if given:
        return given[0]
    ran_on = [other.vendor for name in launched.gpus if (other := gpu_called(name))]
    if gpu.vendor not in (ran_on or [gpu.vendor]):
        return beside.newest(gpu, values, explainer)[0]  # another library communicates there
    most = explainer.gpus[gpu.key].shared_optin * _NEARLY_ALL
    found = [
        kernel.footprint
        for kernel in launched.kernels
        if kernel.communication and kernel.footprint and not fnmatch.fnmatchcase(kernel.name, _ONE_RANK)
    ]
    found = [numbers for numbers in found if numbers[2] + numbers[3] <= most]
    if not found:
        return beside.newest(gpu, values, explainer)[0]
    numbers = tuple(max(column) for column in zip(*found))
    own = Block("its own communication kernels, the most that they take", (*numbers, 0, 0))
    return beside.as_set(own, gpu, values, explainer)


def _judged(kernel: Kernel, weight: Weight, values: Mapping[str, Any], explainer: Explainer) -> Judged:
    if kernel.footprint is None:
        return Judged(kernel, weight, UNKNOWN, "leave", "unknown_footprint", 0, 0, 0)
    found: dict[str, Any] = explainer.look({**values, **_request(kernel), "asked": kernel.dynamic})
    control, reason = found["control"], found["reason"]
    outcome = _OF_REASON.get(reason) or (LATER if control == "priority" else "")
    if not outcome:
        outcome = NEVER if reason.startswith("no_room_") or reason == "below_keep" else LEFT
    size, blocks = found["dynamic_shared_memory"], found["blocks"]
    rule = found["rule"] if "policy" in values else None
    when = rule["when"] if rule and rule["shape"] != "leave" else None
    return Judged(kernel, weight, outcome, control, reason, size, blocks, found["native_blocks"], when)


def _request(kernel: Kernel) -> dict[str, object]:
    """About a kernel whose numbers are known."""
    request: dict[str, object] = {"kernel": kernel.name, **({"library": kernel.library} if kernel.library else {})}
    request.update(zip(("threads", "registers", "static_smem", "dynamic_smem"), kernel.footprint or ()))
    return request if kernel.blocks is None else {**request, "blocks": kernel.blocks}


def _totals(judged: Sequence[Judged]) -> dict[str, Weight]:
    found = {outcome: Weight() for outcome in OUTCOMES}
    for one in judged:
        found[one.outcome].add(one.weight)
    return found


def by_reason(found: Sequence[Judged], outcome: str) -> dict[str, Weight]:
    """What an outcome consists of."""
    weights: dict[str, Weight] = {}
    for one in found:
        if one.outcome == outcome:
            weights.setdefault(one.reason, Weight()).add(one.weight)
    return weights
