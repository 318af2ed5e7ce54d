/* Iterations of a program on several streams: waiting ITERATIONS WORD... ; each word is done in each iteration, but those before
 * `begin` once before, and those behind `end` once at last. S: a stream by its number from 1 (0: the default one); streams that were not made are
 * made first, plain and non-blocking, events likewise.
 *
 *   k:S:B      launch k of B blocks (256 threads)      j:S:B    another kernel        c:S     communication
 *   X:S:B      launch k in other dimensions: a grid of 1, 1, B, blocks of 1, 16, 16
 *   i:S:B      a kernel of 8 instead of 32 registers a thread
 *   r:E:S      record event E on stream S              w:S:E    S waits for it
 *   s:S e:E    the host waits for a stream, an event   Q:E q:S  ...asks until it is over
 *   x          ...for the context                      m        ...for a copy on the default stream       h:S  a host function
 *   f D        fill memory, copy it inside the device, on the default stream: the host waits for neither
 *   n:S d:S    make, destroy a stream                  p:S:P    make it with a priority                   b:S  a blocking one
 *   P:S        print its priority                      a:S:P    set it by its attribute                   t:TO:FROM  copy attributes
 *   U          end a capture and instantiate it, to honour priorities; after that, update what was made so
 *   B:S G      begin a capture on S; end it, instantiate (G:1: print its size; G:2: to honour priorities; G:3, G:4, G:5: by the
 *              older call, the call with parameters, and that and a destroyed one before)            g:S  launch that graph on S
 *   G:6        the same for a second graph                                                         g:S:1  launch that one
 *   o:N:P      make N streams of priority P that nobody uses
 *   R:S        a thread asks for the priority of S until the end, 3,000 times at least: how often was it not the first?
 *   v:D        go to device D (0, 1), or to another context of device 0 (2, 3), which has streams and events of its own
 *   T:N:M C:N:M  N threads at once launch communication, or j of 4 blocks, on stream 2, M times each    F   a child launches it by fork, and ends
 *   N:C        streams and events stay, and C is current from now on: 0: no context, 1: another one of device 0, 2: the one of device 1;
 *              3: their own again
 *   K:S:B      launch l, a kernel of a library (8 registers), by its handle                          A:S    copy to S's device and back
 *   E          end a capture, no more
 *   swap:A:B   change the numbers of two streams               z      end the context, with all streams, and begin a new one
 *   Z:D        reset device D
 */
#define WAY_LINKED
#include "driver.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

extern int cuGraphGetNodes(void *, void **, size_t *), cuGraphExecUpdate_v2(void *, void *, void *),
    cuGraphInstantiate_v2(void **, void *, void **, char *, size_t),
    cuGraphInstantiateWithParams(void **, void *, void *);

enum { MOST = 40, CONTEXTS = 4, TRIES = 3000, NON_BLOCKING = 1, NOT_READY = 600, PRIORITY = 8, NODE_PRIORITIES = 8 };
static void *streams[MOST], *events[MOST], *k, *j, *i, *l, *comm, *exec, *updated, *capturing, *own_context, *left;
static uint64_t memory;

static int bad;
static void good(int result, const char *word) {
    if (result == 0)
        return;
    bad = 1;
    printf("%s: %d\n", word, result);
}

static void nothing(void *data) {
    (void)data;
}

static void load(void) {
    void *module;
    char *text = ptx_of("k,j,i:8,ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    good(CU(cuModuleLoadData)(&module, text), "cuModuleLoadData");
    good(CU(cuModuleGetFunction)(&k, module, "k"), "k");
    good(CU(cuModuleGetFunction)(&j, module, "j"), "j");
    good(CU(cuModuleGetFunction)(&i, module, "i"), "i");
    good(CU(cuModuleGetFunction)(&comm, module, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"), "comm");
    good(CU(cuMemAlloc_v2)(&memory, 4096), "cuMemAlloc");
    free(text);
}

static void *kernel_of_library(void) {
    if (l)
        return l;
    void *library;
    char *text = ptx_of("l:8");
    good(CU(cuLibraryLoadData)(&library, text, NULL, NULL, 0, NULL, NULL, 0), "cuLibraryLoadData");
    good(CU(cuLibraryGetKernel)(&l, library, "l"), "l");
    free(text);
    return l;
}

/* Another context is current, or none, and all streams stay. */
static int make_current(int which) {
    static void *others[3];
    if (!left)
        good(cuCtxGetCurrent(&left), "cuCtxGetCurrent");
    if (which == 1 && !others[1])
        good(cuCtxCreate_v2(&others[1], 0, 0), "cuCtxCreate");
    if (which == 2 && !others[2])
        good(CU(cuDevicePrimaryCtxRetain)(&others[2], 1), "cuDevicePrimaryCtxRetain");
    return CU(cuCtxSetCurrent)(which == 3 ? left : others[which]);
}

/* Streams of the new one may get the addresses of the old one's. */
static int begin_anew(void) {
    void *context;
    if (own_context)
        good(cuCtxDestroy_v2(own_context), "cuCtxDestroy");
    memset(streams, 0, sizeof streams);
    memset(events, 0, sizeof events);
    const int result = cuCtxCreate_v2(&context, 0, 0);
    own_context = context;
    load();
    return result;
}

/* Each from a place of its own. */
__attribute__((noinline)) static void make(int number, unsigned flags) {
    good(CU(cuStreamCreate)(&streams[number], flags), "cuStreamCreate");
}

static void *stream(int number) {
    if (number && !streams[number])
        make(number, NON_BLOCKING);
    return streams[number];
}
static void *event(int number) {
    if (!events[number])
        good(CU(cuEventCreate)(&events[number], 2), "cuEventCreate");
    return events[number];
}

static int go_to(int number) {
    static struct device {
        void *streams[MOST], *events[MOST], *k, *j, *comm;
        void *context;
    } devices[CONTEXTS];
    static int device;
    struct device *const left = &devices[device], *const other = &devices[number];
    memcpy(left->streams, streams, sizeof streams);
    memcpy(left->events, events, sizeof events);
    left->k = k, left->j = j, left->comm = comm;
    memcpy(streams, other->streams, sizeof streams);
    memcpy(events, other->events, sizeof events);
    k = other->k, j = other->j, comm = other->comm;
    device = number;
    if (number >= 2 && !other->context)
        good(cuCtxCreate_v2(&other->context, 0, 0), "cuCtxCreate");
    else if (number < 2)
        good(CU(cuDevicePrimaryCtxRetain)(&other->context, number), "cuDevicePrimaryCtxRetain");
    good(CU(cuCtxSetCurrent)(other->context), "cuCtxSetCurrent");
    if (!k)
        load();
    return 0;
}

static int launch(void *kernel, int number, int blocks) {
    return launch_kernel(kernel, (unsigned)blocks, 256, stream(number));
}

static int launch_deep(int number, int blocks) {
    uint64_t a = 0;
    uint32_t b = 0;
    void *parameters[] = {&a, &b};
    return CU(cuLaunchKernel)(k, 1, 1, (unsigned)blocks, 1, 16, 16, 0, stream(number), parameters, NULL);
}

/* A reader of a priority, while this thread goes on. */
static struct {
    pthread_t thread;
    void *stream, *context;
    int ended, runs;
} reader;

static int priority_of(void *stream, int by_attribute) {
    int priority = 99;
    int32_t value[16] = {0};
    if (!by_attribute)
        return CU(cuStreamGetPriority)(stream, &priority) ? 98 : priority;
    return cuStreamGetAttribute(stream, PRIORITY, value) ? 98 : value[0];
}

static void *read_on(void *data) {
    good(CU(cuCtxSetCurrent)(reader.context), "cuCtxSetCurrent");
    const int first = priority_of(reader.stream, 0);
    int other = 0;
    for (int i = 0; i < TRIES || !__atomic_load_n(&reader.ended, __ATOMIC_ACQUIRE); i++)
        other += priority_of(reader.stream, i & 1) != first;
    printf("another priority: %d times\n", other);
    return data;
}

static int begin_to_read(void *of) {
    reader.stream = of;
    reader.runs = 1;
    good(cuCtxGetCurrent(&reader.context), "cuCtxGetCurrent");
    return pthread_create(&reader.thread, NULL, read_on, NULL);
}

static int make_pool(int count, int priority) {
    void *made;
    int result = 0;
    for (int i = 0; i < count && result == 0; i++)
        result = CU(cuStreamCreateWithPriority)(&made, NON_BLOCKING, priority);
    return result;
}

struct crowd {
    void *context, *kernel, *stream;
    int count; /* of launches of each thread */
    pthread_barrier_t all;
};

static void *launch_often(void *data) {
    struct crowd *const crowd = data;
    good(CU(cuCtxSetCurrent)(crowd->context), "cuCtxSetCurrent");
    for (int i = 0; i < crowd->count; i++)
        good(launch_kernel(crowd->kernel, 4, 256, crowd->stream), "thread");
    pthread_barrier_wait(&crowd->all);
    return NULL;
}

static int launch_at_once(void *kernel, int threads, int count) {
    pthread_t thread[MOST];
    struct crowd crowd = {.kernel = kernel, .stream = stream(2), .count = count}; /* made before the threads */
    good(cuCtxGetCurrent(&crowd.context), "cuCtxGetCurrent");
    pthread_barrier_init(&crowd.all, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++)
        good(pthread_create(&thread[i], NULL, launch_often, &crowd), "pthread_create");
    for (int i = 0; i < threads; i++)
        good(pthread_join(thread[i], NULL), "pthread_join");
    return 0;
}

/* The driver refuses what a child does. */
static int communicate_in_child(void) {
    int status = -1;
    const pid_t child = fork();
    if (child == 0)
        _exit(launch(comm, 2, 4) == 0);
    waitpid(child, &status, 0);
    return status;
}

static int until(int (*ask)(void *), void *what) {
    int result;
    do
        result = ask(what);
    while (result == NOT_READY);
    return result;
}

/* As G:how says. */
static int instantiate(void *graph, int how) {
    struct {
        unsigned long long flags;
        void *upload, *node;
        int result;
    } parameters = {0};
    if (how == 5 && cuGraphExecDestroy(exec))
        return -1;
    if (how == 6)
        return CU(cuGraphInstantiateWithFlags)(&updated, graph, 0);
    return how == 3   ? cuGraphInstantiate_v2(&exec, graph, NULL, NULL, 0)
           : how >= 4 ? cuGraphInstantiateWithParams(&exec, graph, &parameters)
                      : CU(cuGraphInstantiateWithFlags)(&exec, graph, how == 2 ? NODE_PRIORITIES : 0);
}

static int act(const char *word, int first, int second) {
    int32_t value[16] = {0};
    void *graph = NULL;
    size_t nodes = 0;
    switch (word[0]) {
    case 'k':
        return launch(k, first, second);
    case 'j':
        return launch(j, first, second);
    case 'i':
        return launch(i, first, second);
    case 'X':
        return launch_deep(first, second);
    case 'K':
        return launch(kernel_of_library(), first, second);
    case 'N':
        return make_current(first);
    case 'A': {
        static int copied;
        const int result = cuMemcpyHtoDAsync_v2(memory, &copied, sizeof copied, stream(first));
        return result ? result : cuMemcpyDtoHAsync_v2(&copied, memory, sizeof copied, stream(first));
    }
    case 'E':
        return CU(cuStreamEndCapture)(capturing, &graph);
    case 'c':
        return launch(comm, first, 4);
    case 'r':
        return CU(cuEventRecord)(event(first), stream(second));
    case 'w':
        return CU(cuStreamWaitEvent)(stream(first), event(second), 0);
    case 's':
        if (word[1] == 'w') {
            void *const one = streams[first];
            streams[first] = streams[second];
            streams[second] = one;
            return 0;
        }
        return CU(cuStreamSynchronize)(stream(first));
    case 'e':
        return CU(cuEventSynchronize)(event(first));
    case 'Q':
        return until(CU(cuEventQuery), event(first));
    case 'q':
        return until(CU(cuStreamQuery), stream(first));
    case 'x':
        return CU(cuCtxSynchronize)();
    case 'm':
        return CU(cuMemcpyDtoH_v2)(&value, memory, sizeof value);
    case 'f':
        return cuMemsetD8_v2(memory, 1, 4096);
    case 'D':
        return cuMemcpyDtoD_v2(memory, memory + 2048, 2048);
    case 'h':
        return CU(cuLaunchHostFunc)(stream(first), nothing, NULL);
    case 'n':
        make(first, NON_BLOCKING);
        return 0;
    case 'b':
        make(first, 0);
        return 0;
    case 'p':
        return CU(cuStreamCreateWithPriority)(&streams[first], NON_BLOCKING, second);
    case 'd': {
        void *const one = streams[first];
        streams[first] = NULL;
        return CU(cuStreamDestroy_v2)(one);
    }
    case 'P':
        printf("priority %d %d\n", priority_of(stream(first), 0), priority_of(stream(first), 1));
        return 0;
    case 'o':
        return make_pool(first, second);
    case 'R':
        return begin_to_read(stream(first));
    case 'a':
        value[0] = second;
        return cuStreamSetAttribute(stream(first), PRIORITY, value);
    case 't':
        return cuStreamCopyAttributes(stream(first), stream(second));
    case 'B':
        good(CU(cuStreamBeginCapture_v2)(stream(first), 2), word);
        capturing = stream(first); /* after it: in race.c another thread captures meanwhile */
        return 0;
    case 'G':
        good(CU(cuStreamEndCapture)(capturing, &graph), "cuStreamEndCapture");
        good(cuGraphGetNodes(graph, NULL, &nodes), "cuGraphGetNodes");
        if (first == 1)
            printf("%zu nodes\n", nodes);
        return instantiate(graph, first);
    case 'U':
        good(CU(cuStreamEndCapture)(capturing, &graph), "cuStreamEndCapture");
        return updated ? cuGraphExecUpdate_v2(updated, graph, value)
                       : CU(cuGraphInstantiateWithFlags)(&updated, graph, NODE_PRIORITIES);
    case 'v':
        return go_to(first);
    case 'T':
    case 'C':
        return launch_at_once(word[0] == 'T' ? comm : j, first, second);
    case 'F':
        return communicate_in_child();
    case 'z':
        return begin_anew();
    case 'Z':
        return cuDevicePrimaryCtxReset_v2(first);
    case 'g':
        return CU(cuGraphLaunch)(second ? updated : exec, stream(first));
    default:
        return -1;
    }
}

static void act_on(const char *word) {
    const char *const one = strchr(word, ':'), *const two = one ? strchr(one + 1, ':') : NULL;
    good(act(word, one ? atoi(one + 1) : 0, two ? atoi(two + 1) : 0), word);
}

int main(int argc, char **argv) {
    int from = 2, to = argc;
    driver_start();
    load();
    for (int i = 2; i < argc; i++) {
        from = strcmp(argv[i], "begin") == 0 ? i + 1 : from;
        to = strcmp(argv[i], "end") == 0 ? i : to;
    }
    for (int i = 2; i < from - 1; i++)
        act_on(argv[i]);
    for (int round = 0; round < atoi(argv[1]); round++)
        for (int i = from; i < to; i++)
            act_on(argv[i]);
    for (int i = to + 1; i < argc; i++)
        act_on(argv[i]);
    if (reader.runs) {
        __atomic_store_n(&reader.ended, 1, __ATOMIC_RELEASE);
        pthread_join(reader.thread, NULL);
    }
    if (left)
        good(CU(cuCtxSetCurrent)(left), "cuCtxSetCurrent");
    good(CU(cuCtxSynchronize)(), "at last");
    return bad;
}
