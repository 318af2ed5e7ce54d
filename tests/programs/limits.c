/* On the stub driver that counts. Threads that quarrel about the limit of dynamic shared memory of one kernel. Prints how many
 * launches failed. limits set: one sets attribute 8 before every launch, as CUTLASS does, while others launch limits
 * sizes: four launch with different blocks and sizes; each round has a kernel of its own, so that all of them raise its
 * limit at once */
#define WAY_LINKED
#include "driver.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 60, LAUNCHES = 40, ASKED = 60000 };
static void *context, *functions[ROUNDS];
static int setting, kernels, failed;
static pthread_barrier_t barrier;

static int launch(void *function, unsigned threads, unsigned shared) {
    uint64_t a = 0;
    uint32_t b = 0;
    void *parameters[] = {&a, &b};
    return cuLaunchKernel(function, 4000, 1, 1, threads, 1, 1, shared, NULL, parameters, NULL) != 0;
}

static void *work(void *number) {
    int me = (int)(intptr_t)number, bad = cuCtxSetCurrent(context);
    for (int round = 0; round < ROUNDS; round++) {
        void *function = functions[round % kernels];
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < LAUNCHES; i++) {
            if (setting && me == 0)
                bad += cuFuncSetAttribute(function, 8, ASKED + (i & 1) * 1000) != 0;
            if (setting)
                bad += launch(function, 256, me % 2 ? 0 : ASKED);
            else
                bad += launch(function, me % 2 ? 256 : 512, (unsigned)me * 8000);
        }
    }
    __atomic_fetch_add(&failed, bad, __ATOMIC_RELAXED);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    setting = argc > 1 && strcmp(argv[1], "set") == 0;
    kernels = setting ? 1 : ROUNDS;
    context = driver_start();
    for (int i = 0; i < kernels; i++) {
        char name[32];
        snprintf(name, sizeof name, "k%d", i);
        functions[i] = kernel_of(name);
        failed += cuFuncSetAttribute(functions[i], 8, ASKED);
    }
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("failed: %d\n", failed);
    return 0;
}
