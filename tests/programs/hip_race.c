/* Two threads, each with a device of its own, launch the same kernels for the first time at the same time, as one process
 * does that drives several GPUs: hip_race FAT */
#include "hip_client.h"

#include <pthread.h>
#include <sched.h>

enum { KERNELS = 3000, SOME = 500 };

static char hosts[KERNELS][16];
static int turns[2];

static void *run(void *number) {
    const int me = (int)(intptr_t)number;
    uint64_t a = 0;
    uint32_t b = 0;
    void *parameters[] = {&a, &b};
    hipSetDevice(me);
    for (int i = 0; i < KERNELS; i++) {
        __atomic_store_n(&turns[me], i + 1, __ATOMIC_SEQ_CST);
        for (int waited = 0; __atomic_load_n(&turns[!me], __ATOMIC_SEQ_CST) <= i; waited++)
            if (waited > 3000)
                sched_yield();
        if (hipLaunchKernel(hosts[i], (dim3){400, 1, 1}, (dim3){256, 1, 1}, parameters, 0, NULL) ||
            (i % SOME == 0 && hipDeviceSynchronize()))
            exit(3);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    void **binary = register_file(argc > 1 ? argv[1] : NULL);
    for (int i = 0; i < KERNELS; i++)
        __hipRegisterFunction(binary, hosts[i], "k", "k", 0, NULL, NULL, NULL, NULL, NULL);
    for (intptr_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, run, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
