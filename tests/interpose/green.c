/* Streams of a green context, which is a part of the primary one, beside a context that the program has made ("other"), or
 * streams of that one ("own"): the primary one is reset. */
#include <stdbool.h>

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
    void *primary, *other, *green, *context, *module, *k, *j, *large, *small, *graph, *exec, *description;
    uint64_t resource[64] = {0};
    driver_start();
    good(cuCtxGetCurrent(&primary), "current");
    const bool own = argc > 1 && strcmp(argv[1], "own") == 0;
    if (argc > 1)
        good(cuCtxCreate_v2(&other, 0, 0), "create");
    good(cuCtxSetCurrent(primary), "primary");
    good(cuDeviceGetDevResource(0, resource, 1), "resource");
    good(cuDevResourceGenerateDesc(&description, resource, 1), "description");
    good(cuGreenCtxCreate(&green, description, 0, 1), "green");
    good(cuCtxFromGreenCtx(&context, green), "context");
    good(cuCtxSetCurrent(own ? other : context), own ? "own" : "set green");
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
    if (own) { /* the reset is another context's: the capture goes on */
        good(cuStreamBeginCapture_v2(small, 2), "begin");
        good(cuDevicePrimaryCtxReset_v2(0), "reset");
        launch(k, small, 8);
        good(cuStreamEndCapture(small, &graph), "end");
        good(cuGraphInstantiateWithFlags(&exec, graph, 8), "instantiate");
        good(cuGraphLaunch(exec, large), "graph");
        launch(k, small, 8);
        return bad != 0;
    }
    good(cuDevicePrimaryCtxReset_v2(0), "reset");
    good(cuDevicePrimaryCtxRetain(&primary, 0), "retain");
    good(cuCtxSetCurrent(primary), "again");
    good(cuStreamCreate(&small, 1), "new");
    good(cuStreamBeginCapture_v2(small, 2), "begin");
    good(cuStreamEndCapture(small, &graph), "end");
    return bad != 0;
}
