/* What windows.c uses of the driver besides the calls of driver.h. */
#pragma once

#include <stddef.h>

/* CUDA_KERNEL_NODE_PARAMS, first form */
typedef struct {
    void *function;
    uint32_t grid[3], block[3], shared;
    void **parameters, **extra;
} NodeParams;

#define BOTH(X, name, asked, thread_version, version, parameters)                                                      \
    X(name, asked, version, 0, parameters)                                                                             \
    X(name##_ptsz, asked, thread_version, 2, parameters)

#define MORE_ENTRIES(X)                                                                                                \
    X(cuStreamDestroy_v2, cuStreamDestroy, 4000, 0, (void *))                                                          \
    X(cuStreamSetAttribute, cuStreamSetAttribute, 11000, 0, (void *, int, const void *))                               \
    X(cuStreamBeginCapture_v2_ptsz, cuStreamBeginCapture, 10010, 2, (void *, int))                                     \
    X(cuStreamEndCapture_ptsz, cuStreamEndCapture, 10000, 2, (void *, void **))                                        \
    X(cuGraphLaunch_ptsz, cuGraphLaunch, 10000, 2, (void *, void *))                                                   \
    BOTH(X, cuStreamSynchronize, cuStreamSynchronize, 7000, 2000, (void *))                                            \
    BOTH(X, cuStreamQuery, cuStreamQuery, 7000, 2000, (void *))                                                        \
    BOTH(X, cuStreamWaitEvent, cuStreamWaitEvent, 7000, 3020, (void *, void *, unsigned))                              \
    BOTH(X, cuEventRecord, cuEventRecord, 7000, 2000, (void *, void *))                                                \
    BOTH(X, cuEventRecordWithFlags, cuEventRecordWithFlags, 11010, 11010, (void *, void *, unsigned))                  \
    BOTH(X, cuStreamWaitValue32_v2, cuStreamWaitValue32, 11070, 11070, (void *, uint64_t, uint32_t, unsigned))         \
    BOTH(X, cuStreamWriteValue32_v2, cuStreamWriteValue32, 11070, 11070, (void *, uint64_t, uint32_t, unsigned))       \
    BOTH(X, cuLaunchHostFunc, cuLaunchHostFunc, 10000, 10000, (void *, void (*)(void *), void *))                      \
    BOTH(X, cuMemsetD32Async, cuMemsetD32Async, 7000, 3020, (uint64_t, uint32_t, size_t, void *))                      \
    BOTH(X, cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync, 7000, 4000, (uint64_t, uint64_t, size_t, void *))                 \
    X(cuMemcpyHtoD_v2, cuMemcpyHtoD, 3020, 0, (uint64_t, const void *, size_t))                                        \
    X(cuMemcpyHtoD_v2_ptds, cuMemcpyHtoD, 7000, 2, (uint64_t, const void *, size_t))                                   \
    X(cuMemcpyDtoH_v2, cuMemcpyDtoH, 3020, 0, (void *, uint64_t, size_t))                                              \
    X(cuMemcpyDtoH_v2_ptds, cuMemcpyDtoH, 7000, 2, (void *, uint64_t, size_t))                                         \
    X(cuMemcpyDtoD_v2, cuMemcpyDtoD, 3020, 0, (uint64_t, uint64_t, size_t))                                            \
    X(cuMemcpyDtoD_v2_ptds, cuMemcpyDtoD, 7000, 2, (uint64_t, uint64_t, size_t))                                       \
    X(cuMemsetD32_v2, cuMemsetD32, 3020, 0, (uint64_t, uint32_t, size_t))                                              \
    X(cuMemsetD32_v2_ptds, cuMemsetD32, 7000, 2, (uint64_t, uint32_t, size_t))                                         \
    X(cuEventCreate, cuEventCreate, 2000, 0, (void **, unsigned))                                                      \
    X(cuEventDestroy_v2, cuEventDestroy, 4000, 0, (void *))                                                            \
    X(cuEventSynchronize, cuEventSynchronize, 2000, 0, (void *))                                                       \
    X(cuEventQuery, cuEventQuery, 2000, 0, (void *))                                                                   \
    X(cuEventElapsedTime, cuEventElapsedTime, 2000, 0, (float *, void *, void *))                                      \
    X(cuMemAlloc_v2, cuMemAlloc, 3020, 0, (uint64_t *, size_t))                                                        \
    X(cuGraphCreate, cuGraphCreate, 10000, 0, (void **, unsigned))                                                     \
    X(cuGraphDestroy, cuGraphDestroy, 10000, 0, (void *))                                                              \
    X(cuGraphExecDestroy, cuGraphExecDestroy, 10000, 0, (void *))                                                      \
    X(cuGraphAddChildGraphNode, cuGraphAddChildGraphNode, 10000, 0, (void **, void *, void *const *, size_t, void *))  \
    X(cuGraphAddKernelNode, cuGraphAddKernelNode, 10000, 0,                                                            \
      (void **, void *, void *const *, size_t, const NodeParams *))                                                    \
    X(cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo, 11030, 0,                                                     \
      (void *, int *, uint64_t *, void **, void *const **, size_t *))                                                  \
    X(cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies, 11030, 0,                                  \
      (void *, void *const *, size_t, unsigned))
