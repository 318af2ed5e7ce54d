/* A program that raises: on `small` waits the host for little work beside much work on `large`. */
#pragma once

#define WAY_LINKED
#include "../programs/driver.h"

static int bad;
static void good(int result, const char *what) {
    if (result)
        bad = printf("%s: %d\n", what, result);
}

static void launch(void *kernel, void *stream, unsigned blocks) {
    good(launch_kernel(kernel, blocks, 256, stream), "launch");
}

static void *k, *j, *large, *small;

static void raise_small(void) {
    k = kernel_of("k"), j = kernel_of("j");
    good(cuStreamCreate(&large, 1), "large");
    good(cuStreamCreate(&small, 1), "small");
    for (int i = 0; i < 40; i++) {
        launch(k, small, 8);
        launch(j, large, 1000);
        good(cuStreamSynchronize(small), "small");
        good(cuStreamSynchronize(large), "large");
    }
}
