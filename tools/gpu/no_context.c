/* SPDX-License-Identifier: Apache-2.0
 * A program that launches, records, copies and waits with no current context, as Netflix's vmaf does: its context is pushed
 * for allocations and creations only. The host waits for small kernels on one stream, while large ones run on another.
 * One JSON line: wall time of a round, and how many blocks of small kernels ran, which no arm may change.
 *
 *   cc -O2 no_context.c -o no_context -lcuda
 *   ./no_context [ROUNDS [LARGE_BLOCKS [SMALL_BLOCKS [TURNS]]]]     and the same behind overlap-run --policy P
 *
 * A round has 4 steps of a launch of LARGE_BLOCKS, 8 of SMALL_BLOCKS, a copy to the host and a wait. With 400 LARGE_BLOCKS all
 * kernels fit beside each other: the difference between arms is what calls cost. A thread does TURNS turns of a loop.
 * The declarations are those of <cuda.h>, so that the program is also compiled without CUDA's toolkit.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct handle *Handle;
extern int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(Handle *, int);
extern int cuCtxPushCurrent_v2(Handle), cuCtxPopCurrent_v2(Handle *), cuCtxGetCurrent(Handle *);
extern int cuModuleLoadData(Handle *, const void *), cuModuleGetFunction(Handle *, Handle, const char *);
extern int cuLibraryLoadData(Handle *, const void *, void *, void *, unsigned, void *, void *, unsigned);
extern int cuLibraryGetKernel(Handle *, Handle, const char *);
extern int cuMemAlloc_v2(uint64_t *, size_t), cuMemHostAlloc(void **, size_t, unsigned);
extern int cuMemsetD8Async(uint64_t, unsigned char, size_t, Handle);
extern int cuMemcpyDtoHAsync_v2(void *, uint64_t, size_t, Handle);
extern int cuStreamCreate(Handle *, unsigned), cuStreamSynchronize(Handle), cuStreamWaitEvent(Handle, Handle, unsigned);
extern int cuEventCreate(Handle *, unsigned), cuEventRecord(Handle, Handle), cuEventSynchronize(Handle);
extern int cuLaunchKernel(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **,
                          void **);

enum { STEPS = 4, SMALL = 8, WARM = 100, THREADS = 256, NON_BLOCKING = 1, NO_TIMING = 2 };

/* Each block of `small` and `other` adds 1 to the counter. The store behind the loop keeps the compiler from removing it. */
#define LOOP                                                                                                           \
    "(.param .u64 counter, .param .u32 turns)\n{\n"                                                                    \
    ".reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %d<2>;\n"                                                            \
    "ld.param.u64 %d1, [counter]; ld.param.u32 %r1, [turns]; cvta.to.global.u64 %d1, %d1;\n"                           \
    "mov.u32 %r2, %tid.x; mov.u32 %r3, 0;\n"                                                                           \
    "turn: mad.lo.u32 %r2, %r2, 1664525, 1013904223; add.u32 %r3, %r3, 1;\n"                                           \
    "setp.lt.u32 %p1, %r3, %r1; @%p1 bra turn;\n"                                                                      \
    "setp.ne.u32 %p1, %r2, %r3; @%p1 bra next; st.global.u32 [%d1+4], %r2;\nnext:\n"
#define COUNT                                                                                                          \
    "mov.u32 %r2, %tid.x; setp.ne.u32 %p1, %r2, 0; @%p1 bra done; red.global.add.u32 [%d1], 1;\ndone: ret;\n}\n"
static const char PTX[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                          ".visible .entry large" LOOP "ret;\n}\n"
                          ".visible .entry small" LOOP COUNT ".visible .entry other" LOOP COUNT;

static void must(int result, const char *what) {
    if (result != 0) {
        fprintf(stderr, "%s: %d\n", what, result);
        exit(1);
    }
}
#define MUST(call) must((call), #call)

static Handle context, large, small, other, back, front, done, before;
static uint64_t counter;
static uint32_t turns, *host;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e6 * (double)time.tv_sec + 1e-3 * (double)time.tv_nsec;
}

static void create(void) {
    Handle module, library;
    int device;
    void *pinned;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxPushCurrent_v2(context));
    MUST(cuModuleLoadData(&module, PTX));
    MUST(cuModuleGetFunction(&large, module, "large"));
    MUST(cuModuleGetFunction(&small, module, "small"));
    MUST(cuLibraryLoadData(&library, PTX, NULL, NULL, 0, NULL, NULL, 0));
    MUST(cuLibraryGetKernel(&other, library, "other"));
    MUST(cuStreamCreate(&back, NON_BLOCKING));
    MUST(cuStreamCreate(&front, NON_BLOCKING));
    MUST(cuEventCreate(&done, NO_TIMING));
    MUST(cuEventCreate(&before, NO_TIMING));
    MUST(cuMemAlloc_v2(&counter, 8));
    MUST(cuMemHostAlloc(&pinned, 8, 0));
    host = pinned;
    MUST(cuCtxPopCurrent_v2(&context));
    MUST(cuMemsetD8Async(counter, 0, 8, front));
}

static void launch(Handle kernel, unsigned blocks, Handle stream) {
    void *parameters[] = {&counter, &turns};
    MUST(cuLaunchKernel(kernel, blocks, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL));
}

static void round_of(unsigned large_blocks, unsigned small_blocks) {
    for (int step = 0; step < STEPS; step++) {
        launch(large, large_blocks, back);
        for (int i = 0; i < SMALL; i++)
            launch(i % 2 ? other : small, small_blocks, front);
        MUST(cuMemcpyDtoHAsync_v2(host, counter, 4, front));
        MUST(cuEventRecord(done, front));
        MUST(cuStreamWaitEvent(back, done, 0)); /* the next large kernel needs what the small ones made */
        if (step % 2)
            MUST(cuEventSynchronize(done));
        else
            MUST(cuStreamSynchronize(front));
    }
    MUST(cuEventSynchronize(before)); /* the large kernels of the round before */
    MUST(cuEventRecord(before, back));
}

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 2000;
    const unsigned large_blocks = argc > 2 ? (unsigned)atoi(argv[2]) : 4000;
    const unsigned small_blocks = argc > 3 ? (unsigned)atoi(argv[3]) : 16;
    turns = argc > 4 ? (uint32_t)atoi(argv[4]) : 500;
    Handle current;
    create();
    for (int i = 0; i < WARM; i++)
        round_of(large_blocks, small_blocks);
    MUST(cuStreamSynchronize(back));
    const double start = now();
    for (int i = 0; i < rounds; i++)
        round_of(large_blocks, small_blocks);
    MUST(cuStreamSynchronize(back));
    const double time = now() - start;
    MUST(cuCtxGetCurrent(&current));
    printf("{\"question\":\"no context\",\"rounds\":%d,\"large_blocks\":%u,\"small_blocks\":%u,\"turns\":%u,"
           "\"us_a_round\":%.3f,\"blocks\":%u,\"context\":%s}\n",
           rounds, large_blocks, small_blocks, turns, time / rounds, *host, current ? "true" : "false");
    return 0;
}
