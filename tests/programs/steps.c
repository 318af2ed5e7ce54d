/* A signal at every instruction of a launch, whose handler launches as well: one step at a time, by the processor's trap flag.
 *
 *   steps CASE LAUNCHES
 *     CASE  hit: kernels whose decisions are cached    ex: the same by cuLaunchKernelEx or hipExtLaunchKernel
 *           communication: raised, or as asked         first: kernels that were never launched
 *           windows: kernels that are shaped only beside communication, which is launched on another stream
 *           streams: the life of a stream that something waits for (NVIDIA only); one signal in each, a little later each time
 * Against the drivers that do nothing (tools/bench/null_driver.c; -DHIP: null_hip.c), so that all state is the library's. Prints how
 * many launches were made, and how many of them came with another size than they may.
 */
#define WAY_LINKED
#include "driver.h"
#include "trap.h"

#include <link.h>
#include <signal.h>
#include <ucontext.h>

enum { KERNELS = 256, THREADS = 128, BLOCKS = 8192, BEFORE = 64, OFTEN = 61, STRIDE = 7, FAR = 41 };

static volatile sig_atomic_t launched, communication;
static long steps, phase;  /* of `streams`: how many more steps before the signal */
static uintptr_t from, to; /* where the library is */
static int is_first, is_ex, is_windows, is_streams;

#ifdef HIP
typedef struct {
    unsigned x, y, z;
} dim3;
extern int hipInit(unsigned);
extern int hipModuleLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                                 void **, void **);
extern int hipExtLaunchKernel(const void *, dim3, dim3, void **, size_t, void *, void *, void *, int);
static char names[KERNELS + 1][32];

static void make(int i, const char *name) {
    snprintf(names[i], sizeof names[i], "%s", name);
}
static void launch(int kernel, unsigned blocks, void *stream, int other) {
    if (other)
        hipExtLaunchKernel(names[kernel], (dim3){blocks, 1, 1}, (dim3){THREADS, 1, 1}, NULL, 0, stream, NULL, NULL, 0);
    else
        hipModuleLaunchKernel(names[kernel], blocks, 1, 1, THREADS, 1, 1, 0, stream, NULL, NULL);
    launched++;
}
static void begin(void) {
    hipInit(0);
}
static void live(void) {}
#else
static void *functions[KERNELS + 1];

static void make(int i, const char *name) {
    cuModuleGetFunction(&functions[i], NULL, name);
}
static void launch(int kernel, unsigned blocks, void *stream, int other) {
    const Config config = {.grid = {blocks, 1, 1}, .block = {THREADS, 1, 1}, .stream = stream};
    if (other)
        cuLaunchKernelEx(&config, functions[kernel], NULL, NULL);
    else
        launch_kernel(functions[kernel], blocks, THREADS, stream);
    launched++;
}
static void begin(void) {
    cuInit(0);
}
static void live(void) {
    void *stream;
    cuStreamCreate(&stream, 0);
    launch(0, 1, stream, 0);
    cuEventRecord(functions, stream);
    cuStreamWaitEvent(NULL, functions, 0);
    cuStreamSynchronize(stream);
    cuStreamDestroy_v2(stream);
}
#endif

static void *const streams[] = {(void *)0x1000, (void *)0x2000, (void *)0x3000};

static void communicate(void) {
    launch(KERNELS, 16, streams[2], 0);
    communication++;
}

/* What the interrupted launch does as well, and what moves the state that it relies on. */
static void handle(int signal, siginfo_t *info, void *context) {
    const uintptr_t at = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    const int turn = (int)(steps++ % OFTEN);
    (void)signal, (void)info;
    /* Not at every step of one launch: what is done again where anything came between would be done for ever. */
    if (at < from || at >= to || (is_streams ? phase-- != 0 : steps % STRIDE != phase))
        return;
    if (is_streams)
        live();
    else if (turn % 2)
        launch(0, BLOCKS, streams[turn / 2 % 2], is_ex);
    else if (turn == 0)
        communicate();
    else
        launch(turn % 3, BLOCKS, streams[turn / 2 % 2], !is_ex);
}

static int is_ours(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)size, (void)unused;
    if (!strstr(object->dlpi_name, "liboverlap"))
        return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const uintptr_t start = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
        if (object->dlpi_phdr[i].p_type == PT_LOAD && object->dlpi_phdr[i].p_flags & PF_X)
            from = start, to = start + object->dlpi_phdr[i].p_memsz;
    }
    return 1;
}

int main(int argc, char **argv) {
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    if (argc != 3)
        return 2;
    is_first = strcmp(argv[1], "first") == 0;
    is_ex = strcmp(argv[1], "ex") == 0;
    is_windows = strcmp(argv[1], "windows") == 0;
    is_streams = strcmp(argv[1], "streams") == 0;
    const int communicates = strcmp(argv[1], "communication") == 0, launches = atoi(argv[2]);
    begin();
    for (int i = 0; i < KERNELS; i++)
        make(i, "shaped");
    make(KERNELS, "ncclDevKernel_Generic");
    communicate();
    for (int i = 0; i < BEFORE; i++) {
        launch(i % 3, BLOCKS, streams[i % 2], is_ex);
        launch(i % 3, BLOCKS, streams[i % 2], !is_ex);
    }
    dl_iterate_phdr(is_ours, NULL);
    sigaction(SIGTRAP, &action, NULL);
    for (int i = 0; i < launches; i++) {
        if (is_windows && i % 8 == 0)
            communicate();
        steps = i * OFTEN; /* so that each step of a launch is one of another number in the next ones */
        phase = is_streams ? i * FAR : i % STRIDE;
        trap(1);
        if (communicates)
            communicate();
        else if (is_streams)
            live();
        else
            launch(is_first ? 3 + i % (KERNELS - 3) : i % 3, BLOCKS, streams[i % 2], is_ex);
        trap(0);
    }
    printf("launches: %d\ncommunication: %d\n", launched, communication);
    return 0;
}
