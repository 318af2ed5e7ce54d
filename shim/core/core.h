/* Pure functions of launches, policies and GPUs. The rule of streams has a header of its own: streams.h.
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

enum overlap_route {
#define ROUTE(name) OVERLAP_ROUTE_##name,
#include "route.def"
#undef ROUTE
    OVERLAP_ROUTE_COUNT
};
_Static_assert(OVERLAP_ROUTE_COUNT <= OVERLAP_ROUTES, "the page has no room for so many routes");

/* ThreadSanitizer does not see what inline assembly writes, so instrumented builds use atomic operations instead. */
#ifdef __SANITIZE_THREAD__
#define OVERLAP_TELLS_THREADS
#elif defined __has_feature
#if __has_feature(thread_sanitizer)
#define OVERLAP_TELLS_THREADS
#endif
#endif

#define OVERLAP_NO_RULE UINT32_MAX
#define OVERLAP_NO_POLICY UINT32_MAX

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

/* As overlap_match_any(), for a kernel: matches its name as the driver gives it, or its plain name. */
bool overlap_match_kernel(const struct overlap_view *view, struct overlap_span span, const char *kernel);

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

/* ---- Decision cache ----
 *
 * A hash table with chains. It maps (handle, threads, requested bytes, call site, device) and an interval of grid sizes
 * to a decision word. Readers take no lock and write nothing. A line of 64 bytes holds two intervals of one launch;
 * further intervals are in lines of their own. Lines are allocated contiguously: few kernels then touch few pages, and
 * lines lie in the order of first launch, which suits the processor's prefetcher. Apart from its words, a line is
 * written once, before it is published. An answer is invalidated by zeroing its word.
 */

/* The decision word: everything that the hot path needs, in one atomic load. 0: no answer. */
#define OVERLAP_WORD_SIZE_BITS 18 /* bits 0 to 17: dynamic bytes to launch with */
#define OVERLAP_WORD_SIZE_MASK ((UINT64_C(1) << OVERLAP_WORD_SIZE_BITS) - 1)
#define OVERLAP_WORD_REASON_SHIFT 18 /* bits 18 to 23 */
#define OVERLAP_WORD_VALID (UINT64_C(1) << 24)
#define OVERLAP_WORD_CHANGED (UINT64_C(1) << 25)       /* launched with another size than requested */
#define OVERLAP_WORD_DIRECT (UINT64_C(1) << 26)        /* needs no further check: unchanged, or proven */
#define OVERLAP_WORD_COMMUNICATION (UINT64_C(1) << 27) /* counted as communication, too; opens an overlap window */
#define OVERLAP_WORD_RAISED (UINT64_C(1) << 28)        /* counted as raised, too: the stream is */
#define OVERLAP_WORD_RAISED_LIMIT (UINT64_C(1) << 30)  /* the kernel's limit of dynamic bytes is known to suffice */
#define OVERLAP_WORD_CARVEOUT (UINT64_C(1) << 41)      /* requests the largest carve-out once the launch is changed */
#define OVERLAP_WORD_CLUSTER (UINT64_C(1) << 49)       /* in clusters: changed only if the cluster size was checked */
#define OVERLAP_WORD_WINDOWED (UINT64_C(1) << 51)      /* changed only inside overlap windows */
#define OVERLAP_WORD_ROW_SHIFT 55                      /* bits 55 to 63: its row */
_Static_assert(OVERLAP_ROWS <= 512 && OVERLAP_REASONS <= 64, "fields of the decision word");

static inline uint32_t overlap_word_reason(uint64_t word) {
    return (uint32_t)(word >> OVERLAP_WORD_REASON_SHIFT & 63);
}
static inline uint32_t overlap_word_row(uint64_t word) {
    return (uint32_t)(word >> OVERLAP_WORD_ROW_SHIFT);
}
struct overlap_answer {
    uint64_t grid; /* overlap_cache_grid(); 0: free */
    uint64_t word; /* decision word; 0: no answer */
};

struct overlap_cache_line {
    uint64_t handle, key; /* key: overlap_cache_key() */
    struct overlap_cache_line *next;
    uint32_t same, padding; /* next line with this hash of the handle: its number + 1; 0: none */
    struct overlap_answer answers[2];
};
_Static_assert(sizeof(struct overlap_cache_line) == 64, "one cache line of the processor");

#define OVERLAP_CACHE_BITS 18
#define OVERLAP_CACHE_CHAINS (UINT64_C(1) << OVERLAP_CACHE_BITS)
#define OVERLAP_CACHE_LINES (UINT64_C(1) << 18)
#define OVERLAP_CACHE_HANDLES (UINT64_C(1) << 14)

/* Zero-filled memory for the answers about more than 100,000 kernels. Pages become resident on first use. */
struct overlap_cache_memory {
    struct overlap_cache_line lines[OVERLAP_CACHE_LINES] __attribute__((aligned(64)));
    struct overlap_cache_line *chains[OVERLAP_CACHE_CHAINS]; /* by hash of handle and key */
    uint32_t handles[OVERLAP_CACHE_HANDLES];                 /* by hash of the handle: number of its first line + 1 */
    uint64_t used;                                           /* number of allocated lines */
};

struct overlap_cache {
    struct overlap_cache_line **chains; /* never NULL: an empty chain until memory is assigned */
    uint64_t mask;                      /* of byte offsets into `chains`; stored after it, loaded before it */
    struct overlap_cache_memory *memory;
};
#define OVERLAP_CACHE_EMPTY(chain) {.chains = (chain), .mask = 0, .memory = NULL}

/* Assigns the memory in which answers are kept from now on; it holds none yet. Idempotent. Readers may still use the
 * previous chains for a while. */
void overlap_cache_use(struct overlap_cache *cache, struct overlap_cache_memory *memory);

/* Returns the memory if all its lines are in use, else NULL. */
struct overlap_cache_memory *overlap_cache_full(const struct overlap_cache *cache);

/* The key of a call, which is cacheable with 1 to 1024 threads and less than 256 KiB requested. site: the return
 * address. Its page identifies the calling library, because two libraries never share a page; 36 bits hold the page
 * number of every user address of x86-64, and of aarch64 with 48-bit addresses. 1024 threads carry into the page
 * number, which yields the key of 0 threads on the next page: no launch has that one. */
static inline bool overlap_cacheable(uint64_t threads, uint32_t asked) {
    return threads - 1 < 1024 && asked <= OVERLAP_WORD_SIZE_MASK;
}
static inline uint64_t overlap_cache_key(uint64_t threads, uint32_t asked, uintptr_t site) {
    return ((uint64_t)(site >> 12) << 28) + (threads << 18) + asked;
}

/* Encodes an interval of grid sizes, in blocks: `maximum` in the upper half. */
static inline uint64_t overlap_cache_grid(uint64_t minimum, uint64_t maximum) {
    return maximum << 32 | minimum;
}

/* The top 8 bits of a handle are 0 in every address of a program. They distinguish variants of one kernel's launches,
 * which overlap_cache_forget() invalidates together. */
#define OVERLAP_CACHE_HANDLE_BITS 56
static inline uint64_t overlap_cache_plain(uint64_t handle) {
    return handle & ((UINT64_C(1) << OVERLAP_CACHE_HANDLE_BITS) - 1);
}

/* Returns the head of the chain for a launch. Handles are evenly spaced, and so are sizes, but in different bits, so
 * that one multiplication spreads both. */
#define OVERLAP_CACHE_FACTOR OVERLAP_FACTOR
#define OVERLAP_CACHE_MASK ((OVERLAP_CACHE_CHAINS - 1) * sizeof(struct overlap_cache_line *))
static inline struct overlap_cache_line **overlap_cache_chain(struct overlap_cache_line **chains, uint64_t mask,
                                                              uint64_t handle, uint64_t key) {
    const uint64_t hash = (handle + (key << 28 | key >> 36)) * OVERLAP_CACHE_FACTOR;
    return (struct overlap_cache_line **)((char *)chains + (hash >> (61 - OVERLAP_CACHE_BITS) & mask));
}

/* Returns the word of a launch in a chain and the interval of grids for which it holds, or 0. An interval never changes once its word has been published, so the
 * word is loaded first. */
static inline uint64_t overlap_cache_word(const struct overlap_cache_line *line, uint64_t handle, uint64_t key,
                                          uint64_t blocks, uint64_t *interval) {
    for (; line; line = line->next)
        for (int i = 0; line->handle == handle && line->key == key && i < 2; i++) {
            const uint64_t word = __atomic_load_n(&line->answers[i].word, __ATOMIC_ACQUIRE);
            const uint64_t grid = OVERLAP_RELAXED(line->answers[i].grid);
            if (word && blocks >= (grid & UINT32_MAX) && blocks <= grid >> 32) {
                *interval = grid;
                return word;
            }
        }
    return 0;
}

static inline uint64_t overlap_cache_find(const struct overlap_cache *cache, uint64_t handle, uint64_t key,
                                          uint64_t blocks, uint64_t *interval) {
    const uint64_t mask = __atomic_load_n(&cache->mask, __ATOMIC_ACQUIRE);
    struct overlap_cache_line **const chains = OVERLAP_RELAXED(cache->chains);
    return overlap_cache_word(__atomic_load_n(overlap_cache_chain(chains, mask, handle, key), __ATOMIC_ACQUIRE), handle,
                              key, blocks, interval);
}

/* Inserts an answer. False: no room, or another answer exists (the caller has its decision in any case). */
bool overlap_cache_keep(struct overlap_cache *cache, uint64_t handle, uint64_t key, uint64_t minimum, uint64_t maximum,
                        uint64_t word);

/* Replaces `word` by `better` wherever this handle and key have exactly `word`. */
void overlap_cache_replace(struct overlap_cache *cache, uint64_t handle, uint64_t key, uint64_t word, uint64_t better);

/* Invalidates every answer of a handle, in all its variants and on all devices, or the answers of all handles. */
void overlap_cache_forget(struct overlap_cache *cache, uint64_t handle);
void overlap_cache_forget_all(struct overlap_cache *cache);

/* ---- Statistics ---- */

/* Returns the calling thread's shard, and claims one at its first call. tid: the thread's id; alive: returns whether a
 * thread of this process still exists (core makes no system call). Returns the shared shard if all others are owned by
 * live threads. */
struct overlap_shard *overlap_shard_claim(struct overlap_page *page, uint32_t tid, bool (*alive)(uint32_t tid));

static inline struct overlap_shard *overlap_shard_shared(struct overlap_page *page) {
    return &page->shards[OVERLAP_SHARDS_FIRST - 1];
}
static inline bool overlap_shard_is_shared(const struct overlap_page *page, const struct overlap_shard *shard) {
    return shard == &page->shards[OVERLAP_SHARDS_FIRST - 1];
}

/* Returns the number of shards in the page. */
static inline uint32_t overlap_shard_count(const struct overlap_page *page) {
    const uint32_t more = __atomic_load_n(&page->more_shards, __ATOMIC_ACQUIRE);
    return OVERLAP_SHARDS_FIRST +
           (more < OVERLAP_SHARDS - OVERLAP_SHARDS_FIRST ? more : OVERLAP_SHARDS - OVERLAP_SHARDS_FIRST);
}

/* Adds to a counter that only one thread writes at a time. Other threads and processes may read it, and a signal
 * handler of the same thread may add to it between any two instructions. The addition is therefore one instruction
 * (x86-64), or is retried if interrupted (aarch64: an exception return clears the monitor). An atomic operation would
 * cost more than the launch that is counted. */
static inline __attribute__((always_inline)) void overlap_add_own(uint64_t *counter, uint64_t value) {
#if defined __x86_64__ && !defined OVERLAP_TELLS_THREADS
    __asm__("addq %1, %0" : "+m"(*counter) : "er"(value) : "cc");
#elif defined __aarch64__ && !defined __ARM_FEATURE_ATOMICS && !defined OVERLAP_TELLS_THREADS
    uint64_t sum; /* gcc would call libgcc for __atomic_fetch_add() */
    uint32_t again;
    __asm__("1:\tldxr %0, %2\n\tadd %0, %0, %3\n\tstxr %w1, %0, %2\n\tcbnz %w1, 1b"
            : "=&r"(sum), "=&r"(again), "+Q"(*counter)
            : "r"(value));
#else
    __atomic_fetch_add(counter, value, __ATOMIC_RELAXED);
#endif
}

/* Adds one to a counter of the shard: without an atomic operation in an owned shard, atomically in the shared one. */
void overlap_shard_add(const struct overlap_page *page, struct overlap_shard *shard, uint64_t *counter);

/* Must the next communication launch that this shard counts record its time? */
static inline bool overlap_sample_is_due(const struct overlap_shard *shard) {
    return OVERLAP_RELAXED(shard->counters[OVERLAP_COUNTER_COMMUNICATION]) >= OVERLAP_RELAXED(shard->sample_at);
}
/* Records the time of a communication launch if it is due. nanoseconds: the current time. */
void overlap_sample_take(struct overlap_page *page, struct overlap_shard *shard, uint64_t nanoseconds);

/* ---- Rows of the statistics page (rows.c) ---- */

/* Finds or claims the row for such launches. `key`, `state` and the names in `facts` are ignored. kernel, library: may be
 * NULL. Without a free row the launches are counted in the rule's row for all its kernels, else in the row of the
 * reason. */
uint32_t overlap_row_claim(struct overlap_page *page, const struct overlap_row *facts, const char *kernel,
                           const char *library, uint32_t reason);

/* Finds or claims the row for launches that differ from those of `row` in their reason only. */
uint32_t overlap_row_of_reason(struct overlap_page *page, uint32_t row, uint32_t reason);

/* Fills in, for each row, the reason that it counts: a valid index even on a damaged page. */
void overlap_row_reasons(const struct overlap_page *page, uint32_t *reasons);
