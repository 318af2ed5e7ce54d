/* Launches: communication opens windows; computation asks whether it is inside one. */
#include "core.h"
#include "sync_access.h"
#include "window.h"

enum { CHUNK = 32 }; /* launches granted by one query */

static bool is_context(const struct overlap_clock_domain *domain, uint32_t slot,
                       const struct overlap_context *context) {
    return OVERLAP_LOAD(domain->communication[slot].context) == context;
}

/* Chooses an entry for a stream's communication. The lock is held. Entries of destroyed streams are reused: their
 * counts continue, so no clock falls behind. If all have owners, one is shared: a wait for one of its streams then
 * counts as a wait for both. */
static int32_t entry_for(struct overlap_stream *stream) {
    struct overlap_clock_domain *const domain = stream->domain;
    int32_t best = -1, shared = (int32_t)(overlap_spread(stream->key, 31) % OVERLAP_CLOCK_COMMUNICATION);
    for (int32_t c = 0; c < OVERLAP_CLOCK_COMMUNICATION; c++) {
        const bool unused = (uint32_t)c >= domain->communications;
        if (!unused && domain->communication[c].owner)
            continue;
        best = c;
        if (unused || is_context(domain, (uint32_t)c, stream->context))
            break;
    }
    if (best < 0) {
        if (!is_context(domain, (uint32_t)shared, stream->context))
            __atomic_store_n(&domain->communication[shared].context, NULL, __ATOMIC_RELEASE);
        return shared;
    }
    if ((uint32_t)best < domain->communications && !is_context(domain, (uint32_t)best, stream->context))
        __atomic_store_n(&domain->communication[best].base, domain->now.entry[best], __ATOMIC_RELEASE);
    __atomic_store_n(&domain->communication[best].owner, stream, __ATOMIC_RELEASE);
    __atomic_store_n(&domain->communication[best].context, stream->context, __ATOMIC_RELEASE);
    if ((uint32_t)best >= domain->communications)
        __atomic_store_n(&domain->communications, (uint32_t)best + 1, __ATOMIC_RELEASE);
    return best;
}

/* The legacy default stream and a blocking stream never run concurrently. */
static bool ordered_by_kind(const struct overlap_stream *one, const struct overlap_stream *other) {
    return OVERLAP_LOAD(one->kind) == OVERLAP_STREAM_LEGACY && OVERLAP_LOAD(other->kind) == OVERLAP_STREAM_BLOCKING;
}

/* Returns the launches of an entry of computation that were not counted before, and that are not known to have ended
 * when this launch begins. */
static inline uint64_t not_over(const struct overlap_sight *sight, const struct overlap_stream *owner, uint32_t i,
                                uint32_t filling) {
    struct overlap_clock_domain *const domain = sight->domain;
    uint64_t *const counted = &domain->computation[i].counted[filling];
    const uint64_t now = OVERLAP_LOAD(domain->computation[i].base[filling]) +
                         OVERLAP_LOAD(*(filling ? &owner->filling : &owner->launched)),
                   before = OVERLAP_LOAD(*counted);
    if (now <= before)
        return 0;
    const uint64_t known = overlap_sight_knows(sight, OVERLAP_CLOCK_COMMUNICATION + 2 * i + filling),
                   from = before > known ? before : known;
    overlap_raise(counted, now);
    return from < now ? now - from : 0;
}

/* Finds earlier launches on other streams. False: the stream is behind an unknown wait. */
__attribute__((noinline)) static bool look_before(const struct overlap_sync_model *model,
                                                  const struct overlap_stream *stream, struct overlap_before *found) {
    const struct overlap_sight sight = overlap_stream_sight(model, stream);
    if (overlap_sight_is_unknown(model, &sight, stream))
        return false;
    const struct overlap_context *const context = stream->context;
    const uint32_t count = OVERLAP_LOAD(sight.domain->computations);
    for (uint32_t i = 0; i < count; i++) {
        const struct overlap_stream *const owner = OVERLAP_LOAD(sight.domain->computation[i].owner);
        if (!owner || owner == stream || OVERLAP_LOAD(owner->context) != context)
            continue;
        const uint64_t launched = not_over(&sight, owner, i, 0), filling = not_over(&sight, owner, i, 1);
        if (!(launched | filling) || ordered_by_kind(stream, owner) || ordered_by_kind(owner, stream))
            continue;
        found->filling += filling;
        found->launched += launched < OVERLAP_WINDOW_LAUNCHES ? launched : OVERLAP_WINDOW_LAUNCHES;
    }
    return true;
}

/* Takes an entry for the communication of a stream. Negative: none. */
__attribute__((cold, noinline)) static int32_t take_entry(struct overlap_sync_model *model,
                                                          struct overlap_stream *stream) {
    if (!overlap_sync_lock(model))
        return -1;
    int32_t mine = stream->communication;
    if (mine < 0)
        __atomic_store_n(&stream->communication, mine = entry_for(stream), __ATOMIC_RELEASE);
    overlap_sync_unlock(model);
    return mine;
}

struct overlap_before overlap_window_communicates(struct overlap_sync_model *model, struct overlap_stream *stream,
                                                  bool computed) {
    struct overlap_before found = {0, 0};
    stream = overlap_stream_here(stream);
    if (!stream)
        return found;
    struct overlap_clock_domain *const domain = stream->domain;
    const uint32_t kind = OVERLAP_LOAD(stream->kind);
    overlap_sync_action(model, stream); /* this may put the stream behind an unknown wait */
    if ((kind != OVERLAP_STREAM_NON_BLOCKING || OVERLAP_LOAD(stream->unknown) || OVERLAP_LOAD(domain->order_unknown) ||
         OVERLAP_LOAD(domain->computations)) &&
        !look_before(model, stream, &found))
        return found;
    int32_t mine = OVERLAP_LOAD(stream->communication);
    if (__builtin_expect(mine < 0, 0) && (mine = take_entry(model, stream)) < 0)
        return found;
    const uint32_t entry = (uint32_t)mine;
    struct overlap_communication *const of = &domain->communication[entry];
    /* Two threads that launch on one stream at the same time may count as one launch, and waits then order both
     * together. The stream itself always knows its own entry. */
    const uint64_t now = OVERLAP_LOAD(domain->now.entry[entry]) + 1;
    __atomic_store_n(&of->prefetch, computed && !OVERLAP_RELAXED(stream->waited), __ATOMIC_RELAXED);
    __atomic_store_n(&stream->waited, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&of->sequence, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&of->ordinal, OVERLAP_LOAD(model->version), __ATOMIC_RELAXED);
    __atomic_store_n(&domain->now.entry[entry], now, __ATOMIC_RELEASE);
    if (kind != OVERLAP_STREAM_NON_BLOCKING)
        (void)overlap_stream_learns(model, stream, entry, now);
    overlap_sync_changed(model);
    return found;
}

__attribute__((cold)) void overlap_window_set_sequence(struct overlap_sync_model *model, struct overlap_stream *stream,
                                                       uint64_t sequence) {
    stream = overlap_stream_here(stream);
    if (stream && OVERLAP_LOAD(stream->communication) >= 0 && !overlap_stream_is_unknown(model, stream))
        __atomic_store_n(&stream->domain->communication[OVERLAP_LOAD(stream->communication)].sequence, sequence + 1,
                         __ATOMIC_RELAXED);
}

void overlap_window_beside(struct overlap_stream *stream) {
    stream = overlap_stream_here(stream);
    if (stream)
        __atomic_fetch_add(&stream->beside, 1, __ATOMIC_RELAXED);
}

/* Counts launches that were inside the window. If only one thread queries the stream, it adds without an atomic
 * operation; if another thread starts to query meanwhile, a few launches may not be counted. */
static inline void add_inside(struct overlap_stream *stream, uint64_t launches) {
    if (OVERLAP_LOAD(stream->asker) == overlap_this_thread())
        overlap_add_own(&stream->inside, launches);
    else
        __atomic_fetch_add(&stream->inside, launches, __ATOMIC_RELAXED);
}

/* Takes up to `wanted` of the launches that the window has left. 0: the window has expired. */
static inline uint32_t grant(struct overlap_stream *stream, uint64_t newest, uint32_t wanted) {
    if (OVERLAP_RELAXED(stream->newest) != newest) {
        if (!wanted)
            return 1;
        __atomic_store_n(&stream->newest, newest, __ATOMIC_RELAXED);
        __atomic_store_n(&stream->inside, 0, __ATOMIC_RELAXED);
    }
    const uint64_t inside = OVERLAP_RELAXED(stream->inside);
    if (inside >= OVERLAP_WINDOW_LAUNCHES)
        return 0;
    if (!wanted)
        return 1;
    wanted = wanted > CHUNK ? CHUNK : wanted;
    const uint32_t most = (uint32_t)(OVERLAP_WINDOW_LAUNCHES - inside), granted = wanted < most ? wanted : most;
    add_inside(stream, granted);
    return granted;
}

void overlap_window_return(struct overlap_stream *stream, uint64_t serial, uint64_t newest, uint32_t left) {
    if (!left || OVERLAP_RELAXED(stream->serial) != serial || OVERLAP_RELAXED(stream->newest) != newest)
        return;
    uint64_t inside = OVERLAP_RELAXED(stream->inside);
    if (OVERLAP_LOAD(stream->asker) == overlap_this_thread() && inside >= left) {
        overlap_add_own(&stream->inside, 0 - (uint64_t)left);
        return;
    }
    /* Another thread may have reset the count meanwhile. */
    while (!__atomic_compare_exchange_n(&stream->inside, &inside, inside > left ? inside - left : 0, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

uint64_t overlap_window_number(struct overlap_stream *stream) {
    stream = overlap_stream_here(stream);
    const int32_t c = stream ? OVERLAP_LOAD(stream->communication) : -1;
    return c < 0 ? 0 : OVERLAP_LOAD(stream->domain->now.entry[c]);
}

bool overlap_window_no_overlap(struct overlap_stream *stream, uint64_t number, enum overlap_no_overlap why,
                               uint32_t count) {
    stream = overlap_stream_here(stream);
    const int32_t c = stream ? OVERLAP_LOAD(stream->communication) : -1;
    struct overlap_communication *const of = c < 0 ? NULL : &stream->domain->communication[c];
    if (!of || OVERLAP_LOAD(of->used) >= number)
        return false;
    __atomic_store_n(&of->no_overlap_last, (uint32_t)number, __ATOMIC_RELAXED);
    __atomic_store_n(&of->no_overlap_counts, (uint16_t)count, __ATOMIC_RELAXED);
    __atomic_fetch_add(&of->no_overlap[why], count, __ATOMIC_RELAXED);
    return true;
}

bool overlap_window_is_over(struct overlap_sync_model *model, struct overlap_stream *stream) {
    return stream && stream->domain == &model->eager && OVERLAP_LOAD(stream->communication) >= 0 &&
           OVERLAP_LOAD(model->finished.entry[OVERLAP_LOAD(stream->communication)]) >=
               OVERLAP_LOAD(model->eager.now.entry[OVERLAP_LOAD(stream->communication)]);
}

/* The last `open` launches of an entry, up to `now`, can overlap this stream after all. Takes back the reports that
 * they overlap nothing, including the launches that each report counted for. */
__attribute__((cold, noinline)) static void take_back(struct overlap_communication *of, uint64_t now, uint64_t open,
                                                      struct overlap_window_answer *found) {
    const uint32_t since = (uint32_t)now - OVERLAP_RELAXED(of->no_overlap_last);
    if (since >= open)
        return;
    const uint64_t most = open - since + OVERLAP_RELAXED(of->no_overlap_counts) - 1;
    for (int why = 0; why < 2; why++) {
        uint32_t count = OVERLAP_RELAXED(of->no_overlap[why]);
        const uint32_t back = count < most ? count : (uint32_t)most;
        if (back && __atomic_compare_exchange_n(&of->no_overlap[why], &count, count - back, false, __ATOMIC_RELAXED,
                                                __ATOMIC_RELAXED))
            found->undone[why] += back;
    }
}

/* Returns how many launches of an entry are newer than what the stream knows. 0 for launches of its own or of another
 * context. */
static inline uint64_t open_launches(const struct overlap_sight *sight, const struct overlap_communication *of,
                                     uint32_t c) {
    const uint64_t now = OVERLAP_LOAD(sight->domain->now.entry[c]), known = overlap_sight_knows(sight, c);
    if (now <= known)
        return 0;
    const uint64_t base = OVERLAP_LOAD(of->base), from = known > base ? known : base;
    return now > from ? now - from : 0;
}

void overlap_window_left_now(struct overlap_sync_model *model, struct overlap_stream *stream) {
    const struct overlap_sight sight = overlap_stream_sight(model, stream);
    const int32_t mine = OVERLAP_LOAD(stream->communication);
    const uint32_t count = OVERLAP_LOAD(sight.domain->communications);
    for (uint32_t c = 0; c < count && !overlap_sight_is_unknown(model, &sight, stream); c++)
        if ((int32_t)c != mine && is_context(sight.domain, c, stream->context) &&
            open_launches(&sight, &sight.domain->communication[c], c))
            return;
    __atomic_store_n(&stream->beside, 0, __ATOMIC_RELAXED);
}

void overlap_window_query(struct overlap_sync_model *model, struct overlap_stream *stream, uint32_t wanted,
                          struct overlap_window_answer *found) {
    uint64_t own = 0, last = 0, newest = 0;
    *found = (struct overlap_window_answer){.position = OVERLAP_POSITION_OUTSIDE, .granted = UINT32_MAX};
    stream = overlap_stream_here(stream);
    if (!stream)
        return;
    if (wanted)
        overlap_stream_asked(stream);
    found->serial = stream->serial;
    overlap_sync_action(model, stream);
    const struct overlap_sight sight = overlap_stream_sight(model, stream);
    const struct overlap_context *const context = stream->context;
    const bool unknown = found->unknown = overlap_sight_is_unknown(model, &sight, stream);
    const int32_t mine = OVERLAP_LOAD(stream->communication);
    const uint32_t count = OVERLAP_LOAD(sight.domain->communications);
    for (uint32_t c = 0; c < count; c++) {
        struct overlap_communication *const of = &sight.domain->communication[c];
        const uint64_t ordinal = OVERLAP_RELAXED(of->ordinal);
        if (OVERLAP_LOAD(of->context) != context)
            continue;
        last = ordinal > last ? ordinal : last;
        if ((int32_t)c == mine) {
            own = ordinal;
            continue;
        }
        const uint64_t open = unknown ? 0 : open_launches(&sight, of, c);
        if (!open)
            continue;
        const uint64_t now = OVERLAP_LOAD(sight.domain->now.entry[c]);
        if (OVERLAP_LOAD(of->used) != now)
            __atomic_store_n(&of->used, now, __ATOMIC_RELEASE);
        if (OVERLAP_RELAXED(of->no_overlap[0]) | OVERLAP_RELAXED(of->no_overlap[1]))
            take_back(of, now, open, found);
        if (ordinal > newest) {
            newest = ordinal;
            found->sequence = OVERLAP_RELAXED(of->sequence);
        }
    }
    found->newest = newest;
    if (newest) {
        const uint32_t granted = grant(stream, newest, wanted);
        found->position = granted ? OVERLAP_POSITION_INSIDE : OVERLAP_POSITION_EXPIRED;
        if (granted)
            found->granted = granted;
        else
            found->sequence = 0;
    } else {
        if (own && own == last)
            found->position = OVERLAP_POSITION_SAME_STREAM;
        overlap_window_left(model, stream); /* the host has waited for the communication that they ran beside */
    }
}

uint64_t *overlap_window_outside(struct overlap_sync_model *model, struct overlap_stream *stream, bool filling) {
    stream = overlap_stream_here(stream);
    if (!stream)
        return NULL;
    struct overlap_clock_domain *const domain = stream->domain;
    if (OVERLAP_LOAD(stream->computation) < 0 && overlap_sync_lock(model)) {
        for (int32_t i = 0; OVERLAP_LOAD(stream->computation) < 0 && i < OVERLAP_CLOCK_COMPUTATION; i++) {
            if ((uint32_t)i < domain->computations && domain->computation[i].owner)
                continue;
            for (int count = 0; count < 2; count++) /* discard the previous owner's launches */
                overlap_raise(&domain->computation[i].counted[count], domain->computation[i].base[count]);
            __atomic_store_n(&domain->computation[i].owner, stream, __ATOMIC_RELEASE);
            if ((uint32_t)i >= domain->computations)
                __atomic_store_n(&domain->computations, (uint32_t)i + 1, __ATOMIC_RELEASE);
            __atomic_store_n(&stream->computation, i, __ATOMIC_RELEASE);
        }
        overlap_sync_unlock(model);
    }
    return OVERLAP_LOAD(stream->computation) < 0 ? NULL : filling ? &stream->filling : &stream->launched;
}
