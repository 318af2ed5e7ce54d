"""cuda-bindings as it is: modules, libraries, streams, launches with attributes, events, a graph, an error."""

from __future__ import annotations

import ctypes
from typing import Any

from cuda.bindings import driver as cu

PTX = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry work(.param .u64 data, .param .u32 count) { ret; }
.visible .entry ncclDevKernel_AllReduce_Sum_f32_RING_LL(.param .u64 data, .param .u32 count) { ret; }
"""


def call(name: str, *arguments: Any) -> Any:
    """The driver's answer; errors are printed and are part of what is compared."""
    error, *values = getattr(cu, name)(*arguments)
    if error != cu.CUresult.CUDA_SUCCESS:
        print(name, error.name)
    return values[0] if len(values) == 1 else values


def main() -> None:
    call("cuInit", 0)
    device = call("cuDeviceGet", 0)
    context = call("cuDevicePrimaryCtxRetain", device)
    call("cuCtxSetCurrent", context)
    print(call("cuDeviceGetName", 64, device).rstrip(b"\0").decode())

    module = call("cuModuleLoadData", PTX)
    work = call("cuModuleGetFunction", module, b"work")
    reduce_ = call("cuModuleGetFunction", module, b"ncclDevKernel_AllReduce_Sum_f32_RING_LL")
    library = call("cuLibraryLoadData", PTX, [], [], 0, [], [], 0)
    kernel = call("cuLibraryGetKernel", library, b"work")
    for attribute in ("NUM_REGS", "SHARED_SIZE_BYTES", "MAX_DYNAMIC_SHARED_SIZE_BYTES"):
        print(
            attribute,
            call("cuFuncGetAttribute", getattr(cu.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{attribute}"), work),
        )
    print(call("cuCtxGetStreamPriorityRange"))

    low = call("cuStreamCreateWithPriority", cu.CUstream_flags.CU_STREAM_NON_BLOCKING, 0)
    high = call("cuStreamCreateWithPriority", cu.CUstream_flags.CU_STREAM_NON_BLOCKING, -3)
    print(call("cuStreamGetPriority", low), call("cuStreamGetPriority", high))
    start, end = call("cuEventCreate", 0), call("cuEventCreate", 0)

    memory = call("cuMemAlloc", 4096)
    values = ctypes.c_uint64(0x1234), ctypes.c_uint32(7)  # nobody looks behind it, and it is the same in every run
    parameters = (ctypes.c_void_p * 2)(*map(ctypes.addressof, values))

    def launch(function: Any, blocks: int, shared: int, stream: Any) -> None:
        call("cuLaunchKernel", function, blocks, 1, 1, 256, 1, 1, shared, stream, ctypes.addressof(parameters), 0)

    call("cuEventRecord", start, low)
    for stream in (low, high, 0):
        for _ in range(3):
            launch(work, 4000, 0, stream)
            launch(cu.CUfunction(int(kernel)), 4000, 1024, stream)
            launch(reduce_, 16, 0, stream)
    call("cuStreamWaitEvent", high, start, 0)
    call("cuEventRecord", end, low)

    priority = cu.CUlaunchAttribute()
    priority.id = cu.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PRIORITY
    priority.value.priority = -1
    config = cu.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = 4000, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = 256, 1, 1
    config.hStream, config.attrs, config.numAttrs = low, [priority], 1
    for function in (work, reduce_):
        call("cuLaunchKernelEx", config, function, ctypes.addressof(parameters), 0)

    call("cuStreamBeginCapture", low, cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL)
    launch(work, 4000, 0, low)
    launch(reduce_, 16, 0, low)
    graph = call("cuStreamEndCapture", low)
    executable = call("cuGraphInstantiate", graph, 0)
    for _ in range(2):
        call("cuGraphLaunch", executable, low)

    launch(work, 1, 60000, low)  # more shared memory than it may ask for
    launch(work, 0, 0, low)
    call("cuCtxSynchronize")
    call("cuMemFree", memory)
    print("elapsed", call("cuEventElapsedTime", start, end) > 0)
    call("cuModuleUnload", module)
    call("cuLibraryUnload", library)
    print("end")


main()
