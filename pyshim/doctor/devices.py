"""The driver, its GPUs, and whether there is a policy for them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from pyshim import _native
from pyshim.doctor import child
from pyshim.doctor.machine import HIP, DriverReply, Line, Machine, alike, fail, gib, numbers, ok, warn
from pyshim.errors import OverlapError
from pyshim.policy import layout
from pyshim.start import chosen, driver, plan, program

_NO_DEVICE = 100  # of CUDA and of HIP
# CUresult -> what to do about it. Meanings: cuda.h 13.0.
_CUDA_ERRORS = {
    3: "the driver is shutting down, or was not started: restart the program",
    34: "this libcuda.so.1 is the stub of the toolkit: take its folder out of LD_LIBRARY_PATH",
    46: "another process has the GPU for itself (compute mode): nvidia-smi -q -d COMPUTE",
    100: "CUDA_VISIBLE_DEVICES may hide them, or /dev/nvidia* may be closed to this user or missing in the container",
    101: "CUDA_VISIBLE_DEVICES may name a GPU that is not there",
    214: "nvidia-smi -q -d ECC says which GPU; it needs a reset",
    802: "nvidia-fabricmanager must run on machines with NVSwitch: systemctl status nvidia-fabricmanager",
    803: "libcuda.so.1 is of another version than the kernel module: reboot, or mount the host's into the container",
    804: "forward compatibility (cuda-compat) does not go with this GPU: take its folder out of LD_LIBRARY_PATH",
    805: "the MPS control process is not the one that CUDA_MPS_PIPE_DIRECTORY names, or of another user",
    999: "dmesg may say more; without the module nvidia-uvm it says this, too",
}
_LIBRARY = "in a container: start it with the GPU (docker --gpus all, apptainer --nv); else install the driver"
_MORE = "nvidia-smi, and dmesg, may say more"
_HANGS = "nvidia-smi may hang, too: the machine's administrator has to look"
_PROHIBITED = 2  # CUcomputemode
_CUDA, _HIP, _ROCR = "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"


def drivers(machine: Machine) -> Iterator[Line]:
    found = machine.vendors()
    if not found:
        hint = "on a machine without a GPU: overlap-run --simulate h100 PROGRAM"
        yield fail(f"no GPU driver found ({program.CUDA}, {program.AMD_DEVICE}): programs run unchanged", hint)
    if "nvidia" in found and machine.cuda:
        yield from _nvidia(machine, machine.cuda)
    if "amd" in found:
        if not machine.simulated:
            yield _kernel_driver(machine)
        if machine.hip:
            yield from _amd(machine, machine.hip)
        else:
            sentence = f"no {HIP} in LD_LIBRARY_PATH, /opt/rocm/lib or the loader's cache"
            yield warn(sentence, "nothing to do where the program brings its own")


def _kernel_driver(machine: Machine) -> Line:
    device = program.AMD_DEVICE
    if machine.access(machine.path(device), os.R_OK | os.W_OK):
        return ok(f"AMD's driver is there, and {device} is open to this user")
    hint = f"add the user to the group of {device} (render, on older systems video)"
    return fail(f"this user may not read and write {device}, so HIP finds no GPU", hint)


def _nvidia(machine: Machine, answer: DriverReply) -> Iterator[Line]:
    if answer.error:
        yield fail(f"NVIDIA's driver: {program.CUDA}: {answer.error}", what_to_do(machine, answer))
        return
    module = "" if machine.simulated else _module(machine)
    version = f"CUDA {answer.version // 1000}.{answer.version % 1000 // 10}{module}"
    if not answer.gpus:
        hint = _hidden(machine, (_CUDA,)) or _CUDA_ERRORS[_NO_DEVICE]
        yield fail(f"NVIDIA's driver answers ({version}), and has no GPU", hint)
        return
    yield ok(f"{_who(machine, 'NVIDIA')} driver answers ({version}): {_number(answer)}")
    yield from _each(answer)


def what_to_do(machine: Machine, answer: DriverReply) -> str:
    """Return what to do about an error of NVIDIA's driver."""
    if answer.code == _NO_DEVICE and (hidden := _hidden(machine, (_CUDA,))):
        return hidden
    if answer.code:
        return _CUDA_ERRORS.get(answer.code, _MORE)
    if "does not load" in answer.error:
        return _LIBRARY
    return _HANGS if answer.error.endswith(child.LATE) else _MORE


def _amd(machine: Machine, answer: DriverReply) -> Iterator[Line]:
    if answer.error:
        hidden = _hidden(machine, (_HIP, _ROCR, _CUDA)) if answer.code == _NO_DEVICE else ""
        hint = hidden or "rocminfo, and the groups of /dev/kfd and /dev/dri, may say more"
        yield fail(f"AMD's runtime: {answer.error}", hint)
        return
    version = f"HIP {answer.version // 10000000}.{answer.version // 100000 % 100}"
    yield ok(f"{_who(machine, 'AMD')} runtime answers ({version}): {_number(answer)}")
    yield from _each(answer)


def _hidden(machine: Machine, names: tuple[str, ...]) -> str:
    """Return what to do where one of these variables hides every GPU, or the empty string."""
    said = machine.environment
    hiding = (name for name in names if name in said and said[name].strip().split(",")[0].strip()[:1] in ("", "-"))
    name = next(hiding, "")
    return name and f"unset {name}, which hides every GPU"


def _who(machine: Machine, vendor: str) -> str:
    # Inside overlap-run --simulate it is one without our saying so.
    return "the simulated" if machine.simulated or machine.set("SIMGPU") else f"{vendor}'s"


def _number(answer: DriverReply) -> str:
    return f"{len(answer.gpus)} GPU{'s' * (len(answer.gpus) != 1)}"


def _each(answer: DriverReply) -> Iterator[Line]:
    for gpu, indices in alike(answer.gpus).items():
        units = "compute units" if gpu.architecture.startswith("gfx") else "multiprocessors"
        who = f"{numbers(indices)}: {gpu.name} ({gpu.architecture})"
        if gpu.compute_mode == _PROHIBITED:
            yield fail(f"{who}: compute mode PROHIBITED: no program can use it", "as root: nvidia-smi -c DEFAULT")
        else:
            yield ok(f"{who}, {gpu.multiprocessors} {units}, {gib(gpu.memory)}")


def _module(machine: Machine) -> str:
    version = driver.version(machine.root)
    return f", kernel module {version}" if version else ""


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
    found = alike(machine.gpus())
    if not found:
        yield ok(f"{taken.said} is valid")
    for gpu, indices in found.items():
        who = f"{numbers(indices)} ({gpu.name})"
        index = chosen.index_for(taken.data, gpu.name, gpu.architecture)
        if index is None:
            yield fail(
                f"{taken.said} is not for {who}: nothing would be changed", "the policy default is for every GPU"
            )
        else:
            said = f"policy {taken.names[index]}" if len(taken.names) > 1 else taken.said
            yield ok(f"{said} is for {who}")


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
    choice = plan.choose(wanted, machine.environment)
    names = [str(item["name"]) for item in choice.described]
    asked = wanted or (names[0] if len(names) == 1 else "default")
    return _Taken(f"policy {asked}", names, layout.decode(choice.table))
