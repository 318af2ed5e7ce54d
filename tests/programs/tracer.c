/* A plugin that launches through a tracer of its own, which counts the calls and makes them (-DTRACER): scope_host.c opens it. */
#include <stdio.h>

typedef struct {
    unsigned id, pad;
    char value[64];
} Attribute;
typedef struct {
    unsigned grid[3], block[3], shared, pad;
    void *stream;
    Attribute *attributes;
    unsigned count, pad2;
} Config;
typedef int Launch(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);
typedef int LaunchEx(const Config *, void *, void **, void **);

Launch cuLaunchKernel;
LaunchEx cuLaunchKernelEx;
int tracer_calls(void);

#ifdef TRACER
#include <dlfcn.h>

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
    return ((Launch *)driver("cuLaunchKernel"))(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                                                stream, parameters, extra);
}
int cuLaunchKernelEx(const Config *config, void *function, void **parameters, void **extra) {
    return ((LaunchEx *)driver("cuLaunchKernelEx"))(config, function, parameters, extra);
}
#else
extern int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
extern int cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *);

int scope_launch(void);
int scope_launch(void) {
    void *context, *module, *function, *parameters[] = {NULL};
    Attribute attribute = {.id = 6}; /* programmatic serialization, which the assembler leaves to C */
    Config config = {.grid = {4000, 1, 1}, .block = {256, 1, 1}, .attributes = &attribute};
    int bad = cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
              cuModuleLoadData(&module, "x") || cuModuleGetFunction(&function, module, "k");
    for (int i = 0; i < 3; i++) {
        config.count = (unsigned)i % 2;
        bad += cuLaunchKernelEx(&config, function, parameters, NULL);
        bad += cuLaunchKernel(function, 4000, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL);
    }
    return 100 * bad + tracer_calls();
}
#endif
