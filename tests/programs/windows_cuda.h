/* The interpreter's calls on CUDA. */
#pragma once

#define DRIVER_MORE_FILE "windows_driver.h"
#include "driver.h"

#include "windows_gpu.h"

#define LEGACY ((void *)1)
#define PER_THREAD ((void *)2)

static const char kernel_names[] = "k,ncclDevKernel_AllReduce_Sum_f32_RING_LL";

#define allocate CU(cuMemAlloc_v2)
#define fill(address, count) CU(cuMemsetD32_v2)(address, 0, count)
#define device_synchronize CU(cuCtxSynchronize)
#define stream_create CU(cuStreamCreate)
#define stream_destroy CU(cuStreamDestroy_v2)
#define event_create CU(cuEventCreate)
#define event_destroy CU(cuEventDestroy_v2)
#define event_synchronize CU(cuEventSynchronize)
#define event_query CU(cuEventQuery)
#define event_elapsed CU(cuEventElapsedTime)
#define graph_create CU(cuGraphCreate)
#define graph_destroy CU(cuGraphDestroy)
#define graph_add_child CU(cuGraphAddChildGraphNode)
#define graph_instantiate CU(cuGraphInstantiateWithFlags)
#define exec_destroy CU(cuGraphExecDestroy)
#define capture_info CU(cuStreamGetCaptureInfo_v2)
#define capture_update CU(cuStreamUpdateCaptureDependencies)

/* By the plain entry point, and by that for threads. */
#define event_record CU(cuEventRecord)
#define event_record_thread CU(cuEventRecord_ptsz)
#define event_record_flags CU(cuEventRecordWithFlags)
#define event_record_flags_thread CU(cuEventRecordWithFlags_ptsz)
#define stream_wait CU(cuStreamWaitEvent)
#define stream_wait_thread CU(cuStreamWaitEvent_ptsz)
#define stream_synchronize CU(cuStreamSynchronize)
#define stream_synchronize_thread CU(cuStreamSynchronize_ptsz)
#define stream_query CU(cuStreamQuery)
#define stream_query_thread CU(cuStreamQuery_ptsz)
#define copy_async CU(cuMemcpyDtoDAsync_v2)
#define copy_async_thread CU(cuMemcpyDtoDAsync_v2_ptsz)
#define fill_async(address, bytes, on) CU(cuMemsetD32Async)(address, 0, bytes, on)
#define fill_async_thread(address, bytes, on) CU(cuMemsetD32Async_ptsz)(address, 0, bytes, on)
#define host_function CU(cuLaunchHostFunc)
#define host_function_thread CU(cuLaunchHostFunc_ptsz)
#define wait_value CU(cuStreamWaitValue32_v2)
#define wait_value_thread CU(cuStreamWaitValue32_v2_ptsz)
#define write_value CU(cuStreamWriteValue32_v2)
#define write_value_thread CU(cuStreamWriteValue32_v2_ptsz)
#define capture_begin CU(cuStreamBeginCapture_v2)
#define capture_begin_thread CU(cuStreamBeginCapture_v2_ptsz)
#define capture_end CU(cuStreamEndCapture)
#define capture_end_thread CU(cuStreamEndCapture_ptsz)
#define graph_launch CU(cuGraphLaunch)
#define graph_launch_thread CU(cuGraphLaunch_ptsz)

static inline int use_device(int device) {
    return CU(cuCtxSetCurrent)(devices[device].context);
}

static inline int start_devices(void) {
    int result = CU(cuInit)(0);
    char *const text = ptx_of(kernel_names), name[sizeof kernel_names];
    for (int i = 0; !result && i < DEVICES && CU(cuDevicePrimaryCtxRetain)(&devices[i].context, i) == 0; i++) {
        void *module;
        need(use_device(i), "context");
        need(CU(cuModuleLoadData)(&module, text), "module");
        for (int k = 0, at = 0; k < KERNELS; k++, at += (int)strlen(name) + 1) {
            sscanf(kernel_names + at, "%[^,]", name);
            need(CU(cuModuleGetFunction)(&devices[i].kernels[k], module, name), "function");
        }
        result = allocate(&devices[i].memory, BYTES);
        device_count = i + 1;
    }
    free(text);
    return result;
}

/* how: 1: cuLaunchKernelEx; 2 more: a large grid. */
static inline int launch(struct named stream, int kind, int how) {
    const int extended = how & 1;
    const unsigned blocks = grid_of(kind, how);
    void *const kernel = devices[stream.device].kernels[kind];
    const Config config = {.grid = {blocks, 1, 1}, .block = {THREADS, 1, 1}, .stream = stream.handle};
    if (extended && stream.per_thread)
        return CU(cuLaunchKernelEx_ptsz)(&config, kernel, parameters, NULL);
    if (extended)
        return CU(cuLaunchKernelEx)(&config, kernel, parameters, NULL);
    return (stream.per_thread ? CU(cuLaunchKernel_ptsz) : CU(cuLaunchKernel))(kernel, blocks, 1, 1, THREADS, 1, 1, 0,
                                                                              stream.handle, parameters, NULL);
}

static inline int set_priority(void *stream, int priority) {
    enum { PRIORITY = 8 };
    const int32_t value[16] = {priority};
    return CU(cuStreamSetAttribute)(stream, PRIORITY, value);
}

/* Only HIP has these two. */
static inline int launch_recording(struct named stream, int kind, void *before, void *behind) {
    (void)stream, (void)kind, (void)before, (void)behind;
    return 801; /* CUDA_ERROR_NOT_SUPPORTED */
}

static inline int copy_and_wait(struct named stream, uint64_t memory) {
    (void)stream, (void)memory;
    return 801;
}

static inline int add_kernel(void **node, void *graph, int kind) {
    const NodeParams params = {devices[0].kernels[kind], {grids[kind], 1, 1}, {THREADS, 1, 1}, 0, parameters, NULL};
    return CU(cuGraphAddKernelNode)(node, graph, NULL, 0, &params);
}

/* h, d, D, m: to the device, to the host, on the device, a fill. */
static inline int copy(char kind, int per_thread, uint64_t memory) {
    static uint32_t host;
    switch (kind) {
    case 'h':
        return per_thread ? CU(cuMemcpyHtoD_v2_ptds)(memory, &host, 4) : CU(cuMemcpyHtoD_v2)(memory, &host, 4);
    case 'd':
        return per_thread ? CU(cuMemcpyDtoH_v2_ptds)(&host, memory, 4) : CU(cuMemcpyDtoH_v2)(&host, memory, 4);
    case 'D':
        return per_thread ? CU(cuMemcpyDtoD_v2_ptds)(memory, memory + 64, 4)
                          : CU(cuMemcpyDtoD_v2)(memory, memory + 64, 4);
    default:
        return per_thread ? CU(cuMemsetD32_v2_ptds)(memory, 0, 4) : CU(cuMemsetD32_v2)(memory, 0, 4);
    }
}
