/* Everything at once, for the sanitizers: stress THREADS ROUNDS [race|wait]
 *
 * Threads that launch by all three ways in (symbol, dlsym, cuGetProcAddress), load and unload modules, create streams,
 * ask and set attributes, while kernels are refused and communication grows. A child does the same before the driver
 * was initialised, and one afterwards, which no driver serves. Prints how many launches each process made; ends with 1
 * if an answer was wrong. race: threads also set the limit of functions that others are launching. wait: they order
 * streams by events, and wait for streams that are a minor part of what runs: their own, and one that all use. Every other
 * thread has a current context for its creations only. Linked to a simulated driver.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    uint32_t id, pad;
    union {
        char bytes[64];
        int32_t number;
        uint32_t dimension[3];
    } value;
} Attribute;

typedef struct {
    uint32_t grid[3], block[3], shared, pad;
    void *stream;
    Attribute *attributes;
    uint32_t count, pad2;
} Config;

typedef int launch_type(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                        void **);
typedef int launch_ex_type(const Config *, void *, void **, void **);

extern int cuInit(unsigned);
extern int cuDevicePrimaryCtxRetain(void **, int);
extern int cuCtxSetCurrent(void *);
extern int cuCtxPushCurrent_v2(void *);
extern int cuCtxPopCurrent_v2(void **);
extern int cuCtxSynchronize(void);
extern int cuModuleLoadData(void **, const void *);
extern int cuModuleUnload(void *);
extern int cuModuleGetFunction(void **, void *, const char *);
extern int cuStreamCreate(void **, unsigned);
extern int cuStreamCreateWithPriority(void **, unsigned, int);
extern int cuStreamSynchronize(void *);
extern int cuStreamWaitEvent(void *, void *, unsigned);
extern int cuEventCreate(void **, unsigned);
extern int cuEventRecord(void *, void *);
extern int cuEventQuery(void *);
extern int cuEventDestroy_v2(void *);
extern int cuStreamDestroy_v2(void *);
extern int cuFuncGetAttribute(int *, int, void *);
extern int cuFuncSetAttribute(void *, int, int);
extern int cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);
extern launch_type cuLaunchKernel;
extern launch_ex_type cuLaunchKernelEx;
extern int cuLaunchCooperativeKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                     void *, void **);

static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                          ".visible .entry gemm()\n{\n ret;\n}\n"
                          ".visible .entry refused_gemm()\n{\n ret;\n}\n"
                          ".visible .entry elementwise()\n{\n ret;\n}\n"
                          ".visible .entry ncclDevKernel_AllReduce()\n{\n ret;\n}\n";
static const char *const names[] = {"gemm", "refused_gemm", "elementwise", "ncclDevKernel_AllReduce"};
enum { KERNELS = 4, STRIDE = 13, LIMIT = 8 /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */ };

static void *context, *shared_functions[KERNELS], *interior, *halo, *handed_over;
static launch_type *ways[3];
static launch_ex_type *ex_ways[3];
static uint64_t launches, wrong;
static int rounds, race, waits;

static void expect(int result, int wanted, const char *what) {
    if (result == wanted)
        return;
    fprintf(stderr, "stress: %s: %d, not %d\n", what, result, wanted);
    __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

static void launch(void *function, int round, void *stream) {
    const unsigned blocks = round % 3 ? 300 + (unsigned)round % 5 : 7, shared = (unsigned)(round % 2) * 1024;
    void *parameters[] = {NULL};
    const int way = round % 3;
    __atomic_fetch_add(&launches, 1, __ATOMIC_RELAXED);
    if (round % 7 == 0) {
        expect(cuLaunchCooperativeKernel(function, 7, 1, 1, 1024, 1, 1, shared, stream, parameters), 0, "cooperative");
    } else if (round % 4) {
        expect(ways[way](function, blocks, 1, 1, 1024, 1, 1, shared, stream, parameters, NULL), 0, "launch");
    } else {
        /* Of this very size, so that reading one attribute more is noticed. */
        const uint32_t count = (uint32_t)round % 3;
        Attribute *attributes = malloc(count ? count * sizeof *attributes : 1);
        if (!attributes)
            abort();
        for (uint32_t i = 0; i < count; i++)
            attributes[i] = (Attribute){.id = i ? 8 : 4, .value.dimension = {i ? 0U : 1U, 1, 1}};
        const Config config = {{blocks, 1, 1}, {1024, 1, 1}, shared, 0, stream, attributes, count, 0};
        expect(ex_ways[way](&config, function, parameters, NULL), 0, "launch with attributes");
        free(attributes);
    }
}

/* An iteration: a boundary on a stream that the host, or another stream, waits for, and much on one that all use. */
static void iterate(int round, void *boundary, void *event) {
    void *parameters[] = {NULL};
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

/* Threads without a context have one for what follows. */
static void push(int none) {
    if (none)
        expect(cuCtxPushCurrent_v2(context), 0, "push");
}

static void pop(int none) {
    void *popped = NULL;
    if (none)
        expect(cuCtxPopCurrent_v2(&popped), 0, "pop");
}

/* Streams are made by all threads at the same place. */
static void *iterations(void *argument) {
    const int offset = (int)(intptr_t)argument, none = offset / STRIDE % 2;
    void *own = NULL, *event = NULL;
    if (!none)
        expect(cuCtxSetCurrent(context), 0, "context");
    push(none);
    expect(cuEventCreate(&event, 2), 0, "event");
    pop(none);
    for (int round = offset; round < rounds + offset; round++) {
        if (round % 40 == 0 || !own) {
            if (own)
                expect(cuStreamDestroy_v2(own), 0, "destroy");
            push(none);
            expect(cuStreamCreate(&own, 1), 0, "stream");
            pop(none);
        }
        iterate(round, round % 4 ? own : halo, event);
    }
    expect(cuStreamDestroy_v2(own), 0, "destroy");
    expect(cuEventDestroy_v2(event), 0, "destroy");
    return NULL;
}

static void *work(void *argument) {
    const int offset = (int)(intptr_t)argument, none = offset / STRIDE % 2;
    void *stream = NULL, *module = NULL, *functions[KERNELS];
    memcpy(functions, shared_functions, sizeof functions);
    if (!none)
        expect(cuCtxSetCurrent(context), 0, "context");
    for (int round = offset; round < rounds + offset; round++) {
        if (round % 40 == 0 || (none && !stream)) {
            if (stream)
                expect(cuStreamDestroy_v2(stream), 0, "destroy");
            push(none);
            expect(cuStreamCreateWithPriority(&stream, 1, -(round % 3)), 0, "stream");
            pop(none);
        }
        if (round % 25 == 0) {
            /* Functions of our own, whose addresses a later module may get again. */
            if (module)
                expect(cuModuleUnload(module), 0, "unload");
            push(none);
            expect(cuModuleLoadData(&module, ptx), 0, "load");
            pop(none);
            for (int i = 0; i < KERNELS; i++)
                expect(cuModuleGetFunction(&functions[i], module, names[i]), 0, "function");
        }
        launch(round % 2 ? functions[round % KERNELS] : shared_functions[round / 2 % KERNELS], round, stream);
        if (round % 11 == 0 && (race || functions[0] != shared_functions[0])) {
            int limit = -1;
            expect(cuFuncSetAttribute(functions[0], LIMIT, 60000), 0, "set");
            expect(cuFuncGetAttribute(&limit, LIMIT, functions[0]), 0, "get");
            expect(limit, 60000, "the limit that the program has set");
        }
        if (round % 50 == 0)
            expect(none ? cuStreamSynchronize(stream) : cuCtxSynchronize(), 0, "synchronize");
    }
    if (module)
        expect(cuModuleUnload(module), 0, "unload");
    return NULL;
}

static void start(void) {
    void *module = NULL;
    expect(cuInit(0), 0, "init");
    expect(cuDevicePrimaryCtxRetain(&context, 0), 0, "retain");
    expect(cuCtxSetCurrent(context), 0, "context");
    expect(cuModuleLoadData(&module, ptx), 0, "load");
    for (int i = 0; i < KERNELS; i++)
        expect(cuModuleGetFunction(&shared_functions[i], module, names[i]), 0, "function");
    if (!waits)
        return;
    expect(cuStreamCreate(&interior, 1), 0, "stream");
    expect(cuStreamCreate(&halo, 1), 0, "stream");
    expect(cuEventCreate(&handed_over, 2), 0, "event");
}

static void find_ways(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    ways[0] = cuLaunchKernel;
    ex_ways[0] = cuLaunchKernelEx;
    *(void **)&ways[1] = driver ? dlsym(driver, "cuLaunchKernel") : NULL;
    *(void **)&ex_ways[1] = driver ? dlsym(driver, "cuLaunchKernelEx") : NULL;
    int status = 0;
    expect(cuGetProcAddress_v2("cuLaunchKernel", (void **)&ways[2], 12000, 0, &status), 0, "cuGetProcAddress");
    expect(cuGetProcAddress_v2("cuLaunchKernelEx", (void **)&ex_ways[2], 12000, 0, &status), 0, "cuGetProcAddress");
    if (!ways[1] || !ways[2] || !ex_ways[1] || !ex_ways[2])
        abort();
}

static void say(const char *who) {
    printf("%s %llu\n", who, (unsigned long long)launches);
    fflush(stdout);
}

/* A child that uses the driver, or is told that it cannot. */
static void fork_one(int usable) {
    const pid_t child = fork();
    int status = -1;
    if (child == 0) {
        launches = 0;
        if (usable) {
            start();
            find_ways();
            (waits ? iterations : work)((void *)(intptr_t)1);
        } else {
            launches++;
            expect(cuLaunchKernel(shared_functions[0], 300, 1, 1, 1024, 1, 1, 0, NULL, NULL, NULL), 3, "after fork");
        }
        say("child");
        exit(wrong != 0);
    }
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
    fork_one(1);
    start();
    find_ways();
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, waits ? iterations : work, (void *)(intptr_t)(i * STRIDE)))
            return 2;
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    fork_one(0);
    say("parent");
    return wrong != 0;
}
