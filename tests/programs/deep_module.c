/* A module of Python that launches by calls of the driver; PyInit is all that an import looks for. */
#define WAY_LINKED
#include "driver.h"

/* Made without the headers of Python: no module, which the import says after it has opened the library. */
void *PyInit_overlapping_plugin(void);
void *PyInit_overlapping_plugin(void) {
    return NULL;
}

int launches(int count);
int launches(int count) {
    void *context, *module, *function;
    uint64_t a = 0;
    uint32_t b = 0;
    void *parameters[] = {&a, &b};
    char *text = ptx_of("k");
    int done = 0;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuModuleLoadData(&module, text) || cuModuleGetFunction(&function, module, "k"))
        return -1;
    while (done < count && cuLaunchKernel(function, 4000, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL) == 0)
        done++;
    free(text);
    return done;
}
