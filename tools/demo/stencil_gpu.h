/* SPDX-License-Identifier: Apache-2.0
 * The GPU of stencil.c: the first one of NVIDIA, else a simulated one of AMD, called by the functions of HIP, whose parameters
 * are those of the CUDA driver. Real ones of AMD are left alone, because the kernels for them are a list
 * without code (stencil_amd.txt). */
#pragma once

#include "beside.h"

static bool on_amd;

static const char *name_in_hip(const char *name) {
    static const char *const names[][2] = {
        {"cuInit", "hipInit"},
        {"cuGetErrorName", "hipDrvGetErrorName"},
        {"cuDeviceGetName", "hipDeviceGetName"},
        {"cuDeviceGetAttribute", "hipDeviceGetAttribute"},
        {"cuDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRetain"},
        {"cuCtxSetCurrent", "hipCtxSetCurrent"},
        {"cuCtxSynchronize", "hipDeviceSynchronize"},
        {"cuCtxGetStreamPriorityRange", "hipDeviceGetStreamPriorityRange"},
        {"cuModuleLoadData", "hipModuleLoadData"},
        {"cuModuleGetFunction", "hipModuleGetFunction"},
        {"cuFuncSetAttribute", "hipFuncSetAttribute"}, /* not called: it takes the address of a stub */
        {"cuMemAlloc_v2", "hipMalloc"},
        {"cuMemAllocHost_v2", "hipMallocHost"},
        {"cuMemcpyHtoD_v2", "hipMemcpyHtoD"},
        {"cuMemcpyDtoH_v2", "hipMemcpyDtoH"},
        {"cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync"},
        {"cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync"},
        {"cuMemsetD32Async", "hipMemsetD32Async"},
        {"cuStreamCreateWithPriority", "hipStreamCreateWithPriority"},
        {"cuStreamCreate", "hipStreamCreateWithFlags"},
        {"cuStreamDestroy_v2", "hipStreamDestroy"},
        {"cuStreamWaitEvent", "hipStreamWaitEvent"},
        {"cuStreamSynchronize", "hipStreamSynchronize"},
        {"cuStreamQuery", "hipStreamQuery"},
        {"cuStreamBeginCapture_v2", "hipStreamBeginCapture"},
        {"cuStreamEndCapture", "hipStreamEndCapture"},
        {"cuGraphInstantiateWithFlags", "hipGraphInstantiateWithFlags"},
        {"cuGraphLaunch", "hipGraphLaunch"},
        {"cuEventCreate", "hipEventCreateWithFlags"},
        {"cuEventRecord", "hipEventRecord"},
        {"cuEventQuery", "hipEventQuery"},
        {"cuEventSynchronize", "hipEventSynchronize"},
        {"cuEventElapsedTime", "hipEventElapsedTime"},
        {"cuLaunchHostFunc", "hipLaunchHostFunc"},
        {"cuLaunchKernel", "hipModuleLaunchKernel"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], name) == 0)
            return names[i][1];
    fail("%s has no name in HIP", name);
}

/* Whether there is a simulated GPU of AMD, from now on called by the functions of CUDA. */
static bool open_amd(void) {
    void *runtime = getenv("SIMGPU") == NULL ? NULL : dlopen("libamdhip64.so.7", RTLD_NOW | RTLD_LOCAL);
    int (*initialise)(unsigned) = NULL;
    if (runtime == NULL)
        return false;
    open_function(runtime, "hipInit", &initialise);
    if (initialise(0) != 0)
        return false;
#define X(name, parameters) open_function(runtime, name_in_hip(#name), &name);
    API(X)
#undef X
    on_amd = true;
    return true;
}

/* The first device of NVIDIA, or a simulated one of AMD. Returns its context. */
static void *open_gpu(void) {
    void *context = NULL;
    use_own_costs();
    open_driver();
    const int state = cuInit(0);
    if (state != 0 && !open_amd()) {
        if (state == NO_DEVICE)
            leave(NO_GPU, "no GPU");
        check(state, "cuInit");
    }
    check(cuDevicePrimaryCtxRetain(&context, 0), "no GPU");
    check(cuCtxSetCurrent(context), "no GPU");
    return context;
}

static const char *own_image(void) {
    return beside(on_amd ? "stencil_amd.txt" : "stencil.ptx");
}
