// A step of training with the real RCCL: on every device an all-reduce on a stream of its own, and GEMM kernels beside it.
#include <hip/hip_runtime.h>
#include <rccl/rccl.h>
#include <stdio.h>

#include "kernels.h"

enum { DEVICES = 16, COUNT = 1 << 20, GEMM_BLOCKS = 2000 };

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int result = (int)(call);                                                                                      \
        printf("%s: %d\n", #call, result);                                                                             \
        if (result != 0)                                                                                               \
            return 1;                                                                                                  \
    } while (0)

int main() {
    int devices = 0;
    ncclComm_t communicators[DEVICES];
    hipStream_t streams[DEVICES];
    float *data[DEVICES];
    CHECK(hipGetDeviceCount(&devices));
    CHECK(ncclCommInitAll(communicators, devices, NULL));
    for (int i = 0; i < devices; i++) {
        hipSetDevice(i);
        CHECK(hipStreamCreateWithFlags(&streams[i], hipStreamNonBlocking));
        CHECK(hipMalloc(&data[i], COUNT * sizeof(float)));
    }
    for (int step = 0; step < 2; step++) {
        CHECK(ncclGroupStart());
        for (int i = 0; i < devices; i++)
            CHECK(ncclAllReduce(data[i], data[i], COUNT, ncclFloat, ncclSum, communicators[i], streams[i]));
        CHECK(ncclGroupEnd());
        for (int i = 0; i < devices; i++) {
            hipSetDevice(i);
            Cijk_Ailk_Bljk_SB_MT128x128x16<<<GEMM_BLOCKS, 256>>>((int *)data[i]);
            CHECK(hipGetLastError());
        }
        for (int i = 0; i < devices; i++) {
            hipSetDevice(i);
            CHECK(hipDeviceSynchronize());
        }
    }
    for (int i = 0; i < devices; i++)
        CHECK(ncclCommDestroy(communicators[i]));
    return 0;
}
