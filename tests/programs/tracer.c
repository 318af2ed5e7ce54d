/* A plugin that launches through a tracer of its own, which counts the calls and makes them (-DTRACER): scope_host.c opens it. */
#define WAY_LINKED
#include "driver.h"

int tracer_calls(void);

#ifdef TRACER
static int calls;
int tracer_calls(void) {
    return calls;
}
static void *driver(const char *name) {
    calls++;
    return dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
}
int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **parameters, void **extra) {
    return ((__typeof__(cuLaunchKernel) *)driver("cuLaunchKernel"))(function, grid_x, grid_y, grid_z, block_x, block_y,
                                                                    block_z, shared, stream, parameters, extra);
}
int cuLaunchKernelEx(const Config *config, void *function, void **parameters, void **extra) {
    return ((__typeof__(cuLaunchKernelEx) *)driver("cuLaunchKernelEx"))(config, function, parameters, extra);
}
#else
int scope_launch(void);
int scope_launch(void) {
    void *parameters[] = {NULL};
    int bad = 0;
    driver_start();
    void *const function = kernel_of("k");
    Attribute attribute = {.id = 6}; /* programmatic serialization, which the assembler leaves to C */
    Config config = {.grid = {4000, 1, 1}, .block = {256, 1, 1}, .attributes = &attribute};
    for (int i = 0; i < 3; i++) {
        config.count = (unsigned)i % 2;
        bad += cuLaunchKernelEx(&config, function, parameters, NULL);
        bad += cuLaunchKernel(function, 4000, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL);
    }
    return 100 * bad + tracer_calls();
}
#endif
