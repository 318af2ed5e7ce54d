/* The slow path of the decision cache: inserting and invalidating answers. core.h describes the layout.
 *
 * Memory order: a line is complete before it is published, with release, as the head of its chain. An interval is
 * claimed by compare-and-swap; its word is published with release after that, and loaded with acquire before the
 * interval is read.
 */
#include "core.h"

/* `memory` is stored last: overlap_cache_forget() then finds every answer that is inserted from now on. */
void overlap_cache_use(struct overlap_cache *cache, struct overlap_cache_memory *memory) {
    __atomic_store_n(&cache->chains, memory->chains, __ATOMIC_RELEASE);
    __atomic_store_n(&cache->mask, OVERLAP_CACHE_MASK, __ATOMIC_RELEASE);
    __atomic_store_n(&cache->memory, memory, __ATOMIC_RELEASE);
}

/* NULL until overlap_cache_use() has been called. */
static struct overlap_cache_memory *memory_of(const struct overlap_cache *cache) {
    return __atomic_load_n(&cache->memory, __ATOMIC_ACQUIRE);
}

static struct overlap_cache_line **chain_of(struct overlap_cache_memory *memory, uint64_t handle, uint64_t key) {
    return overlap_cache_chain(memory->chains, OVERLAP_CACHE_MASK, handle, key);
}

/* Returns the first line that may hold the launch. NULL: there is none. */
static struct overlap_cache_line *first_of(const struct overlap_cache *cache, uint64_t handle, uint64_t key) {
    struct overlap_cache_memory *const memory = memory_of(cache);
    return memory ? __atomic_load_n(chain_of(memory, handle, key), __ATOMIC_ACQUIRE) : NULL;
}

struct overlap_cache_memory *overlap_cache_full(const struct overlap_cache *cache) {
    struct overlap_cache_memory *const memory = memory_of(cache);
    return memory && OVERLAP_RELAXED(memory->used) >= OVERLAP_CACHE_LINES ? memory : NULL;
}

/* Returns the head of the list of all lines of a handle, in all its variants (overlap_cache_plain()). */
static uint32_t *lines_of(struct overlap_cache_memory *memory, uint64_t handle) {
    return &memory->handles[overlap_cache_plain(handle) * OVERLAP_CACHE_FACTOR /
                            (UINT64_MAX / OVERLAP_CACHE_HANDLES + 1)];
}

/* Returns the line's answer for this interval, and claims a free one if needed. NULL: both answers hold other
 * intervals. */
static struct overlap_answer *answer_in(struct overlap_cache_line *line, uint64_t grid) {
    for (int i = 0; i < 2; i++) {
        uint64_t *const there = &line->answers[i].grid, current = __atomic_load_n(there, __ATOMIC_RELAXED);
        if (current == grid || (current == 0 && (__atomic_compare_exchange_n(there, &current, grid, false,
                                                                             __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
                                                 current == grid)))
            return &line->answers[i];
    }
    return NULL;
}

/* Adds a line with its first answer. The list of the handle gets the line before its chain does, so that
 * overlap_cache_forget() can find it before any reader does. False: all lines are in use. */
static bool add_line(struct overlap_cache_memory *memory, uint64_t handle, uint64_t key, struct overlap_answer answer) {
    struct overlap_cache_line **const chain = chain_of(memory, handle, key);
    if (OVERLAP_RELAXED(memory->used) >= OVERLAP_CACHE_LINES)
        return false;
    const uint64_t number = __atomic_fetch_add(&memory->used, 1, __ATOMIC_RELAXED);
    if (number >= OVERLAP_CACHE_LINES)
        return false;
    struct overlap_cache_line *const line = &memory->lines[number];
    line->handle = handle;
    line->key = key;
    line->answers[0].grid = answer.grid;
    __atomic_store_n(&line->answers[0].word, answer.word, __ATOMIC_RELAXED);
    uint32_t *const list = lines_of(memory, handle);
    line->same = __atomic_load_n(list, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(list, &line->same, (uint32_t)number + 1, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        ;
    line->next = __atomic_load_n(chain, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(chain, &line->next, line, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    return true;
}

bool overlap_cache_keep(struct overlap_cache *cache, uint64_t handle, uint64_t key, uint64_t minimum, uint64_t maximum,
                        uint64_t word) {
    struct overlap_cache_memory *const memory = memory_of(cache);
    if (!memory || minimum > UINT32_MAX || maximum == 0) /* 0 marks a free interval, and no grid is empty */
        return false;
    const uint64_t grid = overlap_cache_grid(minimum, maximum > UINT32_MAX ? UINT32_MAX : maximum);
    struct overlap_cache_line *line = first_of(cache, handle, key);
    for (; line; line = line->next) {
        struct overlap_answer *const answer = line->handle == handle && line->key == key ? answer_in(line, grid) : NULL;
        uint64_t none = 0;
        if (answer) /* another thread's word for this interval is equivalent */
            return __atomic_compare_exchange_n(&answer->word, &none, word, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
    return add_line(memory, handle, key, (struct overlap_answer){grid, word});
}

void overlap_cache_replace(struct overlap_cache *cache, uint64_t handle, uint64_t key, uint64_t word, uint64_t better) {
    struct overlap_cache_line *line = first_of(cache, handle, key);
    for (; line; line = line->next)
        for (int i = 0; line->handle == handle && line->key == key && i < 2; i++) {
            uint64_t expected = word;
            __atomic_compare_exchange_n(&line->answers[i].word, &expected, better, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED);
        }
}

static void withdraw(struct overlap_cache_line *line) {
    for (int i = 0; i < 2; i++)
        if (OVERLAP_RELAXED(line->answers[i].word))
            __atomic_store_n(&line->answers[i].word, 0, __ATOMIC_RELEASE);
}

void overlap_cache_forget(struct overlap_cache *cache, uint64_t handle) {
    struct overlap_cache_memory *const memory = memory_of(cache);
    uint32_t number = memory ? __atomic_load_n(lines_of(memory, handle), __ATOMIC_ACQUIRE) : 0;
    for (; number; number = memory->lines[number - 1].same)
        if (overlap_cache_plain(memory->lines[number - 1].handle) == overlap_cache_plain(handle))
            withdraw(&memory->lines[number - 1]);
}

void overlap_cache_forget_all(struct overlap_cache *cache) {
    struct overlap_cache_memory *const memory = memory_of(cache);
    const uint64_t used = memory ? __atomic_load_n(&memory->used, __ATOMIC_ACQUIRE) : 0;
    for (uint64_t i = 0; i < used && i < OVERLAP_CACHE_LINES; i++)
        withdraw(&memory->lines[i]);
}
