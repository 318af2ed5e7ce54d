/* What one call costs the calling thread, in nanoseconds of its own processor time.
 *
 *   launch WAY CALL KERNEL THREADS CALLS [STREAMS [KERNELS [SIZES]]]
 *     WAY      symbol | dlsym | proc_address: how the program gets cuLaunchKernel and cuLaunchKernelEx; runtime: it calls
 *              cudaLaunchKernel instead
 *     CALL     a word of `calls` below, or of several calls:
 *              inside: launches while communication is open on another stream; raised: launches on a stream that the host
 *              has waited for beside a larger one; turns: launches on all streams in turn; event: an event is created,
 *              recorded and destroyed; stream: the oldest stream is destroyed, another one created, which carries a launch and is
 *              waited for, beside a launch on one that stays; context: communication is launched, and the host waits for the
 *              context; comd, comd_asks: the calls of a step of CoMD-CUDA, without and with a question of occupancy before
 *              each launch; ex: with one attribute; retain: the primary context is retained and released; push: a context is
 *              pushed and popped; module: a module is loaded, its function obtained, launched once and unloaded, and no two
 *              functions have the same name; libraries: LIBRARIES libraries launch in turn through the shared runtime
 *     KERNEL   name of the kernels, launched in turn with 8192 blocks of 128 threads; module: how it begins
 *     STREAMS  how many streams are alive (1 for each thread); each has carried a launch and was waited for
 *     KERNELS, SIZES  how many kernels there are (64), and with how many dynamic sizes each is launched (1)
 *
 * Prints the median over chunks, averaged over threads; of `first`, where each kernel is launched once, the mean. Linked
 * to the do-nothing driver and runtime (null_driver.c, null_runtime.c).
 */
#include <dlfcn.h>
#include <string.h>

#include "threads.h"

struct config {
    unsigned grid[3], block[3], shared, pad;
    void *stream, *attributes;
    unsigned count, pad2;
};
static struct {
    unsigned id, pad, value[16];
} priority = {.id = 8};
typedef int launch_type(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                        void **);
typedef int launch_ex_type(const struct config *, void *, void **, void **);
launch_type cuLaunchKernel;
launch_ex_type cuLaunchKernelEx;
/* dim3 as the registers hold it: gcc builds one on the stack and then waits for 6 ns until it can load it again. */
int cudaLaunchKernel(const void *, uint64_t, unsigned, uint64_t, unsigned, void **, size_t, void *);
int cuInit(unsigned);
int cuModuleGetFunction(void **, void *, const char *);
int cuLibraryGetKernel(void **, void *, const char *);
int cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);

/* Reloaded for each call, as a client does. CALL(word, name, version, parameters) */
#define CALLS(CALL)                                                                                                    \
    CALL(kernel, "cuLaunchKernel", 4000,                                                                               \
         (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))     \
    CALL(ex, "cuLaunchKernelEx", 11060, (const struct config *, void *, void **, void **))                             \
    CALL(record, "cuEventRecord", 2000, (void *, void *))                                                              \
    CALL(wait, "cuStreamWaitEvent", 3020, (void *, void *, unsigned))                                                  \
    CALL(synchronize, "cuStreamSynchronize", 2000, (void *))                                                           \
    CALL(query, "cuEventQuery", 2000, (void *))                                                                        \
    CALL(poll, "cuStreamQuery", 2000, (void *))                                                                        \
    CALL(copy, "cuMemcpyDtoH", 3020, (void *, uint64_t, size_t))                                                       \
    CALL(allocate, "cuMemAlloc", 3020, (uint64_t *, size_t))                                                           \
    CALL(release, "cuMemFree", 3020, (uint64_t))                                                                       \
    CALL(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 7000,                                      \
         (int *, void *, int, size_t, unsigned))                                                                       \
    CALL(cache, "cuCtxSetCacheConfig", 3020, (int))                                                                    \
    CALL(priority, "cuStreamGetPriority", 5050, (void *, int *))                                                       \
    CALL(create_event, "cuEventCreate", 2000, (void **, unsigned))                                                     \
    CALL(destroy_event, "cuEventDestroy", 4000, (void *))                                                              \
    CALL(create_stream, "cuStreamCreate", 2000, (void **, unsigned))                                                   \
    CALL(destroy_stream, "cuStreamDestroy", 4000, (void *))                                                            \
    CALL(retain, "cuDevicePrimaryCtxRetain", 7000, (void **, int))                                                     \
    CALL(give_back, "cuDevicePrimaryCtxRelease", 11000, (int))                                                         \
    CALL(push, "cuCtxPushCurrent", 4000, (void *))                                                                     \
    CALL(pop, "cuCtxPopCurrent", 4000, (void **))                                                                      \
    CALL(load, "cuModuleLoadData", 2000, (void **, const void *))                                                      \
    CALL(get_function, "cuModuleGetFunction", 2000, (void **, void *, const char *))                                   \
    CALL(unload, "cuModuleUnload", 2000, (void *))                                                                     \
    CALL(wait_for_all, "cuCtxSynchronize", 2000, (void))
#define DECLARE(word, name, version, parameters) static int(*volatile call_##word) parameters;
CALLS(DECLARE)
#undef DECLARE

enum call {
#define NUMBER(word, name, version, parameters) CALL_##word,
    CALLS(NUMBER)
#undef NUMBER
        INSIDE,
    RAISED,
    TURNS,
    EVENTS,
    STREAM,
    CONTEXT,
    COMD,
    COMD_ASKS,
    FIRST,
    CUKERNEL,
    MODULE,
    FROM_LIBRARIES,
    WORDS
};
static const char *const words[WORDS] = {
#define WORD(word, name, version, parameters) #word,
    CALLS(WORD)
#undef WORD
        [INSIDE] = "inside",
    [RAISED] = "raised",
    [TURNS] = "turns",
    [EVENTS] = "event",
    [STREAM] = "stream",
    [CONTEXT] = "context",
    [COMD] = "comd",
    [COMD_ASKS] = "comd_asks",
    [FIRST] = "first",
    [CUKERNEL] = "cukernel",
    [MODULE] = "module",
    [FROM_LIBRARIES] = "libraries"};

static enum call call;
static void *functions[MOST_FUNCTIONS], *communication, **streams;
static long streams_used;
static char memory[16];
static const char *kernel_name;
static void *primary;

enum { LIBRARIES = 8, DIGITS = 10, LONGEST = 4096 };
static int (*libraries[LIBRARIES])(const void *, void *);

static int launch_on(void *stream, void *function, unsigned blocks) {
    return call_kernel(function, blocks, 1, 1, 128, 1, 1, 0, stream, NULL, NULL);
}

/* The host waits for a short kernel beside a long one, so often that the stream is raised. */
static void wait_for(void *stream, void *beside) {
    for (int i = 0; i < 3000; i++) {
        launch_on(stream, functions[0], 1);
        launch_on(beside, functions[0], 8192);
        call_synchronize(stream);
    }
}

/* Two streams, of which one carries the boundary: 15 launches, the preferred cache twice, two events, a wait of the host. */
static void step(void **two, int asks) {
    int blocks;
    for (int i = 0; i < 15; i++) {
        if (i == 0 || i == 8)
            call_cache(2);
        if (asks)
            call_occupancy(&blocks, functions[i], 128, 0, 0);
        launch_on(two[i % 3 == 0], functions[i], i % 3 == 0 ? 800 : 8192);
    }
    call_record((char *)EVENT, two[1]);
    call_wait(two[0], (char *)EVENT, 0);
    call_synchronize(two[1]);
}

/* One after the other, without a division. */
static void run_many(long count, void *stream) {
    static _Thread_local long function, size;
    for (long i = 0; i < count; i++) {
        call_kernel(functions[function], 8192, 1, 1, 128, 1, 1, (unsigned)size * 16, stream, NULL, NULL);
        if (++size == sizes_used) {
            size = 0;
            function = function + 1 == functions_used ? 0 : function + 1;
        }
    }
}

/* Each time with another name. */
static void module_lives(void *stream) {
    static _Thread_local char name[LONGEST];
    static _Thread_local size_t end;
    void *module, *function;
    if (!end) {
        end = (size_t)snprintf(name, sizeof name, "%s%0*d", kernel_name, DIGITS, 0);
        end = end < sizeof name ? end : sizeof name - 1;
    }
    for (char *digit = name + end - 1; ++*digit > '9'; digit--)
        *digit = '0';
    call_load(&module, "x");
    call_get_function(&function, module, name);
    launch_on(stream, function, 8192);
    call_unload(module);
}

#define EACH(...)                                                                                                      \
    for (long i = 0; i < count; i++)                                                                                   \
    __VA_ARGS__
#define FUNCTION functions[i % FUNCTIONS]

static void run(long count, void *own) {
    void **const mine = own, *const stream = mine[0];
    const struct config config = {
        .grid = {8192, 1, 1}, .block = {128, 1, 1}, .stream = stream, .attributes = &priority, .count = 1};
    uint64_t address = EVENT;
    void *made = (char *)EVENT;
    int value;
    switch (call) {
    case CALL_ex:
        EACH(call_ex(&config, FUNCTION, NULL, NULL));
        break;
    case CALL_record:
        EACH(call_record((char *)EVENT + i % FUNCTIONS * 64, stream));
        break;
    case CALL_wait:
        EACH(call_wait(mine[1], (char *)EVENT, 0));
        break;
    case CALL_synchronize:
        EACH(call_synchronize(stream));
        break;
    case CALL_query:
        EACH(call_query((char *)EVENT));
        break;
    case CALL_poll:
        EACH(call_poll(stream));
        break;
    case CALL_copy:
        EACH(call_copy(memory, EVENT, sizeof memory));
        break;
    case CALL_allocate:
        EACH(call_allocate(&address, 64), call_release(address));
        break;
    case CALL_occupancy:
        EACH(call_occupancy(&value, FUNCTION, 128, 0, 0));
        break;
    case CALL_cache:
        EACH(call_cache(2));
        break;
    case CALL_priority:
        EACH(call_priority(stream, &value));
        break;
    case EVENTS:
        EACH(call_create_event(&made, 2), call_record(made, stream), call_destroy_event(made));
        break;
    case STREAM:
        for (long i = 0, at = 1; i < count; i++, at = at + 1 < streams_used ? at + 1 : 1) {
            call_destroy_stream(streams[at]);
            call_create_stream(&streams[at], 1);
            launch_on(streams[at], FUNCTION, 1);
            call_synchronize(streams[at]);
            launch_on(stream, FUNCTION, 8192);
        }
        break;
    case CONTEXT:
        EACH(launch_on(stream, communication, 16), call_wait_for_all());
        break;
    case CALL_retain:
        EACH(call_retain(&made, 0), call_give_back(0));
        break;
    case CALL_push:
        EACH(call_push(primary), call_pop(&made));
        break;
    case MODULE:
        EACH(module_lives(stream));
        break;
    case FROM_LIBRARIES:
        EACH(libraries[i % LIBRARIES](FUNCTION, stream));
        break;
    case TURNS:
        EACH(launch_on(streams[i % streams_used], FUNCTION, 8192));
        break;
    case COMD:
    case COMD_ASKS:
        for (long i = 0; i < count; i += 15)
            step(mine, call == COMD_ASKS);
        break;
    default:
        if (functions_used != FUNCTIONS || sizes_used > 1)
            run_many(count, stream);
        else
            EACH(call_kernel(FUNCTION, 8192, 1, 1, 128, 1, 1, 0, stream, NULL, NULL));
    }
}

static int by_runtime(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                      unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments,
                      void **extra) {
    (void)extra;
    return cudaLaunchKernel(function, (uint64_t)grid_y << 32 | grid_x, grid_z, (uint64_t)block_y << 32 | block_x,
                            block_z, arguments, shared, stream);
}

static void prepare(const char *way, const char *kernel, int threads) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    cuInit(0);
#define FIND(word, name, version, parameters)                                                                          \
    void *address_##word = NULL;                                                                                       \
    cuGetProcAddress_v2(name, &address_##word, version, 0, NULL);                                                      \
    if (strcmp(way, "dlsym") == 0 && CALL_##word <= CALL_ex)                                                           \
        address_##word = dlsym(driver, name);                                                                          \
    call_##word = (int(*) parameters)address_##word;
    CALLS(FIND)
    if (strcmp(way, "symbol") == 0) {
        call_kernel = cuLaunchKernel;
        call_ex = cuLaunchKernelEx;
    }
    if (strcmp(way, "runtime") == 0)
        call_kernel = by_runtime;
    for (long i = 0; i < functions_used && i < MOST_FUNCTIONS; i++)
        if (call == CUKERNEL)
            cuLibraryGetKernel(&functions[i], NULL, kernel);
        else
            cuModuleGetFunction(&functions[i], NULL, kernel);
    cuModuleGetFunction(&communication, NULL, "ncclDevKernel");
    kernel_name = kernel;
    if (call == CALL_retain || call == CALL_push)
        call_retain(&primary, 0);
    for (int i = 0; i < LIBRARIES && call == FROM_LIBRARIES; i++) {
        char file[32];
        snprintf(file, sizeof file, "libcaller%d.so", i);
        void *library = dlopen(file, RTLD_NOW);
        libraries[i] = library ? (int (*)(const void *, void *))dlsym(library, "null_call") : NULL;
        if (!libraries[i])
            exit(fprintf(stderr, "no %s\n", file) != 0);
    }
    /* Two for each thread at least: its own, and a larger one. */
    streams_used = streams_used < 2L * threads ? 2L * threads : streams_used;
    streams = calloc((size_t)streams_used, sizeof *streams);
    for (long i = 0; streams && i < streams_used; i++) {
        call_create_stream(&streams[i], 1);
        if (call == FIRST) /* no kernel has been launched yet */
            continue;
        launch_on(streams[i], functions[0], 8192);
        call_synchronize(streams[i]);
    }
    if (call == INSIDE)
        call_kernel(communication, 16, 1, 1, 512, 1, 1, 0, streams[1], NULL, NULL);
    if (call == RAISED)
        wait_for(streams[0], streams[1]);
    for (int i = 0; i < FUNCTIONS && call != FIRST && call != RAISED; i++)
        call_record((char *)EVENT + i * 64, streams[0]);
}

int main(int argc, char **argv) {
    while (call < WORDS && argc > 2 && strcmp(words[call], argv[2]) != 0)
        call++;
    if (argc < 6 || argc > 9 || call == WORDS)
        return fprintf(stderr, "usage: launch WAY CALL KERNEL THREADS CALLS [STREAMS [KERNELS [SIZES]]]\n"), 2;
    const int threads = atoi(argv[4]);
    streams_used = argc > 6 ? atol(argv[6]) : 0;
    functions_used = argc > 7 ? atol(argv[7]) : FUNCTIONS;
    sizes_used = argc > 8 ? atol(argv[8]) : 1;
    prepare(argv[1], argv[3], threads);
    if (call == FIRST) {
        const double start = now();
        run_many(functions_used, streams[0]);
        printf("%.3f\n", (now() - start) / (double)functions_used);
        return 0;
    }
    measure_threads(threads, run, atol(argv[5]), streams);
    return 0;
}
