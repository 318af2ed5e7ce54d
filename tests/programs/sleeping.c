/* Threads that order streams of their own, each in rounds; now and then one of them launches communication, or captures: sleeping THREADS ROUNDS.
 * At last a child is forked, which makes the same calls once, whatever the driver says there. */
#define WAY_LINKED
#define DRIVER_MORE_FILE "windows_driver.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

extern int cuCtxGetCurrent(void **);

enum { MOST = 8, NON_BLOCKING = 1, SELDOM = 97, CAPTURES = 211 };
static void *context, *kernel, *communication;
static int rounds, bad;
static uint64_t a;
static uint32_t b;
static void *parameters[] = {&a, &b};

static void good(int result) {
    if (result)
        __atomic_store_n(&bad, result, __ATOMIC_RELAXED);
}

static int launch(void *what, void *stream, unsigned blocks) {
    return CU(cuLaunchKernel)(what, blocks, 1, 1, 256, 1, 1, 0, stream, parameters, NULL);
}

static void capture(void *stream) {
    void *graph, *exec;
    good(CU(cuStreamBeginCapture_v2)(stream, 1));
    good(launch(kernel, stream, 8));
    good(CU(cuStreamEndCapture)(stream, &graph));
    good(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
    good(CU(cuGraphLaunch)(exec, stream));
}

static int one_round(void *const *streams, void *const *events, int communicates) {
    int result = launch(kernel, streams[0], 1);
    if (communicates)
        result |= launch(communication, streams[0], 4);
    result |= CU(cuEventRecord)(events[0], streams[0]);
    result |= launch(kernel, streams[1], 16);
    result |= CU(cuStreamWaitEvent)(streams[1], events[0], 0);
    result |= CU(cuEventRecord)(events[1], streams[1]);
    result |= CU(cuStreamWaitEvent)(streams[0], events[1], 0);
    return result | CU(cuStreamSynchronize)(streams[0]);
}

static void *orders(void *first) {
    void *streams[2], *events[2];
    good(CU(cuCtxSetCurrent)(context));
    for (int i = 0; i < 2; i++) {
        good(CU(cuStreamCreate)(&streams[i], NON_BLOCKING));
        good(CU(cuEventCreate)(&events[i], 2));
    }
    for (int i = 0; i < rounds; i++) {
        good(one_round(streams, events, first && i % SELDOM == SELDOM - 1));
        if (first && i % CAPTURES == CAPTURES - 1)
            capture(streams[1]);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[MOST];
    void *module, *streams[2] = {NULL, NULL}, *events[2];
    const int count = argc > 1 ? atoi(argv[1]) : 1;
    int status = 1;
    driver_start();
    rounds = argc > 2 ? atoi(argv[2]) : 1;
    good(cuCtxGetCurrent(&context));
    char *text = ptx_of("k,ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    good(CU(cuModuleLoadData)(&module, text));
    good(CU(cuModuleGetFunction)(&kernel, module, "k"));
    good(CU(cuModuleGetFunction)(&communication, module, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"));
    free(text);
    for (int i = 0; i < 2; i++)
        good(CU(cuEventCreate)(&events[i], 2));
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, orders, i ? NULL : &rounds);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    fflush(stdout);
    const pid_t child = fork();
    if (!child)
        _exit(one_round(streams, events, 1) != 0);
    waitpid(child, &status, 0);
    printf("bad: %d, the child: %d\n", bad, status);
    return bad;
}
