/* See table.h. A map is an open hash table with linear probing. Its entries are written under the lock, and read
 * without: a reader loads key, value and key again, and a key is stored after its value. */
#include <string.h>

#include "../sys/sys.h"
#include "../text.h"
#include "table.h"

/* ---- Records ---- */

static bool has_chunk(struct pool *pool, uint32_t chunk) {
    if (!pool->chunks[chunk])
        __atomic_store_n(&pool->chunks[chunk], overlap_map((size_t)pool->size << POOL_CHUNK_BITS), __ATOMIC_RELEASE);
    return pool->chunks[chunk];
}

uint32_t pool_take(struct pool *pool) {
    const uint32_t free = pool->free;
    if (free) {
        pool->free = *(const uint32_t *)pool_at(pool, free);
        return free;
    }
    if (pool->used == pool->most || !has_chunk(pool, pool->used >> POOL_CHUNK_BITS))
        return 0;
    __atomic_store_n(&pool->used, pool->used + 1, __ATOMIC_RELEASE);
    return pool->used;
}

void pool_give(struct pool *pool, uint32_t number) {
    *(uint32_t *)pool_at(pool, number) = pool->free;
    pool->free = number;
}

/* ---- Values by key ---- */

#define MAP_GONE UINT64_MAX

static size_t bytes_of(uint32_t bits) {
    return sizeof(struct map_entries) + (sizeof(struct map_entry) << bits);
}

static struct map_entry *entry_at(const struct map_entries *entries, uint64_t key, uint32_t probe) {
    const uint32_t at = (overlap_spread(key, entries->bits) + probe) & ((1U << entries->bits) - 1);
    return (struct map_entry *)&entries->at[at];
}

/* Returns the entry of a key, or NULL. *spare: the first one that may take the key, or NULL. */
static struct map_entry *find(const struct map_entries *entries, uint64_t key, struct map_entry **spare) {
    *spare = NULL;
    for (uint32_t probe = 0; entries && probe < 1U << entries->bits; probe++) {
        struct map_entry *const entry = entry_at(entries, key, probe);
        const uint64_t there = __atomic_load_n(&entry->key, __ATOMIC_ACQUIRE);
        if (there == key)
            return entry;
        if (!*spare && (there == 0 || there == MAP_GONE))
            *spare = entry;
        if (there == 0)
            break;
    }
    return NULL;
}

static const struct map_entries *entries_of(const struct map *map) {
    return __atomic_load_n(&map->entries, __ATOMIC_ACQUIRE);
}

uint64_t map_get(const struct map *map, uint64_t key) {
    struct map_entry *spare;
    const struct map_entry *const entry = key ? find(entries_of(map), key, &spare) : NULL;
    if (!entry)
        return 0;
    const uint64_t value = __atomic_load_n(&entry->value, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&entry->key, __ATOMIC_RELAXED) == key ? value : 0; /* else removed meanwhile */
}

void map_replace(const struct map *map, uint64_t key, uint64_t before, uint64_t value) {
    struct map_entry *spare, *const entry = find(entries_of(map), key, &spare);
    if (entry) /* unless another key has the entry by now */
        __atomic_compare_exchange_n(&entry->value, &before, value, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static void add(struct map_entries *entries, struct map_entry *entry, uint64_t key, uint64_t value) {
    entries->used += entry->key == 0;
    __atomic_store_n(&entry->value, value, __ATOMIC_RELEASE);
    __atomic_store_n(&entry->key, key, __ATOMIC_RELEASE);
}

/* At most half of the entries are used, so that probes are short. Readers may still use the former entries. */
static struct map_entries *grown(struct map *map) {
    struct map_entries *const before = map->entries;
    if (before && (before->used < 1U << (before->bits - 1) || before->bits == MAP_MOST_BITS))
        return before;
    const uint32_t bits = before ? before->bits + 1 : MAP_LEAST_BITS;
    struct map_entries *const made = overlap_map(bytes_of(bits));
    if (!made)
        return before;
    made->bits = bits;
    for (uint32_t i = 0; before && i < 1U << before->bits; i++) {
        struct map_entry *spare;
        const struct map_entry *const from = &before->at[i];
        if (from->key && from->key != MAP_GONE && !find(made, from->key, &spare) && spare)
            add(made, spare, from->key, __atomic_load_n(&from->value, __ATOMIC_RELAXED));
    }
    __atomic_store_n(&map->entries, made, __ATOMIC_RELEASE);
    return made;
}

/* A removed entry in front of an unused one is unused again: no probe goes on behind it. */
static void remove_entry(struct map_entries *entries, struct map_entry *entry) {
    const uint32_t mask = (1U << entries->bits) - 1;
    uint32_t at = (uint32_t)(entry - entries->at);
    __atomic_store_n(&entry->key, MAP_GONE, __ATOMIC_RELEASE);
    for (; entries->at[at].key == MAP_GONE && entries->at[(at + 1) & mask].key == 0; at = (at - 1) & mask) {
        __atomic_store_n(&entries->at[at].key, 0, __ATOMIC_RELEASE);
        entries->used--;
    }
}

bool map_put(struct map *map, uint64_t key, uint64_t value) {
    struct map_entry *spare, *entry;
    if (key == 0 || key == MAP_GONE)
        return false;
    entry = find(map->entries, key, &spare);
    if (entry && value)
        __atomic_store_n(&entry->value, value, __ATOMIC_RELEASE);
    else if (entry)
        remove_entry(map->entries, entry);
    else if (value) {
        struct map_entries *const entries = grown(map);
        find(entries, key, &spare);
        if (!spare || (spare->key == 0 && entries->used + 1 > (1U << entries->bits) / 4 * 3))
            return false;
        add(entries, spare, key, value);
    }
    return true;
}
