/* Captures of so many streams are open at once; when all have ended, the rule goes on. */
#define WAY_LINKED
#include "../programs/driver.h"

extern int cuStreamCreate(void **, unsigned), cuStreamSynchronize(void *), cuStreamEndCapture(void *, void **);
extern int cuStreamBeginCapture_v2(void *, int), cuGraphDestroy(void *);

enum { MOST = 200 };
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
    const int count = argc > 1 ? atoi(argv[1]) : 1;
    void *streams[MOST], *graph, *module, *k, *j, *large, *small;
    driver_start();
    good(cuModuleLoadData(&module, ptx_of("k,j")), "module");
    good(cuModuleGetFunction(&k, module, "k"), "k");
    good(cuModuleGetFunction(&j, module, "j"), "j");
    for (int i = 0; i < count; i++) {
        good(cuStreamCreate(&streams[i], 1), "create");
        good(cuStreamBeginCapture_v2(streams[i], 2), "begin");
    }
    for (int i = 0; i < count; i++) {
        good(cuStreamEndCapture(streams[i], &graph), "end");
        good(cuGraphDestroy(graph), "graph");
    }
    good(cuStreamCreate(&large, 1), "large");
    good(cuStreamCreate(&small, 1), "small");
    for (int i = 0; i < 40; i++) {
        launch(k, small, 8);
        launch(j, large, 1000);
        good(cuStreamSynchronize(small), "small");
        good(cuStreamSynchronize(large), "large");
    }
    return bad != 0;
}
