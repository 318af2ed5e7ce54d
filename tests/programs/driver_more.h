/* What client.c uses of the driver besides the calls of driver.h: occupancy, streams, green contexts. */
#pragma once

#define MORE_ENTRIES(X)                                                                                                \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, 0,               \
      (int *, void *, int, size_t))                                                                                    \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,      \
      7000, 0, (int *, void *, int, size_t, unsigned))                                                                 \
    X(cuOccupancyMaxPotentialBlockSize, cuOccupancyMaxPotentialBlockSize, 6050, 0,                                     \
      (int *, int *, void *, void *, size_t, int))                                                                     \
    X(cuOccupancyMaxPotentialBlockSizeWithFlags, cuOccupancyMaxPotentialBlockSizeWithFlags, 7000, 0,                   \
      (int *, int *, void *, void *, size_t, int, unsigned))                                                           \
    X(cuOccupancyAvailableDynamicSMemPerBlock, cuOccupancyAvailableDynamicSMemPerBlock, 10020, 0,                      \
      (size_t *, void *, int, int))                                                                                    \
    X(cuOccupancyMaxActiveClusters, cuOccupancyMaxActiveClusters, 11070, 0, (int *, void *, const Config *))           \
    X(cuOccupancyMaxPotentialClusterSize, cuOccupancyMaxPotentialClusterSize, 11070, 0,                                \
      (int *, void *, const Config *))                                                                                 \
    X(cuFuncSetCacheConfig, cuFuncSetCacheConfig, 3000, 0, (void *, int))                                              \
    X(cuKernelSetCacheConfig, cuKernelSetCacheConfig, 12000, 0, (void *, int, int))                                    \
    X(cuLibraryGetModule, cuLibraryGetModule, 12000, 0, (void **, void *))                                             \
    X(cuFuncGetModule, cuFuncGetModule, 11000, 0, (void **, void *))                                                   \
    X(cuCtxCreate_v2, cuCtxCreate, 3020, 0, (void **, unsigned, int))                                                  \
    X(cuCtxGetCurrent, cuCtxGetCurrent, 4000, 0, (void **))                                                            \
    X(cuCtxDestroy_v2, cuCtxDestroy, 4000, 0, (void *))                                                                \
    X(cuCtxSetCacheConfig, cuCtxSetCacheConfig, 3020, 0, (int))                                                        \
    X(cuCtxGetCacheConfig, cuCtxGetCacheConfig, 3020, 0, (int *))                                                      \
    X(cuCtxAttach, cuCtxAttach, 2000, 0, (void **, unsigned))                                                          \
    X(cuCtxDetach, cuCtxDetach, 2000, 0, (void *))                                                                     \
    X(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease, 11000, 0, (int))                                        \
    X(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset, 11000, 0, (int))                                            \
    X(cuStreamDestroy_v2, cuStreamDestroy, 4000, 0, (void *))                                                          \
    X(cuStreamSetAttribute, cuStreamSetAttribute, 11000, 0, (void *, int, const void *))                               \
    X(cuStreamGetAttribute, cuStreamGetAttribute, 11000, 0, (void *, int, void *))                                     \
    X(cuStreamCopyAttributes, cuStreamCopyAttributes, 11000, 0, (void *, void *))                                      \
    X(cuDeviceGetDevResource, cuDeviceGetDevResource, 12040, 0, (int, void *, int))                                    \
    X(cuDevSmResourceSplitByCount, cuDevSmResourceSplitByCount, 12040, 0,                                              \
      (void *, unsigned *, const void *, void *, unsigned, unsigned))                                                  \
    X(cuDevResourceGenerateDesc, cuDevResourceGenerateDesc, 12040, 0, (void **, void *, unsigned))                     \
    X(cuGreenCtxCreate, cuGreenCtxCreate, 12040, 0, (void **, void *, int, unsigned))                                  \
    X(cuGreenCtxDestroy, cuGreenCtxDestroy, 12040, 0, (void *))                                                        \
    X(cuGreenCtxStreamCreate, cuGreenCtxStreamCreate, 12050, 0, (void **, void *, unsigned, int))                      \
    X(cuCtxFromGreenCtx, cuCtxFromGreenCtx, 12040, 0, (void **, void *))
