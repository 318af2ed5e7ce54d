/* churn THREADS ROUNDS: threads that launch while each loads and unloads modules, creates and destroys streams and
 * contexts of its own and builds graphs: handles come back with another meaning all the time. Kernels called shape* may
 * get another size (on few multiprocessors: 100 blocks are many), leave* must not. Prints how many calls failed. */
#define WAY_LINKED
#define DRIVER_MORE
#include "driver.h"

#include <pthread.h>

extern int cuCtxCreate_v2(void **, unsigned, int), cuCtxDestroy_v2(void *);

enum { MOST = 64, LAUNCHES = 6 };
static void *primary;
static int rounds, failed;

static int graph_of(void *function, void **parameters, void *stream) {
    void *graph, *node, *exec;
    NodeParams params = {function, {100, 1, 1}, {256, 1, 1}, 0, parameters, NULL, NULL, NULL};
    return CU(cuGraphCreate)(&graph, 0) + CU(cuGraphAddKernelNode_v2)(&node, graph, NULL, 0, &params) +
           CU(cuGraphKernelNodeGetParams_v2)(node, &params) + (params.shared != 0) +
           CU(cuGraphInstantiateWithFlags)(&exec, graph, 0) + CU(cuGraphLaunch)(exec, stream) +
           CU(cuGraphExecDestroy)(exec);
}

static void *work(void *number) {
    const int me = (int)(intptr_t)number;
    int bad = 0;
    for (int round = 0; round < rounds; round++) {
        void *context = primary, *module, *function, *comm, *stream;
        const int own = (me + round) % 4 == 0;
        if (own)
            bad += cuCtxCreate_v2(&context, 0, 0);
        bad += CU(cuCtxSetCurrent)(context);
        char names[64], *name = names;
        snprintf(names, sizeof names, "%s_%d,ncclDevKernel_%d", (me + round) % 2 ? "shape" : "leave", me, round);
        char *text = ptx_of(names);
        bad += CU(cuModuleLoadData)(&module, text);
        *strchr(name, ',') = 0;
        bad += CU(cuModuleGetFunction)(&function, module, name);
        bad += CU(cuModuleGetFunction)(&comm, module, name + strlen(name) + 1);
        bad += CU(cuStreamCreate)(&stream, 1);
        free(text);
        uint64_t a = (uint64_t)me;
        uint32_t b = (uint32_t)round;
        void *parameters[] = {&a, &b};
        for (int i = 0; i < LAUNCHES; i++) {
            bad += CU(cuLaunchKernel)(function, i % 2 ? 100 : 10, 1, 1, 256, 1, 1, 0, stream, parameters, NULL);
            bad += CU(cuLaunchKernel)(comm, 4, 1, 1, 64 + 32 * ((unsigned)me % 16), 1, 1, 0, stream, parameters, NULL);
        }
        if (round % 3 == 0)
            bad += graph_of(function, parameters, stream);
        int blocks = 0;
        if (round % 5 == 0)
            bad += CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, function, 256, 0) + (blocks != 8);
        bad += CU(cuStreamDestroy_v2)(stream);
        bad += CU(cuModuleUnload)(module);
        if (own)
            bad += cuCtxDestroy_v2(context);
    }
    __atomic_fetch_add(&failed, bad, __ATOMIC_RELAXED);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[MOST];
    const int count = argc > 1 ? atoi(argv[1]) : MOST;
    rounds = argc > 2 ? atoi(argv[2]) : 10;
    driver_start();
    CU(cuDevicePrimaryCtxRetain)(&primary, 0);
    for (intptr_t i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    printf("failed: %d\n", failed);
    return 0;
}
