/* Runs programs of launches, records, waits and captures, one a line, and prints what every call answered, one line a
 * program. An empty line: what was printed is wanted now. The operations: tests/windows/operations.py.
 *
 * A program begins with nothing and leaves nothing behind but the default streams: what it has not destroyed is
 * destroyed, and every context is waited for, in this order and in the other by turns.
 */
#define DRIVER_MORE_FILE "windows_driver.h"
#include "driver.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

enum { DEVICES = 2, STREAMS = 10, EVENTS = 16, GRAPHS = 10, WORDS = 1 << 20, WORDS_EACH = 16, BYTES = 4096 };
enum { COMPUTATION, COMMUNICATION, KERNELS };
enum { RELAXED = 2, EXTERNAL = 2, GEQ = 0, NO_SUCH = -1 };

/* The longest program that is run: one stream of 16,400 operations, say. */
static char line[1 << 20];
static const char *const names[KERNELS] = {"k", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"};
/* Blocks: four waves of a GPU of two multiprocessors; less than one. */
static const unsigned grids[KERNELS] = {64, 4};

static struct {
    void *context, *kernels[KERNELS];
    uint64_t memory;
} devices[DEVICES];
static int device_count, current = -1;
static struct {
    void *handle;
    int device;
} streams[STREAMS], events[EVENTS];
static struct {
    void *graph, *exec;
    int device;
} graphs[GRAPHS];
static uint64_t words;
static unsigned words_used;

struct op {
    char kind, how, slot;
    int index, other, thread;
};

static void need(int result, const char *what) {
    if (result) {
        printf("%s: %d\n", what, result);
        exit(4);
    }
}

static void use(int device) {
    if (device != current)
        need(CU(cuCtxSetCurrent)(devices[device].context), "context");
    current = device;
}

static void start(void) {
    char list[128];
    snprintf(list, sizeof list, "%s,%s", names[0], names[1]);
    driver_open();
    need(CU(cuInit)(0), "init");
    char *text = ptx_of(list);
    for (int i = 0; i < DEVICES && CU(cuDevicePrimaryCtxRetain)(&devices[i].context, i) == 0; i++) {
        void *module;
        use(i);
        need(CU(cuModuleLoadData)(&module, text), "module");
        for (int k = 0; k < KERNELS; k++)
            need(CU(cuModuleGetFunction)(&devices[i].kernels[k], module, names[k]), "function");
        need(CU(cuMemAlloc_v2)(&devices[i].memory, BYTES), "memory");
        device_count = i + 1;
    }
    use(0);
    need(CU(cuMemAlloc_v2)(&words, sizeof(uint32_t) * WORDS), "words");
    need(CU(cuMemsetD32_v2)(words, 0, WORDS), "words");
    free(text);
}

/* A stream as the call names it: through the entry point for threads or not. */
struct named {
    void *handle;
    int per_thread, device, good;
};

static struct named named(const struct op *op) {
    const int slot = op->slot - '0';
    struct named stream = {NULL, op->how == 't' || op->how == 'M' || op->how == 'p' || op->how == 'Q', slot, 1};
    if (op->how == 's' || op->how == 't') {
        stream.handle = streams[slot].handle;
        stream.device = streams[slot].device;
        stream.good = stream.handle != NULL;
    } else if (op->how != 'l' && op->how != 'p') {
        stream.handle = (void *)(uintptr_t)(op->how == 'L' || op->how == 'M' ? 1 : 2);
    }
    return stream;
}

#define WITH_STREAM(name, ...) (stream.per_thread ? CU(name##_ptsz)(__VA_ARGS__) : CU(name)(__VA_ARGS__))

static uint64_t parameter_a = 9;
static uint32_t parameter_b = 8;
static void *parameters[] = {&parameter_a, &parameter_b};

static int launch(const struct op *op, struct named stream) {
    const int kind = op->kind == 'c';
    void *const kernel = devices[stream.device].kernels[kind];
    if (op->other) {
        const Config config = {.grid = {grids[kind], 1, 1}, .block = {256, 1, 1}, .stream = stream.handle};
        return WITH_STREAM(cuLaunchKernelEx, &config, kernel, parameters, NULL);
    }
    return WITH_STREAM(cuLaunchKernel, kernel, grids[kind], 1, 1, 256, 1, 1, 0, stream.handle, parameters, NULL);
}

static int instantiate(int slot) {
    const int result = CU(cuGraphInstantiateWithFlags)(&graphs[slot].exec, graphs[slot].graph, 0);
    graphs[slot].device = current;
    return result;
}

static int graph_by_hand(const struct op *op) {
    void *node;
    if (op->kind == 'B' && !graphs[op->other].graph)
        return NO_SUCH;
    use(op->kind == 'B' ? graphs[op->other].device : 0);
    const NodeParams params = {
        devices[0].kernels[op->other & 1], {grids[op->other & 1], 1, 1}, {256, 1, 1}, 0, parameters, NULL};
    need(CU(cuGraphCreate)(&graphs[op->index].graph, 0), "graph");
    const int result =
        op->kind == 'B' ? CU(cuGraphAddChildGraphNode)(&node, graphs[op->index].graph, NULL, 0, graphs[op->other].graph)
                        : CU(cuGraphAddKernelNode)(&node, graphs[op->index].graph, NULL, 0, &params);
    return result ? result : instantiate(op->index);
}

static int destroy_graph(int slot) {
    if (graphs[slot].exec)
        CU(cuGraphExecDestroy)(graphs[slot].exec);
    const int result = graphs[slot].graph ? CU(cuGraphDestroy)(graphs[slot].graph) : NO_SUCH;
    graphs[slot].graph = graphs[slot].exec = NULL;
    return result;
}

static int copy(const struct op *op, int per_thread) {
    static uint32_t host;
    const uint64_t memory = devices[op->slot - '0'].memory;
    switch (op->kind) {
    case 'h':
        return per_thread ? CU(cuMemcpyHtoD_v2_ptds)(memory, &host, 4) : CU(cuMemcpyHtoD_v2)(memory, &host, 4);
    case 'd':
        return per_thread ? CU(cuMemcpyDtoH_v2_ptds)(&host, memory, 4) : CU(cuMemcpyDtoH_v2)(&host, memory, 4);
    case 'D':
        return per_thread ? CU(cuMemcpyDtoD_v2_ptds)(memory, memory + 64, 4)
                          : CU(cuMemcpyDtoD_v2)(memory, memory + 64, 4);
    default:
        return per_thread ? CU(cuMemsetD32_v2_ptds)(memory, 0, 4) : CU(cuMemsetD32_v2)(memory, 0, 4);
    }
}

static void nothing(void *argument) {
    (void)argument;
}

static int add_dependencies(const struct op *op, struct named stream) {
    int status;
    uint64_t id;
    void *const *nodes;
    size_t count;
    const int result = CU(cuStreamGetCaptureInfo_v2)(streams[op->index].handle, &status, &id, NULL, &nodes, &count);
    return result ? result : CU(cuStreamUpdateCaptureDependencies)(stream.handle, nodes, count, (unsigned)op->other);
}

static int on_stream(const struct op *op) {
    const struct named stream = named(op);
    const uint64_t memory = devices[stream.device].memory, word = words + 4u * (words_used + (unsigned)op->index);
    void *const event = events[op->index % EVENTS].handle;
    if (!stream.good)
        return NO_SUCH;
    use(stream.device);
    switch (op->kind) {
    case 'k':
    case 'c':
        return launch(op, stream);
    case 'r':
        return op->other ? WITH_STREAM(cuEventRecordWithFlags, event, stream.handle, op->other == EXTERNAL)
                         : WITH_STREAM(cuEventRecord, event, stream.handle);
    case 'w':
        return WITH_STREAM(cuStreamWaitEvent, stream.handle, event, op->other != 0);
    case 'y':
        return WITH_STREAM(cuStreamSynchronize, stream.handle);
    case 'q':
        return WITH_STREAM(cuStreamQuery, stream.handle);
    case 'a':
        return WITH_STREAM(cuMemcpyDtoDAsync_v2, memory, memory + 64, 4, stream.handle);
    case 'f':
        return WITH_STREAM(cuMemsetD32Async, memory, 0, 4, stream.handle);
    case 'H':
        return WITH_STREAM(cuLaunchHostFunc, stream.handle, nothing, NULL);
    case 'v':
        return WITH_STREAM(cuStreamWaitValue32_v2, stream.handle, word, 1, GEQ);
    case 'V':
        return WITH_STREAM(cuStreamWriteValue32_v2, stream.handle, word, 1, 0);
    case 'b':
        return WITH_STREAM(cuStreamBeginCapture_v2, stream.handle, RELAXED);
    case 'g':
        return graphs[op->index].exec ? WITH_STREAM(cuGraphLaunch, graphs[op->index].exec, stream.handle) : NO_SUCH;
    case 'u':
        return add_dependencies(op, stream);
    default:
        break;
    }
    const int result = WITH_STREAM(cuStreamEndCapture, stream.handle, &graphs[op->index].graph);
    return result ? result : instantiate(op->index);
}

static int one(const struct op *op) {
    const int slot = op->slot - '0';
    float milliseconds;
    int result;
    switch (op->kind) {
    case 'n':
        use(op->other);
        streams[slot].device = op->other;
        return CU(cuStreamCreate)(&streams[slot].handle, (unsigned)op->index);
    case 'x':
        result = CU(cuStreamDestroy_v2)(streams[slot].handle);
        streams[slot].handle = NULL;
        return result;
    case 'e':
        use(op->other);
        return CU(cuEventCreate)(&events[op->index].handle, 0);
    case 'z':
        result = CU(cuEventDestroy_v2)(events[op->index].handle);
        events[op->index].handle = NULL;
        return result;
    case 'Y':
        return CU(cuEventSynchronize)(events[op->index].handle);
    case 'Q':
        return CU(cuEventQuery)(events[op->index].handle);
    case 'T':
        return CU(cuEventElapsedTime)(&milliseconds, events[op->index].handle, events[op->other].handle);
    case 'S':
        use(op->index);
        return CU(cuCtxSynchronize)();
    case 'h':
    case 'd':
    case 'D':
    case 'm':
        use(slot);
        return copy(op, op->how == 'p');
    case 'G':
        return destroy_graph(op->index);
    case 'B':
    case 'N':
        return graph_by_hand(op);
    default:
        return on_stream(op);
    }
}

/* The second thread of a program, which takes its turn like the first. */
static struct {
    sem_t wanted, done;
    const struct op *op;
    int result;
} other;

static void *other_thread(void *argument) {
    for (;;) {
        sem_wait(&other.wanted);
        const int before = current;
        current = -1; /* each thread has a current context of its own */
        other.result = one(other.op);
        current = before;
        sem_post(&other.done);
    }
    return argument;
}

static int by_thread(const struct op *op) {
    static int started;
    pthread_t made;
    if (op->thread == 0)
        return one(op);
    if (!started) {
        sem_init(&other.wanted, 0, 0);
        sem_init(&other.done, 0, 0);
        started = 1;
        need(pthread_create(&made, NULL, other_thread, NULL), "thread");
    }
    other.op = op;
    sem_post(&other.wanted);
    sem_wait(&other.done);
    return other.result;
}

static void destroy_all(void) {
    for (int i = 0; i < STREAMS; i++) {
        if (streams[i].handle)
            CU(cuStreamDestroy_v2)(streams[i].handle);
        streams[i].handle = NULL;
    }
    for (int i = 0; i < EVENTS; i++) {
        if (events[i].handle)
            CU(cuEventDestroy_v2)(events[i].handle);
        events[i].handle = NULL;
    }
    for (int i = 0; i < GRAPHS; i++)
        destroy_graph(i);
}

static void wait_for_all(void) {
    for (int i = 0; i < device_count; i++) {
        use(i);
        need(CU(cuCtxSynchronize)(), "end");
    }
}

static char *running;

/* A program that waits for ever is a mistake of whoever made it, or of the library. */
static void too_long(int signal) {
    if (write(STDERR_FILENO, running, strlen(running)) < 0)
        _exit(signal);
    _exit(7);
}

static void run(char *text) {
    static unsigned programs;
    alarm(10);
    running = strdup(text);
    for (const char *word = strtok(text, " \n"); word; word = strtok(NULL, " \n")) {
        struct op op;
        if (sscanf(word, "%c%c%c,%d,%d,%d", &op.kind, &op.how, &op.slot, &op.index, &op.other, &op.thread) != 6)
            need(1, word);
        printf("%d ", by_thread(&op));
    }
    putchar('\n');
    if (programs++ % 2) {
        destroy_all();
        wait_for_all();
    } else {
        wait_for_all();
        destroy_all();
    }
    words_used = (words_used + WORDS_EACH) % WORDS;
    alarm(0);
    free(running);
}

int main(void) {
    static char buffer[1 << 20];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    signal(SIGALRM, too_long);
    start();
    while (fgets(line, sizeof line, stdin)) {
        if (*line == '\n')
            fflush(stdout);
        else
            run(line);
    }
    return 0;
}
