/* The same as launch.c, on HIP.
 *
 *   launch_hip WAY CALL KERNEL THREADS CALLS [STREAMS]
 *     WAY     symbol | dlsym | proc_address
 *     CALL    launch: hipLaunchKernel; module: hipModuleLaunchKernel; ext, ext_module: hipExtLaunchKernel,
 *             hipExtModuleLaunchKernel; record: hipEventRecord; wait: hipStreamWaitEvent; synchronize:
 *             hipStreamSynchronize
 *     STREAMS any number: communication is open on another stream
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
int hipStreamSynchronize(void *);

enum call { LAUNCH, MODULE, EXT, EXT_MODULE, RECORD, WAIT, SYNCHRONIZE, CALLS };
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
    {"synchronize", "hipStreamSynchronize", (void *)hipStreamSynchronize},
};

static char kernels[FUNCTIONS][64]; /* a kernel is the address of its name */
static char communication[] = "ncclDevKernel_Generic";
static void *volatile function; /* reloaded for each call, as a client does */
static enum call call;
static void *streams[2 * THREADS];

static void run(long count, void *own) {
    char *const stream = *(void **)own;
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
        EACH(hipEventRecord, (char *)EVENT + i % FUNCTIONS * 64, stream);
    else if (call == WAIT)
        EACH(hipStreamWaitEvent, stream, (char *)EVENT, 0);
    else
        EACH(hipStreamSynchronize, stream);
}

int main(int argc, char **argv) {
    for (call = 0; argc > 2 && call < CALLS && strcmp(calls[call].word, argv[2]) != 0; call++)
        ;
    if ((argc != 6 && argc != 7) || call == CALLS)
        return fprintf(stderr, "usage: launch_hip WAY CALL KERNEL THREADS CALLS [STREAMS]\n"), 2;
    void *found = calls[call].symbol;
    for (int i = 0; i < 2 * THREADS; i++)
        streams[i] = (char *)0x1000 + 0x200 * i;
    for (int i = 0; i < FUNCTIONS; i++)
        strncpy(kernels[i], argv[3], sizeof kernels[i] - 1);
    hipInit(0);
    if (strcmp(argv[1], "dlsym") == 0)
        found = dlsym(dlopen("libamdhip64.so.6", RTLD_NOW), calls[call].name);
    else if (strcmp(argv[1], "proc_address") == 0)
        hipGetProcAddress(calls[call].name, &found, 601, 0, NULL);
    function = found;
    hipEventRecord((char *)EVENT, streams[0]);
    if (argc > 6)
        hipLaunchKernel(communication, (dim3){16, 1, 1}, (dim3){256, 1, 1}, NULL, 0, streams[1]);
    measure_threads(atoi(argv[4]), run, atol(argv[5]), streams);
    return 0;
}
