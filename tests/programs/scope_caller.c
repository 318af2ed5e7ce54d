/* A library that launches by a runtime: by the name that it is bound to, or by the one that dlsym answers (ASKS).
 * ANSWER: it has the runtime in itself. DRIVER: it calls a driver instead. */
#include <dlfcn.h>
#include <stddef.h>

#ifdef ANSWER
#include "scope_runtime.c"
#else
typedef struct {
    unsigned x, y, z;
} dim3;
#endif
typedef int Launch(const void *, dim3, dim3, void **, unsigned long, void *);

int scope_launch(void);
#ifdef DRIVER
extern int cuInit(unsigned);
int scope_launch(void) {
    return cuInit(0);
}
#else
extern Launch cudaLaunchKernel;
int scope_launch(void) {
#ifdef ASKS
    Launch *launch = (Launch *)dlsym(RTLD_DEFAULT, "cudaLaunchKernel");
#else
    Launch *launch = cudaLaunchKernel;
#endif
    return launch ? launch(NULL, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL) : -1;
}
#endif
