"""As Python frameworks reach NCCL: by ctypes, for this caller only, and the driver likewise. Its word: NCCL's path."""

from __future__ import annotations

import ctypes
import sys

PTX = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u32 b)\n{\n ret;\n}\n"

driver, nccl = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(sys.argv[1])
context, module, function, stream = (ctypes.c_void_p() for _ in range(4))
a, b = ctypes.c_uint64(1), ctypes.c_uint32(2)
parameters = (ctypes.c_void_p * 2)(*map(ctypes.addressof, (a, b)))
print(driver.cuInit(0), driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), driver.cuCtxSetCurrent(context))
print(driver.cuModuleLoadData(ctypes.byref(module), PTX))
print(driver.cuModuleGetFunction(ctypes.byref(function), module, b"k"))
print(nccl.test_stream(ctypes.byref(stream)))
for _ in range(3):
    print(nccl.test_launch(function, 16, 256, 0, stream, parameters))
print(driver.cuLaunchKernel(function, 4000, 1, 1, 256, 1, 1, 0, None, parameters, None), driver.cuCtxSynchronize())
