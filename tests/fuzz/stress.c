/* Everything at once, for the sanitizers: stress THREADS ROUNDS [race|wait|CODE_OBJECT]
 *
 * Threads that launch by all three ways (symbol, dlsym, cuGetProcAddress), load and unload modules, create streams, ask and
 * set attributes, while kernels are refused and communication grows. A child does the same before the driver was
 * initialised, and one afterwards, which no driver serves. Prints how many launches each process made; ends with 1
 * if an answer was wrong. race: threads also set the limit of functions that others are launching. wait: they order
 * streams by events, and wait for streams that are a minor part of what runs: their own, and one that all use. Every other
 * thread has a current context for its creations only. Linked to a simulated driver.
 * -DON_HIP: to a simulated runtime, whose kernels are in the file CODE_OBJECT; the threads also record and wait for events that all
 * of them use, and build graphs. The first child and its parent work at the same time.
 */
#ifdef ON_HIP
#include "../programs/hip_client.h"
#define API(name) hip##name
#define LAUNCH hipModuleLaunchKernel
#define OTHER_LAUNCH hipExtModuleLaunchKernel /* its grid is in work-items */
#define COOPERATIVE_LAUNCH hipModuleLaunchCooperativeKernel
#define GET_ADDRESS hipGetProcAddress
#define DRIVER_NAME RUNTIME
extern hipError_t hipEventCreate(hipEvent_t *), hipGraphDestroy(hipGraph_t), hipGraphExecDestroy(hipGraphExec_t);
enum { BLOCKS = 2000, THREADS = 64, VERSION_ASKED = 601, NEVER_THE_DEFAULT = 1 };
static const char *const names[] = {"gemm", "asked_gemm", "elementwise", "ncclDevKernel_Generic_2"};
#else
#define WAY_LINKED
#include "../programs/driver.h"
#define API(name) cu##name
#define LAUNCH cuLaunchKernel
#define OTHER_LAUNCH cuLaunchKernelEx
#define COOPERATIVE_LAUNCH cuLaunchCooperativeKernel
#define GET_ADDRESS cuGetProcAddress_v2
#define DRIVER_NAME "libcuda.so.1"
#define cuStreamDestroy cuStreamDestroy_v2
extern int cuCtxPushCurrent_v2(void *), cuCtxPopCurrent_v2(void **);
enum { BLOCKS = 300, THREADS = 1024, VERSION_ASKED = 12000, NEVER_THE_DEFAULT = 0 };
static const char *const names[] = {"gemm", "refused_gemm", "elementwise", "ncclDevKernel_AllReduce"};
#endif
#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KERNELS = 4, STRIDE = 13, EVENTS = 4, LIMIT = 8 /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */ };

static void *shared_functions[KERNELS];
static const char *image;
static uint64_t a;
static uint32_t b;
static void *parameters[] = {&a, &b};
static __typeof__(LAUNCH) *ways[3];
static __typeof__(OTHER_LAUNCH) *other_ways[3];
static uint64_t launches, wrong;
static int rounds, race, waits;

static void expect(int result, int wanted, const char *what) {
    if (result == wanted)
        return;
    fprintf(stderr, "stress: %s: %d, not %d\n", what, result, wanted);
    __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

static void launch(void *function, int round, void *stream);

/* ---- What one vendor's threads do ---- */

#ifdef ON_HIP
static void *events[EVENTS];

static int other_launch(int round, void *function, unsigned blocks, unsigned shared, void *stream) {
    return other_ways[round % 3](function, blocks * THREADS, 1, 1, THREADS, 1, 1, shared, stream, parameters, NULL,
                                 NULL, round % 8 ? NULL : events[round % EVENTS], 0);
}

static void capture(void *function, int round, void *stream) {
    void *graph = NULL, *exec = NULL;
    expect(hipStreamBeginCapture(stream, 2), 0, "capture");
    launch(function, round - round % 7 + 1, stream);
    expect(hipStreamEndCapture(stream, &graph), 0, "end of capture");
    expect(hipGraphInstantiate(&exec, graph, NULL, NULL, 0), 0, "instantiate");
    expect(hipGraphLaunch(exec, stream), 0, "graph");
    expect(hipDeviceSynchronize(), 0, "synchronize");
    expect(hipGraphExecDestroy(exec), 0, "exec");
    expect(hipGraphDestroy(graph), 0, "graph");
}

static void ask(void **functions, int round, int offset, void *stream) {
    int blocks = 0;
    if (round % 5 == 0)
        expect(hipEventRecord(events[round % EVENTS], stream), 0, "record");
    if (round % 6 == 0)
        expect(hipStreamWaitEvent(stream, events[(round + 1) % EVENTS], 0), 0, "wait");
    if (round % 33 == 0)
        expect(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, functions[1], THREADS, 0), 0, "occupancy");
    if (round % 60 == 7 && offset == 0) /* of one thread: the others' calls would end it */
        capture(functions[0], round, stream);
    if (round % 50 == 0)
        expect(hipEventSynchronize(events[round % EVENTS]), 0, "synchronize");
}

static void *new_stream(int round) {
    void *stream = NULL;
    if (round % 2)
        expect(hipStreamCreateWithPriority(&stream, 1, -(round / 2 % 2)), 0, "stream");
    else
        expect(hipStreamCreateWithFlags(&stream, 1), 0, "stream");
    return stream;
}

static void enter(int none) {
    (void)none;
}
static void push(int none) {
    (void)none;
}
static void pop(int none) {
    (void)none;
}
static void begin(void) {
    expect(hipInit(0), 0, "init");
    for (int i = 0; i < EVENTS; i++)
        expect(hipEventCreate(&events[i]), 0, "event");
}
static void *iterations(void *unused) {
    return unused;
}
#else
static void *context, *interior, *halo, *handed_over;

static int other_launch(int round, void *function, unsigned blocks, unsigned shared, void *stream) {
    /* Of this very size, so that reading one attribute more is noticed. */
    const uint32_t count = (uint32_t)round % 3;
    Attribute *attributes = malloc(count ? count * sizeof *attributes : 1);
    if (!attributes)
        abort();
    for (uint32_t i = 0; i < count; i++)
        attributes[i] = (Attribute){.id = i ? 8 : 4, .value.dimension = {i ? 0U : 1U, 1, 1}};
    const Config config = {{blocks, 1, 1}, {THREADS, 1, 1}, shared, 0, stream, attributes, count, 0};
    const int result = other_ways[round % 3](&config, function, parameters, NULL);
    free(attributes);
    return result;
}

/* A thread that has no current context has one for what follows. */
static void push(int none) {
    if (none)
        expect(cuCtxPushCurrent_v2(context), 0, "push");
}
static void pop(int none) {
    void *popped = NULL;
    if (none)
        expect(cuCtxPopCurrent_v2(&popped), 0, "pop");
}
static void enter(int none) {
    if (!none)
        expect(cuCtxSetCurrent(context), 0, "context");
}

static void ask(void **functions, int round, int offset, void *stream) {
    const int none = offset / STRIDE % 2;
    int limit = -1;
    if (round % 11 == 0 && (race || functions[0] != shared_functions[0])) {
        expect(cuFuncSetAttribute(functions[0], LIMIT, 60000), 0, "set");
        expect(cuFuncGetAttribute(&limit, LIMIT, functions[0]), 0, "get");
        expect(limit, 60000, "the limit that the program has set");
    }
    if (round % 50 == 0)
        expect(none ? cuStreamSynchronize(stream) : cuCtxSynchronize(), 0, "synchronize");
}

static void *new_stream(int round) {
    void *stream = NULL;
    expect(cuStreamCreateWithPriority(&stream, 1, -(round % 3)), 0, "stream");
    return stream;
}

/* An iteration: a boundary on a stream that the host, or another stream, waits for, and much on one that all use. */
static void iterate(int round, void *boundary, void *event) {
    void *const gemm = shared_functions[0];
    enum { NOT_READY = 600 };
    __atomic_fetch_add(&launches, 2, __ATOMIC_RELAXED);
    expect(ways[round % 3](gemm, 2, 1, 1, 64, 1, 1, 0, boundary, parameters, NULL), 0, "boundary");
    expect(cuEventRecord(event, boundary), 0, "record");
    expect(ways[round % 3](gemm, 300, 1, 1, 1024, 1, 1, 0, interior, parameters, NULL), 0, "interior");
    expect(cuEventRecord(handed_over, interior), 0, "record");
    if (round % 3 == 0)
        launch(shared_functions[3], round, boundary);
    expect(cuStreamWaitEvent(boundary, handed_over, 0), 0, "wait");
    if (round % 2)
        expect(cuStreamSynchronize(boundary), 0, "synchronize");
    else
        while (cuEventQuery(event) == NOT_READY)
            ;
    expect(cuStreamWaitEvent(interior, event, 0), 0, "wait");
}

/* Streams are made by all threads at the same place. */
static void *iterations(void *argument) {
    const int offset = (int)(intptr_t)argument, none = offset / STRIDE % 2;
    void *own = NULL, *event = NULL;
    enter(none);
    push(none);
    expect(cuEventCreate(&event, 2), 0, "event");
    pop(none);
    for (int round = offset; round < rounds + offset; round++) {
        if (round % 40 == 0 || !own) {
            if (own)
                expect(cuStreamDestroy(own), 0, "destroy");
            push(none);
            expect(cuStreamCreate(&own, 1), 0, "stream");
            pop(none);
        }
        iterate(round, round % 4 ? own : halo, event);
    }
    expect(cuStreamDestroy(own), 0, "destroy");
    expect(cuEventDestroy_v2(event), 0, "destroy");
    return NULL;
}

static void begin(void) {
    context = driver_start();
    if (!image)
        image = ptx_of("gemm,refused_gemm,elementwise,ncclDevKernel_AllReduce");
    if (!waits)
        return;
    expect(cuStreamCreate(&interior, 1), 0, "stream");
    expect(cuStreamCreate(&halo, 1), 0, "stream");
    expect(cuEventCreate(&handed_over, 2), 0, "event");
}
#endif

/* ---- What both do ---- */

static void launch(void *function, int round, void *stream) {
    const unsigned blocks = round % 3 ? BLOCKS + (unsigned)round % 5 : 7, shared = (unsigned)(round % 2) * 1024;
    __atomic_fetch_add(&launches, 1, __ATOMIC_RELAXED);
    if (round % 7 == 0)
        expect(COOPERATIVE_LAUNCH(function, 7, 1, 1, THREADS, 1, 1, shared, stream, parameters), 0, "cooperative");
    else if (round % 4)
        expect(ways[round % 3](function, blocks, 1, 1, THREADS, 1, 1, shared, stream, parameters, NULL), 0, "launch");
    else
        expect(other_launch(round, function, blocks, shared, stream), 0, "the other launch");
}

static void *load(void **functions) {
    void *module = NULL;
    expect(API(ModuleLoadData)(&module, image), 0, "load");
    for (int i = 0; i < KERNELS; i++)
        expect(API(ModuleGetFunction)(&functions[i], module, names[i]), 0, "function");
    return module;
}

static void *work(void *argument) {
    const int offset = (int)(intptr_t)argument, none = offset / STRIDE % 2;
    void *stream = NULL, *module = NULL, *functions[KERNELS];
    memcpy(functions, shared_functions, sizeof functions);
    enter(none);
    for (int round = offset; round < rounds + offset; round++) {
        if (round % 40 == 0 || (!stream && (none || NEVER_THE_DEFAULT))) {
            if (stream)
                expect(API(StreamDestroy)(stream), 0, "destroy");
            push(none);
            stream = new_stream(round);
            pop(none);
        }
        if (round % 25 == 0) {
            /* Functions of our own, whose addresses a later module may get again. */
            if (module)
                expect(API(ModuleUnload)(module), 0, "unload");
            push(none);
            module = load(functions);
            pop(none);
        }
        launch(round % 2 ? functions[round % KERNELS] : shared_functions[round / 2 % KERNELS], round, stream);
        ask(functions, round, offset, stream);
    }
    if (module)
        expect(API(ModuleUnload)(module), 0, "unload");
    return NULL;
}

static void find_ways(void) {
    void *driver = dlopen(DRIVER_NAME, RTLD_NOW | RTLD_LOCAL);
    int status = 0;
    ways[0] = LAUNCH;
    other_ways[0] = OTHER_LAUNCH;
    *(void **)&ways[1] = driver ? dlsym(driver, TEXT(LAUNCH)) : NULL;
    *(void **)&other_ways[1] = driver ? dlsym(driver, TEXT(OTHER_LAUNCH)) : NULL;
    expect(GET_ADDRESS(TEXT(LAUNCH), (void **)&ways[2], VERSION_ASKED, 0, &status), 0, "address");
    expect(GET_ADDRESS(TEXT(OTHER_LAUNCH), (void **)&other_ways[2], VERSION_ASKED, 0, &status), 0, "address");
    if (!ways[1] || !ways[2] || !other_ways[1] || !other_ways[2])
        abort();
}

static void start(void) {
    begin();
    load(shared_functions);
    find_ways();
}

static void say(const char *who) {
    printf("%s %llu\n", who, (unsigned long long)launches);
    fflush(stdout);
}

/* A child that uses the driver, or is told that it cannot. */
static pid_t fork_one(int usable) {
    const pid_t child = fork();
    if (child == 0) {
        launches = 0;
        if (usable) {
            start();
            (waits ? iterations : work)((void *)(intptr_t)1);
        } else {
            launches++;
            expect(LAUNCH(shared_functions[0], 300, 1, 1, THREADS, 1, 1, 0, NULL, NULL, NULL), 3, "after fork");
        }
        say("child");
        exit(wrong != 0);
    }
    return child;
}

static void wait_for(pid_t child) {
    int status = -1;
    waitpid(child, &status, 0);
    expect(status, 0, "child");
}

int main(int argc, char **argv) {
    enum { MOST = 64 };
    pthread_t threads[MOST];
    const int count = argc >= 3 && atoi(argv[1]) <= MOST ? atoi(argv[1]) : 0;
    if (!count)
        return 2;
    rounds = atoi(argv[2]);
    race = argc > 3 && strcmp(argv[3], "race") == 0;
    waits = argc > 3 && strcmp(argv[3], "wait") == 0;
#ifdef ON_HIP
    image = read_file(argv[argc - 1]);
#endif
    const pid_t child = fork_one(1);
#ifndef ON_HIP
    wait_for(child); /* one thread's launches are logged in order: tests/libcs compares them */
#endif
    start();
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, waits ? iterations : work, (void *)(intptr_t)(i * STRIDE)))
            return 2;
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
#ifdef ON_HIP
    wait_for(child); /* both have worked at the same time */
#else
    wait_for(fork_one(0));
#endif
    say("parent");
    return wrong != 0;
}
