/* Launches at random, by every way in, from the program and from a library (this file with -DOTHER): hip_doors SEED LAUNCHES.
 * Prints kernel, caller, program or module, threads, blocks, dynamic bytes asked for and made; fails if anything else is not what was asked for. Upper halves of arguments
 * that have only 32 bits hold garbage, as they may.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "echo_hip.h"

typedef uint64_t u;
typedef int launch_type(const void *, u, u, u, u, void **, u, void *);
typedef int ext_type(const void *, u, u, u, u, void **, u, void *, void *, void *, u);
typedef int module_type(const void *, u, u, u, u, u, u, u, void *, void **, void **);
typedef int ext_module_type(const void *, u, u, u, u, u, u, u, void *, void **, void **, void *, void *, u);
int other_launch(unsigned call, void *door, const struct echo *a, u garbage);

#define WIDE(value) (garbage << 32 | (value))
static u pair(const unsigned *xyz) {
    return (u)xyz[1] << 32 | xyz[0];
}

#ifdef OTHER
#define launch other_launch
#else
static
#endif
int launch(unsigned call, void *door, const struct echo *a, u garbage) {
    const unsigned *g = a->grid, *b = a->block;
    switch (call) {
    case 0:
        return ((launch_type *)door)(a->function, pair(g), WIDE(g[2]), pair(b), WIDE(b[2]), a->parameters, a->shared,
                                     a->stream);
    case 1:
        return ((ext_type *)door)(a->function, pair(g), WIDE(g[2]), pair(b), WIDE(b[2]), a->parameters, a->shared,
                                  a->stream, a->start, a->stop, WIDE(a->flags));
    case 2:
        return ((module_type *)door)(a->function, WIDE(g[0]), WIDE(g[1]), WIDE(g[2]), WIDE(b[0]), WIDE(b[1]),
                                     WIDE(b[2]), WIDE((unsigned)a->shared), a->stream, a->parameters, a->extra);
    default:
        return ((ext_module_type *)door)(a->function, WIDE(g[0]), WIDE(g[1]), WIDE(g[2]), WIDE(b[0]), WIDE(b[1]),
                                         WIDE(b[2]), a->shared, a->stream, a->parameters, a->extra, a->start, a->stop,
                                         WIDE(a->flags));
    }
}

#ifndef OTHER
int hipInit(unsigned);
int hipGetProcAddress(const char *, void **, int, uint64_t, int *);
int hipEventRecord(void *, void *);
int hipStreamWaitEvent(void *, void *, unsigned);
launch_type hipLaunchKernel;
ext_type hipExtLaunchKernel;
module_type hipModuleLaunchKernel;
ext_module_type hipExtModuleLaunchKernel;

/* The last kernel is communication. The others have few shapes each, or the hot path would not find them: even ones two that it may
 * take for each other, and many waves; odd ones one, and grids of about one wave. */
enum { CALLS = 4, WAYS = 3, KERNELS = 65, COMMUNICATION = KERNELS - 1, UNITS = 104 };
static const char *const names[CALLS] = {"hipLaunchKernel", "hipExtLaunchKernel", "hipModuleLaunchKernel",
                                         "hipExtModuleLaunchKernel"};
static void *doors[CALLS][WAYS];
static char kernels[2][KERNELS][32]; /* functions of the program, and of modules */

static uint64_t state;
static uint64_t any(void) { /* xorshift64 */
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}
static unsigned one_of(const unsigned *values, unsigned count) {
    return values[any() % count];
}
#define ONE_OF(...) one_of((const unsigned[]){__VA_ARGS__}, sizeof((const unsigned[]){__VA_ARGS__}) / sizeof(unsigned))

int main(int argc, char **argv) {
    state = argc > 2 ? strtoull(argv[1], NULL, 0) * 2 + 1 : 1;
    const long launches = argc > 2 ? atol(argv[2]) : 0;
    void *runtime = dlopen("libamdhip64.so.6", RTLD_NOW);
    void *symbols[CALLS] = {(void *)hipLaunchKernel, (void *)hipExtLaunchKernel, (void *)hipModuleLaunchKernel,
                            (void *)hipExtModuleLaunchKernel};
    hipInit(0);
    for (int i = 0; i < KERNELS; i++)
        for (int module = 0; module < 2; module++)
            snprintf(kernels[module][i], sizeof kernels[module][i], "%s_%d",
                     i == COMMUNICATION ? "ncclDevKernel_Generic"
                     : i % 3 == 0       ? "plain"
                     : i % 3 == 1       ? "shaped_a"
                                        : "shaped_b",
                     i);
    for (int i = 0; i < CALLS; i++) {
        doors[i][0] = symbols[i];
        doors[i][1] = dlsym(runtime, names[i]);
        hipGetProcAddress(names[i], &doors[i][2], 601, 0, NULL);
    }
    for (long i = 0; i < launches; i++) {
        const unsigned call = (unsigned)(any() % CALLS), module = call >= 2, events = call & 1 && any() % 8 == 0;
        const unsigned kernel = any() % 64 ? (unsigned)(any() % COMMUNICATION) : COMMUNICATION, wave = kernel & 1;
        char *const mark = (char *)(uintptr_t)(any() << 8);
        struct echo asked = {
            .function = kernels[module][kernel],
            .block = {64u << (wave ? kernel / 2 % 3 : (unsigned)any() % 2), 1 + kernel / 8 % 2, 1 + kernel / 16 % 2},
            .grid = {any() % 16 ? 5000 : 0x80000001, ONE_OF(1, 2, 3), ONE_OF(1, 2)},
            .shared = any() % 32 ? kernel / 4 % 2 * 1024 : 0x40400,
            .stream = (void *)(uintptr_t)(kernel == COMMUNICATION ? 0x9000 : 0x1000 * ONE_OF(1, 2)),
            .parameters = (void **)(mark + 1),
            .extra = module ? (void **)(mark + 2) : NULL,
            .start = events ? mark + 3 : NULL,
            .stop = events ? mark + 4 : NULL,
            .flags = call & 1 ? (unsigned)any() : 0,
        };
        if (wave) {
            const unsigned fit = (module ? 256 : 2048) / (asked.block[0] * asked.block[1] * asked.block[2]);
            asked.grid[1] = ONE_OF(1, 2), asked.grid[2] = ONE_OF(1, 2);
            asked.grid[0] = UNITS * (fit < 16 ? fit : 16) / asked.grid[1] / asked.grid[2] + ONE_OF(0, 0, 1);
        }
        unsigned long long blocks = 1ull * asked.grid[0] * asked.grid[1] * asked.grid[2];
        if (call == 3) { /* work-items, and some that do not fill their block */
            const unsigned rest = ONE_OF(0, 0, 1);
            blocks = (asked.grid[0] % 100000 + rest) * 1ull * asked.grid[1] * asked.grid[2];
            asked.grid[0] = asked.grid[0] % 100000 * asked.block[0] + rest;
            asked.grid[1] *= asked.block[1], asked.grid[2] *= asked.block[2];
        }
        (kernel & 2 ? launch : other_launch)(call, doors[call][any() % WAYS], &asked, any());
        struct echo made = *echo_last();
        printf("%s %s %s %u %llu %zu %zu\n", (const char *)asked.function, kernel & 2 ? "program" : "other",
               module ? "module" : "host", asked.block[0] * asked.block[1] * asked.block[2], blocks, asked.shared,
               made.shared);
        if (made.shared < asked.shared)
            return fprintf(stderr, "launch %ld: %zu bytes for %zu\n", i, made.shared, asked.shared), 1;
        made.shared = asked.shared;
        if (memcmp(&made, &asked, offsetof(struct echo, flags)) != 0 || made.flags != asked.flags)
            return fprintf(stderr, "launch %ld: not the arguments of %s\n", i, names[call]), 1;
        if (kernel == COMMUNICATION)
            hipEventRecord((void *)0x1000000, asked.stream);
        if (any() % 100 == 0)
            hipStreamWaitEvent((void *)(uintptr_t)(0x1000 * ONE_OF(1, 2)), (void *)0x1000000, 0);
    }
    return 0;
}
#endif
