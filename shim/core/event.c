/* Events carry clocks from stream to stream, and to the host. An event that is not in the table was never recorded, or
 * with nothing to tell; unless one was lost for want of a place: then what is not there may know everything that was
 * launched when that happened last. */
#include <string.h>

#include "event.h"

__attribute__((noinline)) struct overlap_event *overlap_event_find_further(struct overlap_order *order, uint64_t key) {
    for (uint64_t probe = 0; probe < OVERLAP_EVENT_PROBES && overlap_is_event(key); probe++) {
        struct overlap_event *event = overlap_event_place(order, key, probe);
        const uint64_t owner = OVERLAP_LOAD(event->key);
        if (owner == key)
            return event;
        if (owner == 0)
            return NULL;
    }
    return NULL;
}

/* Does it tell anything that the host has not seen? */
static inline bool is_news(const struct overlap_order *order, const struct overlap_clock *clock) {
    for (uint32_t left = OVERLAP_LOAD(clock->set); left; left &= left - 1) {
        const uint32_t e = overlap_entry_of(left);
        if (OVERLAP_LOAD(clock->entry[e]) > OVERLAP_LOAD(order->finished.entry[e]))
            return true;
    }
    return false;
}

static bool means_nothing(struct overlap_order *order, const struct overlap_event *event) {
    return !OVERLAP_LOAD(event->flags) && OVERLAP_LOAD(event->world) == &order->eager &&
           !OVERLAP_LOAD(event->unknown) && !is_news(order, &event->clock);
}

/* Begins to write it; false: somebody else does, or it is another event by now. */
static inline bool begin(struct overlap_event *event, uint64_t key) {
    uint32_t sequence = OVERLAP_LOAD(event->sequence);
    if (sequence % 2 || !__atomic_compare_exchange_n(&event->sequence, &sequence, sequence + 1, false, __ATOMIC_ACQ_REL,
                                                     __ATOMIC_RELAXED))
        return false;
    __atomic_thread_fence(__ATOMIC_RELEASE); /* who reads any of what is written now finds the number odd */
    if (OVERLAP_LOAD(event->key) == key)
        return true;
    __atomic_fetch_add(&event->sequence, 1, __ATOMIC_RELEASE);
    return false;
}

/* Takes the place for another event, if nobody is writing there and it is free or (used) means nothing; the lock is
 * held. */
static bool take(struct overlap_order *order, struct overlap_event *event, uint64_t key, bool used) {
    const uint64_t owner = OVERLAP_LOAD(event->key);
    const bool free = owner == 0 || owner == OVERLAP_EVENT_DEAD;
    if (!(free || (used && means_nothing(order, event))) || !begin(event, owner))
        return false;
    if (free || means_nothing(order, event)) { /* still, where nobody else writes */
        __atomic_store_n(&event->key, OVERLAP_EVENT_DEAD, __ATOMIC_RELEASE);
        __atomic_store_n(&event->flags, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&event->world, &order->eager, __ATOMIC_RELAXED);
        __atomic_store_n(&event->generation, OVERLAP_LOAD(order->eager.generation), __ATOMIC_RELAXED);
        __atomic_store_n(&event->unknown, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&event->by, NULL, __ATOMIC_RELAXED);
        __atomic_store_n(&event->clock.set, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&event->key, key, __ATOMIC_RELEASE);
    }
    __atomic_fetch_add(&event->sequence, 1, __ATOMIC_RELEASE);
    return OVERLAP_LOAD(event->key) == key;
}

/* Of a place that had none: the next one. The lock is held. */
static struct overlap_event *place_of(struct overlap_order *order, uint64_t key, uint64_t probe) {
    uint32_t *const number = overlap_event_number(order, key, probe);
    if (!*number)
        __atomic_store_n(number, ++order->events_used, __ATOMIC_RELEASE);
    return &order->events[*number];
}

static struct overlap_event *add(struct overlap_order *order, uint64_t key) {
    struct overlap_event *event = overlap_event_find(order, key);
    if (event || !overlap_order_locked(order))
        return event;
    event = overlap_event_find(order, key);
    for (uint64_t probe = 0; !event && probe < UINT64_C(2) * OVERLAP_EVENT_PROBES; probe++) {
        struct overlap_event *const at = place_of(order, key, probe % OVERLAP_EVENT_PROBES);
        if (take(order, at, key, probe >= OVERLAP_EVENT_PROBES))
            event = at;
    }
    overlap_order_unlock(order);
    return event;
}

/* There was no place for an event that is being recorded: it may tell of all that was launched so far. */
static void lose(struct overlap_order *order, struct overlap_stream *stream) {
    for (uint32_t left = overlap_world_set(&order->eager); left; left &= left - 1)
        overlap_clock_raise(&order->untold, overlap_entry_of(left),
                            overlap_world_now(&order->eager, overlap_entry_of(left)));
    __atomic_store_n(&order->untold_any, 1, __ATOMIC_RELEASE);
    if (!stream || overlap_stream_is_unknown(order, stream)) /* and of what comes later */
        __atomic_store_n(&order->vague, 1, __ATOMIC_RELEASE);
}

void overlap_order_event_gone(struct overlap_order *order, uint64_t key) {
    struct overlap_event *event = overlap_event_find(order, key);
    if (!event || !overlap_order_locked(order))
        return;
    if (event->key == key)
        __atomic_store_n(&event->key, OVERLAP_EVENT_DEAD, __ATOMIC_RELEASE);
    overlap_order_unlock(order);
}

static void mark(struct overlap_order *order, uint64_t key, uint32_t flag) {
    if (!overlap_is_event(key))
        return;
    struct overlap_event *event = add(order, key);
    if (event)
        __atomic_fetch_or(&event->flags, flag, __ATOMIC_RELEASE);
    else
        __atomic_store_n(&order->vague, 1, __ATOMIC_RELEASE);
}

void overlap_order_event_unknown(struct overlap_order *order, uint64_t key) {
    mark(order, key, OVERLAP_EVENT_ALWAYS);
}

void overlap_order_event_imported(struct overlap_order *order, uint64_t key) {
    mark(order, key, OVERLAP_EVENT_IMPORTED);
}

void overlap_order_event_exported(struct overlap_order *order, uint64_t key) {
    __atomic_store_n(&order->exported, 1, __ATOMIC_RELEASE);
    mark(order, key, OVERLAP_EVENT_ALWAYS);
}

/* ---- Recording ---- */

/* Would an event recorded here tell anything? */
static inline bool tells(struct overlap_order *order, struct overlap_stream *stream) {
    if (!stream || stream->world != &order->eager)
        return true;
    const struct overlap_sight sight = overlap_stream_sight(order, stream);
    const int32_t own = OVERLAP_LOAD(stream->communication);
    return OVERLAP_LOAD(stream->computation) >= 0 ||
           OVERLAP_LOAD(stream->part.work) > OVERLAP_LOAD(stream->part.over) ||
           (own >= 0 && OVERLAP_LOAD(order->eager.now.entry[own]) > OVERLAP_LOAD(order->finished.entry[own])) ||
           overlap_sight_is_unknown(order, &sight, stream) || is_news(order, &stream->clock) ||
           (sight.legacy && is_news(order, &sight.legacy->clock)) ||
           (OVERLAP_LOAD(stream->kind) == OVERLAP_STREAM_LEGACY && is_news(order, &stream->context->blocking));
}

static inline void forget(struct overlap_event *event, uint32_t flag) {
    if (OVERLAP_LOAD(event->flags) & flag)
        __atomic_fetch_and(&event->flags, ~flag, __ATOMIC_ACQ_REL);
}

/* One that is not in the table. NULL: it need not be there, or there is no place for it. */
__attribute__((noinline)) static struct overlap_event *record_first(struct overlap_order *order, uint64_t key,
                                                                    struct overlap_stream *stream) {
    if (!overlap_is_event(key) || (!tells(order, overlap_stream_here(stream)) && !OVERLAP_LOAD(order->untold_any)))
        return NULL;
    struct overlap_event *const event = add(order, key);
    if (!event)
        lose(order, overlap_stream_here(stream));
    return event;
}

__attribute__((cold, noinline)) static void record_twice(struct overlap_order *order, struct overlap_event *event,
                                                         uint64_t key, struct overlap_stream *stream) {
    if (OVERLAP_LOAD(event->key) == key)
        __atomic_fetch_or(&event->flags, (uint32_t)OVERLAP_EVENT_TWICE, __ATOMIC_RELEASE);
    else /* another one has its place by now */
        lose(order, overlap_stream_here(stream));
}

struct overlap_event *overlap_order_recording(struct overlap_order *order, uint64_t key,
                                              struct overlap_stream *stream) {
    struct overlap_event *event = overlap_event_find(order, key);
    if (!event && !(event = record_first(order, key, stream)))
        return NULL;
    const uint32_t before = OVERLAP_LOAD(event->flags);
    forget(event, OVERLAP_EVENT_TWICE);
    if (__builtin_expect(!begin(event, key), 0)) {
        record_twice(order, event, key, stream);
        return NULL;
    }
    event->before = before;
    return event;
}

/* What comes from others than the stream itself: unknown waits, and what the legacy default stream knows. Returns the entries. */
__attribute__((noinline)) static uint32_t write_inherited(struct overlap_order *order, struct overlap_event *event,
                                                          const struct overlap_stream *stream, uint32_t set) {
    const struct overlap_sight sight = overlap_stream_sight(order, stream);
    const uint64_t unknown = !overlap_sight_is_unknown(order, &sight, stream) ? 0
                             : sight.world == &order->eager                   ? overlap_sight_unknown(&sight, stream)
                                                                              : UINT64_MAX;
    __atomic_store_n(&event->unknown, unknown, __ATOMIC_RELAXED); /* number of the wait that it is behind; 0: none */
    for (uint32_t left = sight.legacy ? OVERLAP_LOAD(sight.legacy->clock.set) : 0; left; left &= left - 1) {
        const uint32_t e = overlap_entry_of(left);
        const uint64_t its = OVERLAP_LOAD(sight.inherited[e]);
        if (set >> e & 1 && its <= __atomic_load_n(&event->clock.entry[e], __ATOMIC_RELAXED))
            continue;
        __atomic_store_n(&event->clock.entry[e], its, __ATOMIC_RELAXED);
        set |= UINT32_C(1) << e;
    }
    return set;
}

/* All that the stream knows but what the host knows, too. */
static inline void write_clock(struct overlap_order *order, struct overlap_event *event,
                               const struct overlap_stream *stream) {
    struct overlap_world *const world = stream->world;
    uint32_t set = OVERLAP_LOAD(stream->clock.set);
    __atomic_store_n(&event->world, world, __ATOMIC_RELAXED);
    __atomic_store_n(&event->generation, OVERLAP_LOAD(world->generation), __ATOMIC_RELAXED);
    __atomic_store_n(&event->context, stream->context, __ATOMIC_RELAXED);
    __atomic_store_n(&event->unknown, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&event->by, (struct overlap_stream *)(uintptr_t)stream, __ATOMIC_RELAXED);
    __atomic_store_n(&event->serial, OVERLAP_LOAD(stream->serial), __ATOMIC_RELAXED);
    __atomic_store_n(&event->work, OVERLAP_LOAD(stream->part.work), __ATOMIC_RELAXED);
    for (uint32_t left = set; left; left &= left - 1) {
        const uint32_t e = overlap_entry_of(left);
        __atomic_store_n(&event->clock.entry[e], OVERLAP_LOAD(stream->clock.entry[e]), __ATOMIC_RELAXED);
    }
    if (__builtin_expect(OVERLAP_LOAD(stream->unknown) || OVERLAP_LOAD(world->doubted) || overlap_stream_behind(stream),
                         0))
        set = write_inherited(order, event, stream, set);
    const int32_t communication = OVERLAP_LOAD(stream->communication), computation = OVERLAP_LOAD(stream->computation);
    if (communication >= 0) {
        __atomic_store_n(&event->clock.entry[communication], OVERLAP_LOAD(world->now.entry[communication]),
                         __ATOMIC_RELAXED);
        set |= UINT32_C(1) << communication;
    }
    if (computation >= 0) { /* as overlap_computation_now() says it, of itself */
        const uint64_t launched =
                           OVERLAP_LOAD(world->computation[computation].base[0]) + OVERLAP_LOAD(stream->launched),
                       filling = OVERLAP_LOAD(world->computation[computation].base[1]) + OVERLAP_LOAD(stream->filling);
        uint64_t *const entries = &event->clock.entry[OVERLAP_CLOCK_COMMUNICATION + 2 * computation];
        __atomic_store_n(&entries[0], launched, __ATOMIC_RELAXED);
        __atomic_store_n(&entries[1], filling, __ATOMIC_RELAXED);
        set |= ((launched != 0) | (uint32_t)(filling != 0) << 1) << (OVERLAP_CLOCK_COMMUNICATION + 2 * computation);
    }
    __atomic_store_n(&event->clock.set, set, __ATOMIC_RELAXED);
}

/* What becomes of an event's flags. */
__attribute__((noinline)) static void record_flags(struct overlap_order *order, struct overlap_event *event, bool known,
                                                   bool recorded) {
    if (recorded && known)
        __atomic_fetch_and(&event->flags, ~(uint32_t)OVERLAP_EVENT_UNKNOWN, __ATOMIC_RELEASE);
    else if (recorded) /* on a stream that found no place */
        __atomic_fetch_or(&event->flags, (uint32_t)OVERLAP_EVENT_UNKNOWN, __ATOMIC_RELEASE);
    else
        __atomic_fetch_or(&event->flags, event->before & OVERLAP_EVENT_TWICE, __ATOMIC_RELEASE);
    if (OVERLAP_LOAD(event->flags) & OVERLAP_EVENT_IMPORTED) /* others may wait for it */
        __atomic_store_n(&order->exported, 1, __ATOMIC_RELEASE);
}

void overlap_order_write(struct overlap_order *order, struct overlap_event *event, struct overlap_stream *stream,
                         bool recorded) {
    stream = overlap_stream_here(stream);
    if (recorded)
        overlap_order_action(order, stream);
    if (recorded && stream)
        write_clock(order, event, stream);
    if (__builtin_expect(!recorded || !stream || OVERLAP_LOAD(event->flags), 0))
        record_flags(order, event, stream != NULL, recorded);
    const uint32_t sequence = __atomic_load_n(&event->sequence, __ATOMIC_RELAXED);
    __atomic_store_n(&event->sequence, sequence + 1, __ATOMIC_RELEASE); /* only its writer changes an odd one */
}
