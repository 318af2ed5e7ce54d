/* Programs that size their grids by what the driver says, and graphs of such launches. Prints every grid and answer.
 *   persistent   as many blocks as fit, by cuOccupancyMaxActiveBlocksPerMultiprocessor; asked before anything else
 *   flags        by the form with flags           potential  by cuOccupancyMaxPotentialBlockSize
 *   callback     ...with a function that says how many bytes a block needs, which asks the driver itself
 *   late         launches many waves first, asks then
 *   cooperative  as many as fit, launched cooperatively         cluster  as many clusters as fit
 *   captured     persistent, cooperative, clusters and many waves, captured
 */
#define DRIVER_MORE
#include "driver.h"

enum { THREADS = 256, WAVES = 4, MULTIPROCESSORS = 16 };

extern int cuDeviceGetAttribute(int *, int, int);

static uint64_t a = 1;
static uint32_t b = 2;
static void *parameters[] = {&a, &b}, *function, *stream;
static int multiprocessors, bytes;

static int launch(int blocks, int threads) {
    const int result = CU(cuLaunchKernel)(function, (unsigned)blocks, 1, 1, (unsigned)threads, 1, 1, (unsigned)bytes,
                                          stream, parameters, NULL);
    printf("%d blocks of %d: %d\n", blocks, threads, result);
    return result;
}

static int resident(void) {
    int blocks = -1;
    const int result = CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, function, THREADS, (size_t)bytes);
    printf("resident: %d, %d\n", result, blocks);
    return blocks;
}

/* Asks about another kernel size on the way, as a program may. */
static size_t bytes_of(int threads) {
    int grid = 0, block = 0;
    CU(cuOccupancyMaxPotentialBlockSize)(&grid, &block, function, NULL, 0, threads);
    return (size_t)threads * 120;
}

static void by_potential(void *sizes) {
    int grid = -1, block = -1;
    const int result = CU(cuOccupancyMaxPotentialBlockSize)(&grid, &block, function, sizes, (size_t)bytes, 0);
    printf("potential: %d, %d of %d\n", result, grid, block);
    launch(grid, block);
    launch(grid * WAVES, block);
}

static Config config_for(Attribute *attribute, int blocks, uint32_t id, uint32_t x) {
    *attribute = (Attribute){.id = id, .value.dimension = {x, id == 4, id == 4}};
    return (Config){{(uint32_t)blocks, 1, 1}, {THREADS, 1, 1}, (uint32_t)bytes, 0, stream, attribute, 1, 0};
}

static void cooperative(int one_more) {
    const int blocks = resident() * multiprocessors;
    Attribute attribute;
    const Config config = config_for(&attribute, blocks, 2, 1);
    printf("cooperative: %d", CU(cuLaunchCooperativeKernel)(function, (unsigned)blocks, 1, 1, THREADS, 1, 1,
                                                            (unsigned)bytes, stream, parameters));
    printf(" %d", CU(cuLaunchKernelEx)(&config, function, parameters, NULL));
    printf(" %d\n", !one_more ? 0
                              : CU(cuLaunchCooperativeKernel)(function, (unsigned)blocks + 1, 1, 1, THREADS, 1, 1,
                                                              (unsigned)bytes, stream, parameters));
}

static void clusters(void) {
    enum { WIDTH = 8 };
    int found = -1;
    Attribute attribute;
    const Config asked = config_for(&attribute, WIDTH, 4, WIDTH);
    const int result = CU(cuOccupancyMaxActiveClusters)(&found, function, &asked);
    const Config config = config_for(&attribute, found * WIDTH * WAVES, 4, WIDTH);
    printf("clusters: %d, %d, %d\n", result, found, CU(cuLaunchKernelEx)(&config, function, parameters, NULL));
}

static void captured(void) {
    void *graph, *exec;
    int bad = CU(cuStreamBeginCapture_v2)(stream, 0);
    const int blocks = resident() * multiprocessors;
    bad += launch(blocks, THREADS) + launch(blocks * WAVES, THREADS);
    cooperative(0); /* a refused one ends the capture */
    clusters();
    bad += CU(cuStreamEndCapture)(stream, &graph);
    bad += CU(cuGraphInstantiateWithFlags)(&exec, graph, 0) + CU(cuGraphLaunch)(exec, stream);
    printf("captured: %d bad\n", bad);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "persistent";
    void *module, *other;
    bytes = argc > 2 ? atoi(argv[2]) : 0;
    driver_start();
    char *text = ptx_of("asks,plain");
    int bad = CU(cuModuleLoadData)(&module, text) + CU(cuModuleGetFunction)(&function, module, "asks") +
              CU(cuModuleGetFunction)(&other, module, "plain") + CU(cuStreamCreate)(&stream, 1) +
              cuDeviceGetAttribute(&multiprocessors, MULTIPROCESSORS, 0);
    free(text);
    if (bytes > 49152)
        bad += CU(cuFuncSetAttribute)(function, 8, bytes);
    if (strcmp(what, "late") == 0)
        for (int i = 0; i < 3; i++)
            launch(4000, THREADS);
    if (strcmp(what, "persistent") == 0 || strcmp(what, "late") == 0) {
        const int blocks = resident() * multiprocessors;
        launch(blocks, THREADS);
        launch(blocks * WAVES, THREADS);
    } else if (strcmp(what, "flags") == 0) {
        int blocks = -1;
        bad += CU(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(&blocks, function, THREADS, (size_t)bytes, 0);
        launch(blocks * multiprocessors * WAVES, THREADS);
    } else if (strcmp(what, "potential") == 0)
        by_potential(NULL);
    else if (strcmp(what, "callback") == 0) {
        launch(4000, THREADS);
        by_potential((void *)(uintptr_t)bytes_of);
    } else if (strcmp(what, "cooperative") == 0)
        cooperative(1);
    else if (strcmp(what, "cluster") == 0)
        clusters();
    else
        captured();
    /* Others are shaped all the same. */
    function = other;
    bytes = 0;
    launch(4000, THREADS);
    printf("%d bad, %d\n", bad, CU(cuCtxSynchronize)());
    return 0;
}
