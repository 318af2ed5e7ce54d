/* A preload behind ours: the first launch of the process fails as if an earlier kernel had. */
#include <dlfcn.h>

typedef int launch_type(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                        void **);

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra);
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
    static int failed;
    launch_type *const next = (launch_type *)dlsym(RTLD_NEXT, "cuLaunchKernel");
    if (!failed++)
        return 719; /* CUDA_ERROR_LAUNCH_FAILED */
    return next(function, x, y, z, bx, by, bz, shared, stream, parameters, extra);
}
