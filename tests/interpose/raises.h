/* A program that raises: on `small` waits the host for little work beside much work on `large`. */
#pragma once

#define WAY_LINKED
#include "../programs/driver.h"

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

static void *k, *j, *large, *small;

static void raise_small(void) {
    void *module;
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
}
