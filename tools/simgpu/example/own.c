/* A program of a reader's own on the simulated GPU (README.md): a short kernel that the host waits for, behind a long one. With CUDA's toolkit
 * these declarations are <cuda.h>. */
#include <stdio.h>
#include <stdlib.h>

extern int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
extern int cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *);
extern int cuStreamCreate(void **, unsigned), cuStreamSynchronize(void *), cuEventCreate(void **, unsigned);
extern int cuEventRecord(void *, void *), cuEventElapsedTime(float *, void *, void *);
extern int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);

static void check(int status, const char *what) {
    if (status != 0) {
        fprintf(stderr, "%s: %d\n", what, status);
        exit(1);
    }
}
#define CHECK(call) check(call, #call)

static const char PTX[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                          ".visible .entry large() { ret; }\n.visible .entry small() { ret; }\n";

int main(void) {
    void *context, *module, *large, *small, *compute, *halo, *begin, *end;
    float milliseconds, total = 0;
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, PTX));
    CHECK(cuModuleGetFunction(&large, module, "large"));
    CHECK(cuModuleGetFunction(&small, module, "small"));
    CHECK(cuStreamCreate(&compute, 1));
    CHECK(cuStreamCreate(&halo, 1));
    CHECK(cuEventCreate(&begin, 0));
    CHECK(cuEventCreate(&end, 0));
    for (int step = 0; step < 40; step++) {
        CHECK(cuEventRecord(begin, halo));
        CHECK(cuLaunchKernel(large, 20000, 1, 1, 256, 1, 1, 0, compute, NULL, NULL));
        CHECK(cuLaunchKernel(small, 100, 1, 1, 256, 1, 1, 0, halo, NULL, NULL));
        CHECK(cuEventRecord(end, halo));
        CHECK(cuStreamSynchronize(halo));
        CHECK(cuStreamSynchronize(compute));
        CHECK(cuEventElapsedTime(&milliseconds, begin, end));
        total += milliseconds;
    }
    printf("the halo stream takes %.3f ms a step (simulated)\n", (double)total / 40);
    return 0;
}
