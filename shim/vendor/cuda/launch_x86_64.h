/* The thunks of cuLaunchKernel and cuLaunchKernelEx are in launch_x86_64.S; here is what it assumes. */
#pragma once

#include "launch.h"

#define HOT_launch_body(name, parameters)                                                                              \
    __attribute__((visibility("hidden"))) CUresult dlsym_##name parameters;                                            \
    __attribute__((visibility("hidden"))) CUresult proc_##name parameters;
#define HOT_launch_ex_body HOT_launch_body

/* What the assembler cannot do is done by the C form of the whole path. */
#define launch_ex_body_slow launch_ex_body
#define SLOW_launch_ex_body(way, name, parameters, ...) SLOW(way, name, launch_ex_body, parameters, __VA_ARGS__)

_Static_assert(HOOK_cuLaunchKernel == 0 && HOOK_cuLaunchKernel_ptsz == 1 && HOOK_cuLaunchKernelEx == 2 &&
                   HOOK_cuLaunchKernelEx_ptsz == 3,
               "HOOK of the thunks");
_Static_assert(sizeof real_functions[0] == 32, "place in real_functions");
_Static_assert(OVERLAP_WAY_symbol == 0 && OVERLAP_WAY_dlsym == 1 && OVERLAP_WAY_proc_address == 2, "WAY of the thunks");
_Static_assert(OVERLAP_CACHE_BITS == 15 && sizeof(struct overlap_cache_line) == 64, "place in launch_cache");
_Static_assert(offsetof(struct overlap_cache_line, answers[0].key) == 8 && sizeof(struct overlap_answer) == 24, "answers");
_Static_assert(offsetof(struct overlap_answer, grid) == 8 && offsetof(struct overlap_answer, word) == 16, "answer");
_Static_assert(OVERLAP_WORD_SIZE_BITS == 18 && OVERLAP_WORD_REASON_SHIFT == 18, "fields of the word");
_Static_assert(OVERLAP_WORD_DIRECT == 1 << 26 && OVERLAP_WORD_CHANGED == 1 << 25, "flags of the word");
_Static_assert(offsetof(CUlaunchConfig, blockDimX) == 12 && offsetof(CUlaunchConfig, sharedMemBytes) == 24 &&
                   offsetof(CUlaunchConfig, attrs) == 40 && offsetof(CUlaunchConfig, numAttrs) == 48,
               "configuration");
_Static_assert(offsetof(struct overlap_shard, launches) == 64 && OVERLAP_REASONS == 40, "place of the counters");
