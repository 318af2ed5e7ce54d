// Communication on a stream of its own, GEMM before and after the wait for it: only the first can overlap it.
#include <hip/hip_runtime.h>
#include <stdio.h>

#include "kernels.h"

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int result = (int)(call);                                                                                      \
        if (result != 0) {                                                                                             \
            printf("%s: %d\n", #call, result);                                                                         \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

int main() {
    int *data;
    hipStream_t compute, communication;
    hipEvent_t ready, reduced;
    CHECK(hipMalloc(&data, 4096));
    CHECK(hipStreamCreateWithFlags(&compute, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&communication, hipStreamNonBlocking));
    CHECK(hipEventCreateWithFlags(&ready, hipEventDisableTiming));
    CHECK(hipEventCreateWithFlags(&reduced, hipEventDisableTiming));
    for (int step = 0; step < 4; step++) {
        CHECK(hipEventRecord(ready, compute));
        CHECK(hipStreamWaitEvent(communication, ready, 0));
        ncclDevKernel_Generic_2<<<16, 256, 0, communication>>>(data);
        CHECK(hipEventRecord(reduced, communication));
        Cijk_Ailk_Bljk_SB_MT128x128x16<<<2000 + step, 256, 0, compute>>>(data); // beside it
        CHECK(hipStreamWaitEvent(compute, reduced, 0));
        Cijk_Ailk_Bljk_SB_MT128x128x16<<<3000 + step, 256, 0, compute>>>(data); // behind it
        CHECK(hipGetLastError());
    }
    CHECK(hipDeviceSynchronize());
    return 0;
}
