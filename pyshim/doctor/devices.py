"""The driver and its GPUs: what they answer, and who shares them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from pyshim.doctor import amd, child, gpus, processes, visible
from pyshim.doctor.line import Line, fail, ok, warn
from pyshim.doctor.machine import Machine
from pyshim.launch import driver

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
_CAPABILITIES = "/proc/driver/nvidia/capabilities"
_MPS_PIPE = "CUDA_MPS_PIPE_DIRECTORY"
_MPS_THREADS = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
_EXCLUSIVE, _PROHIBITED = 3, 2


def drivers(machine: Machine) -> Iterator[Line]:
    found = machine.vendors()
    if not found:
        hint = "on a machine without a GPU: overlap-run --simulate h100 PROGRAM"
        yield warn(f"no driver of a GPU: neither {driver.NAME} nor {driver.AMD_DEVICE} is there", hint)
    if "nvidia" in found and machine.cuda:
        yield from _nvidia(machine, machine.cuda)
    if "amd" in found:
        if not machine.simulated:
            yield from amd.kernel_driver(machine)
        if machine.hip:
            yield from _amd(machine, machine.hip)


def _nvidia(machine: Machine, answer: gpus.Answer) -> Iterator[Line]:
    if answer.error:
        yield fail(f"NVIDIA's driver: {driver.NAME}: {answer.error}", what_to_do(machine, answer))
        return
    module = "" if machine.simulated else _module(machine)
    version = f"CUDA {answer.version // 1000}.{answer.version % 1000 // 10}{module}"
    if not answer.gpus:
        hint = _hidden(machine, (visible.CUDA,)) or _CUDA_ERRORS[_NO_DEVICE]
        yield fail(f"NVIDIA's driver answers ({version}), and has no GPU", hint)
        return
    yield ok(f"{_who(machine, 'NVIDIA')} driver answers ({version}): {_number(answer)}")
    yield from _each(answer)


def what_to_do(machine: Machine, answer: gpus.Answer) -> str:
    """Return what to do about an error of NVIDIA's driver."""
    if answer.code == _NO_DEVICE and (hidden := _hidden(machine, (visible.CUDA,))):
        return hidden
    if answer.code:
        return _CUDA_ERRORS.get(answer.code, _MORE)
    if "does not load" in answer.error:
        return _LIBRARY
    return _HANGS if answer.error.endswith(child.LATE) else _MORE


def _amd(machine: Machine, answer: gpus.Answer) -> Iterator[Line]:
    if answer.error:
        hidden = _hidden(machine, (visible.HIP, visible.ROCR, visible.CUDA)) if answer.code == _NO_DEVICE else ""
        hint = hidden or "rocminfo, and the groups of /dev/kfd and /dev/dri, may say more"
        yield fail(f"AMD's runtime: {answer.error}", hint)
        return
    version = f"HIP {answer.version // 10000000}.{answer.version // 100000 % 100}"
    yield ok(f"{_who(machine, 'AMD')} runtime answers ({version}): {_number(answer)}")
    yield from _each(answer)


def _hidden(machine: Machine, names: tuple[str, ...]) -> str:
    """Return what to do where one of these variables hides every GPU, or the empty string."""
    name = next((name for name in names if name in visible.hiding(machine)), "")
    return name and f"unset {name}, which hides every GPU"


def _who(machine: Machine, vendor: str) -> str:
    # Inside overlap-run --simulate it is one without our saying so.
    return "the simulated" if machine.simulated or machine.set("SIMGPU") else f"{vendor}'s"


def _number(answer: gpus.Answer) -> str:
    return f"{len(answer.gpus)} GPU{'s' * (len(answer.gpus) != 1)}"


def _each(answer: gpus.Answer) -> Iterator[Line]:
    for gpu, indices in gpus.alike(answer.gpus).items():
        units = "compute units" if gpu.architecture.startswith("gfx") else "multiprocessors"
        free = [answer.gpus[index].free for index in indices]
        known = [size for size in free if size is not None]
        least = f", {gpus.gib(min(known))} of them free" + " at least" * (len(known) > 1) if known else ""
        numbers = f"{gpu.multiprocessors} {units}, {gpus.gib(gpu.memory)}{least}"
        yield ok(f"{gpus.numbers(indices)}: {gpu.name} ({gpu.architecture}), {numbers}")


def _module(machine: Machine) -> str:
    version = driver.version(machine.root)
    return f", kernel module {version}" if version else ""


def sharing(machine: Machine) -> Iterator[Line]:
    """Check MIG, MPS and compute modes: who else may run on a GPU, and on how much of it."""
    found = [*_mig(machine), *_mps(machine), *_modes(machine)]
    if machine.cuda and machine.cuda.gpus and not found:
        found = [ok("GPUs are whole and open to every process (no MIG, no MPS, default compute mode)")]
    yield from found


def _mig(machine: Machine) -> Iterator[Line]:
    slices = [gpu for gpu in machine.gpus() if re.search(r"\bMIG\b", gpu.name)]
    for gpu in dict.fromkeys(slices):
        yield warn(
            f"{gpu.name} is a part of a GPU (MIG), with {gpu.multiprocessors} multiprocessors",
            "nothing to do: they are counted as the driver says; sizes in a policy's comments are of the whole GPU",
        )
    if slices:
        return
    for name in machine.names(_CAPABILITIES):
        parts = [part for part in machine.names(f"{_CAPABILITIES}/{name}/mig") if re.fullmatch(r"gi\d+", part)]
        if parts:
            yield warn(
                f"{name} is split into {len(parts)} parts (MIG), and no part is visible here by that name",
                "CUDA_VISIBLE_DEVICES=MIG-... chooses one; nvidia-smi -L lists them",
            )


def _mps(machine: Machine) -> Iterator[Line]:
    pipe = machine.set(_MPS_PIPE)
    servers = processes.named(("nvidia-cuda-mps-control", "nvidia-cuda-mps-server"))
    client = any(gpu.mps for gpu in machine.gpus())
    if client or servers:
        by = f" ({', '.join(servers)})" if servers else ""
        yield warn(
            f"MPS is on{by}: processes share the GPU's multiprocessors, and kernels of another one take room, too",
            "nothing to do if this is meant; room is made for the communication of one process only",
        )
    elif pipe:
        there = os.path.exists(os.path.join(pipe, "control"))
        what = "but no MPS control process is seen" if there else "and there is no MPS control process behind it"
        yield warn(f"{_MPS_PIPE}={pipe}, {what}", "unset it, or start nvidia-cuda-mps-control -d")
    share = machine.set(_MPS_THREADS)
    if share and share not in ("100", "100.0"):
        yield warn(
            f"{_MPS_THREADS}={share}: under MPS the process gets that share of the multiprocessors only",
            "unset it, unless this is meant",
        )
    if machine.set("CUDA_MPS_CLIENT_PRIORITY") not in (None, "0"):
        yield warn(
            f"CUDA_MPS_CLIENT_PRIORITY={machine.set('CUDA_MPS_CLIENT_PRIORITY')}: under MPS, all work of the process "
            "has lower priority, communication's too",
            "unset it",
        )


def _modes(machine: Machine) -> Iterator[Line]:
    for gpu, indices in gpus.alike(machine.gpus()).items():
        who = gpus.numbers(indices)
        if gpu.compute_mode == _PROHIBITED:
            yield fail(f"{who}: compute mode PROHIBITED: no program can use it", "as root: nvidia-smi -c DEFAULT")
        elif gpu.compute_mode == _EXCLUSIVE:
            yield warn(
                f"{who}: compute mode EXCLUSIVE_PROCESS: a second process on the same GPU fails",
                "nothing to do with one process per GPU",
            )


def users(machine: Machine) -> Iterator[Line]:
    """Check for other processes that have a device of a GPU open."""
    if not machine.vendors() or machine.simulated:
        return
    found, hidden = processes.with_devices(machine.root)
    others = f"; {hidden} of other users cannot be looked at" if hidden else ""
    if not found:
        yield ok(f"no other process that is seen has a GPU open{others}")
        return
    shown = ", ".join(f"{user.name} {user.pid} ({user.memory >> 20:,} MiB of host memory)" for user in found[:4])
    more = f" and {len(found) - 4} more" if len(found) > 4 else ""
    yield warn(
        f"{len(found)} other process{'es have' if len(found) > 1 else ' has'} a GPU open: {shown}{more}{others}",
        "they take time and room on it; nvidia-smi, or rocm-smi --showpids, says on which",
    )
