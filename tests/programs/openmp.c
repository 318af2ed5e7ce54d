/* A program of LLVM's OpenMP runtime, as every PyTorch of conda's is: a parallel region on four threads. Linked to
 * libomp.so.5 by hand, so that any compiler does. */
#include <stdint.h>
#include <stdio.h>

typedef struct {
    int32_t reserved_1, flags, reserved_2, reserved_3;
    const char *source;
} Location;
extern void omp_set_num_threads(int count);
extern int omp_get_max_threads(void), omp_get_num_threads(void);
extern void __kmpc_fork_call(Location *, int32_t, void (*)(int32_t *, int32_t *, ...), ...);

static int entered;

static void region(int32_t *thread, int32_t *bound, ...) {
    (void)thread, (void)bound;
    __atomic_fetch_add(&entered, omp_get_num_threads(), __ATOMIC_RELAXED);
}

int main(void) {
    Location here = {0, 2, 0, 0, ";unknown;unknown;0;0;;"};
    omp_set_num_threads(4);
    __kmpc_fork_call(&here, 0, region);
    printf("threads %d, entered %d\n", omp_get_max_threads(), entered);
    return 0;
}
