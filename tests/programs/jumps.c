/* jumps CALL: a handler leaves a call of the driver by siglongjmp, in the middle; then the program goes on as before.
 *   launch attribute wait   which call: a launch on a stream that is raised, the one that raises it, a wait
 * -DDRIVER builds the driver: the null driver of the benchmarks, in which one of these calls raises a signal once it is told to.
 * The program prints what went wrong, and at which priority the driver made the last launch. */
#ifdef DRIVER

#define cuLaunchKernel null_launch
#define cuStreamSetAttribute null_attribute
#define cuStreamSynchronize null_wait
#include "../../tools/bench/null_driver.c"
#undef cuLaunchKernel
#undef cuStreamSetAttribute
#undef cuStreamSynchronize

#include <signal.h>

static int priorities[64];
static int jumps_at, level;
API int jumps_from(int);
API int jumps_from(int call) { /* and at which priority the last launch was made */
    jumps_at = call;
    return level;
}
static void jump(int call) {
    if (jumps_at != call)
        return;
    jumps_at = 0;
    raise(SIGUSR1);
}
API int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                       void **);
API int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, void *stream, void **parameters, void **extra) {
    level = priorities[(uintptr_t)stream / 512 % 64];
    jump('l');
    return null_launch(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
}
API int cuStreamSetAttribute(void *, int, const int *);
API int cuStreamSetAttribute(void *stream, int attribute, const int *value) {
    (void)attribute;
    priorities[(uintptr_t)stream / 512 % 64] = *value;
    jump('a');
    return 0;
}
API int cuStreamSynchronize(void *);
API int cuStreamSynchronize(void *stream) {
    (void)stream;
    jump('w');
    return 0;
}

#else

#define WAY_LINKED
#include "driver.h"

#include <setjmp.h>
#include <signal.h>

extern int jumps_from(int call);
static sigjmp_buf back;
static void *k, *small, *large;

static void leave(int number) {
    siglongjmp(back, number);
}

static int work(int rounds) {
    int bad = 0;
    for (int i = 0; i < rounds; i++) {
        bad += launch_kernel(k, 4000, 256, large);
        bad += launch_kernel(k, 8, 256, small) + cuStreamSynchronize(small);
    }
    return bad;
}

int main(int argc, char **argv) {
    volatile int bad = argc != 2;
    int priority = 9;
    volatile int left = 0;
    signal(SIGUSR1, leave);
    bad += cuInit(0) + cuModuleGetFunction(&k, (void *)1, "k") + cuStreamCreate(&small, 1) + cuStreamCreate(&large, 1);
    bad += work(argv[1][0] == 'a' ? 0 : 20);
    for (int times = 0; times < 3; times++) {
        jumps_from(argv[1][0]);
        if (sigsetjmp(back, 1) == 0)
            bad += work(40);
        else
            left++;
    }
    jumps_from(0);
    bad += work(2000) + cuStreamGetPriority(small, &priority);
    printf("bad %d, left %d, priority %d, launched at %d\n", bad, left > 0, priority, jumps_from(0));
    bad = cuStreamDestroy_v2(small) + cuStreamCreate(&small, 1) + work(40) + cuStreamDestroy_v2(small);
    printf("bad %d\n", bad);
    return 0;
}

#endif
