/* The header of core/ (overlap windows have one more, window.h): pure functions of launches, policies and GPUs.
 *
 * Rules of this folder: no operating system, no vendor, no allocation, no global but the current statistics page. No lock but one:
 * the order model has a spin lock for its tables of streams and events (overlap_order_locked()), which no cached launch
 * takes. Everything that Python may call as well is declared in overlap_abi.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "../abi.h"

enum overlap_reason {
#define REASON(name, shapes, sentence) OVERLAP_REASON_##name,
#include "reason.def"
#undef REASON
    OVERLAP_REASON_COUNT
};
_Static_assert(OVERLAP_REASON_COUNT <= OVERLAP_REASONS, "the page has no room for so many reasons");

enum overlap_way {
#define WAY(name) OVERLAP_WAY_##name,
#include "way.def"
#undef WAY
    OVERLAP_WAY_COUNT
};
_Static_assert(OVERLAP_WAY_COUNT <= OVERLAP_WAYS, "the page has no room for so many ways in");

/* ThreadSanitizer does not see what inline assembly writes. */
#ifdef __SANITIZE_THREAD__
#define OVERLAP_TELLS_THREADS
#elif defined __has_feature
#if __has_feature(thread_sanitizer)
#define OVERLAP_TELLS_THREADS
#endif
#endif

#define OVERLAP_NO_RULE UINT32_MAX
#define OVERLAP_NO_POLICY UINT32_MAX

/* ---- A checked table, taken apart ---- */

struct overlap_view {
    const struct overlap_table *table;
    const struct overlap_policy *policies;
    const struct overlap_rule *rules;
    const uint32_t *patterns;
    const char *strings;
};

/* table: accepted by overlap_table_check(). */
struct overlap_view overlap_table_view(const void *table);

/* Does one pattern of the span match the text? */
bool overlap_match_any(const struct overlap_view *view, struct overlap_span span, const char *text);

/* The same for a kernel: its name as the driver gives it, or its plain name. */
bool overlap_match_kernel(const struct overlap_view *view, struct overlap_span span, const char *kernel);

/* Does a library launch nothing but communication? basename: of its file. */
bool overlap_is_communication_library(const char *basename);

/* Does the policy let this communication kernel be raised? kernel: NULL where its name is not known. */
bool overlap_may_raise(const struct overlap_view *view, const struct overlap_policy *policy, const char *kernel,
                       const char *basename);

/* ---- Arithmetic that occupancy.c and planner.c share ---- */

/* What one block takes, in units of the multiprocessor. 64-bit, so that absurd footprints cannot wrap. */
struct overlap_demand {
    uint64_t warps;
    uint64_t registers;        /* of one warp */
    uint64_t scalar_registers; /* of one warp */
    uint64_t shared;
    uint64_t barriers;
};

struct overlap_demand overlap_demand_of(const struct overlap_gpu *gpu, const struct overlap_footprint *footprint);

/* What stops one block c from fitting beside so many blocks k, with warps spread evenly; NONE: it fits. */
enum overlap_limit overlap_beside(const struct overlap_gpu *gpu, uint64_t blocks, const struct overlap_demand *k,
                                  const struct overlap_demand *c);

/* What makes it impossible to launch such a block at all; NONE: nothing. */
enum overlap_limit overlap_impossible(const struct overlap_gpu *gpu, const struct overlap_footprint *footprint);

/* The least dynamic size, not below the one asked, of which no more than `blocks` fit by shared memory. */
uint64_t overlap_least_dynamic(const struct overlap_gpu *gpu, const struct overlap_footprint *footprint,
                               uint64_t blocks);

/* What a rule of this shape makes of a launch of which `native` blocks are resident as asked. */
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
 * From (handle, threads, asked bytes, call site, device) to a decision word, for an interval of grid sizes: a hash table with chains.
 * Readers take no lock and write nothing. A line of 64 bytes holds two intervals of one launch; further ones are in lines of their own.
 * Lines are allocated one behind the other, so that few kernels take little memory, and many the memory that they are launched from
 * in the order in which the processor fetches it. All of a line but its words is written once, before anyone finds it; an answer is
 * withdrawn by zeroing its word.
 */

/* The decision word: everything the hot path needs, in one atomic load. 0: no answer. Bits 43 to 47 are free. */
#define OVERLAP_WORD_SIZE_BITS 18 /* bits 0 to 17: dynamic bytes to launch with */
#define OVERLAP_WORD_SIZE_MASK ((UINT64_C(1) << OVERLAP_WORD_SIZE_BITS) - 1)
#define OVERLAP_WORD_REASON_SHIFT 18 /* bits 18 to 23 */
#define OVERLAP_WORD_VALID (UINT64_C(1) << 24)
#define OVERLAP_WORD_CHANGED (UINT64_C(1) << 25)       /* another size than asked */
#define OVERLAP_WORD_DIRECT (UINT64_C(1) << 26)        /* nothing to look at: not changed, or proven once */
#define OVERLAP_WORD_COMMUNICATION (UINT64_C(1) << 27) /* goes the way of communication launches */
#define OVERLAP_WORD_RAISE (UINT64_C(1) << 28)         /* ...at the priority in bits 32 to 39, two's complement */
#define OVERLAP_WORD_TRACED (UINT64_C(1) << 29)        /* --trace: every launch is written down */
#define OVERLAP_WORD_RAISED_LIMIT (UINT64_C(1) << 30)  /* the kernel's limit of dynamic bytes is known to suffice */
#define OVERLAP_WORD_AUTO (UINT64_C(1) << 31)          /* ...as long as the program sets none */
#define OVERLAP_WORD_PRIORITY_SHIFT 32
#define OVERLAP_WORD_LONG (UINT64_C(1) << 40)     /* more than one wave; matters to `auto` */
#define OVERLAP_WORD_CARVEOUT (UINT64_C(1) << 41) /* asks for the largest carve-out once it is really changed */
#define OVERLAP_WORD_BESIDE (UINT64_C(1) << 42)   /* STREAMED, and direct where its stream is not raised */
#define OVERLAP_WORD_UNUSED_SHIFT 43              /* bits 43 to 47: 0 in the cache, notes of a launch path */
#define OVERLAP_WORD_WATCHED (UINT64_C(1) << 48)  /* ends `auto` if it runs beside communication */
#define OVERLAP_WORD_STREAMED (UINT64_C(1) << 50) /* computation: some streams are raised, is it on one of them? */
#define OVERLAP_WORD_CLUSTER (UINT64_C(1) << 49)  /* changed in clusters: those that were checked only */
/* Words that depend on where the launch is, or whose launch matters to others; none of them is DIRECT. */
#define OVERLAP_WORD_WINDOWED (UINT64_C(1) << 51) /* changed in overlap windows only */
#define OVERLAP_WORD_ORDERS (UINT64_C(1) << 52)   /* may order blocking streams: it may be on the default stream */
#define OVERLAP_WORD_PROVEN (UINT64_C(1) << 53)   /* the driver has taken the size once */
#define OVERLAP_WORD_ALWAYS (UINT64_C(1) << 54)   /* the rule asks for no windows; matters to the trace */
#define OVERLAP_WORD_ROW_SHIFT 55                 /* bits 55 to 63: the row that counts it, or the first of its group */
_Static_assert(OVERLAP_ROWS <= 512 && OVERLAP_REASONS <= 64, "fields of the decision word");

#define OVERLAP_WORD_OF_PRIORITY (UINT64_C(0xff) << OVERLAP_WORD_PRIORITY_SHIFT)

static inline uint32_t overlap_word_reason(uint64_t word) {
    return (uint32_t)(word >> OVERLAP_WORD_REASON_SHIFT & 63);
}
static inline uint32_t overlap_word_row(uint64_t word) {
    return (uint32_t)(word >> OVERLAP_WORD_ROW_SHIFT);
}
/* Those of hardware are a handful; what does not fit is the nearest that does. */
static inline uint64_t overlap_word_of_priority(int priority) {
    priority = priority < INT8_MIN ? INT8_MIN : priority > INT8_MAX ? INT8_MAX : priority;
    return (uint64_t)(uint8_t)priority << OVERLAP_WORD_PRIORITY_SHIFT;
}
static inline int overlap_word_priority(uint64_t word) {
    return (int8_t)(word >> OVERLAP_WORD_PRIORITY_SHIFT);
}

struct overlap_answer {
    uint64_t grid; /* overlap_cache_grid(), 0 while free */
    uint64_t word; /* 0: none */
};

struct overlap_cache_line {
    uint64_t handle, key; /* key: overlap_cache_key() */
    struct overlap_cache_line *next;
    uint32_t same, padding; /* number of another line of this handle or one like it, + 1; 0: none */
    struct overlap_answer answers[2];
};
_Static_assert(sizeof(struct overlap_cache_line) == 64, "one cache line of the processor");

#define OVERLAP_CACHE_BITS 18
#define OVERLAP_CACHE_CHAINS (UINT64_C(1) << OVERLAP_CACHE_BITS)
#define OVERLAP_CACHE_LINES (UINT64_C(1) << 18)
#define OVERLAP_CACHE_HANDLES (UINT64_C(1) << 14)

/* Room for the answers about 100,000 kernels and more, all zero. A page of it takes memory once it is used. */
struct overlap_cache_memory {
    struct overlap_cache_line lines[OVERLAP_CACHE_LINES] __attribute__((aligned(64)));
    struct overlap_cache_line *chains[OVERLAP_CACHE_CHAINS]; /* by hash of handle and key */
    struct overlap_cache_line *none[OVERLAP_CACHE_CHAINS];   /* never written: all empty */
    uint32_t handles[OVERLAP_CACHE_HANDLES];                 /* by hash of the handle: number of the first line, + 1 */
    uint64_t used;                                           /* lines */
};

struct overlap_cache {
    struct overlap_cache_line **chains; /* never NULL: an empty one until there are more */
    uint64_t mask;                      /* of byte offsets into them; stored after `chains`, and loaded before */
    struct overlap_cache_memory *memory;
    uint64_t hidden;
};
#define OVERLAP_CACHE_EMPTY(chain) {.chains = (chain), .mask = 0, .memory = NULL, .hidden = 0}

/* From now on answers are kept, in this memory, which holds none. Idempotent. What was used before may be read for a while. */
void overlap_cache_use(struct overlap_cache *cache, struct overlap_cache_memory *memory);

/* Hidden: overlap_cache_find(), as the hot path, finds nothing; overlap_cache_find_hidden() does. */
void overlap_cache_hide(struct overlap_cache *cache, bool hidden);

/* The memory, if there is no line left in it; or NULL. */
struct overlap_cache_memory *overlap_cache_full(const struct overlap_cache *cache);

/* The key of a call, if it is cacheable (threads 1 to 1024, asked below 256 KiB). site: return address; its page tells
 * the calling library, because no two libraries share a page; 36 bits of page hold every user address of x86-64, and of
 * aarch64 with 48-bit addresses. 1024 threads carry into the page, to where no launch can have no threads. */
static inline bool overlap_cacheable(uint64_t threads, uint32_t asked) {
    return threads - 1 < 1024 && asked <= OVERLAP_WORD_SIZE_MASK;
}
static inline uint64_t overlap_cache_key(uint64_t threads, uint32_t asked, uintptr_t site) {
    return ((uint64_t)(site >> 12) << 28) + (threads << 18) + asked;
}

/* Grids from minimum to maximum blocks, which is in the upper half. */
static inline uint64_t overlap_cache_grid(uint64_t minimum, uint64_t maximum) {
    return maximum << 32 | minimum;
}

/* The top bits of a handle, which no address of a program has, tell apart what is launched by one kernel in different
 * ways, all of which can be withdrawn together. */
#define OVERLAP_CACHE_HANDLE_BITS 56
static inline uint64_t overlap_cache_plain(uint64_t handle) {
    return handle & ((UINT64_C(1) << OVERLAP_CACHE_HANDLE_BITS) - 1);
}

/* The first line in which a launch may be. Handles lie at equal distances, as do sizes: one multiplication spreads both, and they
 * differ in other bits. hot_x86_64.S computes the same. */
#define OVERLAP_CACHE_FACTOR UINT64_C(0x9E3779B97F4A7C15)
#define OVERLAP_CACHE_MASK ((OVERLAP_CACHE_CHAINS - 1) * sizeof(struct overlap_cache_line *))
static inline struct overlap_cache_line **overlap_cache_chain(struct overlap_cache_line **chains, uint64_t mask,
                                                              uint64_t handle, uint64_t key) {
    const uint64_t hash = (handle + (key << 28 | key >> 36)) * OVERLAP_CACHE_FACTOR;
    return (struct overlap_cache_line **)((char *)chains + (hash >> (61 - OVERLAP_CACHE_BITS) & mask));
}

/* The word of a launch in a chain, or 0. The interval of an answer never changes once its word was published, so the word is loaded
 * first. */
static inline __attribute__((always_inline)) uint64_t overlap_cache_word(const struct overlap_cache_line *line,
                                                                         uint64_t handle, uint64_t key,
                                                                         uint64_t blocks) {
    for (; line; line = line->next)
        for (int i = 0; line->handle == handle && line->key == key && i < 2; i++) {
            const uint64_t word = __atomic_load_n(&line->answers[i].word, __ATOMIC_ACQUIRE);
            const uint64_t grid = __atomic_load_n(&line->answers[i].grid, __ATOMIC_RELAXED);
            if (word && blocks >= (grid & UINT32_MAX) && blocks <= grid >> 32)
                return word;
        }
    return 0;
}

static inline __attribute__((always_inline)) uint64_t overlap_cache_find(const struct overlap_cache *cache,
                                                                         uint64_t handle, uint64_t key,
                                                                         uint64_t blocks) {
    const uint64_t mask = __atomic_load_n(&cache->mask, __ATOMIC_ACQUIRE);
    struct overlap_cache_line **const chains = __atomic_load_n(&cache->chains, __ATOMIC_RELAXED);
    return overlap_cache_word(__atomic_load_n(overlap_cache_chain(chains, mask, handle, key), __ATOMIC_ACQUIRE), handle,
                              key, blocks);
}
uint64_t overlap_cache_find_hidden(const struct overlap_cache *cache, uint64_t handle, uint64_t key, uint64_t blocks);

/* Keeps an answer; false if there is no room or there is one already (the caller has its decision anyway). */
bool overlap_cache_keep(struct overlap_cache *cache, uint64_t handle, uint64_t key, uint64_t minimum, uint64_t maximum,
                        uint64_t word);

/* Replaces `word` by `better` wherever the key holds exactly `word`. */
void overlap_cache_replace(struct overlap_cache *cache, uint64_t handle, uint64_t key, uint64_t word, uint64_t better);

/* Withdraws every answer of a handle, however launched and on whatever device, or of all handles. */
void overlap_cache_forget(struct overlap_cache *cache, uint64_t handle);
void overlap_cache_forget_all(struct overlap_cache *cache);

/* ---- Statistics ---- */

/* The calling thread's shard; claims one at the first call of a thread. tid: the thread; alive: is that thread of ours
 * still there? (core makes no system call). Returns the shared shard if all others have an owner. */
struct overlap_shard *overlap_shard_claim(struct overlap_page *page, uint32_t tid, bool (*alive)(uint32_t tid));

static inline struct overlap_shard *overlap_shard_shared(struct overlap_page *page) {
    return &page->shards[OVERLAP_SHARDS_FIRST - 1];
}
static inline bool overlap_shard_is_shared(const struct overlap_page *page, const struct overlap_shard *shard) {
    return shard == &page->shards[OVERLAP_SHARDS_FIRST - 1];
}

/* How many there are, and the bytes of the page up to the last one. */
static inline uint32_t overlap_shard_count(const struct overlap_page *page) {
    const uint32_t more = __atomic_load_n(&page->more_shards, __ATOMIC_ACQUIRE);
    return OVERLAP_SHARDS_FIRST +
           (more < OVERLAP_SHARDS - OVERLAP_SHARDS_FIRST ? more : OVERLAP_SHARDS - OVERLAP_SHARDS_FIRST);
}

/* Adds to a counter that only one thread writes at a time. Other threads and processes may read it, and a signal handler of the
 * same thread may add to it at any instruction, so the addition is one instruction (x86-64), or is done again when anything came
 * between (aarch64: an exception return clears the monitor). No atomic operation: that costs more than the launch that is counted. */
static inline __attribute__((always_inline)) void overlap_add_own(uint64_t *counter, uint64_t value) {
#if defined __x86_64__ && !defined OVERLAP_TELLS_THREADS
    __asm__("addq %1, %0" : "+m"(*counter) : "er"(value) : "cc");
#elif defined __aarch64__ && !defined __ARM_FEATURE_ATOMICS && !defined OVERLAP_TELLS_THREADS
    uint64_t sum; /* not __atomic_fetch_add(): gcc calls a function of libgcc for that */
    uint32_t again;
    __asm__("1:\tldxr %0, %2\n\tadd %0, %0, %3\n\tstxr %w1, %0, %2\n\tcbnz %w1, 1b"
            : "=&r"(sum), "=&r"(again), "+Q"(*counter)
            : "r"(value));
#else
    __atomic_fetch_add(counter, value, __ATOMIC_RELAXED);
#endif
}

/* Adds one. Only the owner writes its shard, so plain loads and stores of 64 bits suffice; the shared one is added to
 * atomically. */
void overlap_shard_add(const struct overlap_page *page, struct overlap_shard *shard, uint64_t *counter);

/* Is the next communication launch counted here to leave its time? */
static inline bool overlap_sample_is_due(const struct overlap_shard *shard) {
    return __atomic_load_n(&shard->counters[OVERLAP_COUNTER_COMMUNICATION], __ATOMIC_RELAXED) >=
           __atomic_load_n(&shard->sample_at, __ATOMIC_RELAXED);
}
/* It leaves it. nanoseconds: the time now. */
void overlap_sample_take(struct overlap_page *page, struct overlap_shard *shard, uint64_t nanoseconds);

/* ---- Rows of the statistics page (rows.c) ---- */

/* Where a windowed launch is left alone: the row of its group, 1 to 3, by the reason; 0: it is none of those. */
static inline uint32_t overlap_row_step(uint32_t reason) {
    return reason == OVERLAP_REASON_not_overlapping  ? 1
           : reason == OVERLAP_REASON_window_expired ? 2
           : reason == OVERLAP_REASON_same_stream    ? 3
                                                     : 0;
}

/* The first row of the group for launches like this, found or claimed. facts: key, state and names are not looked at.
 * kernel, library: may be NULL. Where no room is left: the group of the rule, whatever the kernel; where none is left for
 * that: one that serves every rule; or the bare reason's row, which has no others beside it. */
uint32_t overlap_row_claim(struct overlap_page *page, const struct overlap_row *facts, const char *kernel,
                           const char *library, uint32_t reason, enum overlap_row_kind kind);

/* The row for launches of the same kernel, with what else tells the group at `row` apart, that have another reason. */
uint32_t overlap_row_of_reason(struct overlap_page *page, uint32_t row, uint32_t reason);

/* The reason that each row counts, and the row that has its record. Every index is given one, also of a damaged page. */
void overlap_row_reasons(const struct overlap_page *page, uint32_t *reasons, uint32_t *heads);

/* ---- Code objects of AMD ---- */

/* A kernel: its name, of so many bytes and no more, and the vector registers of a wave, accumulation registers included. */
typedef void overlap_kernel_found(void *context, const char *name, size_t length, uint32_t registers);

/* The kernels of an image for this architecture (gfx90a): of a code object, or of a bundle that is not compressed.
 * One may be found twice. size: UINT64_MAX where the image says itself how long it is. */
void overlap_code_kernels(const void *image, uint64_t size, const char *architecture, overlap_kernel_found *found,
                          void *context);
