"""What a GPU does while a raised block fits nowhere: does overlap-run know it here?"""

from __future__ import annotations

from collections.abc import Iterator

from pyshim.doctor import gpus
from pyshim.doctor.line import Line, ok, warn
from pyshim.doctor.machine import Machine
from pyshim.launch import dispatch, driver

_PROBE = "overlap probe, about a second of the GPU"


def rules(machine: Machine) -> Iterator[Line]:
    names: dict[str, list[int]] = {}
    for index, gpu in enumerate(machine.cuda.gpus if machine.cuda else ()):
        names.setdefault(gpu.name, []).append(index)
    if not names:
        return
    here = {found.gpu: found for found in dispatch.answers(machine.environment, machine.root)}
    elsewhere = {found.gpu: found for found in dispatch.of_other_drivers(machine.environment, machine.root)}
    identity = driver.identity(machine.environment, machine.root)
    for name, indices in names.items():
        who = f"{gpus.numbers(indices)} ({name})"
        if name in here:
            found = here[name]
            yield ok(f"dispatch rule of {who}: {found.rule}, probed {found.date} with driver {found.driver}")
            continue
        if machine.simulated:  # it does what it is told
            continue
        other = elsewhere.get(name)
        since = f" with this driver; {other.rule} with {other.driver}, {other.date}" if other else ""
        hint = _PROBE if identity else f"{_PROBE}; write what it says into a policy: {driver.PROC} says no version here"
        yield warn(f"dispatch rule of {who}: not probed{since}, so rules with `when_dispatch` change nothing", hint)
