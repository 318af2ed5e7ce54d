/* The decision cache under threads that keep, find, replace and forget: never an answer of another key, or for another
 * grid.
 *
 * Every word says whose it is: its 18 bits of size are a hash of (handle, key, interval). One key of each handle is
 * chosen so that its lines are in the chain of another key. cache_stress SECONDS THREADS
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/core.h"

static struct overlap_cache_memory memory;
static struct overlap_cache cache = OVERLAP_CACHE_EMPTY(memory.chains);
static bool stop;
static uint64_t finds, hits, wrong;

struct entry {
    uint64_t handle, key, minimum, maximum;
};

enum { HANDLES = 32 };
static uint64_t colliding[HANDLES]; /* a key with the chain of first_key() */

static uint64_t handle_of(uint64_t number) {
    return 0x7f0000000000 + (number & 15) * 16 + (number >> 4 & 1) * 4096;
}

static uint64_t first_key(void) {
    return overlap_cache_key(32, 0, 0x400000);
}

static void find_colliding(uint64_t number) {
    struct overlap_cache_line **const chain =
        overlap_cache_chain(memory.chains, OVERLAP_CACHE_MASK, handle_of(number), first_key());
    for (uint64_t threads = 64; !colliding[number] && threads <= 1024; threads += 32)
        for (uint32_t asked = 0; !colliding[number] && asked <= OVERLAP_WORD_SIZE_MASK; asked += 4) {
            const uint64_t key = overlap_cache_key(threads, asked, 0x400000);
            if (overlap_cache_chain(memory.chains, OVERLAP_CACHE_MASK, handle_of(number), key) == chain)
                colliding[number] = key;
        }
}

/* Few handles and keys, so that threads meet; intervals that touch, as decide() makes them. The last row has no grid.
 */
static struct entry entry_of(uint64_t random) {
    static const uint64_t intervals[][2] = {{1, 100}, {101, 5000}, {5001, UINT64_MAX}, {0, 0}};
    const uint64_t *interval = intervals[random >> 20 & 3];
    const uint64_t number = random >> 8 & (HANDLES - 1), key = random >> 4 & 3;
    return (struct entry){handle_of(number),
                          key == 3   ? colliding[number]
                          : key == 2 ? first_key()
                                     : overlap_cache_key(64 + key * 32, 0, 0x400000 + (random & 1) * 0x1000),
                          interval[0], interval[1]};
}

static uint64_t word_of(const struct entry *e) {
    uint64_t hash = (e->handle ^ e->key * 31 ^ e->minimum * 1299709) * UINT64_C(0x9E3779B97F4A7C15);
    return hash >> 46 | OVERLAP_WORD_VALID;
}

/* As kept: the largest grid that is told from others. */
static uint64_t interval_of(const struct entry *e) {
    return overlap_cache_grid(e->minimum, e->maximum > UINT32_MAX ? UINT32_MAX : e->maximum);
}

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return *state >> 8;
}

static void *work(void *argument) {
    uint64_t state = (uint64_t)(uintptr_t)argument * 0x9E3779B9 + 1, mine = 0, found = 0;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        const uint64_t random = next(&state);
        struct entry e = entry_of(random);
        const unsigned what = random >> 40 & 63;
        if (what == 0) {
            overlap_cache_forget(&cache, e.handle);
        } else if (what == 1 && (random >> 50 & 63) == 0) {
            overlap_cache_forget_all(&cache);
        } else if (what < 12) {
            overlap_cache_keep(&cache, e.handle, e.key, e.minimum, e.maximum, word_of(&e));
        } else if (what < 16) {
            overlap_cache_replace(&cache, e.handle, e.key, word_of(&e), word_of(&e) | OVERLAP_WORD_DIRECT);
        } else {
            const uint64_t blocks = e.maximum == UINT64_MAX ? e.minimum + (random >> 30 & 0xffff)
                                                            : e.minimum + (random >> 30) % (e.maximum - e.minimum + 1);
            uint64_t interval = 0;
            const uint64_t word = overlap_cache_find(&cache, e.handle, e.key, blocks, &interval);
            mine++;
            found += word != 0;
            if (word ? (word & ~OVERLAP_WORD_DIRECT) != word_of(&e) || interval != interval_of(&e) : interval != 0)
                __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
        }
    }
    __atomic_fetch_add(&finds, mine, __ATOMIC_RELAXED);
    __atomic_fetch_add(&hits, found, __ATOMIC_RELAXED);
    return NULL;
}

int main(int argc, char **argv) {
    overlap_cache_use(&cache, &memory);
    if (argc != 3)
        return 2;
    enum { MOST = 64 };
    const long count = atol(argv[2]) < MOST ? atol(argv[2]) : MOST;
    pthread_t threads[MOST];
    for (uint64_t number = 0; number < HANDLES; number++) {
        find_colliding(number);
        if (!colliding[number])
            return 2;
    }
    for (long i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i + 1)))
            return 2;
    const struct timespec wait = {.tv_sec = atol(argv[1])};
    nanosleep(&wait, NULL);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (long i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    /* In the end nothing of a forgotten handle is left. */
    overlap_cache_forget_all(&cache);
    for (uint64_t i = 0; i < 4096; i++) {
        const struct entry e = entry_of(i << 4 | (i & 15) | (i & 3) << 20);
        uint64_t interval;
        wrong += overlap_cache_find(&cache, e.handle, e.key, e.minimum, &interval) != 0;
    }
    printf("%llu %llu %llu\n", (unsigned long long)finds, (unsigned long long)hits, (unsigned long long)wrong);
    return wrong != 0;
}
