/* churn THREADS ROUNDS: threads that launch while each loads and unloads modules, creates and destroys streams and
 * contexts of its own and captures graphs: handles come back with another meaning all the time. Kernels called shape* may
 * get another size (on few multiprocessors: 100 blocks are many), leave* must not. Communication takes more from round to
 * round, so what was decided about room beside it (room, one handle for all threads) must be decided anew; the last
 * launch of that comes when all threads have ended. Prints how many calls failed, and how many launches were made. */
#define WAY_LINKED
#define DRIVER_MORE
#include "driver.h"

#include <pthread.h>

enum { MOST = 64, LAUNCHES = 6 };
static void *primary, *room;
static int count, rounds, failed, made;

static int launch(void *function, unsigned blocks, unsigned threads, unsigned shared, void *stream, void **parameters) {
    __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
    return CU(cuLaunchKernel)(function, blocks, 1, 1, threads, 1, 1, shared, stream, parameters, NULL);
}

static int graph_of(void *function, void **parameters, void *stream) {
    enum { RELAXED = 2 };
    void *graph, *exec;
    int bad = CU(cuStreamBeginCapture_v2)(stream, RELAXED) + launch(function, 100, 256, 0, stream, parameters);
    bad += CU(cuStreamEndCapture)(stream, &graph);
    for (int i = 0; i < 3; i++) /* another thread may get the handle at once */
        bad += CU(cuGraphInstantiateWithFlags)(&exec, graph, 0) + CU(cuGraphLaunch)(exec, stream) +
               cuGraphExecDestroy(exec);
    return bad;
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
        const unsigned grown = (unsigned)(round * count + me), most = (unsigned)(rounds * count);
        for (int i = 0; i < LAUNCHES; i++) {
            bad += launch(function, i % 2 ? 100 : 10, 256, 0, stream, parameters);
            bad += launch(comm, 4, 64 + 32 * ((unsigned)me % 16), 1024 + 30000 * grown / most, stream, parameters);
            if (!own)
                bad += launch(room, 100, 256, 0, stream, parameters);
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
    count = argc > 1 ? atoi(argv[1]) : MOST;
    rounds = argc > 2 ? atoi(argv[2]) : 10;
    primary = driver_start();
    room = kernel_of("room");
    for (intptr_t i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    void *parameters[] = {&(uint64_t){0}, &(uint32_t){0}};
    failed += launch(room, 100, 256, 0, NULL, parameters);
    printf("failed: %d, launches: %d\n", failed, made);
    return 0;
}
