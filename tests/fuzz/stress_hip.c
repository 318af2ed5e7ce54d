/* Everything at once on HIP, for the sanitizers: stress_hip THREADS ROUNDS CODE_OBJECT
 *
 * Threads that launch by all ways in (symbol, dlsym, hipGetProcAddress), by five entry points, load and unload modules, create
 * streams with priorities, record and wait for events that all threads use, ask about occupancy and build graphs.
 * A child does the same before the runtime was used. Prints how many launches each process made; ends with 1 if an answer was
 * wrong. Linked to a simulated runtime of version 6 or 7. CODE_OBJECT has the kernels named below.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef RUNTIME /* the one that it is linked to */
#define RUNTIME "libamdhip64.so.7"
#endif

typedef int module_launch(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);
typedef int items_launch(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, size_t, void *, void **,
                         void **, void *, void *, unsigned);

extern int hipInit(unsigned);
extern int hipDeviceSynchronize(void);
extern int hipModuleLoadData(void **, const void *);
extern int hipModuleUnload(void *);
extern int hipModuleGetFunction(void **, void *, const char *);
extern int hipStreamCreateWithPriority(void **, unsigned, int);
extern int hipStreamCreateWithFlags(void **, unsigned);
extern int hipStreamDestroy(void *);
extern int hipStreamWaitEvent(void *, void *, unsigned);
extern int hipStreamBeginCapture(void *, int);
extern int hipStreamEndCapture(void *, void **);
extern int hipGraphInstantiate(void **, void *, void **, char *, size_t);
extern int hipGraphLaunch(void *, void *);
extern int hipGraphExecDestroy(void *);
extern int hipGraphDestroy(void *);
extern int hipEventCreate(void **);
extern int hipEventRecord(void *, void *);
extern int hipEventSynchronize(void *);
extern int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *, void *, int, size_t);
extern int hipGetProcAddress(const char *, void **, int, uint64_t, int *);
extern int hipModuleLaunchCooperativeKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                            unsigned, void *, void **);
extern module_launch hipModuleLaunchKernel;
extern items_launch hipExtModuleLaunchKernel;

static const char *const names[] = {"gemm", "asked_gemm", "elementwise", "ncclDevKernel_Generic_2"};
enum { KERNELS = 4, EVENTS = 4, THREADS = 64 };

static char image[1 << 20];
static void *shared_functions[KERNELS], *events[EVENTS];
static module_launch *ways[3];
static items_launch *items_ways[3];
static uint64_t launches, wrong;
static int rounds;

static void expect(int result, int wanted, const char *what) {
    if (result == wanted)
        return;
    fprintf(stderr, "stress_hip: %s: %d, not %d\n", what, result, wanted);
    __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

static void launch(void *function, int round, void *stream) {
    const unsigned blocks = round % 3 ? 2000 + (unsigned)round % 5 : 7, shared = (unsigned)(round % 2) * 1024;
    void *parameters[] = {NULL};
    const int way = round % 3;
    __atomic_fetch_add(&launches, 1, __ATOMIC_RELAXED);
    if (round % 7 == 0)
        expect(hipModuleLaunchCooperativeKernel(function, 7, 1, 1, THREADS, 1, 1, shared, stream, parameters), 0,
               "cooperative");
    else if (round % 4)
        expect(ways[way](function, blocks, 1, 1, THREADS, 1, 1, shared, stream, parameters, NULL), 0, "launch");
    else
        expect(items_ways[way](function, blocks * THREADS, 1, 1, THREADS, 1, 1, shared, stream, parameters, NULL, NULL,
                               round % 8 ? NULL : events[round % EVENTS], 0),
               0, "launch of work-items");
}

static void *new_stream(int round) {
    void *stream = NULL;
    if (round % 2)
        expect(hipStreamCreateWithPriority(&stream, 1, -(round / 2 % 2)), 0, "stream");
    else
        expect(hipStreamCreateWithFlags(&stream, 1), 0, "stream");
    return stream;
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

static void *work(void *argument) {
    const int offset = (int)(intptr_t)argument;
    void *stream = NULL, *module = NULL, *functions[KERNELS];
    int blocks = 0;
    memcpy(functions, shared_functions, sizeof functions);
    for (int round = offset; round < rounds + offset; round++) {
        if (!stream || round % 40 == 0) {
            if (stream)
                expect(hipStreamDestroy(stream), 0, "destroy");
            stream = new_stream(round);
        }
        if (round % 25 == 0) {
            /* Functions of our own, whose addresses a later module may get again. */
            if (module)
                expect(hipModuleUnload(module), 0, "unload");
            expect(hipModuleLoadData(&module, image), 0, "load");
            for (int i = 0; i < KERNELS; i++)
                expect(hipModuleGetFunction(&functions[i], module, names[i]), 0, "function");
        }
        launch(round % 2 ? functions[round % KERNELS] : shared_functions[round / 2 % KERNELS], round, stream);
        if (round % 5 == 0)
            expect(hipEventRecord(events[round % EVENTS], stream), 0, "record");
        if (round % 6 == 0)
            expect(hipStreamWaitEvent(stream, events[(round + 1) % EVENTS], 0), 0, "wait");
        if (round % 33 == 0)
            expect(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, functions[1], THREADS, 0), 0,
                   "occupancy");
        if (round % 60 == 7 && offset == 0) /* of one thread: the others' calls would end it */
            capture(functions[0], round, stream);
        if (round % 50 == 0)
            expect(hipEventSynchronize(events[round % EVENTS]), 0, "synchronize");
    }
    if (module)
        expect(hipModuleUnload(module), 0, "unload");
    return NULL;
}

static void start(void) {
    void *module = NULL;
    expect(hipInit(0), 0, "init");
    expect(hipModuleLoadData(&module, image), 0, "load");
    for (int i = 0; i < KERNELS; i++)
        expect(hipModuleGetFunction(&shared_functions[i], module, names[i]), 0, "function");
    for (int i = 0; i < EVENTS; i++)
        expect(hipEventCreate(&events[i]), 0, "event");
}

static void find_ways(void) {
    void *runtime = dlopen(RUNTIME, RTLD_NOW | RTLD_LOCAL);
    int status = 0;
    ways[0] = hipModuleLaunchKernel;
    items_ways[0] = hipExtModuleLaunchKernel;
    *(void **)&ways[1] = runtime ? dlsym(runtime, "hipModuleLaunchKernel") : NULL;
    *(void **)&items_ways[1] = runtime ? dlsym(runtime, "hipExtModuleLaunchKernel") : NULL;
    expect(hipGetProcAddress("hipModuleLaunchKernel", (void **)&ways[2], 601, 0, &status), 0, "hipGetProcAddress");
    expect(hipGetProcAddress("hipExtModuleLaunchKernel", (void **)&items_ways[2], 601, 0, &status), 0,
           "hipGetProcAddress");
    if (!ways[1] || !ways[2] || !items_ways[1] || !items_ways[2])
        abort();
}

static void say(const char *who) {
    printf("%s %llu\n", who, (unsigned long long)launches);
    fflush(stdout);
}

int main(int argc, char **argv) {
    enum { MOST = 64 };
    pthread_t threads[MOST];
    const int count = argc == 4 && atoi(argv[1]) <= MOST ? atoi(argv[1]) : 0;
    FILE *file = count ? fopen(argv[3], "rb") : NULL;
    if (!file || fread(image, 1, sizeof image, file) == 0)
        return 2;
    fclose(file);
    rounds = atoi(argv[2]);
    const pid_t child = fork();
    int status = -1;
    start();
    find_ways();
    if (child == 0) {
        work((void *)(intptr_t)1);
        say("child");
        exit(wrong != 0);
    }
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(intptr_t)(i * 13)))
            return 2;
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    waitpid(child, &status, 0);
    expect(status, 0, "child");
    say("parent");
    return wrong != 0;
}
