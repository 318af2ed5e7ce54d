"""Variables that choose devices, and contradict each other."""

from __future__ import annotations

from collections.abc import Iterator

from pyshim.doctor.line import Line, fail, ok, warn
from pyshim.doctor.machine import Machine

CUDA, HIP, ROCR = "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"


def devices(machine: Machine) -> Iterator[Line]:
    said = {name: machine.environment[name] for name in (CUDA, HIP, ROCR) if name in machine.environment}
    hidden = hiding(machine)
    for name in hidden:
        yield warn(f"{name}={said[name]} hides every GPU", "unset it, unless this is meant")
    if not machine.is_amd() or hidden:
        return
    wrong = list(_contradictions(said))
    yield from wrong
    if said and not wrong:
        yield ok(", ".join(f"{name}={value}" for name, value in said.items()))


def hiding(machine: Machine) -> list[str]:
    """Return variables that hide every GPU. Where HIP's own is set, AMD does not read CUDA's."""
    said = machine.environment
    found = [name for name in (CUDA, HIP, ROCR) if name in said and not _devices(said[name])]
    return [name for name in found if name != CUDA or HIP not in said]


def _contradictions(said: dict[str, str]) -> Iterator[Line]:
    if HIP in said and CUDA in said and _devices(said[HIP]) != _devices(said[CUDA]):
        sentence = f"{HIP}={said[HIP]} and {CUDA}={said[CUDA]} differ, and on AMD both choose devices"
        yield warn(sentence, f"keep {HIP} alone")
    chosen = HIP if HIP in said else CUDA
    if ROCR in said and chosen in said:
        left = len(_devices(said[ROCR]))
        beyond = [device for device in _devices(said[chosen]) if device.isdigit() and int(device) >= left]
        if beyond:
            counted = f"{chosen}={said[chosen]} counts among the {left} that {ROCR}={said[ROCR]} leaves"
            yield fail(f"{counted}: there is no {beyond[0]}", f"number those from 0, or unset {chosen}")


def _devices(value: str) -> list[str]:
    """Up to the first that is none, as the runtimes read it."""
    found: list[str] = []
    for device in (part.strip() for part in value.split(",")):
        if not device or device.startswith("-"):
            break
        found.append(device)
    return found
