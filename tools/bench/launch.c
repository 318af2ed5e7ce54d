/* What one call costs the calling thread, in nanoseconds of its own processor time.
 *
 *   launch WAY CALL KERNEL THREADS CALLS [EVERY [KERNELS [SIZES]]]
 *     WAY     symbol | dlsym | proc_address: how the program reaches the driver
 *     CALL    kernel | ex: cuLaunchKernel or cuLaunchKernelEx; cukernel: cuLaunchKernel with a CUkernel;
 *             record: cuEventRecord; wait: cuStreamWaitEvent; step: nine calls, a collective and its events among them;
 *             copy: a blocking copy; exchange: nine calls of a program that exchanges through the host: no collective
 *     KERNEL  name of the kernels, launched in turn with 8192 blocks of 128 threads
 *     EVERY   so many calls the first thread launches a communication kernel on another stream, and records an event
 *             behind it; each thread has a stream of its own; 0: never
 *     KERNELS, SIZES  how many kernels there are (64), and with how many dynamic sizes each is launched (1)
 *
 * Prints the median over chunks, averaged over threads. Linked to the do-nothing driver (null_driver.c).
 */
#include <dlfcn.h>
#include <string.h>

#include "threads.h"

struct config {
    unsigned grid[3], block[3], shared, pad;
    void *stream, *attributes;
    unsigned count, pad2;
};
typedef int launch_type(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                        void **);
typedef int launch_ex_type(const struct config *, void *, void **, void **);
launch_type cuLaunchKernel;
launch_ex_type cuLaunchKernelEx;
typedef int record_type(void *, void *);
typedef int wait_type(void *, void *, unsigned);
typedef int host_type(void *);
typedef int copy_type(void *, uint64_t, size_t);
int cuInit(unsigned);
int cuModuleGetFunction(void **, void *, const char *);
int cuLibraryGetKernel(void **, void *, const char *);
int cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);

static launch_type *volatile launch; /* reloaded for each launch, as a client does */
static launch_ex_type *volatile launch_ex;
static void *functions[MOST_FUNCTIONS];
static record_type *volatile record;
static wait_type *volatile wait_event;
static host_type *volatile synchronize, *volatile query;
static copy_type *volatile copy;
static void *communication;
static long every;
static int way_symbol, call_ex, call_record, call_wait, call_step, call_synchronize, call_query, call_exchange,
    call_copy, critical, beside;
static char memory[16];

/* A window is open for the calls that follow, of all threads. */
static void communicate(char *stream) {
    if (communication && (uintptr_t)stream == STREAM) {
        launch(communication, 16, 1, 1, 512, 1, 1, 0, stream + OTHER_STREAM, NULL, NULL);
        record((char *)EVENT, stream + OTHER_STREAM);
    }
}

/* The host waits for a short kernel beside a long one: critical, once that has been seen, and from then on with long pauses. */
static void host_waits(char *stream) {
    enum { LEARNING = 5000 };
    static _Thread_local int learnt;
    for (int i = learnt ? 0 : -LEARNING; i <= 0 && critical; i++) {
        launch(functions[0], 1, 1, 1, 128, 1, 1, 0, stream, NULL, NULL);
        record((char *)EVENT, stream);
        launch(functions[0], 8192, 1, 1, 128, 1, 1, 0, stream + OTHER_STREAM, NULL, NULL);
        synchronize(stream);
    }
    learnt = 1;
}

/* As data parallelism does: two kernels, a collective behind them on its own stream, two kernels beside it, one behind it. */
static void step(long i, char *stream) {
    char *const other = stream + OTHER_STREAM, *const ready = stream + EVENT, *const done = ready + 64;
    launch(functions[i % functions_used], 8192, 1, 1, 128, 1, 1, 0, stream, NULL, NULL);
    launch(functions[(i + 1) % functions_used], 8192, 1, 1, 128, 1, 1, 0, stream, NULL, NULL);
    record(ready, stream);
    wait_event(other, ready, 0);
    launch(communication, 16, 1, 1, 512, 1, 1, 0, other, NULL, NULL);
    record(done, other);
    launch(functions[(i + 2) % functions_used], 8192, 1, 1, 128, 1, 1, 0, stream, NULL, NULL);
    wait_event(stream, done, 0);
    launch(functions[(i + 3) % functions_used], 8192, 1, 1, 128, 1, 1, 0, stream, NULL, NULL);
}

/* As a stencil with MPI does: a short kernel and a copy that the host waits for, beside a long kernel; both behind each other at last. */
static void exchange(char *stream) {
    char *const other = stream + OTHER_STREAM, *const ready = stream + EVENT, *const done = ready + 64;
    launch(functions[0], 1, 1, 1, 128, 1, 1, 0, stream, NULL, NULL);
    record(ready, stream);
    launch(functions[0], 8192, 1, 1, 128, 1, 1, 0, other, NULL, NULL);
    synchronize(stream);
    query(ready);
    record(done, other);
    wait_event(stream, done, 0);
    record(ready, stream);
    wait_event(other, ready, 0);
}

/* One after the other, without a division. */
static void run_many(long count, char *stream) {
    long function = 0;
    for (long i = 0, size = 0; i < count; i++) {
        launch(functions[function], 8192, 1, 1, 128, 1, 1, (unsigned)size * 16, stream, NULL, NULL);
        if (++size == sizes_used) {
            size = 0;
            function = function + 1 == functions_used ? 0 : function + 1;
        }
    }
}

static void run_some(long count, char *stream) {
    const struct config config = {.grid = {8192, 1, 1}, .block = {128, 1, 1}, .stream = stream};
    if (call_step)
        for (long i = 0; i < count / 9; i++)
            step(i, stream);
    else if (call_exchange)
        for (long i = 0; i < count / 9; i++)
            exchange(stream);
    else if (functions_used != FUNCTIONS || sizes_used > 1)
        run_many(count, stream);
    else if (call_record)
        for (long i = 0; i < count; i++)
            record(stream + EVENT + i % FUNCTIONS * 64, stream);
    else if (call_wait)
        for (long i = 0; i < count; i++)
            wait_event(stream, (char *)EVENT, 0);
    else if (call_synchronize)
        for (long i = 0; i < count; i++)
            synchronize(stream);
    else if (call_query)
        for (long i = 0; i < count; i++)
            query((char *)EVENT);
    else if (call_copy)
        for (long i = 0; i < count; i++)
            copy(memory, EVENT, sizeof memory);
    else if (call_ex && way_symbol)
        for (long i = 0; i < count; i++)
            cuLaunchKernelEx(&config, functions[i % FUNCTIONS], NULL, NULL);
    else if (call_ex)
        for (long i = 0; i < count; i++)
            launch_ex(&config, functions[i % FUNCTIONS], NULL, NULL);
    else if (way_symbol)
        for (long i = 0; i < count; i++)
            cuLaunchKernel(functions[i % FUNCTIONS], 8192, 1, 1, 128, 1, 1, 0, stream, NULL, NULL);
    else
        for (long i = 0; i < count; i++)
            launch(functions[i % FUNCTIONS], 8192, 1, 1, 128, 1, 1, 0, stream, NULL, NULL);
}

static void run(long count, void *stream) {
    for (long done = 0; done < count; done += every) {
        communicate(stream);
        host_waits(stream);
        run_some(count - done < every ? count - done : every, beside ? (char *)stream + OTHER_STREAM : stream);
    }
}

int main(int argc, char **argv) {
    if (argc < 6 || argc > 9)
        return fprintf(stderr, "usage: launch WAY CALL KERNEL THREADS CALLS [EVERY [KERNELS [SIZES]]]\n"), 2;
    int threads = atoi(argv[4]);
    long launches = atol(argv[5]);
    way_symbol = strcmp(argv[1], "symbol") == 0;
    functions_used = argc > 7 ? atol(argv[7]) : FUNCTIONS;
    sizes_used = argc > 8 ? atol(argv[8]) : 1;
    beside = strcmp(argv[2], "beside") == 0;
    call_synchronize = strcmp(argv[2], "synchronize") == 0;
    call_query = strcmp(argv[2], "query") == 0;
    critical = beside || call_synchronize || call_query || strcmp(argv[2], "critical") == 0;
    const int again = argc > 6 && atol(argv[6]), communicates = again && !critical;
    every = again ? atol(argv[6]) : launches + warming();
    call_step = strcmp(argv[2], "step") == 0;
    call_ex = strcmp(argv[2], "ex") == 0;
    call_record = strcmp(argv[2], "record") == 0;
    call_wait = strcmp(argv[2], "wait") == 0;
    call_copy = strcmp(argv[2], "copy") == 0;
    call_exchange = strcmp(argv[2], "exchange") == 0;
    cuInit(0);
    for (int i = 0; i < functions_used && i < MOST_FUNCTIONS; i++) {
        if (strcmp(argv[2], "cukernel") == 0)
            cuLibraryGetKernel(&functions[i], NULL, argv[3]);
        else
            cuModuleGetFunction(&functions[i], NULL, argv[3]);
    }
    if (strcmp(argv[1], "dlsym") == 0) {
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);
        launch = (launch_type *)dlsym(driver, "cuLaunchKernel");
        launch_ex = (launch_ex_type *)dlsym(driver, "cuLaunchKernelEx");
    } else {
        cuGetProcAddress_v2("cuLaunchKernel", (void **)&launch, 4000, 0, NULL);
        cuGetProcAddress_v2("cuLaunchKernelEx", (void **)&launch_ex, 11060, 0, NULL);
    }
    cuGetProcAddress_v2("cuEventRecord", (void **)&record, 2000, 0, NULL);
    cuGetProcAddress_v2("cuStreamWaitEvent", (void **)&wait_event, 3020, 0, NULL);
    cuGetProcAddress_v2("cuStreamSynchronize", (void **)&synchronize, 2000, 0, NULL);
    cuGetProcAddress_v2("cuEventQuery", (void **)&query, 2000, 0, NULL);
    cuGetProcAddress_v2("cuMemcpyDtoH", (void **)&copy, 3020, 0, NULL);
    if (communicates || call_step)
        cuModuleGetFunction(&communication, NULL, "ncclDevKernel");
    measure_threads(threads, run, launches);
    return 0;
}
