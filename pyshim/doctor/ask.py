"""Ask the driver of NVIDIA, or AMD's runtime, which GPUs there are.

It is a program of its own, never imported: a driver may hang or crash. No context is made.

    python -I -S ask.py cuda|hip LIBRARY DESCRIPTOR    # one JSON object to the descriptor

Nothing of the package is known here, so that it starts fast and without anybody's path.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, create_string_buffer

# CUdevice_attribute of cuda.h 13.0.
CUDA_ATTRIBUTES = {
    "multiprocessors": 16,
    "compute_mode": 20,
    "major": 75,
    "minor": 76,
}
# hipDeviceProp_t: size, and where multiprocessors and architecture are: HIP_PROPERTIES_* of shim/hip/hip_abi.h.
HIP_PROPERTIES = {
    "hipGetDevicePropertiesR0600": (1472, 388, 1160),
    "hipGetDeviceProperties": (792, 336, 396),
}


def cuda(path: str) -> dict[str, object]:
    library = ctypes.CDLL(path)
    failed = library.cuInit(0)
    if failed:
        return {"error": failed, "name": _cuda_error(library, failed)}
    version, count = c_int(), c_int()
    library.cuDriverGetVersion(byref(version))
    failed = library.cuDeviceGetCount(byref(count))
    if failed:
        return {"error": failed, "name": _cuda_error(library, failed)}
    return {"version": version.value, "gpus": [_cuda_gpu(library, index) for index in range(count.value)]}


def _cuda_error(library: ctypes.CDLL, code: int) -> str:
    text = c_char_p()
    asked = getattr(library, "cuGetErrorName", None)
    return (text.value or b"").decode() if asked and asked(code, byref(text)) == 0 else ""


def _cuda_gpu(library: ctypes.CDLL, index: int) -> dict[str, object]:
    device, name, memory = c_int(), create_string_buffer(256), c_size_t()
    library.cuDeviceGet(byref(device), index)
    library.cuDeviceGetName(name, len(name), device)
    library.cuDeviceTotalMem_v2(byref(memory), device)
    found: dict[str, object] = {"name": name.value.decode("utf-8", "replace"), "memory": memory.value}
    for word, number in CUDA_ATTRIBUTES.items():
        value = c_int()
        found[word] = value.value if library.cuDeviceGetAttribute(byref(value), number, device) == 0 else None
    found["architecture"] = f"sm_{found['major']}{found['minor']}"
    return found


def hip(path: str) -> dict[str, object]:
    library = ctypes.CDLL(path)
    library.hipGetErrorName.restype = c_char_p
    count, version = c_int(), c_int()
    failed = library.hipGetDeviceCount(byref(count))
    if failed:
        return {"error": failed, "name": (library.hipGetErrorName(failed) or b"").decode()}
    library.hipRuntimeGetVersion(byref(version))
    return {"version": version.value, "gpus": [_hip_gpu(library, index) for index in range(count.value)]}


def _hip_gpu(library: ctypes.CDLL, index: int) -> dict[str, object]:
    name, memory = create_string_buffer(256), c_size_t()
    library.hipDeviceGetName(name, len(name), index)
    library.hipDeviceTotalMem.argtypes = (POINTER(c_size_t), c_int)
    library.hipDeviceTotalMem(byref(memory), index)
    found: dict[str, object] = {"name": name.value.decode("utf-8", "replace"), "memory": memory.value}
    function = next(word for word in HIP_PROPERTIES if hasattr(library, word))
    size, multiprocessors, architecture = HIP_PROPERTIES[function]
    properties = create_string_buffer(size + 4096)
    if getattr(library, function)(properties, index) == 0:
        found["multiprocessors"] = c_int.from_buffer(properties, multiprocessors).value
        whole = properties.raw[architecture : architecture + 256].split(b"\0", 1)[0].decode("utf-8", "replace")
        found["architecture"] = whole.split(":", 1)[0]
    return found


if __name__ == "__main__":
    try:
        answer = {"cuda": cuda, "hip": hip}[sys.argv[1]](sys.argv[2])
    except (OSError, AttributeError) as error:
        answer = {"not_loaded": str(error)}
    os.write(int(sys.argv[3]), json.dumps(answer).encode()[: 1 << 16])  # noqa: TID251 (the parent's pipe)
