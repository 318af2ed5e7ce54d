/* Instructions of a launch whose first decision was withdrawn when communication appeared, and of one that was decided only then. By
 * the processor's trap flag, against the driver that does nothing (many_driver.c).
 */
#include <signal.h>
#include <stdio.h>

extern int cuInit(unsigned), cuModuleGetFunction(void **, void *, const char *);
extern int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);

enum { GRID = 8, MANY = 200 };
static volatile long steps;

static void count(int signal) {
    (void)signal;
    steps++;
}

static void launch(void *function, unsigned blocks, void *stream) {
    cuLaunchKernel(function, blocks, 1, 1, 128, 1, 1, 0, stream, NULL, NULL);
}

static long steps_of(void *function) {
    for (int i = 0; i < MANY; i++)
        launch(function, GRID, (void *)0x1000);
    steps = 0;
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp" ::
                         : "cc", "memory");
    launch(function, GRID, (void *)0x1000);
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp" ::
                         : "cc", "memory");
    return steps;
}

int main(void) {
    void *early, *late, *communication;
    signal(SIGTRAP, count);
    cuInit(0);
    cuModuleGetFunction(&early, NULL, "early");
    cuModuleGetFunction(&late, NULL, "late");
    cuModuleGetFunction(&communication, NULL, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    launch(early, GRID, (void *)0x1000);
    launch(communication, 24, (void *)0x2000);
    const long of_early = steps_of(early), of_late = steps_of(late);
    printf("early: %ld\nlate: %ld\n", of_early, of_late);
    return 0;
}
