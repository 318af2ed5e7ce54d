"""One block of communication to plan with, and where it is known from: told, a policy's word, a file, or the newest
NCCL or RCCL whose sizes are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyshim import _native
from pyshim.errors import USAGE, OverlapError
from pyshim.explain import binaries
from pyshim.explain.answer import Explainer
from pyshim.explain.request import COMMUNICATION, NEEDED, need
from pyshim.footprints import collectives
from pyshim.footprints.collectives import Collective
from pyshim.footprints.footprint import Footprint
from pyshim.policy.gpus import KnownGpu, known

# What a request calls the numbers of a block, in their order.
NAMES = ("comm_threads", "comm_registers", "comm_static_smem", "comm_dynamic_smem", "comm_barriers", "comm_sgprs")


class Block(NamedTuple):
    name: str
    numbers: tuple[int, ...]  # in the order of NAMES
    told: bool = False  # by the options


def given(gpu: KnownGpu, values: Mapping[str, Any], explainer: Explainer) -> list[Block]:
    """As the options say it, or the policy; empty where neither does."""
    if all(name in values for name in COMMUNICATION):
        return [Block("as told", tuple(values[name] for name in NAMES), True)]
    found = explainer.footprint_of(values["policy"], explainer.gpus[gpu.key]) if "policy" in values else None
    return [Block(f"as {values['policy']} says", found)] if found else []


def newest(gpu: KnownGpu, values: Mapping[str, Any], explainer: Explainer) -> list[Block]:
    """Those of the newest library that is known, in the sizes that the policy's `all_ranks_environment` gives them."""
    return [as_set(block, gpu, values, explainer) for block in _named(collectives.newest(gpu.architecture))]


def usual(values: dict[str, Any], explainer: Explainer) -> str:
    """Fills in what nobody told of communication, and says what that is; the empty string where it was told."""
    if any(name in values for name in COMMUNICATION):
        return ""
    key = explainer.gpu_of(values)
    need(values, NEEDED)
    gpu = next(gpu for gpu in known() if gpu.key == key)
    found = given(gpu, values, explainer)
    if found:
        return found[0].name  # the policy's word, which the library takes by itself
    block = newest(gpu, values, explainer)[0]
    values.update(zip(NAMES, block.numbers))
    return block.name


def of_file(file: str, own: Sequence[Footprint], gpu: KnownGpu) -> list[Block]:
    """The collectives of a binary whose kernels for that GPU were read."""
    known = collectives.of_kernels(own, gpu.architecture)
    if not known:
        hint = "--comm-kernel PATTERN says which of its kernels communicate"
        raise OverlapError(f"{file}: no collective of NCCL or RCCL that {gpu.key} runs", hint, USAGE)
    return _named(known, Path(file).name)


def largest(file: str, own: Sequence[Footprint], pattern: str, values: Mapping[str, Any]) -> Block:
    """The most of everything that the kernels of that name take, as the library measures communication."""
    matches = binaries.called(pattern)
    found = [footprint for footprint in own if matches(footprint.kernel)]
    if not found:
        raise OverlapError(f"{file}: no kernel in it is called like {pattern}", None, USAGE)
    threads = values.get("comm_threads") or max(f.required_threads or f.max_threads or 0 for f in found)
    if not threads:
        raise OverlapError(f"{pattern}: the binary has no launch bound", "say --comm-threads T", USAGE)
    numbers = (
        threads,
        max(f.registers for f in found),
        max(f.static_shared_memory for f in found),
        values["comm_dynamic_smem"],
        max(f.barriers or 0 for f in found),
        max(f.scalars or 0 for f in found),
    )
    return Block(pattern, numbers)


def _named(found: Iterable[Collective], source: str = "") -> list[Block]:
    every = list(found)
    usual = [one for one in every if one.usual] or every
    return [
        Block(
            " ".join(filter(None, (source or one.library, one.variant, one.path and f"by {one.path}"))),
            (one.threads, one.registers, one.static, one.dynamic, one.barriers, one.scalars),
        )
        for one in usual
    ]


def as_set(block: Block, gpu: KnownGpu, values: Mapping[str, Any], explainer: Explainer) -> Block:
    """With those of the policy's settings for all ranks that make blocks of its library smaller."""
    settings = explainer.settings_of(values["policy"], explainer.gpus[gpu.key]) if "policy" in values else {}
    said = {f"{name}={value}" for name, value in settings.items()}
    smaller = (found for name, found in settings_for(block, gpu, explainer) if said.issuperset(name.split(" with ")))
    return next(smaller, block)


def settings_for(block: Block, gpu: KnownGpu, explainer: Explainer) -> Iterator[tuple[str, Block]]:
    """Settings of its library that make the block smaller, and what it is then."""
    library, index, device = _native.library(), 0, explainer.gpus[gpu.key]
    before, after = (_native.ffi.new("struct overlap_footprint *", block.numbers) for _ in range(2))
    while (found := library.overlap_knob(index, device, before, after)) != _native.ffi.NULL:
        index += 1
        name = _native.text(found)
        numbers = (after.threads, after.registers, after.static_shared, after.dynamic_shared, *block.numbers[4:])
        if numbers != block.numbers:
            yield name, Block(f"{block.name}, {name.split(' with ')[0]}", numbers)
