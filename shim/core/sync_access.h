/* Inline access to the streams, clocks and domains of the model, for sync_model.c, event.c, knowledge.c and window.c.
 * Callers of the model use overlap_sync_find(), overlap_stream_here() and overlap_sync_recorded() only. */
#pragma once

#include "sync_model.h"

/* Returns the stream, or its stand-in while it captures. */
static inline struct overlap_stream *overlap_stream_here(struct overlap_stream *stream) {
    struct overlap_stream *captured = stream ? OVERLAP_LOAD(stream->captured) : NULL;
    return captured ? captured : stream;
}

/* The second of the two calls around a record of an event (overlap_sync_recording()). */
static inline void overlap_sync_recorded(struct overlap_sync_model *model, struct overlap_event *event,
                                         struct overlap_stream *stream, bool recorded) {
    if (event)
        overlap_sync_write(model, event, stream, recorded);
    else if (recorded)
        overlap_sync_action(model, overlap_stream_here(stream));
}

/* Does the slot still hold the stream with this serial? */
static inline bool overlap_stream_is(const struct overlap_stream *stream, uint64_t serial) {
    return OVERLAP_LOAD(stream->ready) && OVERLAP_LOAD(stream->serial) == serial;
}

/* Returns the stream whose clock is implicitly part of this stream's clock: for a blocking stream the legacy default
 * stream, else NULL. */
static inline const struct overlap_stream *overlap_stream_behind(const struct overlap_stream *stream) {
    return OVERLAP_LOAD(stream->kind) == OVERLAP_STREAM_BLOCKING ? OVERLAP_LOAD(stream->context->legacy) : NULL;
}

/* The clocks that a stream sees. Loaded once for calls that read several entries, because compilers do not merge atomic
 * loads. */
struct overlap_sight {
    struct overlap_clock_domain *domain;
    const struct overlap_stream *legacy; /* overlap_stream_behind() */
    const uint64_t *own, *finished,
        *inherited; /* clocks: its own, the host's, the legacy default stream's; where one does not apply, its own */
};
static inline struct overlap_sight overlap_stream_sight(const struct overlap_sync_model *model,
                                                        const struct overlap_stream *stream) {
    struct overlap_sight sight = {stream->domain, NULL, stream->clock.entry, stream->clock.entry, stream->clock.entry};
    sight.legacy = overlap_stream_behind(stream); /* none for a stand-in */
    if (sight.domain == &model->eager)
        sight.finished = model->finished.entry;
    if (sight.legacy)
        sight.inherited = sight.legacy->clock.entry;
    return sight;
}

/* Returns the last unknown wait, ended or not, of the stream or of the legacy default stream that it is behind. */
static inline uint64_t overlap_sight_unknown(const struct overlap_sight *sight, const struct overlap_stream *stream) {
    const uint64_t own = OVERLAP_LOAD(stream->unknown),
                   inherited = sight->legacy ? OVERLAP_LOAD(sight->legacy->unknown) : 0;
    return own > inherited ? own : inherited;
}

/* Is the stream behind an unknown wait? */
static inline bool overlap_sight_is_unknown(const struct overlap_sync_model *model, const struct overlap_sight *sight,
                                            const struct overlap_stream *stream) {
    const uint64_t last = overlap_sight_unknown(sight, stream);
    return OVERLAP_LOAD(sight->domain->order_unknown) ||
           (last && (sight->domain != &model->eager || last > OVERLAP_LOAD(stream->context->settled)));
}
static inline bool overlap_stream_is_unknown(const struct overlap_sync_model *model,
                                             const struct overlap_stream *stream) {
    const struct overlap_sight sight = overlap_stream_sight(model, stream);
    return overlap_sight_is_unknown(model, &sight, stream);
}

/* Returns how far the stream is ordered after an entry that is not its own, explicitly or implicitly. */
static inline uint64_t overlap_sight_knows(const struct overlap_sight *sight, uint32_t entry) {
    const uint64_t own = OVERLAP_LOAD(sight->own[entry]), finished = OVERLAP_LOAD(sight->finished[entry]),
                   inherited = OVERLAP_LOAD(sight->inherited[entry]), most = own > finished ? own : finished;
    return most > inherited ? most : inherited;
}
static inline uint64_t overlap_stream_knows(const struct overlap_sync_model *model, const struct overlap_stream *stream,
                                            uint32_t entry) {
    const struct overlap_sight sight = overlap_stream_sight(model, stream);
    return OVERLAP_LOAD(stream->communication) == (int32_t)entry ? OVERLAP_LOAD(sight.domain->now.entry[entry])
                                                                 : overlap_sight_knows(&sight, entry);
}

/* Bit sets of entries: those that a domain uses, and the two of a stream of computation. */
static inline uint32_t overlap_domain_set(const struct overlap_clock_domain *domain) {
    return ((UINT32_C(1) << OVERLAP_LOAD(domain->communications)) - 1) |
           ((UINT32_C(1) << 2 * OVERLAP_LOAD(domain->computations)) - 1) << OVERLAP_CLOCK_COMMUNICATION;
}
static inline uint32_t overlap_computation_set(int32_t computation) {
    return computation < 0 ? 0 : UINT32_C(3) << (OVERLAP_CLOCK_COMMUNICATION + 2 * computation);
}
/* The current entry of the loop: for (left = set; left; left &= left - 1) */
static inline uint32_t overlap_entry_of(uint32_t left) {
    return (uint32_t)__builtin_ctz(left);
}

/* Returns the context of an entry's launches. NULL: several, or the stream was destroyed. */
static inline const struct overlap_context *overlap_context_of_entry(const struct overlap_clock_domain *domain,
                                                                     uint32_t entry) {
    if (entry < OVERLAP_CLOCK_COMMUNICATION)
        return OVERLAP_LOAD(domain->communication[entry].context);
    const struct overlap_stream *owner =
        OVERLAP_LOAD(domain->computation[(entry - OVERLAP_CLOCK_COMMUNICATION) / 2].owner);
    return owner ? OVERLAP_LOAD(owner->context) : NULL;
}

/* Returns the number of the last launch of an entry; for computation it is the sum of previous owners' and the current
 * one's launches. */
static inline uint64_t overlap_computation_now(const struct overlap_clock_domain *domain, uint32_t i,
                                               uint32_t filling) {
    const struct overlap_stream *owner = OVERLAP_LOAD(domain->computation[i].owner);
    return OVERLAP_LOAD(domain->computation[i].base[filling]) +
           (owner ? OVERLAP_LOAD(*(filling ? &owner->filling : &owner->launched)) : 0);
}
static inline uint64_t overlap_domain_now(const struct overlap_clock_domain *domain, uint32_t entry) {
    return entry < OVERLAP_CLOCK_COMMUNICATION
               ? OVERLAP_LOAD(domain->now.entry[entry])
               : overlap_computation_now(domain, (entry - OVERLAP_CLOCK_COMMUNICATION) / 2, entry % 2);
}

/* Returns a number that identifies the calling thread, above OVERLAP_SEVERAL. */
enum { OVERLAP_SEVERAL = 1 };
extern __thread char overlap_thread_self __attribute__((tls_model("initial-exec"), visibility("hidden")));
static inline uint64_t overlap_this_thread(void) {
    return (uint64_t)(uintptr_t)&overlap_thread_self;
}

/* The calling thread queries the stream and may cache the answer. */
void overlap_stream_asked_first(struct overlap_stream *stream);
static inline void overlap_stream_asked(struct overlap_stream *stream) {
    const uint64_t asker = OVERLAP_LOAD(stream->asker);
    if (asker != overlap_this_thread() && asker != OVERLAP_SEVERAL)
        overlap_stream_asked_first(stream);
}

/* The stream's clock has changed. True: only cached answers of the calling thread for this stream may be stale. */
bool overlap_stream_changed_for(struct overlap_sync_model *model, const struct overlap_stream *stream, uint64_t asker);
static inline bool overlap_stream_changed(struct overlap_sync_model *model, const struct overlap_stream *stream) {
    const uint64_t asker = __atomic_load_n(&stream->asker, __ATOMIC_SEQ_CST);
    if (OVERLAP_LOAD(stream->kind) == OVERLAP_STREAM_NON_BLOCKING && (!asker || asker == overlap_this_thread()))
        return asker;
    return overlap_stream_changed_for(model, stream, asker);
}

/* The stream joins the capture in which the event that it waits for was recorded. */
void overlap_sync_join_capture(struct overlap_sync_model *model, struct overlap_stream *stream,
                               struct overlap_clock_domain *domain, uint64_t generation);

/* Cached answers of any thread may be stale. */
static inline void overlap_sync_changed(struct overlap_sync_model *model) {
    __atomic_fetch_add(&model->version, 1, __ATOMIC_RELEASE);
}

/* Raises a number to at least `value`. False: it was there already. Sequentially consistent: overlap_stream_changed()
 * relies on a total order with other variables. */
static inline bool overlap_raise(uint64_t *number, uint64_t value) {
    uint64_t known = __atomic_load_n(number, __ATOMIC_RELAXED);
    while (known < value)
        if (__atomic_compare_exchange_n(number, &known, value, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            return true;
    return false;
}

/* The bit is set first, so that a reader who sees the value finds its entry. */
static inline bool overlap_clock_raise(struct overlap_clock *clock, uint32_t entry, uint64_t value) {
    if (OVERLAP_RELAXED(clock->entry[entry]) >= value)
        return false;
    if (!(OVERLAP_RELAXED(clock->set) >> entry & 1))
        __atomic_fetch_or(&clock->set, UINT32_C(1) << entry, __ATOMIC_RELEASE);
    return overlap_raise(&clock->entry[entry], value);
}

/* Raises an entry of the stream's clock, and of the clocks that include it (passes_on: of its context). False: it was
 * there already. */
void overlap_stream_passes_on(struct overlap_sync_model *model, struct overlap_stream *stream, uint32_t entry,
                              uint64_t value);
static inline bool overlap_stream_learns_more(struct overlap_sync_model *model, struct overlap_stream *stream,
                                              uint32_t entry, uint64_t value) {
    if (!overlap_clock_raise(&stream->clock, entry, value))
        return false;
    if (stream->domain == &model->eager && (OVERLAP_LOAD(stream->kind) != OVERLAP_STREAM_NON_BLOCKING ||
                                            overlap_context_of_entry(&model->eager, entry) != stream->context))
        overlap_stream_passes_on(model, stream, entry, value);
    return true;
}
static inline bool overlap_stream_learns(struct overlap_sync_model *model, struct overlap_stream *stream,
                                         uint32_t entry, uint64_t value) {
    return OVERLAP_LOAD(stream->clock.entry[entry]) < value && overlap_stream_learns_more(model, stream, entry, value);
}

/* Returns the slot at the given probe of a key's probe sequence. */
enum { OVERLAP_SYNC_PROBES = 64 };
static inline __attribute__((returns_nonnull)) struct overlap_stream *
overlap_sync_slot(struct overlap_sync_model *model, uint64_t key, uint64_t probe) {
    return &model->streams[(overlap_spread(key, OVERLAP_SYNC_STREAM_BITS) + probe) & (OVERLAP_SYNC_STREAMS - 1)];
}

/* Return the stream with this key (not 0). NULL: never seen, or it got no slot. find_further continues after the first
 * probe. */
struct overlap_stream *overlap_sync_find_further(struct overlap_sync_model *model, uint64_t key);
static inline bool overlap_stream_has(const struct overlap_stream *stream, uint64_t key) {
    return OVERLAP_LOAD(stream->key) == key && OVERLAP_LOAD(stream->ready);
}
static inline struct overlap_stream *overlap_sync_find(struct overlap_sync_model *model, uint64_t key) {
    struct overlap_stream *const first = overlap_sync_slot(model, key, 0);
    return __builtin_expect(overlap_stream_has(first, key), 1) ? first : overlap_sync_find_further(model, key);
}

/* Takes the lock. False: it timed out, and `stream_overflow` is set. */
bool overlap_sync_lock(struct overlap_sync_model *model);
void overlap_sync_unlock(struct overlap_sync_model *model);
