/* Streams of a green context, which is a part of the primary one, beside a context that the program has made ("other"), or
 * streams of that one ("own"): the primary one is reset. */
#include <stdbool.h>

#include "raises.h"

extern int cuDeviceGetDevResource(int, void *, int), cuDevResourceGenerateDesc(void **, const void *, unsigned);
extern int cuGreenCtxCreate(void **, void *, int, unsigned), cuCtxFromGreenCtx(void **, void *);

int main(int argc, char **argv) {
    void *primary = driver_start(), *other, *green, *context, *graph, *exec, *description;
    uint64_t resource[64] = {0};
    const bool own = argc > 1 && strcmp(argv[1], "own") == 0;
    if (argc > 1)
        good(cuCtxCreate_v2(&other, 0, 0), "create");
    good(cuCtxSetCurrent(primary), "primary");
    good(cuDeviceGetDevResource(0, resource, 1), "resource");
    good(cuDevResourceGenerateDesc(&description, resource, 1), "description");
    good(cuGreenCtxCreate(&green, description, 0, 1), "green");
    good(cuCtxFromGreenCtx(&context, green), "context");
    good(cuCtxSetCurrent(own ? other : context), own ? "own" : "set green");
    raise_small();
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
