/* Learns which streams are critical: see critical.h. */
#include "critical.h"
#include "sync_access.h"

enum { ROUNDS = 2, MOST_FALLS = 5 };

/* ---- Work ---- */

void overlap_critical_count(struct overlap_sync_model *model) {
    if (!__atomic_add_fetch(&model->counted, 1, __ATOMIC_RELAXED))
        __atomic_add_fetch(&model->counted, 1, __ATOMIC_RELAXED);
    overlap_critical_all_over(model, NULL); /* uncounted waits may have been for any of it */
}

void overlap_critical_launched(struct overlap_stream *stream, uint64_t threads) {
    if (!stream || OVERLAP_LOAD(stream->captured)) /* part of a graph, which may run at any time */
        return;
    __atomic_fetch_add(&stream->part.work, threads, __ATOMIC_RELAXED);
    __atomic_fetch_add(&OVERLAP_LOAD(stream->context)->work, threads, __ATOMIC_RELAXED);
}

static void raise_over(struct overlap_stream *stream, uint64_t work) {
    const uint64_t most = OVERLAP_RELAXED(stream->part.work);
    uint64_t before = OVERLAP_RELAXED(stream->part.over);
    work = work < most ? work : most;
    while (before < work)
        if (__atomic_compare_exchange_n(&stream->part.over, &before, work, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            __atomic_fetch_add(&OVERLAP_LOAD(stream->context)->over, work - before, __ATOMIC_RELAXED);
            return;
        }
}

void overlap_critical_gone(struct overlap_stream *stream) {
    raise_over(stream, OVERLAP_RELAXED(stream->part.work));
}

static void all_over(struct overlap_sync_model *model, const struct overlap_context *context, bool blocking) {
    for (uint32_t i = 0; i < __atomic_load_n(&model->used_count, __ATOMIC_ACQUIRE); i++) {
        struct overlap_stream *const stream = &model->streams[model->used[i]];
        if (OVERLAP_LOAD(stream->ready) && OVERLAP_LOAD(stream->domain) == &model->eager &&
            (!context || OVERLAP_LOAD(stream->context) == context) &&
            !(blocking && OVERLAP_LOAD(stream->kind) == OVERLAP_STREAM_NON_BLOCKING))
            raise_over(stream, OVERLAP_RELAXED(stream->part.work));
    }
}

void overlap_critical_all_over(struct overlap_sync_model *model, const struct overlap_context *context) {
    all_over(model, context, false);
}

void overlap_critical_over(struct overlap_sync_model *model, struct overlap_stream *stream, uint64_t serial,
                           uint64_t work) {
    if (!stream || !overlap_stream_is(stream, serial))
        return;
    raise_over(stream, work);
    if (OVERLAP_LOAD(stream->kind) == OVERLAP_STREAM_LEGACY)
        all_over(model, OVERLAP_LOAD(stream->context), true);
    for (int i = 0; i < 4; i++) {
        struct overlap_stream *const other = __atomic_load_n(&stream->part.behind[i].stream, __ATOMIC_ACQUIRE);
        if (other && overlap_stream_is(other, OVERLAP_RELAXED(stream->part.behind[i].serial)))
            raise_over(other, OVERLAP_RELAXED(stream->part.behind[i].work));
    }
}

/* Only four waits are kept. Work of further streams is not taken as finished when this stream is. */
void overlap_critical_behind(struct overlap_stream *stream, struct overlap_stream *by, uint64_t serial, uint64_t work) {
    int at = -1;
    if (!by || by == stream || !work || !overlap_stream_is(by, serial))
        return;
    for (int i = 3; i >= 0; i--) {
        struct overlap_stream *const other = __atomic_load_n(&stream->part.behind[i].stream, __ATOMIC_ACQUIRE);
        const bool over = !other || OVERLAP_RELAXED(other->part.over) >= OVERLAP_RELAXED(stream->part.behind[i].work);
        if (other == by || (at < 0 && over))
            at = i;
    }
    if (at < 0)
        return;
    __atomic_store_n(&stream->part.behind[at].stream, NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&stream->part.behind[at].serial, serial, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->part.behind[at].work, work, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->part.behind[at].stream, by, __ATOMIC_RELEASE);
}

/* Do other streams of the context have work that the host has not seen finish, and that this stream has not waited
 * for? */
static bool others_run(const struct overlap_stream *stream) {
    const struct overlap_context *const context = OVERLAP_LOAD(stream->context);
    uint64_t mine = OVERLAP_RELAXED(stream->part.work) - OVERLAP_RELAXED(stream->part.over);
    for (int i = 0; i < 4; i++) {
        const struct overlap_stream *const other = __atomic_load_n(&stream->part.behind[i].stream, __ATOMIC_ACQUIRE);
        const uint64_t until = OVERLAP_RELAXED(stream->part.behind[i].work),
                       over = other ? OVERLAP_RELAXED(other->part.over) : 0;
        if (other && overlap_stream_is(other, OVERLAP_RELAXED(stream->part.behind[i].serial)) && until > over)
            mine += until - over;
    }
    return (int64_t)(OVERLAP_RELAXED(context->work) - OVERLAP_RELAXED(context->over) - mine) > 0;
}

/* ---- Rounds ---- */

/* Judges a round by the stream's share (in thousandths) of all threads that its context launched. Returns whether the
 * state changed. */
static bool judge(struct overlap_part *part, uint64_t own, uint64_t all, uint32_t share) {
    const uint32_t found = (uint32_t)(own < UINT64_MAX / 1000 ? own * 1000 / all : own / (all / 1000 + 1));
    const bool critical = part->state == OVERLAP_PART_CRITICAL;
    const bool minor = found <= share * (critical ? 15 : 10);
    const uint32_t state = minor ? OVERLAP_PART_CRITICAL : OVERLAP_PART_MAJOR;
    __atomic_store_n(&part->share, found, __ATOMIC_RELAXED);
    if (part->leans != state)
        part->streak = 0;
    part->leans = state;
    if (state == part->state || ++part->streak < (uint32_t)ROUNDS << (minor ? part->falls : 0))
        return false;
    part->streak = 0;
    if (critical && part->falls < MOST_FALLS)
        part->falls++;
    __atomic_store_n(&part->state, state, __ATOMIC_RELAXED);
    return true;
}

static bool waited(const struct overlap_sync_model *model, struct overlap_stream *stream, uint32_t why,
                   uint32_t share) {
    struct overlap_part *const part = &stream->part;
    const uint32_t counted = OVERLAP_RELAXED(model->counted);
    const uint64_t work = OVERLAP_RELAXED(part->work), all = OVERLAP_RELAXED(OVERLAP_LOAD(stream->context)->work);
    const uint64_t own_now = work - part->own, all_now = all - part->all;
    const bool judged = part->round == counted;
    if (judged && (own_now >= all_now || (why == OVERLAP_CRITICAL_HOST_WAITS && !others_run(stream))))
        return false; /* no other stream has launched, or none has work left */
    __atomic_store_n(&part->round, counted, __ATOMIC_RELAXED);
    __atomic_store_n(&part->own, work, __ATOMIC_RELAXED);
    __atomic_store_n(&part->all, all, __ATOMIC_RELAXED);
    if (!judged)
        return false;
    __atomic_store_n(&part->why, part->why | why, __ATOMIC_RELAXED);
    if (own_now)
        return judge(part, own_now, all_now, share);
    if (part->state != OVERLAP_PART_UNKNOWN)
        return false;
    __atomic_store_n(&part->state, OVERLAP_PART_EMPTY, __ATOMIC_RELAXED);
    return true;
}

__attribute__((cold)) bool overlap_critical_waited(struct overlap_sync_model *model, struct overlap_stream *stream,
                                                   uint32_t why, uint32_t share) {
    uint32_t free = 0;
    if (!stream || OVERLAP_LOAD(stream->kind) == OVERLAP_STREAM_LEGACY || OVERLAP_LOAD(stream->captured))
        return false;
    if (!__atomic_compare_exchange_n(&stream->part.busy, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return false; /* another thread handles a wait for this stream already */
    const bool changed = waited(model, stream, why, share);
    __atomic_store_n(&stream->part.busy, 0, __ATOMIC_RELEASE);
    return changed;
}
