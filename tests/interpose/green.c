/* Streams of a green context, which is a part of the primary one, beside a context that the program has made ("other"): the
 * primary one is reset, and a capture begins. */
#define WAY_LINKED
#include "../programs/driver.h"

extern int cuCtxCreate_v2(void **, unsigned, int), cuDevicePrimaryCtxReset_v2(int), cuCtxGetCurrent(void **);
extern int cuDeviceGetDevResource(int, void *, int), cuDevResourceGenerateDesc(void **, const void *, unsigned);
extern int cuGreenCtxCreate(void **, void *, int, unsigned), cuCtxFromGreenCtx(void **, void *);
extern int cuStreamCreate(void **, unsigned), cuStreamSynchronize(void *), cuStreamEndCapture(void *, void **);
extern int cuStreamBeginCapture_v2(void *, int);

static int bad;
static void good(int result, const char *what) {
    if (result)
        bad = printf("%s: %d\n", what, result);
}

static void launch(void *kernel, void *stream, unsigned blocks) {
    static uint64_t a;
    static uint32_t b;
    void *parameters[] = {&a, &b};
    good(cuLaunchKernel(kernel, blocks, 1, 1, 256, 1, 1, 0, stream, parameters, NULL), "launch");
}

int main(int argc, char **argv) {
    void *primary, *other, *green, *context, *module, *k, *j, *large, *small, *graph, *description;
    uint64_t resource[64] = {0};
    driver_start();
    good(cuCtxGetCurrent(&primary), "current");
    if (argc > 1 && strcmp(argv[1], "other") == 0)
        good(cuCtxCreate_v2(&other, 0, 0), "create");
    good(cuCtxSetCurrent(primary), "primary");
    good(cuDeviceGetDevResource(0, resource, 1), "resource");
    good(cuDevResourceGenerateDesc(&description, resource, 1), "description");
    good(cuGreenCtxCreate(&green, description, 0, 1), "green");
    good(cuCtxFromGreenCtx(&context, green), "context");
    good(cuCtxSetCurrent(context), "set green");
    good(cuModuleLoadData(&module, ptx_of("k,j")), "module");
    good(cuModuleGetFunction(&k, module, "k"), "k");
    good(cuModuleGetFunction(&j, module, "j"), "j");
    good(cuStreamCreate(&large, 1), "large");
    good(cuStreamCreate(&small, 1), "small");
    for (int i = 0; i < 40; i++) {
        launch(k, small, 8);
        launch(j, large, 1000);
        good(cuStreamSynchronize(small), "small");
        good(cuStreamSynchronize(large), "large");
    }
    good(cuDevicePrimaryCtxReset_v2(0), "reset");
    good(cuDevicePrimaryCtxRetain(&primary, 0), "retain");
    good(cuCtxSetCurrent(primary), "again");
    good(cuStreamCreate(&small, 1), "new");
    good(cuStreamBeginCapture_v2(small, 2), "begin");
    good(cuStreamEndCapture(small, &graph), "end");
    return bad != 0;
}
