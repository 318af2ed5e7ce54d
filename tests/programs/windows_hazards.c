/* What is bad for overlap windows, one case a process: windows_hazards CASE [NUMBER]. Launches of k behind `probe` show in
 * the driver's log whether windows still work: one before that is outside, one after communication that is inside, one
 * behind a wait for it that is outside. */
#define WAY_LINKED
#define DRIVER_MORE_FILE "windows_driver.h"
#include "driver.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    char bytes[64];
} Ipc;
extern int cuCtxCreate_v2(void **, unsigned, int), cuCtxDestroy_v2(void *), cuDevicePrimaryCtxReset_v2(int),
    cuIpcGetEventHandle(Ipc *, void *), cuIpcOpenEventHandle(void **, Ipc);

enum { NON_BLOCKING = 1, INTERPROCESS = 4 | 2 };
static void *k, *other, *comm, *primary;
static uint64_t a;
static uint32_t b;
static void *parameters[] = {&a, &b};
static int bad;

static void good(int result) {
    __atomic_fetch_add(&bad, result != 0, __ATOMIC_RELAXED);
}
static void load(void) {
    void *module;
    char *text = ptx_of("k,other,ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    good(CU(cuModuleLoadData)(&module, text));
    good(CU(cuModuleGetFunction)(&k, module, "k"));
    good(CU(cuModuleGetFunction)(&other, module, "other"));
    good(CU(cuModuleGetFunction)(&comm, module, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"));
    free(text);
}
static void *stream_of(unsigned flags) {
    void *made = NULL;
    good(CU(cuStreamCreate)(&made, flags));
    return made;
}
static void *stream(void) {
    return stream_of(NON_BLOCKING);
}
static void *event(void) {
    void *made = NULL;
    good(CU(cuEventCreate)(&made, 2));
    return made;
}
__attribute__((noinline)) static void launch(void *function, void *where) {
    const unsigned blocks = function == comm ? 4 : 64;
    good(CU(cuLaunchKernel)(function, blocks, 1, 1, 256, 1, 1, 0, where, parameters, NULL));
}
static void wait_for(void *waiting, void *other_stream) {
    void *made = event();
    good(CU(cuEventRecord)(made, other_stream));
    good(CU(cuStreamWaitEvent)(waiting, made, 0));
}
static void probe_on(void *x, void *c) {
    launch(k, x);
    launch(comm, c);
    launch(k, x);
    wait_for(x, c);
    launch(k, x);
}
static void probe(void) {
    probe_on(stream(), stream());
}

static void streams(int count) {
    void **made = calloc((size_t)count, sizeof *made), *c = stream();
    for (int i = 0; i < count; i++)
        made[i] = stream();
    launch(comm, c);
    for (int i = 0; i < count; i += 97)
        wait_for(made[i], c);
    probe_on(made[count - 1], made[0]);
    for (int i = 0; i < count; i++)
        good(CU(cuStreamDestroy_v2)(made[i]));
    good(CU(cuCtxSynchronize)());
    probe();
}

/* Each carries something that the host has not seen, so none can be forgotten. */
static void events(int count) {
    void *c = stream(), *x = stream(), *y = stream(), *made;
    launch(comm, c);
    for (int i = 0; i < count; i++) {
        good(CU(cuEventCreate)(&made, 2));
        good(CU(cuEventRecord)(made, c));
    }
    good(CU(cuStreamWaitEvent)(x, made, 0));
    launch(k, x); /* outside: it waits for the communication */
    launch(comm, c);
    good(CU(cuCtxSynchronize)());
    probe();
    launch(comm, c);
    wait_for(x, y); /* an event that tells nothing, recorded afterwards */
    launch(k, x);
}

/* Events that are waited for without ever having been recorded, or polled. */
static void polled(int count) {
    void *c = stream(), *x = stream(), *first = event();
    events(count);
    launch(comm, c);
    for (int i = 0; i < 10; i++)
        CU(cuEventQuery)(first);
    launch(k, x);
}

static void *communicates(void *c) {
    good(CU(cuCtxSetCurrent)(primary));
    launch(comm, c);
    return NULL;
}
static void in_thread(void *(*start)(void *), void *argument) {
    pthread_t made;
    good(pthread_create(&made, NULL, start, argument));
    good(pthread_join(made, NULL));
}
/* NULL: the default stream of a thread that is gone by then. */
static void exits(int per_thread) {
    void *c = per_thread ? (void *)2 : stream(), *x = stream();
    launch(k, x);
    in_thread(communicates, c);
    launch(k, x);
    if (!per_thread)
        wait_for(x, c);
    else
        good(CU(cuCtxSynchronize)());
    launch(k, x);
}
static void many_threads(int count) {
    for (int i = 0; i < count; i++)
        in_thread(communicates, (void *)2);
    good(CU(cuCtxSynchronize)());
    probe();
}

static void forks(int count) {
    void *c = stream();
    launch(comm, c);
    launch(k, stream());
    for (int i = 0; i < count; i++) {
        const pid_t child = fork();
        int status = -1;
        if (child == 0) { /* calls fail there; none may wait or crash */
            void *made = NULL;
            CU(cuEventRecord)(c, c);
            CU(cuStreamCreate)(&made, NON_BLOCKING);
            CU(cuLaunchKernel)(k, 64, 1, 1, 256, 1, 1, 0, c, parameters, NULL);
            CU(cuStreamWaitEvent)(c, c, 0);
            CU(cuStreamSynchronize)(c);
            _exit(0);
        }
        waitpid(child, &status, 0);
        good(status);
    }
}
/* A kernel that no rule is for may go its way unseen, but not where it orders the blocking streams. */
static void unseen(int count) {
    void *blocking = stream_of(0), *second = stream_of(0), *c = stream(), *writer = stream();
    uint64_t word;
    (void)count;
    good(CU(cuMemAlloc_v2)(&word, 64));
    good(CU(cuMemsetD32_v2)(word, 0, 1));
    launch(other, NULL);
    launch(other, NULL);
    good(CU(cuStreamWaitValue32_v2)(blocking, word, 1, 0));
    launch(other, NULL); /* waits for that */
    launch(comm, c);
    launch(k, second); /* and this for all of it: it may be behind the communication */
    wait_for(writer, c);
    good(CU(cuStreamWriteValue32_v2)(writer, word, 1, 0));
    good(CU(cuCtxSynchronize)());
    probe();
}

static void contexts(int count) {
    for (int i = 0; i < count; i++) {
        void *context = NULL;
        good(cuCtxCreate_v2(&context, 0, 0));
        load();
        probe();
        good(cuCtxDestroy_v2(context));
    }
    good(CU(cuCtxSetCurrent)(primary));
    load();
    probe();
}
static void at_once(int count) {
    void *made[32] = {NULL};
    for (int i = 0; i < count; i++) {
        good(cuCtxCreate_v2(&made[i], 0, 0));
        load();
        launch(comm, stream());
    }
    for (int i = 0; i < count; i++)
        good(cuCtxDestroy_v2(made[i]));
    good(CU(cuCtxSetCurrent)(primary));
    load();
    probe();
}
static void reset(int count) {
    for (int i = 0; i < count; i++) {
        void *c = stream(), *blocking = stream_of(0);
        uint64_t word;
        launch(comm, c);
        good(CU(cuMemAlloc_v2)(&word, 64));
        good(CU(cuMemsetD32_v2)(word, 1, 1));
        good(CU(cuStreamWaitValue32_v2)(blocking, word, 1, 0));
        launch(k, NULL);
        good(cuDevicePrimaryCtxReset_v2(0));
        good(CU(cuDevicePrimaryCtxRetain)(&primary, 0));
        good(CU(cuCtxSetCurrent)(primary));
        load();
        probe_on(stream_of(0), stream());
    }
}

/* Instances of graphs with communication that come and go, and some that stay. */
static void graphs(int count) {
    void *c = stream(), *x = stream(), *graph, *exec;
    good(CU(cuStreamBeginCapture_v2)(c, 2));
    launch(comm, c);
    good(CU(cuStreamEndCapture)(c, &graph));
    for (int i = 0; i < count; i++)
        good(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
    launch(k, x);
    good(CU(cuGraphLaunch)(exec, c));
    launch(k, x);
    wait_for(x, c);
    launch(k, x);
}

/* Who waits for an event that other processes know may be behind anything that they have waited for. */
static void ipc(int count) {
    void *c = stream(), *x = stream(), *shared = NULL;
    Ipc handle;
    good(CU(cuEventCreate)(&shared, INTERPROCESS));
    launch(comm, c);
    launch(k, x);
    good(CU(cuEventRecord)(shared, c));
    for (int i = 0; i < count; i++)
        good(cuIpcGetEventHandle(&handle, shared));
    launch(comm, c);
    good(CU(cuStreamWaitEvent)(x, shared, 0));
    launch(k, x);
    good(CU(cuCtxSynchronize)());
    probe();
}

/* An event of another process: from a handle that a child has written into a pipe, before either has a driver. */
static Ipc theirs;
static void child_exports(void) {
    int ends[2];
    good(pipe(ends));
    const pid_t child = fork();
    if (child == 0) {
        void *shared = NULL;
        driver_start();
        good(CU(cuEventCreate)(&shared, INTERPROCESS));
        good(cuIpcGetEventHandle(&theirs, shared));
        good(write(ends[1], &theirs, sizeof theirs) != sizeof theirs);
        _exit(bad);
    }
    int status = -1;
    good(read(ends[0], &theirs, sizeof theirs) != sizeof theirs);
    waitpid(child, &status, 0);
    good(status);
}
static void imported(int exported) {
    void *c = stream(), *x = stream(), *event_of_theirs = NULL, *mine = NULL;
    Ipc handle;
    good(cuIpcOpenEventHandle(&event_of_theirs, theirs));
    good(CU(cuEventCreate)(&mine, INTERPROCESS));
    if (exported)
        good(cuIpcGetEventHandle(&handle, mine));
    launch(comm, c);
    good(CU(cuStreamWaitEvent)(x, event_of_theirs, 0));
    launch(k, x);
}

/* Streams that had waited for communication, and others that get their addresses. */
static void again(int count) {
    void *c = stream(), *x = stream();
    for (int i = 0; i < count; i++) {
        launch(comm, c);
        wait_for(x, c);
        good(CU(cuStreamDestroy_v2)(c));
        c = stream();
        launch(k, x);
        good(CU(cuStreamDestroy_v2)(x));
        x = stream();
    }
    probe();
}

#include "windows_races.h"

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    const int number = argc > 2 ? atoi(argv[2]) : 0;
    if (strcmp(what, "imported") == 0)
        child_exports();
    driver_start();
    good(CU(cuDevicePrimaryCtxRetain)(&primary, 0));
    load();
#define CASE(name)                                                                                                     \
    if (strcmp(what, #name) == 0)                                                                                      \
        name(number);
    CASE(streams)
    CASE(events)
    CASE(polled)
    CASE(exits)
    CASE(many_threads)
    CASE(forks)
    CASE(forks_busy)
    CASE(unseen)
    CASE(contexts)
    CASE(at_once)
    CASE(reset)
    CASE(graphs)
    CASE(ipc)
    CASE(imported)
    CASE(again)
    CASE(busy)
    CASE(races)
    printf("bad: %d\n", bad);
    return bad != 0;
}
