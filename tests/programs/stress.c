/* 16 threads that launch while each loads and unloads modules of its own: handles come back with another meaning all
 * the time. Half of the kernels are called shape_*. Prints how many launches each thread made. */
#define WAY_LINKED
#include "driver.h"

#include <pthread.h>
#include <unistd.h>

enum { THREADS = 16, ROUNDS = 12, LAUNCHES = 10 };
static void *context;

static void *work(void *number) {
    intptr_t me = (intptr_t)number;
    intptr_t made = 0;
    CU(cuCtxSetCurrent)(context);
    for (int round = 0; round < ROUNDS; round++) {
        char name[64];
        snprintf(name, sizeof name, "%s_%d_%d", (me + round) % 2 ? "shape" : "leave", (int)me, round);
        char *text = ptx_of(name);
        void *module, *function;
        uint64_t a = (uint64_t)me;
        uint32_t b = (uint32_t)round;
        void *parameters[] = {&a, &b};
        if (CU(cuModuleLoadData)(&module, text) || CU(cuModuleGetFunction)(&function, module, name))
            exit(9);
        free(text);
        for (int i = 0; i < LAUNCHES; i++) {
            const Config config = {{i % 2 ? 1100 : 10, 1, 1}, {256, 1, 1}, 0, 0, NULL, NULL, 0, 0};
            made += i % 3
                        ? CU(cuLaunchKernel)(function, config.grid[0], 1, 1, 256, 1, 1, 0, NULL, parameters, NULL) == 0
                        : CU(cuLaunchKernelEx)(&config, function, parameters, NULL) == 0;
        }
        if (CU(cuModuleUnload)(module))
            exit(8);
    }
    return (void *)made;
}

int main(void) {
    pthread_t threads[THREADS];
    context = driver_start();
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *made;
        pthread_join(threads[i], &made);
        printf("%d\n", (int)(intptr_t)made);
    }
    return 0;
}
