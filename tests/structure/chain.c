/* Another tool's wrapper of a launch, preloaded behind the library: it passes on to what RTLD_NEXT says comes after
 * itself. */
#include <dlfcn.h>
#include <stddef.h>

#define PARAMETERS                                                                                                     \
    void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,     \
        void *stream, void **parameters, void **extra

__attribute__((visibility("default"))) int cuLaunchKernel(PARAMETERS);
int cuLaunchKernel(PARAMETERS) {
    int (*next)(PARAMETERS) = NULL;
    *(void **)&next = dlsym(RTLD_NEXT, "cuLaunchKernel");
    return next ? next(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra) : 3;
}
