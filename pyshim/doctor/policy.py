"""Is there a policy for the GPUs that are here, among those that overlap-run would take?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pyshim import _native
from pyshim.doctor import gpus
from pyshim.doctor.line import Line, fail, ok
from pyshim.doctor.machine import Machine
from pyshim.errors import OverlapError
from pyshim.launch import plan, policies
from pyshim.launch.environment import AUTO
from pyshim.policy import layout


class _Taken(NamedTuple):
    said: str
    names: list[str]  # of the policies in the table, where they are known
    data: bytes


def policy(machine: Machine) -> Iterator[Line]:
    if machine.policy is None and plan.switched_off(machine.environment):
        return
    wanted = plan.wanted(machine.policy, machine.environment)
    try:
        around = wanted is None and machine.environment.get("OVERLAP_TABLE")
        taken = _around(around) if around else _asked(wanted, machine)
    except OverlapError as error:
        said = f"{plan.CHOICE}={wanted}: " if machine.policy is None and wanted else ""
        yield fail(f"{said}{error.sentence}", error.hint or "overlap policy check FILE says everything about it")
        return
    found = gpus.alike(machine.gpus())
    if not found:
        count = f" ({len(taken.names)} policies)" if len(taken.names) > 1 else ""
        yield ok(f"{taken.said}{count} is valid; which GPU it would be for is not known here")
    for gpu, indices in found.items():
        who = f"{gpus.numbers(indices)} ({gpu.name})"
        index = _for(taken.data, gpu)
        if index is None:
            sentence = f"{taken.said}: no policy in it is for {who}: everything would be counted and left alone"
            yield fail(sentence, "the policy `default` is for every GPU")
        else:
            name = taken.names[index] if len(taken.names) > 1 else "it"
            yield ok(f"{taken.said}: {name} is for {who}")


def _around(text: str) -> _Taken:
    """Read a table of this version. Raises OverlapError for any other."""
    hint = "OVERLAP_TABLE is set by overlap-run, `overlap env` and the like of one version: unset it, and use this one"
    try:
        data = layout.decode(text)
    except OverlapError as error:
        raise OverlapError(f"OVERLAP_TABLE: {error.sentence}", hint) from error
    wrong = _native.library().overlap_table_check(data, len(data))
    if wrong != _native.ffi.NULL:
        raise OverlapError(f"OVERLAP_TABLE: {_native.text(wrong)}", hint)
    return _Taken("the policy from around this command (overlap-run, a module, a prolog)", [], data)


def _asked(wanted: str | None, machine: Machine) -> _Taken:
    chosen = policies.choose(wanted, machine.environment)
    names = [str(item["name"]) for item in chosen.described]
    asked = wanted or (names[0] if len(names) == 1 else AUTO)
    return _Taken(f"policy {asked}", names, layout.decode(chosen.table))


def _for(data: bytes, gpu: gpus.Gpu) -> int | None:
    return policies.index_for(data, gpu.name, gpu.architecture)
