/* A preload behind ours: once the primary context is released, another user makes it anew before the call returns, and
 * gets a kernel, for which the driver uses the address of one that has ended. */
#define WAY_LINKED
#include "driver.h"

static void *taken;

int cuDevicePrimaryCtxRelease_v2(int device) {
    int (*const next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "cuDevicePrimaryCtxRelease_v2");
    void *context = NULL, *module = NULL;
    char *const text = ptx_of("k");
    const int result = next(device);
    if (!taken && (cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
                   cuModuleLoadData(&module, text) || cuModuleGetFunction(&taken, module, "k")))
        return 999;
    free(text);
    return result;
}

int test_function(void **function, void *module, const char *name);
int test_function(void **function, void *module, const char *name) {
    (void)module, (void)name;
    *function = taken;
    return taken == NULL;
}
