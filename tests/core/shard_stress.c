/* Statistics shards claimed by many short threads, far more than there are shards: no count is lost. shard_stress
 * THREADS COUNTS
 *
 * Up to 96 threads at a time; each adds to one counter; prints what was added and what the page says.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/core.h"

static struct overlap_page page;
static long counts;
static uint64_t shared_claims, claims;
enum { AT_ONCE = 96 };

static bool alive(uint32_t tid) {
    return syscall(SYS_tgkill, getpid(), tid, 0) == 0;
}

static void *work(void *argument) {
    (void)argument;
    struct overlap_shard *shard = overlap_shard_claim(&page, (uint32_t)syscall(SYS_gettid), alive);
    if (overlap_shard_is_shared(&page, shard))
        __atomic_fetch_add(&shared_claims, 1, __ATOMIC_RELAXED);
    /* The first ones wait for each other: so many at a time that there are not enough shards. */
    __atomic_fetch_add(&claims, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&claims, __ATOMIC_RELAXED) < AT_ONCE)
        syscall(SYS_sched_yield);
    for (long i = 0; i < counts; i++) {
        overlap_shard_add(&page, shard, &shard->launches[(i / 7) % OVERLAP_REASON_COUNT]);
        overlap_shard_add(&page, shard, &shard->counters[i % OVERLAP_COUNTERS]);
        if (i % 256 == 0)
            syscall(SYS_sched_yield);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 3 || atol(argv[1]) < AT_ONCE)
        return 2;
    const long total = atol(argv[1]);
    pthread_t threads[AT_ONCE];
    counts = atol(argv[2]);
    for (long started = 0; started < total; started++) {
        if (started >= AT_ONCE)
            pthread_join(threads[started % AT_ONCE], NULL);
        if (pthread_create(&threads[started % AT_ONCE], NULL, work, NULL))
            return 2;
    }
    for (long i = total - AT_ONCE; i < total; i++)
        pthread_join(threads[i % AT_ONCE], NULL);
    struct overlap_totals totals;
    overlap_page_totals(&page, &totals);
    uint64_t launches = 0, counted = 0;
    for (int i = 0; i < OVERLAP_REASONS; i++)
        launches += totals.reasons[i];
    for (int i = 0; i < OVERLAP_COUNTERS; i++)
        counted += totals.counters[i];
    printf("%lld %llu %llu %llu\n", (long long)total * counts, (unsigned long long)launches,
           (unsigned long long)counted, (unsigned long long)shared_claims);
    return 0;
}
