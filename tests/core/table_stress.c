/* The tables of gpu/table.c under readers without the lock: no reader ever sees the value of another key.
 * table_stress SECONDS THREADS
 *
 * Prints how often readers looked, how often there was a value, how many were wrong, and how many entries there are; then of one
 * thread alone how many answers were others than an array's, and how many entries are used when all keys are removed. */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

/* A thread may lose its processor before any store. */
static void pause_sometimes(void) {
    static __thread uint32_t count;
    if (++count % 61 == 0)
        sched_yield();
}
#define __atomic_store_n(object, value, order) (pause_sometimes(), __atomic_store_n(object, value, order))
#define __atomic_compare_exchange_n(...) (pause_sometimes(), __atomic_compare_exchange_n(__VA_ARGS__))
#include "gpu/table.c"

void *overlap_map(size_t size) {
    void *const made = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return made == MAP_FAILED ? NULL : made;
}

enum { KEYS = 3000 }; /* of which at most half have a value at a time */
static struct map map;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool stop;
static uint64_t finds, hits, wrong;

/* Handles lie at equal distances. The value says whose it is. */
static uint64_t key_of(uint32_t number) {
    return UINT64_C(0x7f0000001000) + number * UINT64_C(256);
}
static uint64_t value_of(uint32_t number, uint32_t round) {
    return (uint64_t)round << 32 | (number + 1);
}

static void *look(void *argument) {
    uint64_t looked = 0, had = 0, bad = 0, seed = (uintptr_t)argument;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        const uint32_t number = (uint32_t)(seed >> 33) % KEYS;
        const uint64_t value = map_get(&map, key_of(number));
        looked++;
        had += value != 0;
        bad += value && (uint32_t)value != number + 1;
    }
    __atomic_fetch_add(&finds, looked, __ATOMIC_RELAXED);
    __atomic_fetch_add(&hits, had, __ATOMIC_RELAXED);
    __atomic_fetch_add(&wrong, bad, __ATOMIC_RELAXED);
    return NULL;
}

static void *change(void *argument) {
    uint64_t seed = (uintptr_t)argument;
    for (uint32_t round = 1; !__atomic_load_n(&stop, __ATOMIC_RELAXED); round++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        const uint32_t number = (uint32_t)(seed >> 33) % KEYS;
        pthread_mutex_lock(&lock);
        if (seed & 1)
            map_put(&map, key_of(number), value_of(number, round));
        else
            map_put(&map, key_of(number), 0);
        pthread_mutex_unlock(&lock);
        const uint64_t before = seed & 2 ? map_get(&map, key_of(number)) : 0;
        if (before)
            map_replace(&map, key_of(number), before, value_of(number, round));
    }
    return NULL;
}

/* Puts and removes more keys than the first entries have room for, and asks for all of them. */
static uint64_t differences(struct map *own) {
    enum { MANY = 20000 };
    static uint64_t values[MANY];
    uint64_t differ = 0, seed = 7;
    for (uint32_t round = 1; round <= 8; round++) {
        for (uint32_t i = 0; i < MANY; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            const uint32_t number = (uint32_t)(seed >> 33) % MANY;
            values[number] = round < 8 && seed & 1 ? value_of(number, round) : 0;
            differ += !map_put(own, key_of(number), values[number]);
        }
        for (uint32_t i = 0; i < MANY; i++)
            differ += map_get(own, key_of(i)) != values[i];
    }
    for (uint32_t i = 0; i < MANY; i++)
        map_put(own, key_of(i), 0);
    return differ;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    const int threads = atoi(argv[2]);
    pthread_t all[64];
    for (intptr_t i = 0; i < threads && i < 64; i++)
        pthread_create(&all[i], NULL, i % 2 ? look : change, (void *)(i + 1));
    const struct timespec duration = {.tv_sec = atoi(argv[1])};
    nanosleep(&duration, NULL);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < threads && i < 64; i++)
        pthread_join(all[i], NULL);
    struct map own = {0};
    const uint64_t differ = differences(&own);
    printf("%llu %llu %llu %u %llu %u\n", (unsigned long long)finds, (unsigned long long)hits,
           (unsigned long long)wrong, 1U << map.entries->bits, (unsigned long long)differ, own.entries->used);
    return 0;
}
