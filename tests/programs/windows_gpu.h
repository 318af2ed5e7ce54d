/* What the interpreter of windows.c knows of a GPU of either vendor. The calls: windows_cuda.h, windows_hip.h. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEVICES = 2, BYTES = 4096, THREADS = 256 };
enum { COMPUTATION, COMMUNICATION, KERNELS };

/* Blocks: four waves of a GPU of two multiprocessors; less than one. */
static const unsigned grids[KERNELS] = {128, 4};
static inline unsigned grid_of(int kind, int how) {
    return how & 2 ? 8 * grids[kind] : grids[kind];
}

static struct {
    void *context, *kernels[KERNELS];
    uint64_t memory;
} devices[DEVICES];
static int device_count;

/* A stream as the call names it: through the entry point for threads or not. */
struct named {
    void *handle;
    int per_thread, device, good;
};

#define ON(name, ...) (stream.per_thread ? name##_thread(__VA_ARGS__) : name(__VA_ARGS__))

static uint64_t parameter_a = 9;
static uint32_t parameter_b = 8;
static void *parameters[] = {&parameter_a, &parameter_b};

static void need(int result, const char *what) {
    if (result) {
        printf("%s: %d\n", what, result);
        exit(4);
    }
}
