/* One rank of a simulated job: rank LAUNCHES. It launches so many computation kernels, and half as many of communication (one
 * for every EVERY of them), on the GPU of its place on the host (LOCAL_RANK).
 *
 * rank_host.c says on which host it is, and what its clock shows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 600, THREADS = 1024 }; /* on an H100 two blocks a multiprocessor, and more than two waves */

int cuInit(unsigned flags);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuModuleLoadData(void **module, const void *image);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuStreamCreate(void **stream, unsigned flags);
int cuCtxSynchronize(void);
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz,
                   unsigned dynamic, void *stream, void **parameters, void **extra);

static const char image[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                            ".visible .entry gemm() { ret; }\n"
                            ".visible .entry ncclDevKernel_AllReduce_Sum_f32_RING_LL() { ret; }\n";

static void must(int result, const char *what) {
    if (result) {
        fprintf(stderr, "rank: %s: error %d\n", what, result);
        exit(1);
    }
}

int main(int argc, char **argv) {
    const char *local = getenv("LOCAL_RANK");
    const char *every = getenv("EVERY");
    const int launches = argc > 1 ? atoi(argv[1]) : 0, each = every ? atoi(every) : 2;
    void *context, *module, *compute, *communicate, *stream;
    int device;
    must(cuInit(0), "cuInit");
    must(cuDeviceGet(&device, local ? atoi(local) : 0), "cuDeviceGet");
    must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    must(cuModuleLoadData(&module, image), "cuModuleLoadData");
    must(cuModuleGetFunction(&compute, module, "gemm"), "gemm");
    must(cuModuleGetFunction(&communicate, module, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"), "nccl");
    must(cuStreamCreate(&stream, 1), "cuStreamCreate");
    for (int i = 0; i < launches; i++) {
        must(cuLaunchKernel(compute, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, NULL, NULL), "cuLaunchKernel");
        if ((i + 1) % each)
            continue;
        must(cuLaunchKernel(communicate, 16, 1, 1, THREADS, 1, 1, 0, stream, NULL, NULL), "cuLaunchKernel");
    }
    must(cuCtxSynchronize(), "cuCtxSynchronize");
    return 0;
}
