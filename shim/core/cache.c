/* The slow half of the decision cache: searching all lines of a handle, keeping, withdrawing. See core.h for the
 * layout.
 *
 * Memory order: handle, key and interval are claimed by compare-and-swap, in this order, and never change again; the
 * word is published with release after them, and loaded with acquire before the interval.
 */
#include "core.h"

static struct overlap_cache_line *line_at(const struct overlap_cache *cache, uint64_t handle, uint64_t probe) {
    return overlap_cache_line_at(cache, overlap_cache_hash(handle) + probe);
}

void overlap_cache_use(struct overlap_cache *cache, struct overlap_cache_line *lines, uint64_t count) {
    __atomic_store_n(&cache->lines, lines, __ATOMIC_RELAXED);
    __atomic_store_n(&cache->mask, (count - 1) * sizeof *lines, __ATOMIC_RELEASE);
}

static bool is_in_use(const struct overlap_cache *cache) {
    return __atomic_load_n(&cache->mask, __ATOMIC_ACQUIRE) != 0;
}

uint64_t overlap_cache_find(const struct overlap_cache *cache, uint64_t handle, uint64_t key, uint64_t blocks) {
    for (uint64_t probe = 0; probe < OVERLAP_CACHE_PROBES; probe++) {
        const struct overlap_cache_line *line = line_at(cache, handle, probe);
        uint64_t owner = __atomic_load_n(&line->handle, __ATOMIC_RELAXED);
        if (owner == 0)
            return 0;
        if (owner != handle)
            continue;
        for (int i = 0; i < 2; i++) {
            uint64_t word = overlap_answer_word(&line->answers[i], key, blocks);
            if (word & OVERLAP_WORD_VALID)
                return word;
        }
    }
    return 0;
}

/* True if the slot now belongs to the wanted value: it did already, or it was free and we took it. */
static bool claim(uint64_t *slot, uint64_t wanted) {
    uint64_t current = __atomic_load_n(slot, __ATOMIC_RELAXED);
    if (current == 0 && __atomic_compare_exchange_n(slot, &current, wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return true;
    return current == wanted;
}

bool overlap_cache_keep(struct overlap_cache *cache, uint64_t handle, uint64_t key, uint64_t minimum, uint64_t maximum,
                        uint64_t word) {
    if (!is_in_use(cache) || minimum > UINT32_MAX ||
        maximum == 0) /* an interval of 0 looks like a free one, and no grid is empty */
        return false;
    if (maximum > UINT32_MAX)
        maximum = UINT32_MAX;
    const uint64_t grid = overlap_cache_grid(minimum, maximum);
    for (uint64_t probe = 0; probe < OVERLAP_CACHE_PROBES; probe++) {
        struct overlap_cache_line *line = line_at(cache, handle, probe);
        if (!claim(&line->handle, handle))
            continue;
        for (int i = 0; i < 2; i++) {
            struct overlap_answer *answer = &line->answers[i];
            if (!claim(&answer->key, key) || !claim(&answer->grid, grid))
                continue; /* of another launch, or of the same one with other grids */
            uint64_t none = 0;
            /* Release: whoever sees the word sees the interval. A word that is there already says the same. */
            return __atomic_compare_exchange_n(&answer->word, &none, word, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
        }
    }
    return false;
}

void overlap_cache_replace(struct overlap_cache *cache, uint64_t handle, uint64_t key, uint64_t word, uint64_t better) {
    for (uint64_t probe = 0; probe < OVERLAP_CACHE_PROBES; probe++) {
        struct overlap_cache_line *line = line_at(cache, handle, probe);
        uint64_t owner = __atomic_load_n(&line->handle, __ATOMIC_RELAXED);
        if (owner == 0)
            return;
        for (int i = 0; owner == handle && i < 2; i++) {
            uint64_t expected = word;
            if (__atomic_load_n(&line->answers[i].key, __ATOMIC_RELAXED) == key)
                __atomic_compare_exchange_n(&line->answers[i].word, &expected, better, false, __ATOMIC_RELEASE,
                                            __ATOMIC_RELAXED);
        }
    }
}

static void withdraw(struct overlap_cache_line *line) {
    __atomic_store_n(&line->answers[0].word, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&line->answers[1].word, 0, __ATOMIC_RELEASE);
}

void overlap_cache_forget(struct overlap_cache *cache, uint64_t handle) {
    handle = overlap_cache_plain(handle);
    for (uint64_t probe = 0; probe < OVERLAP_CACHE_PROBES; probe++) {
        struct overlap_cache_line *line = line_at(cache, handle, probe);
        uint64_t owner = __atomic_load_n(&line->handle, __ATOMIC_RELAXED);
        if (owner == 0)
            return;
        if (overlap_cache_plain(owner) == handle)
            withdraw(line);
    }
}

void overlap_cache_forget_all(struct overlap_cache *cache) {
    for (uint64_t i = 0; is_in_use(cache) && i <= cache->mask / sizeof *cache->lines; i++)
        if (__atomic_load_n(&cache->lines[i].handle, __ATOMIC_RELAXED) != 0)
            withdraw(&cache->lines[i]);
}
