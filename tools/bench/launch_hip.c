/* The same as launch.c, on HIP.
 *
 *   launch_hip WAY CALL KERNEL THREADS CALLS [EVERY]
 *     WAY     symbol | dlsym | proc_address
 *     CALL    launch: hipLaunchKernel; module: hipModuleLaunchKernel; ext, ext_module: hipExtLaunchKernel,
 *             hipExtModuleLaunchKernel; record: hipEventRecord; wait: hipStreamWaitEvent
 *
 * Linked to the do-nothing runtime (null_hip.c).
 */
#include <dlfcn.h>
#include <string.h>

#include "threads.h"

typedef struct {
    unsigned x, y, z;
} dim3;
int hipInit(unsigned);
int hipGetProcAddress(const char *, void **, int, uint64_t, int *);
int hipLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);
int hipModuleLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);
int hipExtLaunchKernel(const void *, dim3, dim3, void **, size_t, void *, void *, void *, int);
int hipExtModuleLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, size_t, void *,
                             void **, void **, void *, void *, unsigned);
int hipEventRecord(void *, void *);
int hipStreamWaitEvent(void *, void *, unsigned);

enum call { LAUNCH, MODULE, EXT, EXT_MODULE, RECORD, WAIT, CALLS };
static const struct {
    const char *word, *name;
    void *symbol;
} calls[CALLS] = {
    {"launch", "hipLaunchKernel", (void *)hipLaunchKernel},
    {"module", "hipModuleLaunchKernel", (void *)hipModuleLaunchKernel},
    {"ext", "hipExtLaunchKernel", (void *)hipExtLaunchKernel},
    {"ext_module", "hipExtModuleLaunchKernel", (void *)hipExtModuleLaunchKernel},
    {"record", "hipEventRecord", (void *)hipEventRecord},
    {"wait", "hipStreamWaitEvent", (void *)hipStreamWaitEvent},
};

static char kernels[FUNCTIONS][64]; /* a kernel is the address of its name */
static char communication[] = "ncclDevKernel_Generic";
static void *volatile function; /* reloaded for each call, as a client does */
static enum call call;
static long every;
static int communicates;

static void run_some(long count, char *stream) {
    const dim3 grid = {8192, 1, 1}, block = {128, 1, 1};
#define EACH(name, ...)                                                                                                \
    for (long i = 0; i < count; i++)                                                                                   \
    ((__typeof__(&name))function)(__VA_ARGS__)
#define KERNEL kernels[i % FUNCTIONS]
    if (call == LAUNCH)
        EACH(hipLaunchKernel, KERNEL, grid, block, NULL, 0, stream);
    else if (call == MODULE)
        EACH(hipModuleLaunchKernel, KERNEL, 8192, 1, 1, 128, 1, 1, 0, stream, NULL, NULL);
    else if (call == EXT)
        EACH(hipExtLaunchKernel, KERNEL, grid, block, NULL, 0, stream, NULL, NULL, 0);
    else if (call == EXT_MODULE)
        EACH(hipExtModuleLaunchKernel, KERNEL, 8192 * 128, 1, 1, 128, 1, 1, 0, stream, NULL, NULL, NULL, NULL, 0);
    else if (call == RECORD)
        EACH(hipEventRecord, stream + EVENT + i % FUNCTIONS * 64, stream);
    else
        EACH(hipStreamWaitEvent, stream, (char *)EVENT, 0);
}

static void run(long count, void *stream) {
    for (long done = 0; done < count; done += every) {
        if (communicates &&
            (uintptr_t)stream == STREAM) { /* a window is open for the calls that follow, of all threads */
            hipLaunchKernel(communication, (dim3){16, 1, 1}, (dim3){256, 1, 1}, NULL, 0, (char *)stream + OTHER_STREAM);
            hipEventRecord((char *)EVENT, (char *)stream + OTHER_STREAM);
        }
        run_some(count - done < every ? count - done : every, stream);
    }
}

int main(int argc, char **argv) {
    for (call = 0; argc > 2 && call < CALLS && strcmp(calls[call].word, argv[2]) != 0; call++)
        ;
    if ((argc != 6 && argc != 7) || call == CALLS)
        return fprintf(stderr, "usage: launch_hip WAY CALL KERNEL THREADS CALLS [EVERY]\n"), 2;
    const long launches = atol(argv[5]);
    void *found = calls[call].symbol;
    communicates = argc > 6;
    every = communicates ? atol(argv[6]) : launches + FUNCTIONS * 4;
    for (int i = 0; i < FUNCTIONS; i++)
        strncpy(kernels[i], argv[3], sizeof kernels[i] - 1);
    hipInit(0);
    if (strcmp(argv[1], "dlsym") == 0)
        found = dlsym(dlopen("libamdhip64.so.6", RTLD_NOW), calls[call].name);
    else if (strcmp(argv[1], "proc_address") == 0)
        hipGetProcAddress(calls[call].name, &found, 601, 0, NULL);
    function = found;
    measure_threads(atoi(argv[4]), run, launches);
    return 0;
}
