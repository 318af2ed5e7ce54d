/* What happens while a call of the driver is in progress: inside CASE.
 *
 *   callbacks  in the middle of each call of the driver a callback makes all calls, as a profiler's may (CUPTI)
 *   threads    the same while other threads make them, too
 *   fork       children, which make them, while other threads do
 *   raising    a capture begins while another thread raises a stream
 *   lowering   likewise, while another thread, whose capture begins, gives raised streams back
 *   recapture  a raised stream is captured into a graph once more
 *   refused    likewise, after the driver has refused to destroy it
 *
 * -DDRIVER builds the driver: the null driver of the benchmarks, which remembers priorities and calls back. Prints what went wrong.
 */
#define EACH_CALL(CALL)                                                                                                \
    CALL(cuStreamSynchronize, (void *stream), (stream))                                                                \
    CALL(cuStreamGetPriority, (void *stream, int *priority), (stream, priority))                                       \
    CALL(cuStreamCreate, (void **stream, unsigned flags), (stream, flags))                                             \
    CALL(cuStreamDestroy_v2, (void *stream), (stream))                                                                 \
    CALL(cuStreamWaitEvent, (void *stream, void *event, unsigned flags), (stream, event, flags))                       \
    CALL(cuEventRecord, (void *event, void *stream), (event, stream))                                                  \
    CALL(cuEventQuery, (void *event), (event))                                                                         \
    CALL(cuCtxSynchronize, (void), ())                                                                                 \
    CALL(cuCtxGetCurrent, (void **context), (context))                                                                 \
    CALL(cuCtxGetDevice, (int *device), (device))                                                                      \
    CALL(cuCtxGetStreamPriorityRange, (int *least, int *greatest), (least, greatest))                                  \
    CALL(cuDeviceGetName, (char *name, int size, int device), (name, size, device))                                    \
    CALL(cuFuncGetAttribute, (int *value, int attribute, void *function), (value, attribute, function))                \
    CALL(cuLaunchKernel,                                                                                               \
         (void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,      \
          void *stream, void **parameters, void **extra),                                                              \
         (f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra))

enum call { ANY, SET, BEGIN }; /* in the middle of which call */

#ifdef DRIVER
#define cuStreamSynchronize null_cuStreamSynchronize
#define cuStreamGetPriority null_cuStreamGetPriority
#define cuStreamCreate null_cuStreamCreate
#define cuStreamDestroy_v2 null_cuStreamDestroy_v2
#define cuStreamWaitEvent null_cuStreamWaitEvent
#define cuEventRecord null_cuEventRecord
#define cuEventQuery null_cuEventQuery
#define cuCtxSynchronize null_cuCtxSynchronize
#define cuCtxGetCurrent null_cuCtxGetCurrent
#define cuCtxGetDevice null_cuCtxGetDevice
#define cuCtxGetStreamPriorityRange null_cuCtxGetStreamPriorityRange
#define cuDeviceGetName null_cuDeviceGetName
#define cuFuncGetAttribute null_cuFuncGetAttribute
#define cuLaunchKernel null_cuLaunchKernel
#define cuStreamSetAttribute null_cuStreamSetAttribute
#include "../../tools/bench/null_driver.c"
#undef cuStreamSynchronize
#undef cuStreamGetPriority
#undef cuStreamCreate
#undef cuStreamDestroy_v2
#undef cuStreamWaitEvent
#undef cuEventRecord
#undef cuEventQuery
#undef cuCtxSynchronize
#undef cuCtxGetCurrent
#undef cuCtxGetDevice
#undef cuCtxGetStreamPriorityRange
#undef cuDeviceGetName
#undef cuFuncGetAttribute
#undef cuLaunchKernel
#undef cuStreamSetAttribute

static int (*inside)(enum call call); /* not 0: the call is refused */
static int levels[1 << 16];           /* priorities, by stream */
API void inside_of(int (*callback)(enum call));
API void inside_of(int (*callback)(enum call)) {
    inside = callback;
}
API int *inside_level(void *stream);
API int *inside_level(void *stream) {
    return &levels[(uintptr_t)stream / 512 % (1 << 16)];
}
#define UNPACK(...) __VA_ARGS__
#define WRAP(name, parameters, arguments)                                                                              \
    API int name parameters;                                                                                           \
    API int name parameters {                                                                                          \
        if (inside && inside(ANY))                                                                                     \
            return 1;                                                                                                  \
        return null_##name arguments;                                                                                  \
    }
EACH_CALL(WRAP)

API int cuStreamSetAttribute(void *, int, const int *);
API int cuStreamSetAttribute(void *stream, int attribute, const int *value) {
    (void)attribute;
    if (inside)
        inside(SET);
    __atomic_store_n(inside_level(stream), *value, __ATOMIC_SEQ_CST);
    return 0;
}
API int cuStreamBeginCapture_v2(void *, int);
API int cuStreamBeginCapture_v2(void *stream, int mode) {
    (void)stream, (void)mode;
    if (inside)
        inside(BEGIN);
    return 0;
}
typedef int Differs(void *data, void *node, const void *before, const void *now, int status);
API int cuStreamBeginRecaptureToGraph(void *, int, void *, Differs *, void *);
API int cuStreamBeginRecaptureToGraph(void *stream, int mode, void *graph, Differs *differs, void *data) {
    return differs(data, graph, NULL, NULL, 100 * mode + *inside_level(stream));
}
API int cuStreamEndCapture(void *, void **);
API int cuStreamEndCapture(void *stream, void **graph) {
    return *graph = stream, 0;
}

#else

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DECLARE(name, parameters, arguments) extern int name parameters;
EACH_CALL(DECLARE)
extern int cuInit(unsigned), cuModuleGetFunction(void **, void *, const char *), cuStreamBeginCapture_v2(void *, int),
    cuStreamEndCapture(void *, void **), cuEventCreate(void **, unsigned), *inside_level(void *),
    cuStreamBeginRecaptureToGraph(void *, int, void *, int (*)(void *, void *, const void *, const void *, int),
                                  void *);
extern void inside_of(int (*)(enum call));

enum { ROUNDS = 40, CHILDREN = 60, SECONDS = 60 };
static void *k, *event;
static int bad, stop;
static _Thread_local int depth;
static _Thread_local void *small, *large;

static int launch(void *stream, unsigned blocks) {
    return cuLaunchKernel(k, blocks, 1, 1, 256, 1, 1, 0, stream, NULL, NULL);
}

/* A boundary that is waited for, beside an interior; and all else that takes the lock. */
static int all_calls(void) {
    void *fresh = NULL, *graph;
    int priority = 9, wrong = 0;
    if (!small)
        wrong += cuStreamCreate(&small, 1) + cuStreamCreate(&large, 0);
    wrong += launch(large, 4000) + launch(small, 8) + launch(NULL, 8) + cuEventRecord(event, small);
    wrong += cuStreamSynchronize(small) + cuStreamWaitEvent(large, event, 0) + cuEventQuery(event);
    wrong += cuStreamGetPriority(small, &priority) + (priority != 0);
    wrong += cuStreamCreate(&fresh, 0) + launch(fresh, 8) + cuStreamSynchronize(fresh) + cuStreamSynchronize(NULL);
    wrong += cuStreamBeginCapture_v2(fresh, 2) + launch(fresh, 8) + cuStreamEndCapture(fresh, &graph);
    wrong += cuStreamDestroy_v2(fresh) + cuCtxSynchronize();
    return wrong;
}

static int call_back(enum call call) {
    (void)call;
    if (depth)
        return 0;
    depth++;
    __atomic_fetch_add(&bad, all_calls(), __ATOMIC_RELAXED);
    depth--;
    return 0;
}

static void *work(void *once) {
    for (int i = 0; once ? i < ROUNDS : !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++)
        __atomic_fetch_add(&bad, all_calls(), __ATOMIC_RELAXED);
    return NULL;
}

/* Afterwards all is as ever. */
static void small_is_raised(void) {
    for (int i = 0; i < 2100; i++)
        bad += launch(large, 4000) + launch(small, 8) + cuStreamSynchronize(small);
    printf("raised to %d\n", *inside_level(small));
}

static void callbacks(int threads) {
    pthread_t others[3];
    inside_of(call_back);
    for (int i = 0; i < threads; i++)
        pthread_create(&others[i], NULL, work, &stop);
    work(&stop);
    for (int i = 0; i < threads; i++)
        pthread_join(others[i], NULL);
    inside_of(NULL);
    small_is_raised();
}

static int child(void) {
    alarm(SECONDS);
    void *stream = NULL, *graph;
    int priority;
    small = large = NULL; /* the driver of a child refuses all; what counts is that each call returns */
    all_calls();
    cuStreamCreate(&stream, 1);
    launch(stream, 8);
    cuStreamBeginCapture_v2(stream, 2);
    cuStreamEndCapture(stream, &graph);
    cuStreamGetPriority(stream, &priority);
    return cuStreamDestroy_v2(stream) ? 1 : 7;
}

static void forks(void) {
    pthread_t others[3];
    int status, failed = 0;
    bad += all_calls();
    for (int i = 0; i < 3; i++)
        pthread_create(&others[i], NULL, work, NULL);
    for (int i = 0; i < CHILDREN; i++) {
        const pid_t one = fork();
        if (one == 0)
            _exit(child());
        waitpid(one, &status, 0);
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 7;
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; i++)
        pthread_join(others[i], NULL);
    printf("children that failed: %d\n", failed);
    small_is_raised();
}

/* ---- Captures ---- */

enum { OTHERS = 8 };
static void *raised[OTHERS], *capturing;
static int asked, reached, in_middle;

static void wait_a_little(const int *until) {
    for (int i = 0; i < 4 && !__atomic_load_n(until, __ATOMIC_SEQ_CST); i++)
        usleep(25000);
}

static void *begin(void *stream) {
    __atomic_store_n(&asked, 1, __ATOMIC_SEQ_CST);
    bad += cuStreamBeginCapture_v2(stream, 2);
    return NULL;
}

/* When the driver is told to raise a stream, or to lower the first one, another thread begins a capture. How far is it by the
 * time that this call is done? */
static int in_a_change(enum call call) {
    static pthread_t other;
    static int state;
    if (call == BEGIN && pthread_equal(pthread_self(), other)) {
        int level = 0;
        for (int i = 0; i < OTHERS; i++)
            level += *inside_level(raised[i]);
        printf("a capture begins at %d\n", level + in_middle);
        __atomic_store_n(&reached, 1, __ATOMIC_SEQ_CST);
    } else if (call == SET && state++ == 0) {
        in_middle = -100;
        pthread_create(&other, NULL, begin, capturing);
        pthread_detach(other);
        while (!__atomic_load_n(&asked, __ATOMIC_SEQ_CST))
            ;
        wait_a_little(&reached);
        in_middle = 0;
    }
    return 0;
}

/* As the driver would call it for a node: `status` says the mode, and the priority of the stream. */
static int differs(void *data, void *node, const void *before, const void *now, int status) {
    printf("begins: %d %d %d, priority %d\n", data == raised, node == capturing, before == now, status - 200);
    return 0;
}

static int refuses(enum call call) {
    return call == ANY;
}

static void recapture(int refused) {
    void *graph;
    bad += cuStreamCreate(&large, 1) + cuStreamCreate(&small, 1);
    capturing = large;
    small_is_raised();
    if (refused) {
        inside_of(refuses);
        bad += cuStreamDestroy_v2(small) != 1;
        inside_of(NULL);
    }
    bad += cuStreamBeginRecaptureToGraph(small, 2, capturing, differs, raised) + cuStreamEndCapture(small, &graph);
    small_is_raised();
}

static void round_of(int count) {
    bad += launch(large, 100000);
    for (int i = 0; i < count; i++)
        bad += launch(raised[i], 8) + cuStreamSynchronize(raised[i]);
}

static void captures(int lowering) {
    void *first;
    const int count = lowering ? OTHERS : 1;
    bad += cuStreamCreate(&large, 1) + cuStreamCreate(&capturing, 1) + cuStreamCreate(&first, 1);
    for (int i = 0; i < OTHERS; i++)
        bad += cuStreamCreate(&raised[i], 1);
    if (!lowering)
        inside_of(in_a_change);
    for (int i = 0; i < 100; i++)
        round_of(count);
    if (lowering) {
        printf("raised to %d\n", *inside_level(raised[OTHERS - 1]));
        inside_of(in_a_change);
        bad += cuStreamBeginCapture_v2(first, 2);
    }
    for (int i = 0; i < 10000 && !__atomic_load_n(&reached, __ATOMIC_SEQ_CST); i++)
        usleep(1000);
}

int main(int argc, char **argv) {
    const char *const what = argc == 2 ? argv[1] : "";
    bad += cuInit(0) + cuModuleGetFunction(&k, (void *)1, "k") + cuEventCreate(&event, 2);
    if (strcmp(what, "callbacks") == 0)
        callbacks(0);
    else if (strcmp(what, "threads") == 0)
        callbacks(3);
    else if (strcmp(what, "fork") == 0)
        forks();
    else if (strcmp(what, "raising") == 0)
        captures(0);
    else if (strcmp(what, "lowering") == 0)
        captures(1);
    else if (strcmp(what, "recapture") == 0)
        recapture(0);
    else if (strcmp(what, "refused") == 0)
        recapture(1);
    printf("bad %d\n", bad);
    return 0;
}

#endif
