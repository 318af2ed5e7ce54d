/* V is launched and unloaded, W takes its record in the table of handles, and V's address comes back as another kernel: what was
 * noted of the first one's sizes must not count for it. Prints what the driver answers to the size that the first V was made
 * to have, which nobody has allowed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

extern int cuInit(unsigned), cuCtxSetCurrent(void *), cuDevicePrimaryCtxRetain(void **, int);
extern int cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *);
extern int cuModuleUnload(void *);
extern int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);

static void *load(const char *name, uint64_t address) {
    char text[64];
    void *module, *function;
    snprintf(text, sizeof text, "%s_%llx", name, (unsigned long long)address);
    if (cuModuleLoadData(&module, "x") || cuModuleGetFunction(&function, module, text))
        exit(3);
    return function;
}

static int launch(void *function, unsigned shared) {
    return cuLaunchKernel(function, 4000, 1, 1, 256, 1, 1, shared, 0, 0, 0);
}

int main(int argc, char **argv) {
    const unsigned size = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    const uint64_t v = 0x200000, w = v + 0x1000;
    void *context;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return 3;
    printf("first: %d\n", launch(load("first", v), 0));
    printf("unload: %d\n", cuModuleUnload((void *)32));
    printf("beside: %d\n", launch(load("beside", w), 0));
    void *second = load("second", v);
    printf("second: %d\n", launch(second, 0));
    printf("not allowed: %d\n", launch(second, size));
    return 0;
}
