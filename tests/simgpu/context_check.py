"""Calls on handles of one context while no context, or another one, is current.

Usage: context_check.py DRIVER, which is libcuda.so.1 on a real GPU.

The answers were measured on an H200, driver 580.159.04, CUDA 13.0, 2026-11-28. Only calls that say so change which
context is current. Prints one line for each call that answers something else, and the number of calls.
"""

from __future__ import annotations

import ctypes as C
import re
import sys
from typing import Any

from simgpu_client import Config, Driver, P

# Answers while none is current, and while another one is; then the call. `o`: room for what it writes, which `=` names.
# Of c: module m, functions f and (as a CUkernel of a library) k, streams s and s2, events e and e2, memory a, b and h,
# graph g and its executable ge. Of d, of the same device: function df, stream ds, event de.
CALLS = """
0 0 launch(f, s)
0 0 launch(k, s)
0 0 launch_ex(f, s)
0 0 launch_ex(k, s)
0 0 cuLaunchCooperativeKernel(f, 1, 1, 1, 32, 1, 1, 0, s, args)
NONE HANDLE launch(f, None)
NONE HANDLE launch(f, LEGACY)
NONE HANDLE launch(f, PER_THREAD)
NONE 0 launch(k, None)
HANDLE HANDLE launch(df, s)
HANDLE HANDLE launch(f, ds)
0 0 cuGraphLaunch(ge, s)
NONE 0 cuGraphLaunch(ge, None)
0 0 cuGraphLaunch(ge, ds)
0 0 cuLaunchHostFunc(s, host, None)

0 0 cuEventRecord(e, s)
0 0 cuEventRecordWithFlags(e2, s, 0)
0 0 cuEventRecord(e, s2)
0 0 cuEventRecord(e, s)
HANDLE HANDLE cuEventRecord(de, s)
NONE HANDLE cuEventRecord(e, None)
0 0 cuStreamWaitEvent(s2, e, 0)
0 0 cuStreamWaitEvent(ds, e, 0)
0 0 cuEventSynchronize(e)
0 0 cuEventQuery(e)
0 0 cuEventSynchronize(e2)
0 0 cuEventElapsedTime(o, e2, e)

0 0 cuStreamSynchronize(s)
0 0 cuStreamQuery(s)
NONE 0 cuStreamSynchronize(None)
NONE 0 cuStreamQuery(None)
NONE 0 cuCtxSynchronize()
NONE 0 cuCtxSynchronize_v2(None)
0 0 cuCtxSynchronize_v2(c)
0 0 cuMemcpyHtoDAsync_v2(a, h, 4096, s)
0 0 cuMemcpyDtoHAsync_v2(h, a, 4096, s)
0 0 cuMemcpyDtoDAsync_v2(b, a, 4096, s)
0 0 cuMemcpyAsync(b, a, 4096, s)
0 0 cuMemsetD8Async(a, 0, 4096, s)
NONE 0 cuMemcpyHtoD_v2(a, h, 4096)
NONE 0 cuMemcpyDtoH_v2(h, a, 4096)
NONE 0 cuMemcpy(b, a, 4096)
NONE 0 cuMemcpyDtoD_v2(b, a, 4096)
NONE 0 cuMemsetD8_v2(a, 0, 4096)
NONE VALUE cuMemcpyHtoD_v2(0, h, 8)
0 0 cuStreamSynchronize(s)

0 0 cuStreamGetPriority(s, o)
0 0 cuStreamGetFlags(s, o) = 1
0 0 cuStreamGetCtx(s, o) = c
0 0 cuStreamGetDevice(s, o) = 0
NONE 0 cuCtxGetDevice(o)
NONE 0 cuCtxGetDevice_v2(o, None)
0 0 cuCtxGetDevice_v2(o, c) = 0
NONE 0 cuCtxGetStreamPriorityRange(o, o)
NONE 0 cuCtxGetCacheConfig(o)
0 0 cuStreamSetAttribute(s, 8, number(-5))
0 0 cuStreamGetAttribute(s, 8, o) = 2**32 - 5
0 0 cuStreamSetAttribute(s, 8, number(0))
0 0 cuStreamCopyAttributes(s2, s)
VALUE VALUE cuStreamCopyAttributes(ds, s)
0 0 cuStreamIsCapturing(s, o)

0 0 cuFuncGetAttribute(o, 4, f)
HANDLE HANDLE cuFuncGetAttribute(o, 4, k)
0 0 cuFuncSetAttribute(f, 8, 65536)
0 0 cuFuncGetName(o, f)
0 0 cuFuncGetModule(o, f) = m
0 0 cuFuncSetCacheConfig(f, 0)
0 0 cuKernelGetAttribute(o, 4, k, 0)
0 0 cuKernelSetAttribute(8, 65536, k, 0)
0 0 cuKernelSetCacheConfig(k, 0, 0)
0 0 cuKernelGetName(o, k)
NONE 0 cuKernelGetFunction(o, k)
NONE 0 cuOccupancyMaxActiveBlocksPerMultiprocessor(o, f, 128, 0)
NONE 0 cuOccupancyMaxActiveBlocksPerMultiprocessor(o, k, 128, 0)
NONE 0 cuOccupancyMaxPotentialBlockSize(o, o, f, None, 0, 0)
NONE 0 cuOccupancyAvailableDynamicSMemPerBlock(o, f, 1, 32)
0 0 cuModuleGetFunction(o, m, b"k2")
0 0 cuModuleGetFunctionCount(o, m)
0 0 cuModuleEnumerateFunctions(o, 1, m)
0 0 cuLibraryGetKernel(o, library, b"k")
0 0 cuLibraryEnumerateKernels(o, 1, library)
NONE 0 cuLibraryGetModule(o, library)

NONE 0 cuEventCreate(o, 0)
NONE 0 cuStreamCreate(o, 0)
NONE 0 cuMemAlloc_v2(o, 64)
NONE 0 cuMemGetInfo_v2(o, o)
NONE 0 cuPointerGetAttribute(o, 3, a)
NONE 0 cuModuleLoadData(o, code)
0 0 cuStreamDestroy_v2(there("cuStreamCreate", 0))
0 0 cuEventDestroy_v2(there("cuEventCreate", 0))
0 0 cuModuleUnload(there("cuModuleLoadData", code))
0 0 cuMemFree_v2(there("cuMemAlloc_v2", 64))
0 0 cuMemFreeHost(there("cuMemHostAlloc", 64, 0))
0 0 cuLibraryLoadData(o, code, None, None, 0, None, None, 0)
0 0 cuLibraryUnload(there("cuLibraryLoadData", code, None, None, 0, None, None, 0))

0 0 cuThreadExchangeStreamCaptureMode(number(2))
0 0 cuThreadExchangeStreamCaptureMode(number(0))
0 0 cuStreamBeginCapture_v2(s, 2)
0 0 launch(f, s)
HANDLE HANDLE launch(None, s)
HANDLE HANDLE launch(df, s)
HANDLE HANDLE cuEventRecord(de, s)
0 0 cuStreamEndCapture(s, o)
NONE 0 cuGraphInstantiateWithFlags(o, g, 0)
NONE VALUE cuGraphInstantiateWithFlags(None, g, 0)
0 0 cuGraphExecUpdate_v2(ge, g, o)
0 0 cuGraphGetNodes(g, None, o)
"""
# A default stream is one of the current context.
DEFAULT_STREAM = """
NONE 0 cuStreamGetPriority(stream, o)
NONE 0 cuStreamGetFlags(stream, o)
NONE 0 cuStreamGetCtx(stream, o)
NONE 0 cuStreamGetDevice(stream, o)
NONE 0 cuStreamIsCapturing(stream, o)
NONE 0 cuStreamGetAttribute(stream, 8, o)
NONE VALUE cuStreamCopyAttributes(s, stream)
NONE VALUE cuStreamCopyAttributes(stream, s)
NONE 0 cuLaunchHostFunc(stream, host, None)
NONE 0 cuStreamWaitEvent(stream, e, 0)
NONE 0 cuMemcpyAsync(a, h, 8, stream)
"""
CAPTURED = "NONE 0 cuStreamBeginCapture_v2(stream, 2)\nNONE 0 cuStreamEndCapture(stream, o)\n"
NEVER_CAPTURED = "NONE 900 cuStreamBeginCapture_v2(stream, 2)\nNONE 401 cuStreamEndCapture(stream, o)\n"
# A primary context that has ended stays current, and its handle stays good: calls that need the device are refused.
# A reset does not change how often the context is retained.
PRIMARY = """
0 - cuDevicePrimaryCtxReset_v2(0)
0 - cuDevicePrimaryCtxGetState(0, spare, o) = 0
0 - cuCtxGetDevice(o)
0 - cuCtxGetDevice_v2(o, c)
ENDED - cuCtxGetStreamPriorityRange(o, o)
ENDED - cuCtxSynchronize()
ENDED - cuCtxSynchronize_v2(c)
ENDED - cuStreamCreate(o, 0)
ENDED - cuMemAlloc_v2(o, 64)
ENDED - cuStreamSynchronize(None)
ENDED - cuStreamQuery(None)
0 - cuCtxSetCurrent(c)
0 - cuDevicePrimaryCtxReset_v2(0)
0 - cuDevicePrimaryCtxRelease_v2(0)
NONE - cuDevicePrimaryCtxRelease_v2(0)
0 - cuDevicePrimaryCtxReset_v2(0)
0 - cuDevicePrimaryCtxRetain(o, 0) = c
0 - cuDevicePrimaryCtxReset_v2(0)
0 - cuDevicePrimaryCtxRetain(o, 0) = c
0 - cuCtxSynchronize()
0 - cuStreamCreate(o, 0)
0 - cuDevicePrimaryCtxRelease_v2(0)
0 - cuCtxSynchronize()
0 - cuDevicePrimaryCtxRelease_v2(0)
ENDED - cuCtxSynchronize()
NONE - cuDevicePrimaryCtxRelease_v2(0)
0 - cuCtxGetDevice(o)
"""

CODE = b".version 7.0 .target sm_80 .address_size 64" + b"".join(
    b".visible .entry %s(.param .u64 p) { ret; }" % name for name in (b"k", b"k2")
)

driver = Driver(sys.argv[1])
o, spare = C.create_string_buffer(256), C.create_string_buffer(8)
value = C.c_uint64()
args, config = (P * 1)(C.addressof(value)), Config(1, 1, 1, 32, 1, 1, 0)


def launch(function: P, stream: P) -> int:
    return driver.try_("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, stream, args, None)


def launch_ex(function: P, stream: P) -> int:
    config.stream = stream
    return driver.try_("cuLaunchKernelEx", C.byref(config), function, args, None)


def current() -> P:
    return driver.new("cuCtxGetCurrent")


def there(name: str, *arguments: Any) -> P:
    """What a call makes in the context c."""
    before = current()
    driver.cuCtxSetCurrent(c)
    made = driver.new(name, *arguments)
    driver.cuCtxSetCurrent(before)
    return made


c = driver.context
m, library = driver.module(CODE), driver.new("cuLibraryLoadData", CODE, None, None, 0, None, None, 0)
f, k = driver.function(m, "k"), driver.new("cuLibraryGetKernel", library, b"k2")
s, s2, e, e2 = driver.stream(), driver.stream(flags=0), driver.event(), driver.event()
a, b, h = driver.new("cuMemAlloc_v2", 4096), driver.new("cuMemAlloc_v2", 4096), driver.new("cuMemHostAlloc", 4096, 0)
g = P()
driver.cuStreamBeginCapture_v2(s, 0)
launch(f, s)
driver.cuStreamEndCapture(s, C.byref(g))
ge = driver.instantiate(g)
driver.cuCtxSetCurrent(None)
d = driver.new("cuCtxCreate_v2", 0, 0)
ds, de, df = driver.stream(), driver.event(), driver.function(driver.module(CODE), "k")


class Names(dict[str, Any]):
    """What a row names: a call of the driver, if nothing here is called so."""

    def __missing__(self, name: str) -> Any:
        return lambda *arguments: driver.try_(name, *arguments)


names = Names(globals())
names.update(NONE=201, HANDLE=400, VALUE=1, ENDED=709, LEGACY=P(1), PER_THREAD=P(2), code=CODE)
names.update(number=lambda number: (C.c_int * 16)(number), host=C.CFUNCTYPE(None, P)(lambda _: None))


def number_of(text: str) -> Any:
    found = eval(text, {}, names)
    return getattr(found, "value", found)


def check(rows: str, column: int) -> int:
    """Make each call, and compare with the answer of that column."""
    calls = [row.split(" ", 2) for row in rows.splitlines() if row]
    for *answers, call in calls:
        call, _, written = call.partition(" = ")
        before = current().value
        C.memset(o, 0, len(o))
        answer, expected = number_of(call), number_of(answers[column])
        if answer != expected:
            print(f"{call} [{column}]: {answer}, measured {expected}")
        if current().value != before:
            print(f"{call} [{column}] changes the current context")
        if written and int.from_bytes(o.raw[:8], "little") != number_of(written):
            print(f"{call} [{column}] writes {o.raw[:8].hex()}")
    return len(calls)


streams = {"None": NEVER_CAPTURED, "LEGACY": NEVER_CAPTURED, "PER_THREAD": CAPTURED}
default = "".join(re.sub(r"\bstream\b", name, DEFAULT_STREAM + more) for name, more in streams.items())
count = 0
for column, context in enumerate((None, d)):
    driver.cuCtxSetCurrent(context)
    count += check(CALLS + default, column)
driver.cuCtxSetCurrent(c)
count += check(PRIMARY, 0)
print(f"{count} calls")
