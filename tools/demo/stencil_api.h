/* SPDX-License-Identifier: Apache-2.0
 * What stencil.c uses of the driver. */
#pragma once

#define DRIVER_API(X)                                                                                                  \
    X(cuInit, (unsigned))                                                                                              \
    X(cuGetErrorName, (int, const char **))                                                                            \
    X(cuDeviceGetName, (char *, int, int))                                                                             \
    X(cuDeviceGetAttribute, (int *, int, int))                                                                         \
    X(cuDevicePrimaryCtxRetain, (void **, int))                                                                        \
    X(cuCtxSetCurrent, (void *))                                                                                       \
    X(cuCtxSynchronize, (void))                                                                                        \
    X(cuCtxGetStreamPriorityRange, (int *, int *))                                                                     \
    X(cuModuleLoadData, (void **, const void *))                                                                       \
    X(cuModuleGetFunction, (void **, void *, const char *))                                                            \
    X(cuFuncSetAttribute, (void *, int, int))                                                                          \
    X(cuMemAlloc_v2, (uint64_t *, size_t))                                                                             \
    X(cuMemAllocHost_v2, (void **, size_t))                                                                            \
    X(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t))                                                               \
    X(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))                                                                     \
    X(cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, void *))                                                  \
    X(cuMemcpyDtoHAsync_v2, (void *, uint64_t, size_t, void *))                                                        \
    X(cuMemsetD32Async, (uint64_t, unsigned, size_t, void *))                                                          \
    X(cuStreamCreateWithPriority, (void **, unsigned, int))                                                            \
    X(cuStreamCreate, (void **, unsigned))                                                                             \
    X(cuStreamDestroy_v2, (void *))                                                                                    \
    X(cuStreamWaitEvent, (void *, void *, unsigned))                                                                   \
    X(cuStreamSynchronize, (void *))                                                                                   \
    X(cuStreamQuery, (void *))                                                                                         \
    X(cuStreamBeginCapture_v2, (void *, int))                                                                          \
    X(cuStreamEndCapture, (void *, void **))                                                                           \
    X(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long))                                              \
    X(cuGraphLaunch, (void *, void *))                                                                                 \
    X(cuEventCreate, (void **, unsigned))                                                                              \
    X(cuEventRecord, (void *, void *))                                                                                 \
    X(cuEventQuery, (void *))                                                                                          \
    X(cuEventSynchronize, (void *))                                                                                    \
    X(cuEventElapsedTime, (float *, void *, void *))                                                                   \
    X(cuLaunchHostFunc, (void *, void (*)(void *), void *))                                                            \
    X(cuLaunchKernel,                                                                                                  \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))
