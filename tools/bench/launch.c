/* What one launch costs the calling thread, in nanoseconds of its own processor time.
 *
 *   launch WAY CALL KERNEL THREADS LAUNCHES
 *     WAY     symbol | dlsym | proc_address: how the program reaches the driver
 *     CALL    kernel | ex: cuLaunchKernel or cuLaunchKernelEx; cukernel: cuLaunchKernel with a CUkernel
 *     KERNEL  name of the kernels, 64 of them, launched in turn with 8192 blocks of 128 threads
 *
 * Prints the median over chunks, averaged over threads. Linked to the do-nothing driver (null_driver.c).
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
int cuInit(unsigned);
int cuModuleGetFunction(void **, void *, const char *);
int cuLibraryGetKernel(void **, void *, const char *);
int cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);

enum { FUNCTIONS = 64, CHUNKS = 20 };
static launch_type *volatile launch; /* reloaded for each launch, as a client does */
static launch_ex_type *volatile launch_ex;
static void *functions[FUNCTIONS];
static long launches;
static int way_symbol, call_ex;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* A stream that the program made: of the default stream the library knows the priority without asking. */
#define STREAM ((void *)0x1000)

static void run(long count) {
    static const struct config config = {.grid = {8192, 1, 1}, .block = {128, 1, 1}, .stream = STREAM};
    if (call_ex && way_symbol)
        for (long i = 0; i < count; i++)
            cuLaunchKernelEx(&config, functions[i % FUNCTIONS], NULL, NULL);
    else if (call_ex)
        for (long i = 0; i < count; i++)
            launch_ex(&config, functions[i % FUNCTIONS], NULL, NULL);
    else if (way_symbol)
        for (long i = 0; i < count; i++)
            cuLaunchKernel(functions[i % FUNCTIONS], 8192, 1, 1, 128, 1, 1, 0, STREAM, NULL, NULL);
    else
        for (long i = 0; i < count; i++)
            launch(functions[i % FUNCTIONS], 8192, 1, 1, 128, 1, 1, 0, STREAM, NULL, NULL);
}

static int compare(const void *a, const void *b) {
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

static void *measure(void *result) {
    double chunk[CHUNKS];
    run(FUNCTIONS * 4);
    for (int i = 0; i < CHUNKS; i++) {
        double start = now();
        run(launches / CHUNKS);
        chunk[i] = (now() - start) / (double)(launches / CHUNKS);
    }
    qsort(chunk, CHUNKS, sizeof *chunk, compare);
    *(double *)result = (chunk[CHUNKS / 2 - 1] + chunk[CHUNKS / 2]) / 2;
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 6)
        return fprintf(stderr, "usage: launch WAY CALL KERNEL THREADS LAUNCHES\n"), 2;
    int threads = atoi(argv[4]);
    launches = atol(argv[5]);
    way_symbol = strcmp(argv[1], "symbol") == 0;
    call_ex = strcmp(argv[2], "ex") == 0;
    cuInit(0);
    for (int i = 0; i < FUNCTIONS; i++) {
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
    pthread_t ids[64];
    double results[64], sum = 0;
    for (int i = 0; i < threads && i < 64; i++)
        pthread_create(&ids[i], NULL, measure, &results[i]);
    for (int i = 0; i < threads && i < 64; i++) {
        pthread_join(ids[i], NULL);
        sum += results[i];
    }
    printf("%.3f\n", sum / threads);
    return 0;
}
