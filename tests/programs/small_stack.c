/* A thread with the smallest stack that the system allows makes this process's first launches. Before them, CAPTURED
 * ones on a stream that captures. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#ifndef STACK
#define STACK 16384
#endif
#ifndef CAPTURED
#define CAPTURED 0
#endif

extern int cuInit(unsigned), cuCtxSetCurrent(void *), cuDevicePrimaryCtxRetain(void **, int);
extern int cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *);
extern int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);
extern unsigned stub_largest(void);
extern int stub_extended(void);

static void *work(void *unused) {
    void *context, *module, *k, *nccl;
    (void)unused;
    intptr_t bad = cuInit(0) + cuDevicePrimaryCtxRetain(&context, 0) + cuCtxSetCurrent(context);
    bad += cuModuleLoadData(&module, "x") + cuModuleGetFunction(&k, module, "k") +
           cuModuleGetFunction(&nccl, module, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    for (int i = 0; i < CAPTURED; i++)
        bad += cuLaunchKernel(k, 4000, 1, 1, 256, 1, 1, 0, (void *)16, 0, 0);
    for (int i = 0; i < 10; i++) {
        bad += cuLaunchKernel(k, 4000, 1, 1, 256, 1, 1, 0, 0, 0, 0);
        bad += cuLaunchKernel(nccl, 16, 1, 1, 256, 1, 1, 0, 0, 0, 0);
    }
    return (void *)bad;
}

int main(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    void *bad = (void *)1;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, STACK) || pthread_create(&thread, &attributes, work, NULL))
        return 2;
    pthread_join(thread, &bad);
    printf("bad: %d, largest size: %u, extended: %d\n", (int)(intptr_t)bad, stub_largest(), stub_extended());
    return 0;
}
