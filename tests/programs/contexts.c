/* Contexts that end and come back, each with a module of the same name, whose handles are the same again.
 * contexts primary | reset | created [lib]: the way in which they end; lib: kernels of a library, which outlives them.
 * contexts other: one whose function is obtained and launched while another one is current, which then ends.
 * contexts apart: a kernel of a library is launched on a stream of another context, with none, its own and the other context current;
 * the limit that was set for its function in the first one does not apply there.
 * contexts once: two in turn, each with one launch; the program raises the limit in the first.
 * Prints what every launch answered, what is believed of the limit, and how often a handle was seen before. */
#define WAY_LINKED
#include "driver.h"

extern int cuCtxCreate_v2(void **, unsigned, int), cuCtxDestroy_v2(void *);
extern int cuDevicePrimaryCtxRelease_v2(int), cuDevicePrimaryCtxReset_v2(int), cuLibraryGetModule(void **, void *);

#ifndef BLOCKS
#define BLOCKS 4000
#endif
#ifndef ROUNDS
#define ROUNDS 4
#endif

static int launch(void *function, unsigned shared) {
    uint64_t a = 0;
    uint32_t b = 0;
    void *parameters[] = {&a, &b};
    return cuLaunchKernel(function, BLOCKS, 1, 1, 256, 1, 1, shared, NULL, parameters, NULL);
}

static int other(void) {
    void *context, *primary, *image, *function;
    int limit = 0, bad = cuInit(0) + cuCtxCreate_v2(&context, 0, 0);
    char *text = ptx_of("k");
    bad += cuModuleLoadData(&image, text) + cuDevicePrimaryCtxRetain(&primary, 0) + cuCtxSetCurrent(primary);
    bad += cuModuleGetFunction(&function, image, "k");
    printf("in the other: %d\n", launch(function, 0));
    bad += cuCtxSetCurrent(context) + cuDevicePrimaryCtxRelease_v2(0) + cuFuncGetAttribute(&limit, 8, function);
    printf("limit %d, launches %d", limit, launch(function, 0));
    printf(" %d\n", launch(function, (unsigned)limit + 1));
    free(text);
    return bad;
}

static int apart(void) {
    void *contexts[3] = {NULL}, *image, *kernel, *module, *function,
         *stream; /* of no context, the first and the second one */
    uint64_t a = 0;
    uint32_t b = 0;
    void *parameters[] = {&a, &b};
    char *text = ptx_of("k");
    int bad = cuInit(0) + cuDevicePrimaryCtxRetain(&contexts[1], 0) + cuCtxCreate_v2(&contexts[2], 0, 0);
    bad += cuStreamCreate(&stream, 1) + cuCtxSetCurrent(contexts[1]);
    bad += cuLibraryLoadData(&image, text, NULL, NULL, 0, NULL, NULL, 0) + cuLibraryGetKernel(&kernel, image, "k");
    bad += cuLibraryGetModule(&module, image) + cuModuleGetFunction(&function, module, "k");
    bad += launch(function, 20000) + cuFuncSetAttribute(function, 8, 1);
    for (int i = 0; i < 3; i++) {
        bad += cuCtxSetCurrent(contexts[i]);
        printf("there: %d\n",
               cuLaunchKernel(kernel, BLOCKS, 1, 1, 128, 1, 1, 40000 + (unsigned)i, stream, parameters, NULL));
    }
    bad += cuCtxSetCurrent(contexts[1]);
    printf("here: %d\n", launch(kernel, 40000));
    free(text);
    return bad;
}

static int once(void) {
    void *context, *image, *function;
    int limit = 0, bad = cuInit(0);
    char *text = ptx_of("k");
    for (int round = 0; round < 2; round++) {
        bad += cuCtxCreate_v2(&context, 0, 0) + cuModuleLoadData(&image, text) +
               cuModuleGetFunction(&function, image, "k");
        if (round == 0)
            bad += cuFuncSetAttribute(function, 8, 60000);
        bad += cuFuncGetAttribute(&limit, 8, function);
        printf("limit %d, launch %d\n", limit, launch(function, round ? 55000 : 0));
        bad += cuCtxDestroy_v2(context);
    }
    free(text);
    return bad;
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "created";
    int by_library = argc > 2, same = 0, limit = 0, bad = 0;
    void *context, *image, *kernel = NULL, *function, *seen = NULL;
    if (strcmp(way, "other") == 0 || strcmp(way, "once") == 0 || strcmp(way, "apart") == 0)
        return *way == 'a' ? apart() : way[1] == 't' ? other() : once();
    char *text = ptx_of("k");
    bad += cuInit(0);
    if (by_library)
        bad += cuLibraryLoadData(&image, text, NULL, NULL, 0, NULL, NULL, 0) + cuLibraryGetKernel(&kernel, image, "k");
    for (int round = 0; round < ROUNDS; round++) {
        bad += *way == 'c' ? cuCtxCreate_v2(&context, 0, 0) : cuDevicePrimaryCtxRetain(&context, 0);
        bad += cuCtxSetCurrent(context);
        bad += by_library ? cuKernelGetFunction(&function, kernel)
                          : cuModuleLoadData(&image, text) + cuModuleGetFunction(&function, image, "k");
        same += function == seen;
        seen = function;
        cuFuncGetAttribute(&limit, 8, function);
        printf("round %d: limit %d, launches", round, limit);
        for (int i = 0; i < 3; i++)
            printf(" %d", launch(function, 0));
        for (int i = 0; kernel && i < 3; i++)
            printf(" %d", launch(kernel, 0));
        /* More than the program may, then what it has asked for; not in every context. */
        printf(" %d", launch(function, 60000));
        if (round % 2)
            bad += cuFuncSetAttribute(function, 8, 60000);
        printf(" %d %d", launch(function, 60000), launch(function, 0));
        cuFuncGetAttribute(&limit, 8, function);
        printf(", limit %d\n", limit);
        bad += *way == 'c'                 ? cuCtxDestroy_v2(context)
               : strcmp(way, "reset") == 0 ? cuDevicePrimaryCtxReset_v2(0)
                                           : cuDevicePrimaryCtxRelease_v2(0);
    }
    free(text);
    printf("bad: %d, same handle: %d\n", bad, same);
    return 0;
}
