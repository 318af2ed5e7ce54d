/* A driver whose limit of dynamic bytes counts, and which lets the program act between taking a launch and looking at that limit, as another
 * thread might. Launches of the older kind have the size that was set for the function. */
#include <stdint.h>

#define cuLaunchKernel cuLaunchKernel_of_any_size
#include "../../tools/bench/null_driver.c"
#undef cuLaunchKernel

enum { DEFAULT_LIMIT = 49152 };
static void (*meanwhile)(void);
static unsigned sizes[KERNELS];

API void older_meanwhile(void (*act)(void));
API void older_meanwhile(void (*act)(void)) {
    meanwhile = act;
}

static int check(const void *function, unsigned shared) {
    return (int)shared > ((__typeof__(&kernels[0]))function)->limit;
}
static unsigned *size_of(const void *function) {
    return &sizes[(__typeof__(&kernels[0]))function - kernels];
}

API int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, void *stream, void **parameters, void **extra);
API int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, void *stream, void **parameters, void **extra) {
    void (*act)(void) = meanwhile;
    meanwhile = 0;
    if (act)
        act();
    return check(f, shared) ? 1
                            : cuLaunchKernel_of_any_size(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
}

API int cuFuncSetBlockShape(void *function, int x, int y, int z);
API int cuFuncSetBlockShape(void *function, int x, int y, int z) {
    (void)function;
    return x < 1 || y < 1 || z < 1;
}
API int cuFuncSetSharedSize(void *function, unsigned bytes);
API int cuFuncSetSharedSize(void *function, unsigned bytes) {
    *size_of(function) = bytes;
    return 0;
}
API int cuLaunchGrid(void *function, int width, int height);
API int cuLaunchGrid(void *function, int width, int height) {
    return width < 1 || height < 1 || check(function, *size_of(function));
}
