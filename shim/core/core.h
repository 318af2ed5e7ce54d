/* Pure functions of launches, policies and GPUs. The rule of streams has a header of its own: judge.h.
 *
 * Rules of this folder: no operating system, no vendor, no allocation, no lock, no global but the current statistics
 * page. Functions that Python calls as well are declared in overlap_abi.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "../abi.h"
#include "../text.h"

#define OVERLAP_LOAD(field) __atomic_load_n(&(field), __ATOMIC_ACQUIRE)
#define OVERLAP_RELAXED(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

enum overlap_reason {
#define REASON(name, shapes, sentence) OVERLAP_REASON_##name,
#include "reason.def"
#undef REASON
    OVERLAP_REASON_COUNT
};
_Static_assert(OVERLAP_REASON_COUNT <= OVERLAP_REASONS, "the page has no room for so many reasons");

/* Does a policy raise streams, or only judge them? By what share does it judge, in per cent? */
static inline bool overlap_observes(const struct overlap_policy *policy) {
    return policy && policy->raise_share > OVERLAP_OBSERVED;
}
static inline bool overlap_raises(const struct overlap_policy *policy) {
    return policy->raise_share && !overlap_observes(policy);
}
static inline uint32_t overlap_share_of(const struct overlap_policy *policy) {
    return overlap_observes(policy) ? policy->raise_share - OVERLAP_OBSERVED : policy->raise_share;
}

#define OVERLAP_NO_RULE UINT32_MAX
#define OVERLAP_NO_POLICY UINT32_MAX

/* The largest dynamic shared memory of a block that we ask for, in bytes: more than any GPU has. */
#define OVERLAP_LARGEST_SIZE ((1U << 18) - 1)

/* ---- Sections of a checked table ---- */

struct overlap_view {
    const struct overlap_table *table;
    const struct overlap_policy *policies;
    const struct overlap_rule *rules;
    const uint32_t *patterns;
    const char *strings;
};

/* Returns pointers to the sections. table: accepted by overlap_table_check(). */
struct overlap_view overlap_table_view(const void *table);

/* Does one pattern of the span match the text? */
bool overlap_match_any(const struct overlap_view *view, struct overlap_span span, const char *text);

/* What the patterns of one policy say of a kernel's name, as the driver gives it or plain. The built-in families count for
 * every policy. */
struct overlap_matches {
    uint64_t
        rules[OVERLAP_RULES / 64]; /* bit i: the kernels of the policy's rule i; a rule that names none accepts all */
    uint32_t communicates, fixed_size;
    uint64_t one_rank; /* a collective of one rank, which only reduces */
};
/* policy: index, or OVERLAP_NO_POLICY. Takes about a nanosecond a character, so the answer is kept with the kernel. */
void overlap_match_kernel(const struct overlap_view *view, uint32_t policy, const char *kernel,
                          struct overlap_matches *found);

/* As overlap_decide(), with what is known of the kernel's name already. */
void overlap_decide_matched(const void *table, uint32_t policy, const struct overlap_gpu *gpu,
                            const struct overlap_matches *kernel, const char *library,
                            const struct overlap_launch *launch, const struct overlap_footprint *communication,
                            struct overlap_decision *decision);

/* Does this library launch nothing but communication? basename: of the library's file. */
bool overlap_is_communication_library(const char *basename);

/* ---- Arithmetic shared by occupancy.c and planner.c ---- */

static inline uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}
static inline uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* Resources that one block takes, rounded up to the multiprocessor's units. 64-bit, so that absurd footprints cannot
 * wrap. */
struct overlap_demand {
    uint64_t warps;
    uint64_t registers;        /* per warp */
    uint64_t scalar_registers; /* per warp */
    uint64_t shared;
    uint64_t barriers;
};

struct overlap_demand overlap_demand_of(const struct overlap_gpu *gpu, const struct overlap_footprint *footprint);

/* Returns what prevents one block `c` from fitting beside `blocks` blocks `k`, if warps are spread evenly. NONE: it
 * fits. */
enum overlap_limit overlap_beside(const struct overlap_gpu *gpu, uint64_t blocks, const struct overlap_demand *k,
                                  const struct overlap_demand *c);

/* Returns why a block with this footprint cannot be launched at all. NONE: it can. */
enum overlap_limit overlap_impossible(const struct overlap_gpu *gpu, const struct overlap_footprint *footprint);

/* Returns the least dynamic size, not below the requested one, at which shared memory lets no more than `blocks`
 * fit. */
uint64_t overlap_least_dynamic(const struct overlap_gpu *gpu, const struct overlap_footprint *footprint,
                               uint64_t blocks);

/* The planner's result for a launch under a rule of this shape. native: resident blocks as launched by the program. */
struct overlap_choice {
    enum overlap_control control;
    enum overlap_reason reason;
    uint32_t dynamic_shared;
};
struct overlap_choice overlap_choose(const struct overlap_gpu *gpu, const struct overlap_launch *launch,
                                     const struct overlap_footprint *communication, uint32_t native, uint32_t shape,
                                     uint32_t value, uint32_t keep_at_least);

/* ---- Statistics ---- */

/* Returns the calling thread's shard, and claims one at its first call. tid: the thread's id; alive: returns whether a
 * thread of this process still exists (core makes no system call). Returns the shared shard if all others are owned by
 * live threads. */
struct overlap_shard *overlap_shard_claim(struct overlap_page *page, uint32_t tid, bool (*alive)(uint32_t tid));

static inline struct overlap_shard *overlap_shard_shared(struct overlap_page *page) {
    return &page->shards[OVERLAP_SHARDS - 1];
}
static inline bool overlap_shard_is_shared(const struct overlap_page *page, const struct overlap_shard *shard) {
    return shard == &page->shards[OVERLAP_SHARDS - 1];
}

/* Adds to a counter that only one thread writes at a time; other threads and processes may read it. */
static inline void overlap_add_own(uint64_t *counter, uint64_t value) {
    __atomic_store_n(counter, OVERLAP_RELAXED(*counter) + value, __ATOMIC_RELAXED);
}

/* Adds one to a counter of the shard: without an atomic operation in an owned shard, atomically in the shared one. */
void overlap_shard_add(const struct overlap_page *page, struct overlap_shard *shard, uint64_t *counter);

/* ---- Rows of the statistics page (rows.c) ---- */

/* Which rows of a page are claimed, and by which keys. One thread at a time claims rows. All zeros: none of this page. */
struct overlap_row_index {
    struct overlap_page *page;
    uint32_t next;        /* the first free row */
    uint16_t slots[1024]; /* open hash table of rows; 0: free */
};

/* Finds or claims the row for such launches. `key`, `state` and the names in `facts` are ignored. hash: of the kernel's
 * name. kernel, library: "" if unknown. Without a free row the launches are counted in the rule's row for all its kernels,
 * else in the row of the reason. */
uint32_t overlap_row_claim(struct overlap_row_index *index, struct overlap_page *page, const struct overlap_row *facts,
                           uint64_t hash, const char *kernel, const char *library, uint32_t reason);

/* Finds or claims the row for launches that differ from those of `row` in their reason only. */
uint32_t overlap_row_of_reason(struct overlap_row_index *index, struct overlap_page *page, uint32_t row,
                               uint32_t reason);

/* Fills in, for each row, the reason that it counts: a valid index even on a damaged page. */
void overlap_row_reasons(const struct overlap_page *page, uint32_t *reasons);
