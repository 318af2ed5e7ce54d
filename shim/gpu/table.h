/* The one lock, and the tables behind it: records by number, and numbers by key. Memory is mapped in pieces when it is first
 * needed, and never unmapped or moved: a process without a GPU has none, and a reader without the lock may look at a
 * record that has ended, but never at memory that is gone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* ---- The lock of the slow paths: tables, judgements, captures (lock.c) ----
 *
 * Never held across a call of the driver, because profilers call back from any of them. lock_take() fails, and the caller
 * does as the program asked without us, if this thread holds the lock already (a signal handler has interrupted the
 * holder) or the holder does not leave it for a second (it was stopped; later attempts then fail at once until it is
 * left). That second is the longest time that a thread waits here. */

bool lock_take(void);
void lock_leave(void);
/* In a forked child, where the holder may not exist. */
void lock_forked(void);

/* ---- Records of one size, numbered from 1 ---- */

enum { POOL_CHUNK_BITS = 12, POOL_CHUNKS = 64 }; /* at most 262,144 records, mapped by 4,096 */

struct pool {
    uint32_t size; /* of a record in bytes; a record begins with uint32_t next, of the list that it is in */
    uint32_t most;
    uint32_t used; /* numbers up to this one have been taken at some time */
    uint32_t free; /* first of the list of free records; 0: none */
    char *chunks[POOL_CHUNKS];
};
#define POOL_OF(type, most)                                                                                            \
    {                                                                                                                  \
        sizeof(struct type), (most), 0, 0, {                                                                           \
            NULL                                                                                                       \
        }                                                                                                              \
    }

/* Returns the record of a number that pool_take() has returned. Needs no lock. */
static inline void *pool_at(const struct pool *pool, uint32_t number) {
    char *const chunk = __atomic_load_n(&pool->chunks[(number - 1) >> POOL_CHUNK_BITS], __ATOMIC_ACQUIRE);
    return chunk + (size_t)((number - 1) & ((1U << POOL_CHUNK_BITS) - 1)) * pool->size;
}

/* Takes a free record, which keeps its former content. 0: all are in use, or the system has no memory. */
uint32_t pool_take(struct pool *pool);
void pool_give(struct pool *pool, uint32_t number);

/* ---- Values by key ---- */

enum { MAP_LEAST_BITS = 12, MAP_MOST_BITS = 18 };

struct map_entry {
    uint64_t key; /* 0: never used; MAP_GONE: removed */
    uint64_t value;
};
struct map_entries {
    uint32_t bits; /* 1 << bits entries */
    uint32_t used; /* keys that are not 0 */
    struct map_entry at[];
};
struct map {
    struct map_entries *entries; /* NULL before the first key */
};

/* Returns the value of a key; 0: none. Needs no lock. */
uint64_t map_get(const struct map *map, uint64_t key);

/* Sets the value of a key; 0 removes it. False: there is no room. */
bool map_put(struct map *map, uint64_t key, uint64_t value);

/* Replaces the value of a key if it is still `before`. Needs no lock; a change beside map_put() of the same key may be
 * lost. */
void map_replace(const struct map *map, uint64_t key, uint64_t before, uint64_t value);

#pragma GCC visibility pop
