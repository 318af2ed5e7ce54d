/* The lock-free table under threads that insert, find, replace and delete: slots_stress SECONDS THREADS
 *
 * A table of so few slots that all of them are reused all the time. Some keys are one thread's, which knows what it has put; others are
 * added to by all. A payload says whose it is, and points to a record that is written plainly before it is put.
 * Prints finds, those that found something, adds, how often two threads have met at a key, and how often anything was wrong.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A thread may be late, or lose its processor, before any load, store or swap. */
static __thread unsigned passed, lateness;
static void pause_sometimes(void) {
    passed = passed * 1664525 + 1013904223;
    for (volatile unsigned left = lateness ? passed >> 16 & lateness : 0; left; left--)
        ;
    if (passed >> 22 == 0)
        sched_yield();
}
#define __atomic_load_n(object, order) (pause_sometimes(), __atomic_load_n(object, order))
#define __atomic_store_n(object, value, order) (pause_sometimes(), __atomic_store_n(object, value, order))
#define __atomic_compare_exchange_n(object, before, after, weak, order, otherwise)                                     \
    (pause_sometimes(), __atomic_compare_exchange_n(object, before, after, weak, order, otherwise))

#include "core/slots.c"

enum {
    BITS = 5,
    MOST = 64,
    OWN = 3,
    SHARED = 3,
    VISITORS = 40,
    FEW_BITS = 3,
    FRESH_BITS = 7,
    FRESH = 64,
    RECORDS = 4096,
    TAG_SHIFT = 24
};

static struct overlap_slot table[1 << BITS];
static bool stop;
static uint64_t finds, hits, adds, wrong;
static struct record {
    uint64_t key, number;
} records[MOST][RECORDS];

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return *state >> 8;
}

static uint64_t key_of(uint64_t kind, uint64_t number) {
    return 0x7f0000000000 + kind * 0x100000 + number * 0x40;
}
static uint64_t tag_of(uint64_t key) {
    return key * UINT64_C(0x9E3779B97F4A7C15) >> 41; /* 23 bits, so no payload is the one that is none */
}

static void expect_at(bool right, int line) {
    if (!right && __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED) < 10)
        fprintf(stderr, "wrong at line %d\n", line);
}
#define expect(right) expect_at(right, __LINE__)

/* What is found must be the key's own, and as it was when it was put. */
static void look(uint64_t key, bool in_records) {
    const uint64_t found = overlap_slots_get(table, BITS, key);
    if (!found)
        return;
    expect(found >> TAG_SHIFT == tag_of(key));
    if (!in_records || found >> TAG_SHIFT != tag_of(key))
        return;
    const struct record *record = &records[found >> 12 & (MOST - 1)][found & (RECORDS - 1)];
    expect(record->key == key);
}

struct own {
    uint64_t thread, put[OWN], finds, hits, adds, next_record;
};

/* Replaces, deletes or inserts a key of this thread only: the table has what it has put last. */
static void change_own(struct own *own, uint64_t i, bool delete) {
    const uint64_t key = key_of(4 + own->thread, i);
    uint64_t after = 0;
    if (!delete && own->next_record < RECORDS) { /* written once: who has found an older one may still read that */
        records[own->thread][own->next_record] = (struct record){key, own->next_record};
        after = tag_of(key) << TAG_SHIFT | own->thread << 12 | own->next_record++;
    }
    const uint64_t before = overlap_slots_put(table, BITS, key, after);
    if (before == OVERLAP_SLOTS_FULL)
        expect(own->put[i] == 0); /* what is there can be replaced */
    else
        expect(before == own->put[i]), own->put[i] = after;
    expect(overlap_slots_get(table, BITS, key) == own->put[i]);
}

/* One more, or one less than all when it is more: no addition is lost. */
static void add_one(struct own *own, uint64_t key) {
    const uint64_t tag = tag_of(key) << TAG_SHIFT;
    uint64_t before = overlap_slots_get(table, BITS, key);
    while (!overlap_slots_swap(table, BITS, key, &before, before ? before + 1 : tag | 1))
        if (before == OVERLAP_SLOTS_FULL)
            return;
    expect(!before || before >> TAG_SHIFT == tag_of(key));
    own->adds++;
}

/* Takes all that was added. */
static uint64_t take(uint64_t key) {
    const uint64_t before = overlap_slots_put(table, BITS, key, 0);
    expect(!before || before >> TAG_SHIFT == tag_of(key));
    return before & ((1 << TAG_SHIFT) - 1);
}

static uint64_t taken;

static void *work(void *argument) {
    struct own own = {.thread = (uint64_t)(uintptr_t)argument};
    uint64_t state = own.thread * 0x9E3779B9 + 1, mine = 0;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        const uint64_t random = next(&state), what = random & 31, visitor = key_of(2, (random >> 8) % VISITORS);
        if (what < 4)
            change_own(&own, (random >> 8) % OWN, what == 0);
        else if (what < 10)
            add_one(&own, key_of(1, (random >> 8) % SHARED));
        else if (what < 12)
            mine += take(key_of(1, (random >> 8) % SHARED));
        else if (what < 18)
            overlap_slots_put(table, BITS, visitor, what < 15 ? tag_of(visitor) << TAG_SHIFT | 1 : 0);
        else if (what < 26)
            look(visitor, false);
        else
            look(key_of(4 + (random >> 8) % 8, (random >> 16) % OWN), true);
        own.finds++;
        own.hits += overlap_slots_get(table, BITS, visitor) != 0;
    }
    __atomic_fetch_add(&finds, own.finds, __ATOMIC_RELAXED);
    __atomic_fetch_add(&hits, own.hits, __ATOMIC_RELAXED);
    __atomic_fetch_add(&adds, own.adds, __ATOMIC_RELAXED);
    __atomic_fetch_add(&taken, mine, __ATOMIC_RELAXED);
    return NULL;
}

/* Two threads insert one key at the same moment, where a third one frees slots and takes them: it gets one slot. */
static pthread_barrier_t moment;
static struct overlap_slot few[1 << FEW_BITS];
static uint64_t inserted[2], met;
static bool over;

static void *meet(void *argument) {
    const uint64_t mine = (uint64_t)(uintptr_t)argument;
    passed = (unsigned)mine;
    lateness = 255;
    for (uint64_t round = 0;; round++) {
        const uint64_t key = key_of(3, round % VISITORS);
        uint64_t before = 0;
        bool full = false;
        if (!mine)
            over = __atomic_load_n(&stop, __ATOMIC_RELAXED);
        pthread_barrier_wait(&moment);
        if (over)
            return NULL;
        while (!full && !overlap_slots_swap(few, FEW_BITS, key, &before, before + 1))
            full = before == OVERLAP_SLOTS_FULL;
        inserted[mine] = !full;
        pthread_barrier_wait(&moment);
        if (mine)
            continue;
        expect(overlap_slots_put(few, FEW_BITS, key, 0) == inserted[0] + inserted[1]);
        met += inserted[0] + inserted[1] == 2;
    }
}

/* One thread inserts keys into an empty table while another one looks up keys that are never inserted. */
static pthread_barrier_t begun;
static struct overlap_slot fresh[1 << FRESH_BITS];
static bool ended;

static void *miss(void *argument) {
    const uint64_t mine = (uint64_t)(uintptr_t)argument;
    passed = (unsigned)mine;
    lateness = 63;
    for (;;) {
        if (!mine)
            ended = __atomic_load_n(&stop, __ATOMIC_RELAXED);
        pthread_barrier_wait(&begun);
        if (ended)
            return NULL;
        for (uint64_t i = 0; i < FRESH; i++)
            if (mine)
                expect(overlap_slots_get(fresh, FRESH_BITS, key_of(2, i)) == 0);
            else
                expect(overlap_slots_put(fresh, FRESH_BITS, key_of(3, i), i + 1) == 0);
        pthread_barrier_wait(&begun);
        if (!mine)
            memset(fresh, 0, sizeof fresh);
    }
}

static void *disturb(void *argument) {
    uint64_t state = 7;
    (void)argument;
    lateness = 63;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        const uint64_t random = next(&state);
        overlap_slots_put(few, FEW_BITS, key_of(2, random % VISITORS), random >> 20 & 1);
    }
    return NULL;
}

/* One key after another, each deleted before the next: slots are reused, and what stays is found all the while. */
static void alone(void) {
    const uint64_t stays = key_of(1, 0);
    expect(overlap_slots_put(table, BITS, stays, 77) == 0);
    for (uint64_t i = 0; i < 100000; i++) {
        const uint64_t key = key_of(2, i);
        expect(overlap_slots_put(table, BITS, key, i + 1) == 0);
        expect(overlap_slots_get(table, BITS, key) == i + 1 && overlap_slots_get(table, BITS, stays) == 77);
        expect(overlap_slots_put(table, BITS, key, 0) == i + 1 && overlap_slots_get(table, BITS, key) == 0);
    }
    for (uint64_t i = 1; i < 1 << BITS; i++)
        expect(overlap_slots_put(table, BITS, key_of(3, i), i) == 0);
    expect(overlap_slots_put(table, BITS, key_of(3, 0), 1) == OVERLAP_SLOTS_FULL);
    expect(overlap_slots_get(table, BITS, 0) == 0 &&
           overlap_slots_put(table, BITS, UINT64_MAX, 1) == OVERLAP_SLOTS_FULL);
    for (uint64_t i = 1; i < 1 << BITS; i++)
        expect(overlap_slots_put(table, BITS, key_of(3, i), 0) == i);
    expect(overlap_slots_put(table, BITS, stays, 0) == 77);
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    const long count = atol(argv[2]) < MOST ? atol(argv[2]) : MOST;
    pthread_t threads[MOST];
    alone();
    for (long i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i))
            return 2;
    pthread_t others[5];
    pthread_barrier_init(&moment, NULL, 2);
    pthread_barrier_init(&begun, NULL, 2);
    for (long i = 0; i < 5; i++)
        if (pthread_create(&others[i], NULL,
                           i < 2    ? meet
                           : i == 2 ? disturb
                                    : miss,
                           (void *)(uintptr_t)(i < 3 ? i : i - 3)))
            return 2;
    const struct timespec wait = {.tv_sec = atol(argv[1])};
    nanosleep(&wait, NULL);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (long i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    for (long i = 0; i < 5; i++)
        pthread_join(others[i], NULL);
    for (uint64_t i = 0; i < SHARED; i++)
        taken += take(key_of(1, i));
    expect(taken == adds);
    for (int i = 0; i < 1 << BITS; i++) /* no key is in two slots */
        for (int j = 0; j < i; j++)
            expect(table[i].key + 1 <= 1 || table[i].key != table[j].key);
    printf("%llu %llu %llu %llu %llu\n", (unsigned long long)finds, (unsigned long long)hits, (unsigned long long)adds,
           (unsigned long long)met, (unsigned long long)wrong);
    return wrong != 0;
}
