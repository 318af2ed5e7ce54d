/* The thunks of cuLaunchKernel and cuLaunchKernelEx are in launch_x86_64.S; here is what it assumes. */
#pragma once

#include "launch.h"

#define HOT_launch_body(name, parameters)                                                                              \
    __attribute__((visibility("hidden"))) CUresult dlsym_##name parameters;                                            \
    __attribute__((visibility("hidden"))) CUresult proc_##name parameters;
#define HOT_launch_ex_body HOT_launch_body

/* What the assembler cannot do is done by the C form of the whole path; if it has found a word at least, it says which:
 * for cuLaunchKernel in the upper halves of the two arguments on the stack that are only 32 bits wide. */
#define SLOW_launch_body(way, name, parameters, ...)                                                                   \
    SLOW(way, name, launch_body, parameters, __VA_ARGS__)                                                              \
    CUresult found_##way##_##name(CUfunction, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint64_t, uint64_t,    \
                                  CUstream, void **, void **);                                                         \
    CUresult found_##way##_##name(CUfunction function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,              \
                                  uint32_t block_x, uint32_t block_y, uint64_t block_z_low, uint64_t shared_high,      \
                                  CUstream stream, void **launch_parameters, void **extra) {                           \
        return launch_found(OVERLAP_WAY_##way, HOOK_##name, SITE, function, grid_x, grid_y, grid_z, block_x, block_y,  \
                            (uint32_t)block_z_low, (uint32_t)shared_high, stream, launch_parameters, extra, 0,         \
                            block_z_low >> 32 | (shared_high & ~(uint64_t)UINT32_MAX));                                \
    }
#define launch_ex_body_slow launch_ex_body
#define SLOW_launch_ex_body(way, name, parameters, ...)                                                                \
    SLOW(way, name, launch_ex_body, parameters, __VA_ARGS__)                                                           \
    CUresult found_##way##_##name(const CUlaunchConfig *, CUfunction, void **, void **, uint64_t);                     \
    CUresult found_##way##_##name(const CUlaunchConfig *config, CUfunction function, void **launch_parameters,         \
                                  void **extra, uint64_t word) {                                                       \
        return launch_ex_found(OVERLAP_WAY_##way, HOOK_##name, SITE, config, function, launch_parameters, extra, 0,    \
                               word);                                                                                  \
    }

_Static_assert(HOOK_cuLaunchKernel == 0 && HOOK_cuLaunchKernel_ptsz == 1 && HOOK_cuLaunchKernelEx == 2 &&
                   HOOK_cuLaunchKernelEx_ptsz == 3,
               "HOOK of the thunks");
_Static_assert(sizeof real_functions[0] == 32, "place in real_functions");
_Static_assert(OVERLAP_WAY_symbol == 0 && OVERLAP_WAY_dlsym == 1 && OVERLAP_WAY_proc_address == 2 &&
                   OVERLAP_WAY_runtime == 3,
               "WAY of the thunks");
_Static_assert(offsetof(struct this_thread, shard) == 0 && offsetof(struct this_thread, outer) == 8, "this_thread");
_Static_assert(offsetof(struct this_thread, version) == 16 && offsetof(struct this_thread, stream) == 24 &&
                   offsetof(struct this_thread, whose) == 32 && offsetof(struct this_thread, where) == 36 &&
                   offsetof(struct this_thread, left) == 40 && offsetof(struct this_thread, reason) == 44 &&
                   offsetof(struct this_thread, outside) == 48,
               "the last answer about windows");
_Static_assert(OVERLAP_WORD_CLUSTER == UINT64_C(1) << 49 && OVERLAP_WORD_WINDOWED == UINT64_C(1) << 51 &&
                   OVERLAP_WORD_PROVEN == UINT64_C(1) << 53 && OVERLAP_WORD_TRACED == 1 << 29,
               "flags of words that depend on windows");
_Static_assert(OVERLAP_WHERE_INSIDE == 1, "enum overlap_where");
_Static_assert(OVERLAP_CACHE_BITS == 15 && sizeof(struct overlap_cache_line) == 64, "place in launch_cache");
_Static_assert(offsetof(struct overlap_cache_line, answers[0].key) == 8 && sizeof(struct overlap_answer) == 24,
               "answers");
_Static_assert(offsetof(struct overlap_answer, grid) == 8 && offsetof(struct overlap_answer, word) == 16, "answer");
_Static_assert(OVERLAP_WORD_SIZE_BITS == 18 && OVERLAP_WORD_REASON_SHIFT == 18, "fields of the word");
_Static_assert(OVERLAP_WORD_DIRECT == 1 << 26 && OVERLAP_WORD_CHANGED == 1 << 25, "flags of the word");
_Static_assert(offsetof(CUlaunchConfig, blockDimX) == 12 && offsetof(CUlaunchConfig, sharedMemBytes) == 24 &&
                   offsetof(CUlaunchConfig, attrs) == 40 && offsetof(CUlaunchConfig, numAttrs) == 48,
               "configuration");
_Static_assert(offsetof(struct overlap_shard, launches) == 64 && OVERLAP_REASONS == 40, "place of the counters");
