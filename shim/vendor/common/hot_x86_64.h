/* Assumptions of the assembler of the hot paths (hot_x86_64.S and each vendor's launch_x86_64.S). */
#pragma once

#include "../../core/core.h"
#include "../../core/window.h"
#include "critical_streams.h"
#include "resolve.h"
#include "this_thread.h"

/* Thunks of calls other than launches (thunks_x86_64.S). Bytes for each hook; the exported thunk comes last, the
 * others before it. */
enum { CUDA_THUNKS = 24, HIP_THUNKS = 34, EXPORTED_THUNK = 10, OTHER_THUNK = 7 };
extern const char cuda_thunks[] __attribute__((visibility("hidden")));
extern const char hip_thunks[] __attribute__((visibility("hidden")));

_Static_assert(sizeof real_launches[0] == 32, "size of a row of real_launches");
_Static_assert(REAL_TABLE == 3, "column of the dispatch table in a row");
_Static_assert(OVERLAP_ROUTE_symbol == 0 && OVERLAP_ROUTE_dlsym == 1 && OVERLAP_ROUTE_proc_address == 2 &&
                   OVERLAP_ROUTE_runtime == 3 && OVERLAP_ROUTE_dispatch_table == 5,
               "routes of the thunks, rows of the counters");
_Static_assert(STREAM_OF_CONTEXT == 0 && STREAM_OF_THREAD == 1 && STREAM_OF_HIP_DEVICE == 2 &&
                   STREAM_OF_HIP_THREAD == 3,
               "enum default_stream");
_Static_assert(offsetof(struct this_thread, shard) == 0 && offsetof(struct this_thread, outer) == 8, "this_thread");
_Static_assert(offsetof(struct this_thread, from) == 96 && offsetof(struct this_thread, found) == 112, "notes");
_Static_assert(offsetof(struct this_thread, version) == 16 && offsetof(struct this_thread, stream) == 24 &&
                   offsetof(struct this_thread, null_stream) == 32 && offsetof(struct this_thread, position) == 36 &&
                   offsetof(struct this_thread, left) == 40 && offsetof(struct this_thread, step) == 48 &&
                   offsetof(struct this_thread, outside) == 56,
               "the last answer about windows");
_Static_assert(OVERLAP_WORD_CLUSTER == UINT64_C(1) << 49 && OVERLAP_WORD_WINDOWED == UINT64_C(1) << 51 &&
                   OVERLAP_WORD_PROVEN == UINT64_C(1) << 53 && OVERLAP_WORD_TRACED == 1 << 29,
               "flags of words that depend on windows");
_Static_assert(OVERLAP_WORD_BESIDE == UINT64_C(1) << 42 && OVERLAP_WORD_STREAMED == UINT64_C(1) << 50 &&
                   CRITICAL_BLOOM_BITS == 6,
               "words that depend on their stream");
_Static_assert(OVERLAP_POSITION_INSIDE == 1, "enum overlap_window_position");
_Static_assert(OVERLAP_CACHE_BITS == 18 && OVERLAP_CACHE_FACTOR == UINT64_C(0x9E3779B97F4A7C15), "chain of a launch");
_Static_assert(offsetof(struct overlap_cache, chains) == 0 && offsetof(struct overlap_cache, mask) == 8,
               "launch_cache");
_Static_assert(offsetof(struct overlap_cache_line, handle) == 0 && offsetof(struct overlap_cache_line, key) == 8 &&
                   offsetof(struct overlap_cache_line, next) == 16 &&
                   offsetof(struct overlap_cache_line, answers) == 32 && sizeof(struct overlap_answer) == 16 &&
                   offsetof(struct overlap_answer, grid) == 0 && offsetof(struct overlap_answer, word) == 8,
               "line");
_Static_assert(OVERLAP_WORD_SIZE_BITS == 18 && OVERLAP_WORD_ROW_SHIFT == 55, "fields of the word");
_Static_assert(HOOK_COUNT < 1 << 12 && 4 * LAUNCH_COUNT < 1 << 8 && STREAM_OF_HIP_THREAD < 1 << 4,
               "identity of a thunk");
_Static_assert(OVERLAP_WORD_DIRECT == 1 << 26 && OVERLAP_WORD_CHANGED == 1 << 25, "flags of the word");
_Static_assert(offsetof(struct overlap_shard, launches) == 64 && offsetof(struct overlap_shard, routes) == 2624,
               "counters");
