/* A process that loads a module, launches its kernel and unloads it, for ever, on a driver that does nothing (stub_driver.c).
 *
 *   reloads COUNT
 * Prints how many calls failed, and how often the driver was asked about the last kernel once it had been launched.
 */
#include <stdio.h>
#include <stdlib.h>

extern int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
extern int cuModuleLoadData(void **, const void *), cuModuleUnload(void *);
extern int cuModuleGetFunction(void **, void *, const char *);
extern int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);
extern int stub_asked(void);

static int launch(void *function) {
    return cuLaunchKernel(function, 4000, 1, 1, 128, 1, 1, 0, NULL, NULL, NULL);
}

int main(int argc, char **argv) {
    const long count = argc > 1 ? atol(argv[1]) : 1;
    void *context, *module, *function;
    int asked = 0;
    int failed = cuInit(0) + cuDevicePrimaryCtxRetain(&context, 0) + cuCtxSetCurrent(context);
    for (long i = 0; i < count; i++) {
        failed += cuModuleLoadData(&module, "x") + cuModuleGetFunction(&function, module, "k");
        failed += launch(function);
        asked = stub_asked();
        failed += launch(function);
        asked = stub_asked() - asked;
        failed += cuModuleUnload(module);
    }
    printf("failed: %d\nasked: %d\n", failed, asked);
    return 0;
}
