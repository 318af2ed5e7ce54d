/* A thread with the smallest stack that the system allows makes this process's first launches. Before them, CAPTURED
 * ones on a stream that captures. */
#define WAY_LINKED
#include "driver.h"

#include <pthread.h>

#ifndef STACK
#define STACK 16384
#endif
#ifndef CAPTURED
#define CAPTURED 0
#endif

extern unsigned stub_largest(void);
extern int stub_extended(void);

static void *work(void *unused) {
    intptr_t bad = 0;
    (void)unused;
    driver_start();
    void *k = kernel_of("k"), *nccl = kernel_of("ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    for (int i = 0; i < CAPTURED; i++)
        bad += launch_kernel(k, 4000, 256, (void *)16);
    for (int i = 0; i < 10; i++)
        bad += launch_kernel(k, 4000, 256, NULL) + launch_kernel(nccl, 16, 256, NULL);
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
