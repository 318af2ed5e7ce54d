/* Between order.c, event.c, knowledge.c and window.c: streams, clocks and worlds, read in place. Part of window.h, which declares them;
 * callers of the model use overlap_order_find(), overlap_stream_here() and overlap_order_recorded() of it. */
#pragma once

#define OVERLAP_LOAD(field) __atomic_load_n(&(field), __ATOMIC_ACQUIRE)

/* The stream, or what stands for it while it captures. */
static inline struct overlap_stream *overlap_stream_here(struct overlap_stream *stream) {
    struct overlap_stream *captured = stream ? OVERLAP_LOAD(stream->captured) : NULL;
    return captured ? captured : stream;
}

static inline void overlap_order_recorded(struct overlap_order *order, struct overlap_event *event,
                                          struct overlap_stream *stream, bool recorded) {
    if (event)
        overlap_order_write(order, event, stream, recorded);
    else if (recorded)
        overlap_order_action(order, overlap_stream_here(stream));
}

/* Is this place still that stream's? */
static inline bool overlap_stream_is(const struct overlap_stream *stream, uint64_t serial) {
    return OVERLAP_LOAD(stream->ready) && OVERLAP_LOAD(stream->serial) == serial;
}

/* The stream of which its clock includes the clock: a blocking one that of the legacy default stream; or NULL. */
static inline const struct overlap_stream *overlap_stream_behind(const struct overlap_stream *stream) {
    return OVERLAP_LOAD(stream->kind) == OVERLAP_STREAM_BLOCKING ? OVERLAP_LOAD(stream->context->legacy) : NULL;
}

/* What a stream can see, loaded once for a call that asks several times: an atomic load is never merged with another one. */
struct overlap_sight {
    struct overlap_world *world;
    const struct overlap_stream *legacy; /* overlap_stream_behind() */
    const uint64_t *own, *finished,
        *inherited; /* clocks: its own, the host's, that of the legacy default stream; or its own again */
};
static inline struct overlap_sight overlap_stream_sight(const struct overlap_order *order,
                                                        const struct overlap_stream *stream) {
    struct overlap_sight sight = {stream->world, NULL, stream->clock.entry, stream->clock.entry, stream->clock.entry};
    sight.legacy = overlap_stream_behind(stream); /* of one that captures: none */
    if (sight.world == &order->eager)
        sight.finished = order->finished.entry;
    if (sight.legacy)
        sight.inherited = sight.legacy->clock.entry;
    return sight;
}

/* The last unknown wait that it is behind, of itself or of the legacy default stream, also one that has ended. */
static inline uint64_t overlap_sight_unknown(const struct overlap_sight *sight, const struct overlap_stream *stream) {
    const uint64_t own = OVERLAP_LOAD(stream->unknown), its = sight->legacy ? OVERLAP_LOAD(sight->legacy->unknown) : 0;
    return own > its ? own : its;
}

/* Is it behind something that nobody knows? */
static inline bool overlap_sight_is_unknown(const struct overlap_order *order, const struct overlap_sight *sight,
                                            const struct overlap_stream *stream) {
    const uint64_t last = overlap_sight_unknown(sight, stream);
    return OVERLAP_LOAD(sight->world->doubted) ||
           (last && (sight->world != &order->eager || last > OVERLAP_LOAD(stream->context->settled)));
}
static inline bool overlap_stream_is_unknown(const struct overlap_order *order, const struct overlap_stream *stream) {
    const struct overlap_sight sight = overlap_stream_sight(order, stream);
    return overlap_sight_is_unknown(order, &sight, stream);
}

/* What it knows of an entry that is not its own, by itself and by what orders all streams of its kind. */
static inline uint64_t overlap_sight_knows(const struct overlap_sight *sight, uint32_t entry) {
    const uint64_t own = OVERLAP_LOAD(sight->own[entry]), finished = OVERLAP_LOAD(sight->finished[entry]),
                   inherited = OVERLAP_LOAD(sight->inherited[entry]), most = own > finished ? own : finished;
    return most > inherited ? most : inherited;
}
static inline uint64_t overlap_stream_knows(const struct overlap_order *order, const struct overlap_stream *stream,
                                            uint32_t entry) {
    const struct overlap_sight sight = overlap_stream_sight(order, stream);
    return OVERLAP_LOAD(stream->communication) == (int32_t)entry ? OVERLAP_LOAD(sight.world->now.entry[entry])
                                                                 : overlap_sight_knows(&sight, entry);
}

/* Entries, by bit: those that a world uses, and the two of a stream of computation. */
static inline uint32_t overlap_world_set(const struct overlap_world *world) {
    return ((UINT32_C(1) << OVERLAP_LOAD(world->communications)) - 1) |
           ((UINT32_C(1) << 2 * OVERLAP_LOAD(world->computations)) - 1) << OVERLAP_CLOCK_COMMUNICATION;
}
static inline uint32_t overlap_computation_set(int32_t computation) {
    return computation < 0 ? 0 : UINT32_C(3) << (OVERLAP_CLOCK_COMMUNICATION + 2 * computation);
}
/* for (left = set; left; left &= left - 1): the entry that it has come to */
static inline uint32_t overlap_entry_of(uint32_t left) {
    return (uint32_t)__builtin_ctz(left);
}

/* Of which context its launches are; NULL: of several, or its stream is gone. */
static inline const struct overlap_context *overlap_context_of_entry(const struct overlap_world *world,
                                                                     uint32_t entry) {
    if (entry < OVERLAP_CLOCK_COMMUNICATION)
        return OVERLAP_LOAD(world->communication[entry].context);
    const struct overlap_stream *owner =
        OVERLAP_LOAD(world->computation[(entry - OVERLAP_CLOCK_COMMUNICATION) / 2].owner);
    return owner ? OVERLAP_LOAD(owner->context) : NULL;
}

/* The last launch of an entry; of those of computation, by stream. */
static inline uint64_t overlap_computation_now(const struct overlap_world *world, uint32_t i, uint32_t filling) {
    const struct overlap_stream *owner = OVERLAP_LOAD(world->computation[i].owner);
    return OVERLAP_LOAD(world->computation[i].base[filling]) +
           (owner ? OVERLAP_LOAD(*(filling ? &owner->filling : &owner->launched)) : 0);
}
static inline uint64_t overlap_world_now(const struct overlap_world *world, uint32_t entry) {
    return entry < OVERLAP_CLOCK_COMMUNICATION
               ? OVERLAP_LOAD(world->now.entry[entry])
               : overlap_computation_now(world, (entry - OVERLAP_CLOCK_COMMUNICATION) / 2, entry % 2);
}

/* A number of the calling thread, above OVERLAP_SEVERAL. */
enum { OVERLAP_SEVERAL = 1 };
extern __thread char overlap_thread_self __attribute__((tls_model("initial-exec"), visibility("hidden")));
static inline uint64_t overlap_this_thread(void) {
    return (uint64_t)(uintptr_t)&overlap_thread_self;
}

/* The calling thread may keep an answer about it. */
void overlap_stream_asked_first(struct overlap_stream *stream);
static inline void overlap_stream_asked(struct overlap_stream *stream) {
    const uint64_t asker = OVERLAP_LOAD(stream->asker);
    if (asker != overlap_this_thread() && asker != OVERLAP_SEVERAL)
        overlap_stream_asked_first(stream);
}

/* What it knows has changed. True: only answers of the calling thread for this stream may be stale. */
bool overlap_stream_changed_for(struct overlap_order *order, const struct overlap_stream *stream, uint64_t asker);
static inline bool overlap_stream_changed(struct overlap_order *order, const struct overlap_stream *stream) {
    const uint64_t asker = __atomic_load_n(&stream->asker, __ATOMIC_SEQ_CST);
    if (OVERLAP_LOAD(stream->kind) == OVERLAP_STREAM_NON_BLOCKING && (!asker || asker == overlap_this_thread()))
        return asker;
    return overlap_stream_changed_for(order, stream, asker);
}

/* The stream is captured with the one of which an event has been recorded. */
void overlap_order_join_capture(struct overlap_order *order, struct overlap_stream *stream, struct overlap_world *world,
                                uint64_t generation);

/* Answers that any thread keeps may be stale. */
static inline void overlap_order_changed(struct overlap_order *order) {
    __atomic_fetch_add(&order->version, 1, __ATOMIC_RELEASE);
}

/* Makes a number at least this; false: it was. The order with other numbers is total: overlap_stream_changed() needs that. */
static inline bool overlap_raise(uint64_t *number, uint64_t value) {
    uint64_t known = __atomic_load_n(number, __ATOMIC_RELAXED);
    while (known < value)
        if (__atomic_compare_exchange_n(number, &known, value, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            return true;
    return false;
}

/* The bit first: whoever sees the entry finds it. */
static inline bool overlap_clock_raise(struct overlap_clock *clock, uint32_t entry, uint64_t value) {
    if (__atomic_load_n(&clock->entry[entry], __ATOMIC_RELAXED) >= value)
        return false;
    if (!(__atomic_load_n(&clock->set, __ATOMIC_RELAXED) >> entry & 1))
        __atomic_fetch_or(&clock->set, UINT32_C(1) << entry, __ATOMIC_RELEASE);
    return overlap_raise(&clock->entry[entry], value);
}

/* Its clock includes this from now on, and that of everything that follows from it (passes_on: its context's). False: it did. */
void overlap_stream_passes_on(struct overlap_order *order, struct overlap_stream *stream, uint32_t entry,
                              uint64_t value);
static inline bool overlap_stream_learns_more(struct overlap_order *order, struct overlap_stream *stream,
                                              uint32_t entry, uint64_t value) {
    if (!overlap_clock_raise(&stream->clock, entry, value))
        return false;
    if (stream->world == &order->eager && (OVERLAP_LOAD(stream->kind) != OVERLAP_STREAM_NON_BLOCKING ||
                                           overlap_context_of_entry(&order->eager, entry) != stream->context))
        overlap_stream_passes_on(order, stream, entry, value);
    return true;
}
static inline bool overlap_stream_learns(struct overlap_order *order, struct overlap_stream *stream, uint32_t entry,
                                         uint64_t value) {
    return OVERLAP_LOAD(stream->clock.entry[entry]) < value && overlap_stream_learns_more(order, stream, entry, value);
}

static inline uint64_t overlap_order_hash(uint64_t key) {
    return (key ^ key >> 32) * UINT64_C(0x9E3779B97F4A7C15);
}

/* The place in which a stream of this key would be, at the nth try. */
enum { OVERLAP_ORDER_PROBES = 64 };
static inline __attribute__((returns_nonnull)) struct overlap_stream *
overlap_order_place(struct overlap_order *order, uint64_t key, uint64_t probe) {
    return &order->streams[((overlap_order_hash(key) >> 40) + probe) & (OVERLAP_ORDER_STREAMS - 1)];
}

/* The stream of this key (not 0), or NULL: never seen, or there was no place. The second where it is not in its first place. */
struct overlap_stream *overlap_order_find_further(struct overlap_order *order, uint64_t key);
static inline bool overlap_stream_has(const struct overlap_stream *stream, uint64_t key) {
    return OVERLAP_LOAD(stream->key) == key && OVERLAP_LOAD(stream->ready);
}
static inline struct overlap_stream *overlap_order_find(struct overlap_order *order, uint64_t key) {
    struct overlap_stream *const first = overlap_order_place(order, key, 0);
    return __builtin_expect(overlap_stream_has(first, key), 1) ? first : overlap_order_find_further(order, key);
}

/* Takes the lock; false: not to be had, which is said in `lost`. */
bool overlap_order_locked(struct overlap_order *order);
void overlap_order_unlock(struct overlap_order *order);
