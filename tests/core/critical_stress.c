/* Threads that launch, wait, record and see to be over on the same streams, which come and go, while counting begins anew:
 * critical_stress ROUNDS. Prints by how much the context's sums differ from those of its streams, streams that have more work over than
 * they had, and changes of state. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/critical.h"

enum { THREADS = 4, STREAMS = 6, CONTEXT = 0x1000, STREAM = 0x2000, EVENT = 0x6000 };
static struct overlap_sync_model *model;
static int rounds;
static uint64_t launched, changes;

static uint64_t key_of(int number) {
    return STREAM + 16 * (uint64_t)number;
}
static struct overlap_stream *stream(int number) {
    return overlap_sync_stream(model, key_of(number), CONTEXT, OVERLAP_STREAM_NON_BLOCKING);
}

static void *act(void *argument) {
    const int self = (int)(intptr_t)argument;
    for (int i = 0; i < rounds; i++) {
        const int one = (i + self) % STREAMS, other = (i + self + 1 + i / 7) % STREAMS;
        struct overlap_stream *const its = stream(one);
        struct overlap_completion completion;
        const uint64_t threads = 64 + (uint64_t)(i % 5) * 64, event = EVENT + 16 * (uint64_t)(i % 3);
        overlap_critical_launched(its, threads);
        if (its) /* none where the lock timed out, because its holder was preempted */
            __atomic_fetch_add(&launched, threads, __ATOMIC_RELAXED);
        overlap_sync_recorded(model, overlap_sync_recording(model, event, its), its, true);
        overlap_sync_waits(model, stream(other), event);
        const uint32_t why = i % 2 ? OVERLAP_CRITICAL_HOST_WAITS : OVERLAP_CRITICAL_COMMUNICATION;
        __atomic_fetch_add(&changes, overlap_critical_waited(model, its, why, 25), __ATOMIC_RELAXED);
        overlap_critical_recorder(model, event);
        if (i % 3 == 0) {
            overlap_sync_completion_of_stream(model, stream(other), &completion);
            overlap_sync_complete(model, &completion);
        }
        if (i % 512 == 511 && self == 0)
            overlap_critical_count(model);
        if (i % 64 == 1 && self == 0) { /* nobody else's */
            struct overlap_stream *const temporary = stream(STREAMS);
            overlap_critical_launched(temporary, 64);
            __atomic_fetch_add(&launched, temporary ? 64 : 0, __ATOMIC_RELAXED);
            overlap_sync_stream_gone(model, key_of(STREAMS));
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    model = calloc(1, sizeof *model);
    if (!model || argc != 2)
        return 2;
    rounds = atoi(argv[1]);
    model->version = 2;
    overlap_critical_count(model);
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, act, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    const struct overlap_context *const context = stream(0)->context;
    int too_much = 0;
    for (int i = 0; i < STREAMS; i++)
        too_much += stream(i)->part.over > stream(i)->part.work || stream(i)->part.busy;
    overlap_critical_all_over(model, NULL);
    printf("%lld %lld %d %llu\n", (long long)(context->work - launched), (long long)(context->work - context->over),
           too_much, (unsigned long long)changes);
    return 0;
}
