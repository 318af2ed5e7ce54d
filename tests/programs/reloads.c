/* A process that loads a module, launches its kernel and unloads it, for ever, and the driver for that (-DDRIVER), which does nothing:
 * a handle gets the address of an earlier one after ADDRESSES others.
 *
 *   reloads COUNT
 * Prints how many calls failed, and how often the driver was asked about the last kernel once it had been launched.
 */
#ifdef DRIVER
#define cuFuncGetAttribute base_get_attribute
#define cuModuleLoadData base_load
#define cuModuleGetFunction base_get_function
#include "stub_driver.c"
#undef cuFuncGetAttribute
#undef cuModuleLoadData
#undef cuModuleGetFunction

static long asked, modules;
long reloads_asked(void);
long reloads_asked(void) {
    return asked;
}
int cuFuncGetAttribute(int *value, int attribute, void *function) {
    asked++;
    return base_get_attribute(value, attribute, function);
}
int cuModuleLoadData(void **module, const void *image) {
    *module = (void *)(0x10000000 + 32 * (++modules % ADDRESSES));
    return image == 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    *function = (void *)((char *)module + 16);
    return name == 0;
}
int cuModuleUnload(void *module) {
    return module == 0;
}
#else
#include <stdio.h>
#include <stdlib.h>

extern int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
extern int cuModuleLoadData(void **, const void *), cuModuleUnload(void *);
extern int cuModuleGetFunction(void **, void *, const char *);
extern int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);
extern long reloads_asked(void);

static int launch(void *function) {
    return cuLaunchKernel(function, 4000, 1, 1, 128, 1, 1, 0, NULL, NULL, NULL);
}

int main(int argc, char **argv) {
    const long count = argc > 1 ? atol(argv[1]) : 1;
    void *context, *module, *function;
    long asked = 0;
    int failed = cuInit(0) + cuDevicePrimaryCtxRetain(&context, 0) + cuCtxSetCurrent(context);
    for (long i = 0; i < count; i++) {
        failed += cuModuleLoadData(&module, "x") + cuModuleGetFunction(&function, module, "k");
        failed += launch(function);
        asked = reloads_asked();
        failed += launch(function);
        asked = reloads_asked() - asked;
        failed += cuModuleUnload(module);
    }
    printf("failed: %d\nasked: %ld\n", failed, asked);
    return 0;
}
#endif
