/* SPDX-License-Identifier: Apache-2.0
 * What program.c calls of the driver, the kernels that it launches, and what a sample may ask for. */
#ifndef OVERLAP_STANDINS_PROGRAM_H
#define OVERLAP_STANDINS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define PROGRAM "standins-program"
#define API(X)                                                                                                         \
    X(cuInit, (unsigned))                                                                                              \
    X(cuGetErrorName, (int, const char **))                                                                            \
    X(cuDeviceGetAttribute, (int *, int, int))                                                                         \
    X(cuDevicePrimaryCtxRetain, (void **, int))                                                                        \
    X(cuCtxSetCurrent, (void *))                                                                                       \
    X(cuCtxSynchronize, (void))                                                                                        \
    X(cuCtxGetStreamPriorityRange, (int *, int *))                                                                     \
    X(cuModuleLoadData, (void **, const void *))                                                                       \
    X(cuModuleGetFunction, (void **, void *, const char *))                                                            \
    X(cuFuncSetAttribute, (void *, int, int))                                                                          \
    X(cuFuncGetAttribute, (int *, int, void *))                                                                        \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, void *, int, size_t))                                       \
    X(cuMemAlloc_v2, (uint64_t *, size_t))                                                                             \
    X(cuMemHostAlloc, (void **, size_t, unsigned))                                                                     \
    X(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))                                                                     \
    X(cuMemcpyDtoDAsync_v2, (uint64_t, uint64_t, size_t, void *))                                                      \
    X(cuMemcpyDtoHAsync_v2, (void *, uint64_t, size_t, void *))                                                        \
    X(cuMemsetD32_v2, (uint64_t, unsigned, size_t))                                                                    \
    X(cuStreamCreateWithPriority, (void **, unsigned, int))                                                            \
    X(cuStreamWaitEvent, (void *, void *, unsigned))                                                                   \
    X(cuEventCreate, (void **, unsigned))                                                                              \
    X(cuEventRecord, (void *, void *))                                                                                 \
    X(cuEventElapsedTime, (float *, void *, void *))                                                                   \
    X(cuLaunchKernel,                                                                                                  \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))        \
    X(cuLaunchKernelEx, (const struct config *, void *, void **, void **))

#include "../../demo/driver.h"

enum { FUNCTION_STATIC = 1, FUNCTION_REGISTERS = 4, FUNCTION_MAX_DYNAMIC = 8, FUNCTION_CARVEOUT = 9 };
enum { OPT_IN_SHARED = 97, NON_BLOCKING = 1, NO_TIMING = 2, CLUSTER = 4, COMPLETION_EVENT = 12 };
enum { MOST_ROUNDS = 16, MOST_BLOCKS = 256, MOST_RESIDENT = 32, LOOKED = 65536 };
enum { COPY_THREADS = 544, COPY_BLOCKS = 24, COPY_DYNAMIC = 82240, COPY_CLUSTER = 4 }; /* NCCL 2.28.9 on an H200 */

enum kind { HALF_PRODUCT, PRODUCT, ELEMENTWISE, NORM, COPY }; /* what `compare` of kernels.cu knows */

/* m, n, k are the kernel's own (kernels.cu). */
static struct kernel {
    const char *name, *symbol;
    enum kind kind;
    unsigned blocks, across, threads, dynamic; /* across: of a grid of two dimensions, else 0 */
    int m, n, k;
    long numbers[3]; /* of a, b and c */
    void *function;
    uint64_t buffer[3]; /* made when first needed */
    int carveout;
} kernels[] = {
#define GEMM(m, n, k) m, n, k, {(long)(m) * (k), (long)(n) * (k), (long)(m) * (n)}, NULL, {0}, -1
#define ROWS(m, n, a, b) m, n, 0, {a, b, a}, NULL, {0}, -1
    {"tensor128", "hgemm_tensor128", HALF_PRODUCT, 48 * 48, 0, 256, 81920, GEMM(6144, 6144, 4096)},
    {"tensor64", "hgemm_tensor64", HALF_PRODUCT, 84 * 80, 0, 128, 40960, GEMM(5376, 5120, 4096)},
    {"simt", "sgemm_128x64_nn", PRODUCT, 40 * 88, 88, 256, 0, GEMM(5120, 5632, 768)},
    {"tiled", "sgemm_tiled", PRODUCT, 96 * 96, 0, 256, 0, GEMM(1536, 1536, 1920)},
    {"elementwise", "elementwise", ELEMENTWISE, 18000, 0, 128, 0, ROWS(1, 42, 18000L * 128 * 168, 18000L * 128 * 168)},
    {"norm", "rms_norm", NORM, 9000, 0, 256, 0, ROWS(13, 4096, 9000L * 13 * 4096, 0)},
    {"warp-specialised", "hgemm_whole", HALF_PRODUCT, 32 * 35, 0, 384, 218112, GEMM(6144, 8960, 4096)},
    {"persistent", "hgemm_persistent", HALF_PRODUCT, 132, 0, 384, 218112, GEMM(6144, 8448, 4096)},
    {"copy", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", COPY, COPY_BLOCKS, 0, COPY_THREADS, COPY_DYNAMIC,
     ROWS(0, 0, 0, 0)},
#undef GEMM
#undef ROWS
};
enum { KERNELS = sizeof kernels / sizeof *kernels };
static struct kernel *const copy_kernel = &kernels[KERNELS - 1];

struct mark {
    uint64_t start, end;
};

/* What a sample does. Without a key: as these say. */
struct sample {
    long computation, communication; /* 0: this part is left out */
    long sequential, priority;       /* communication: on the stream of computation; at the greatest priority */
    long first;                      /* the host launches communication first */
    long gate;                       /* computation waits until all blocks of the collective have started */
    long loop, count;
    long offset_us;                       /* the host waits so long between the first launch and the second */
    long grid, dynamic;                   /* of computation; 0: its own */
    long carveout;                        /* preferred, of computation; -1: the driver's choice */
    long bytes, blocks, threads, cluster; /* of communication; bytes are copied, so read and written once each */
    long rate;                            /* bytes read and written in a microsecond, by all blocks; 0: no limit */
    long host;                            /* into pinned memory of the host */
    long engine;                          /* by a copy engine instead of a kernel */
    long warm;                            /* as often before, not timed */
};
static const struct sample usual = {.computation = 1,
                                    .communication = 1,
                                    .count = 1,
                                    .carveout = -1,
                                    .blocks = COPY_BLOCKS,
                                    .threads = COPY_THREADS,
                                    .cluster = COPY_CLUSTER,
                                    .warm = 1};
#define KEY(name) {#name, offsetof(struct sample, name)}
static const struct {
    const char *name;
    size_t offset;
} keys[] = {KEY(computation), KEY(communication), KEY(sequential), KEY(priority),  KEY(first),
            KEY(gate),        KEY(loop),          KEY(count),      KEY(offset_us), KEY(grid),
            KEY(dynamic),     KEY(carveout),      KEY(bytes),      KEY(blocks),    KEY(threads),
            KEY(cluster),     KEY(rate),          KEY(host),       KEY(engine),    KEY(warm)};
#undef KEY

#endif
