/* Pure functions of launches, policies and GPUs. Overlap windows have headers of their own: sync_model.h and window.h.
 *
 * Rules of this folder: no operating system, no vendor, no allocation, no global but the current statistics page. There
 * is one lock: the model of sync_model.h has a spin lock for its tables of streams and events (overlap_sync_lock()),
 * which no cached launch takes. Functions that Python calls as well are declared in overlap_abi.h.
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
    const struct overlap_table_trial *trials;
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

/* Does the policy allow this communication kernel to be raised? kernel: its name, NULL if unknown; basename: of the
 * calling library. */
bool overlap_may_raise(const struct overlap_view *view, const struct overlap_policy *policy, const char *kernel,
                       const char *basename);

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
#define OVERLAP_WORD_COMMUNICATION (UINT64_C(1) << 27) /* takes the path of communication launches */
#define OVERLAP_WORD_RAISE (UINT64_C(1) << 28)         /* raised to the priority in bits 32 to 39 (two's complement) */
#define OVERLAP_WORD_TRACED (UINT64_C(1) << 29)        /* --trace: every launch is recorded */
#define OVERLAP_WORD_RAISED_LIMIT (UINT64_C(1) << 30)  /* the kernel's limit of dynamic bytes is known to suffice */
#define OVERLAP_WORD_AUTO (UINT64_C(1) << 31)          /* RAISE only while the program sets no priority */
#define OVERLAP_WORD_PRIORITY_SHIFT 32
#define OVERLAP_WORD_LONG (UINT64_C(1) << 40)     /* more than one wave; used by `auto` */
#define OVERLAP_WORD_CARVEOUT (UINT64_C(1) << 41) /* requests the largest carve-out once the launch is changed */
#define OVERLAP_WORD_BESIDE (UINT64_C(1) << 42)   /* STREAMED, but DIRECT on a stream that is not raised */
#define OVERLAP_WORD_UNUSED_SHIFT 43              /* bits 43 to 47: 0 in the cache, scratch bits of a launch path */
#define OVERLAP_WORD_WATCHED (UINT64_C(1) << 48)  /* ends `auto` if it runs beside communication */
#define OVERLAP_WORD_STREAMED (UINT64_C(1) << 50) /* computation, while some streams are raised: check its stream */
#define OVERLAP_WORD_CLUSTER (UINT64_C(1) << 49)  /* in clusters: changed only if the cluster size was checked */
/* Bits of words that depend on the launch's window, or whose launch affects other streams. None of these words is
 * DIRECT. */
#define OVERLAP_WORD_WINDOWED (UINT64_C(1) << 51) /* changed only inside overlap windows */
#define OVERLAP_WORD_ORDERS (UINT64_C(1) << 52)   /* may be on the default stream, and order blocking ones */
#define OVERLAP_WORD_PROVEN (UINT64_C(1) << 53)   /* the driver has accepted the size once */
#define OVERLAP_WORD_ALWAYS (UINT64_C(1) << 54)   /* the rule says `when: always`; used by the trace */
#define OVERLAP_WORD_ROW_SHIFT 55                 /* bits 55 to 63: its row, or the first row of its group */
_Static_assert(OVERLAP_ROWS <= 512 && OVERLAP_REASONS <= 64, "fields of the decision word");

#define OVERLAP_WORD_OF_PRIORITY (UINT64_C(0xff) << OVERLAP_WORD_PRIORITY_SHIFT)

static inline uint32_t overlap_word_reason(uint64_t word) {
    return (uint32_t)(word >> OVERLAP_WORD_REASON_SHIFT & 63);
}
static inline uint32_t overlap_word_row(uint64_t word) {
    return (uint32_t)(word >> OVERLAP_WORD_ROW_SHIFT);
}
/* Encodes a priority. Hardware offers only a handful; values outside -128 to 127 are clamped. */
static inline uint64_t overlap_word_of_priority(int priority) {
    priority = priority < INT8_MIN ? INT8_MIN : priority > INT8_MAX ? INT8_MAX : priority;
    return (uint64_t)(uint8_t)priority << OVERLAP_WORD_PRIORITY_SHIFT;
}
static inline int overlap_word_priority(uint64_t word) {
    return (int8_t)(word >> OVERLAP_WORD_PRIORITY_SHIFT);
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
    struct overlap_cache_line *none[OVERLAP_CACHE_CHAINS];   /* never written: all empty */
    uint32_t handles[OVERLAP_CACHE_HANDLES];                 /* by hash of the handle: number of its first line + 1 */
    uint64_t used;                                           /* number of allocated lines */
};

struct overlap_cache {
    struct overlap_cache_line **chains; /* never NULL: an empty chain until memory is assigned */
    uint64_t mask;                      /* of byte offsets into `chains`; stored after it, loaded before it */
    struct overlap_cache_memory *memory;
    uint64_t hidden;
};
#define OVERLAP_CACHE_EMPTY(chain) {.chains = (chain), .mask = 0, .memory = NULL, .hidden = 0}

/* Assigns the memory in which answers are kept from now on; it holds none yet. Idempotent. Readers may still use the
 * previous chains for a while. */
void overlap_cache_use(struct overlap_cache *cache, struct overlap_cache_memory *memory);

/* Hides the answers from overlap_cache_find() and from the hot path, but not from overlap_cache_find_hidden(). */
void overlap_cache_hide(struct overlap_cache *cache, bool hidden);

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
 * that one multiplication spreads both. hot_x86_64.S computes the same hash. */
#define OVERLAP_CACHE_FACTOR OVERLAP_FACTOR
#define OVERLAP_CACHE_MASK ((OVERLAP_CACHE_CHAINS - 1) * sizeof(struct overlap_cache_line *))
static inline struct overlap_cache_line **overlap_cache_chain(struct overlap_cache_line **chains, uint64_t mask,
                                                              uint64_t handle, uint64_t key) {
    const uint64_t hash = (handle + (key << 28 | key >> 36)) * OVERLAP_CACHE_FACTOR;
    return (struct overlap_cache_line **)((char *)chains + (hash >> (61 - OVERLAP_CACHE_BITS) & mask));
}

/* Returns the word of a launch in a chain, or 0. An interval never changes once its word has been published, so the
 * word is loaded first. */
static inline __attribute__((always_inline)) uint64_t overlap_cache_word(const struct overlap_cache_line *line,
                                                                         uint64_t handle, uint64_t key,
                                                                         uint64_t blocks) {
    for (; line; line = line->next)
        for (int i = 0; line->handle == handle && line->key == key && i < 2; i++) {
            const uint64_t word = __atomic_load_n(&line->answers[i].word, __ATOMIC_ACQUIRE);
            const uint64_t grid = OVERLAP_RELAXED(line->answers[i].grid);
            if (word && blocks >= (grid & UINT32_MAX) && blocks <= grid >> 32)
                return word;
        }
    return 0;
}

static inline __attribute__((always_inline)) uint64_t overlap_cache_find(const struct overlap_cache *cache,
                                                                         uint64_t handle, uint64_t key,
                                                                         uint64_t blocks) {
    const uint64_t mask = __atomic_load_n(&cache->mask, __ATOMIC_ACQUIRE);
    struct overlap_cache_line **const chains = OVERLAP_RELAXED(cache->chains);
    return overlap_cache_word(__atomic_load_n(overlap_cache_chain(chains, mask, handle, key), __ATOMIC_ACQUIRE), handle,
                              key, blocks);
}
uint64_t overlap_cache_find_hidden(const struct overlap_cache *cache, uint64_t handle, uint64_t key, uint64_t blocks);

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

/* Offset of the row in its group (1 to 3) for a windowed launch that is left alone for this reason; 0: any other
 * reason. */
static inline uint32_t overlap_row_step(uint32_t reason) {
    return reason == OVERLAP_REASON_not_overlapping  ? 1
           : reason == OVERLAP_REASON_window_expired ? 2
           : reason == OVERLAP_REASON_same_stream    ? 3
                                                     : 0;
}

/* Finds or claims the group for such launches, and returns its first row. `key`, `state` and the names in `facts` are
 * ignored. kernel, library: may be NULL. Without a free group the launches are counted in the rule's group for all its
 * kernels, else in a group for any rule, else in the row of the reason, which has no group. */
uint32_t overlap_row_claim(struct overlap_page *page, const struct overlap_row *facts, const char *kernel,
                           const char *library, uint32_t reason, enum overlap_row_kind kind);

/* Finds or claims the row for launches that differ from those of the group at `row` in their reason only. */
uint32_t overlap_row_of_reason(struct overlap_page *page, uint32_t row, uint32_t reason);

/* Fills in, for each row, the reason that it counts and the row that holds its record. Valid indices result even from a
 * damaged page. */
void overlap_row_reasons(const struct overlap_page *page, uint32_t *reasons, uint32_t *heads);

/* ---- Code objects of AMD ---- */

/* Called for each kernel. name: `length` bytes, not NUL-terminated; registers: vector registers per wave, accumulation
 * registers included. */
typedef void overlap_kernel_found(void *context, const char *name, size_t length, uint32_t registers);

/* Finds the kernels of an image for one architecture ("gfx90a"). The image is a code object or an uncompressed bundle.
 * A kernel may be reported twice. size: in bytes; UINT64_MAX if only the image itself says it. */
void overlap_code_kernels(const void *image, uint64_t size, const char *architecture, overlap_kernel_found *found,
                          void *context);
