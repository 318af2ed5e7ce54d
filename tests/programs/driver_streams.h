/* What waiting.c and mpi_stencil.c use of the driver besides the calls of driver.h. */
#pragma once

#include <stddef.h>

#define MORE_ENTRIES(X)                                                                                                \
    X(cuStreamDestroy_v2, cuStreamDestroy, 4000, 0, (void *))                                                          \
    X(cuStreamSetAttribute, cuStreamSetAttribute, 11000, 0, (void *, int, const void *))                               \
    X(cuStreamSynchronize, cuStreamSynchronize, 2000, 0, (void *))                                                     \
    X(cuStreamQuery, cuStreamQuery, 2000, 0, (void *))                                                                 \
    X(cuStreamWaitEvent, cuStreamWaitEvent, 3020, 0, (void *, void *, unsigned))                                       \
    X(cuEventRecord, cuEventRecord, 2000, 0, (void *, void *))                                                         \
    X(cuLaunchHostFunc, cuLaunchHostFunc, 10000, 0, (void *, void (*)(void *), void *))                                \
    X(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync, 4000, 0, (uint64_t, uint64_t, size_t, void *))                          \
    X(cuMemcpyHtoD_v2, cuMemcpyHtoD, 3020, 0, (uint64_t, const void *, size_t))                                        \
    X(cuMemcpyDtoH_v2, cuMemcpyDtoH, 3020, 0, (void *, uint64_t, size_t))                                              \
    X(cuMemcpyDtoD_v2, cuMemcpyDtoD, 3020, 0, (uint64_t, uint64_t, size_t))                                            \
    X(cuEventCreate, cuEventCreate, 2000, 0, (void **, unsigned))                                                      \
    X(cuEventSynchronize, cuEventSynchronize, 2000, 0, (void *))                                                       \
    X(cuEventQuery, cuEventQuery, 2000, 0, (void *))                                                                   \
    X(cuMemAlloc_v2, cuMemAlloc, 3020, 0, (uint64_t *, size_t))
