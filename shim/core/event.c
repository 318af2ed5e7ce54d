/* Events carry clocks from stream to stream, and to the host. An event without a slot was never recorded, or carried no
 * order when it was. After the table has overflowed, such an event may also be ordered after everything launched before
 * the last overflow. */
#include "event.h"
#include "sync_access.h"

__attribute__((noinline)) struct overlap_event *overlap_event_find_further(struct overlap_sync_model *model,
                                                                           uint64_t key) {
    for (uint64_t probe = 0; probe < OVERLAP_EVENT_PROBES && overlap_is_event(key); probe++) {
        struct overlap_event *event = overlap_event_slot(model, key, probe);
        const uint64_t owner = OVERLAP_LOAD(event->key);
        if (owner == key)
            return event;
        if (owner == 0)
            return NULL;
    }
    return NULL;
}

/* Is any entry of the clock newer than what the host knows to be finished? */
static inline bool is_news(const struct overlap_sync_model *model, const struct overlap_clock *clock) {
    for (uint32_t left = OVERLAP_LOAD(clock->set); left; left &= left - 1) {
        const uint32_t e = overlap_entry_of(left);
        if (OVERLAP_LOAD(clock->entry[e]) > OVERLAP_LOAD(model->finished.entry[e]))
            return true;
    }
    return false;
}

static bool carries_nothing(struct overlap_sync_model *model, const struct overlap_event *event) {
    return !OVERLAP_LOAD(event->flags) && OVERLAP_LOAD(event->domain) == &model->eager &&
           !OVERLAP_LOAD(event->unknown) && !is_news(model, &event->clock);
}

/* Begins to write an event. False: another thread writes it, or its slot now holds another event. */
static inline bool begin(struct overlap_event *event, uint64_t key) {
    uint32_t sequence = OVERLAP_LOAD(event->sequence);
    if (sequence % 2 || !__atomic_compare_exchange_n(&event->sequence, &sequence, sequence + 1, false, __ATOMIC_ACQ_REL,
                                                     __ATOMIC_RELAXED))
        return false;
    __atomic_thread_fence(__ATOMIC_RELEASE); /* a reader of anything written from here on finds the number odd */
    if (OVERLAP_LOAD(event->key) == key)
        return true;
    __atomic_fetch_add(&event->sequence, 1, __ATOMIC_RELEASE);
    return false;
}

/* Takes the slot for another event, if it is free or (used) its event carries no order, and no thread is writing it.
 * The lock is held. */
static bool take(struct overlap_sync_model *model, struct overlap_event *event, uint64_t key, bool used) {
    const uint64_t owner = OVERLAP_LOAD(event->key);
    const bool free = owner == 0 || owner == OVERLAP_EVENT_TOMBSTONE;
    if (!(free || (used && carries_nothing(model, event))) || !begin(event, owner))
        return false;
    if (free || carries_nothing(model, event)) { /* check again: no other thread writes now */
        __atomic_store_n(&event->key, OVERLAP_EVENT_TOMBSTONE, __ATOMIC_RELEASE);
        __atomic_store_n(&event->flags, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&event->domain, &model->eager, __ATOMIC_RELAXED);
        __atomic_store_n(&event->generation, OVERLAP_LOAD(model->eager.generation), __ATOMIC_RELAXED);
        __atomic_store_n(&event->unknown, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&event->by, NULL, __ATOMIC_RELAXED);
        __atomic_store_n(&event->clock.set, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&event->key, key, __ATOMIC_RELEASE);
    }
    __atomic_fetch_add(&event->sequence, 1, __ATOMIC_RELEASE);
    return OVERLAP_LOAD(event->key) == key;
}

/* Returns the event of a bucket; an empty bucket gets the next event. The lock is held. */
static struct overlap_event *slot_of(struct overlap_sync_model *model, uint64_t key, uint64_t probe) {
    uint32_t *const number = overlap_event_index(model, key, probe);
    if (!*number)
        __atomic_store_n(number, ++model->events_used, __ATOMIC_RELEASE);
    return &model->events[*number];
}

static struct overlap_event *add(struct overlap_sync_model *model, uint64_t key) {
    struct overlap_event *event = overlap_event_find(model, key);
    if (event || !overlap_sync_lock(model))
        return event;
    event = overlap_event_find(model, key);
    for (uint64_t probe = 0; !event && probe < UINT64_C(2) * OVERLAP_EVENT_PROBES; probe++) {
        struct overlap_event *const at = slot_of(model, key, probe % OVERLAP_EVENT_PROBES);
        if (take(model, at, key, probe >= OVERLAP_EVENT_PROBES))
            event = at;
    }
    overlap_sync_unlock(model);
    return event;
}

/* No slot is free for an event that is being recorded. The event may be ordered after everything launched so far. */
__attribute__((cold)) static void overflow(struct overlap_sync_model *model, struct overlap_stream *stream) {
    for (uint32_t left = overlap_domain_set(&model->eager); left; left &= left - 1)
        overlap_clock_raise(&model->event_overflow, overlap_entry_of(left),
                            overlap_domain_now(&model->eager, overlap_entry_of(left)));
    __atomic_store_n(&model->event_overflow_any, 1, __ATOMIC_RELEASE);
    if (!stream || overlap_stream_is_unknown(model, stream)) /* the event may also be ordered after later launches */
        __atomic_store_n(&model->event_unknown, 1, __ATOMIC_RELEASE);
}

__attribute__((cold)) void overlap_sync_event_gone(struct overlap_sync_model *model, uint64_t key) {
    struct overlap_event *event = overlap_event_find(model, key);
    if (!event || !overlap_sync_lock(model))
        return;
    if (event->key == key)
        __atomic_store_n(&event->key, OVERLAP_EVENT_TOMBSTONE, __ATOMIC_RELEASE);
    overlap_sync_unlock(model);
}

static void mark(struct overlap_sync_model *model, uint64_t key, uint32_t flag) {
    if (!overlap_is_event(key))
        return;
    struct overlap_event *event = add(model, key);
    if (event)
        __atomic_fetch_or(&event->flags, flag, __ATOMIC_RELEASE);
    else
        __atomic_store_n(&model->event_unknown, 1, __ATOMIC_RELEASE);
}

__attribute__((cold)) void overlap_sync_event_unknown(struct overlap_sync_model *model, uint64_t key) {
    mark(model, key, OVERLAP_EVENT_ALWAYS);
}

__attribute__((cold)) void overlap_sync_event_imported(struct overlap_sync_model *model, uint64_t key) {
    mark(model, key, OVERLAP_EVENT_IMPORTED);
}

__attribute__((cold)) void overlap_sync_event_exported(struct overlap_sync_model *model, uint64_t key) {
    __atomic_store_n(&model->exported, 1, __ATOMIC_RELEASE);
    mark(model, key, OVERLAP_EVENT_ALWAYS);
}

/* ---- Recording ---- */

/* Would an event recorded on this stream carry any order? */
static inline bool carries_order(struct overlap_sync_model *model, struct overlap_stream *stream) {
    if (!stream || stream->domain != &model->eager)
        return true;
    const struct overlap_sight sight = overlap_stream_sight(model, stream);
    const int32_t own = OVERLAP_LOAD(stream->communication);
    return OVERLAP_LOAD(stream->computation) >= 0 ||
           OVERLAP_LOAD(stream->part.work) > OVERLAP_LOAD(stream->part.over) ||
           (own >= 0 && OVERLAP_LOAD(model->eager.now.entry[own]) > OVERLAP_LOAD(model->finished.entry[own])) ||
           overlap_sight_is_unknown(model, &sight, stream) || is_news(model, &stream->clock) ||
           (sight.legacy && is_news(model, &sight.legacy->clock)) ||
           (OVERLAP_LOAD(stream->kind) == OVERLAP_STREAM_LEGACY && is_news(model, &stream->context->blocking));
}

static inline void clear_flag(struct overlap_event *event, uint32_t flag) {
    if (OVERLAP_LOAD(event->flags) & flag)
        __atomic_fetch_and(&event->flags, ~flag, __ATOMIC_ACQ_REL);
}

/* Adds an event that is not in the table. NULL: it carries no order, so it need not be added; or no slot is free. */
__attribute__((noinline)) static struct overlap_event *record_first(struct overlap_sync_model *model, uint64_t key,
                                                                    struct overlap_stream *stream) {
    if (!overlap_is_event(key) ||
        (!carries_order(model, overlap_stream_here(stream)) && !OVERLAP_LOAD(model->event_overflow_any)))
        return NULL;
    struct overlap_event *const event = add(model, key);
    if (!event)
        overflow(model, overlap_stream_here(stream));
    return event;
}

__attribute__((cold, noinline)) static void record_twice(struct overlap_sync_model *model, struct overlap_event *event,
                                                         uint64_t key, struct overlap_stream *stream) {
    if (OVERLAP_LOAD(event->key) == key)
        __atomic_fetch_or(&event->flags, (uint32_t)OVERLAP_EVENT_TWICE, __ATOMIC_RELEASE);
    else /* the slot now holds another event */
        overflow(model, overlap_stream_here(stream));
}

struct overlap_event *overlap_sync_recording(struct overlap_sync_model *model, uint64_t key,
                                             struct overlap_stream *stream) {
    struct overlap_event *event = overlap_event_find(model, key);
    if (!event && !(event = record_first(model, key, stream)))
        return NULL;
    const uint32_t before = OVERLAP_LOAD(event->flags);
    clear_flag(event, OVERLAP_EVENT_TWICE);
    if (__builtin_expect(!begin(event, key), 0)) {
        record_twice(model, event, key, stream);
        return NULL;
    }
    event->before = before;
    return event;
}

/* Writes what the stream inherits: unknown waits, and the clock of the legacy default stream. Returns the entries that
 * are set. */
__attribute__((noinline)) static uint32_t write_inherited(struct overlap_sync_model *model, struct overlap_event *event,
                                                          const struct overlap_stream *stream, uint32_t set) {
    const struct overlap_sight sight = overlap_stream_sight(model, stream);
    const uint64_t unknown = !overlap_sight_is_unknown(model, &sight, stream) ? 0
                             : sight.domain == &model->eager                  ? overlap_sight_unknown(&sight, stream)
                                                                              : UINT64_MAX;
    /* The number of the wait that the event is behind; 0: none. */
    __atomic_store_n(&event->unknown, unknown, __ATOMIC_RELAXED);
    for (uint32_t left = sight.legacy ? OVERLAP_LOAD(sight.legacy->clock.set) : 0; left; left &= left - 1) {
        const uint32_t e = overlap_entry_of(left);
        const uint64_t inherited = OVERLAP_LOAD(sight.inherited[e]);
        if (set >> e & 1 && inherited <= OVERLAP_RELAXED(event->clock.entry[e]))
            continue;
        __atomic_store_n(&event->clock.entry[e], inherited, __ATOMIC_RELAXED);
        set |= UINT32_C(1) << e;
    }
    return set;
}

/* Writes the stream's clock. What the host knows is in a clock of its own, which every launch includes. */
static inline void write_clock(struct overlap_sync_model *model, struct overlap_event *event,
                               const struct overlap_stream *stream) {
    struct overlap_clock_domain *const domain = stream->domain;
    uint32_t set = OVERLAP_LOAD(stream->clock.set);
    __atomic_store_n(&event->domain, domain, __ATOMIC_RELAXED);
    __atomic_store_n(&event->generation, OVERLAP_LOAD(domain->generation), __ATOMIC_RELAXED);
    __atomic_store_n(&event->context, stream->context, __ATOMIC_RELAXED);
    __atomic_store_n(&event->unknown, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&event->by, (struct overlap_stream *)(uintptr_t)stream, __ATOMIC_RELAXED);
    __atomic_store_n(&event->serial, OVERLAP_LOAD(stream->serial), __ATOMIC_RELAXED);
    __atomic_store_n(&event->work, OVERLAP_LOAD(stream->part.work), __ATOMIC_RELAXED);
    for (uint32_t left = set; left; left &= left - 1) {
        const uint32_t e = overlap_entry_of(left);
        __atomic_store_n(&event->clock.entry[e], OVERLAP_LOAD(stream->clock.entry[e]), __ATOMIC_RELAXED);
    }
    if (__builtin_expect(
            OVERLAP_LOAD(stream->unknown) || OVERLAP_LOAD(domain->order_unknown) || overlap_stream_behind(stream), 0))
        set = write_inherited(model, event, stream, set);
    const int32_t communication = OVERLAP_LOAD(stream->communication), computation = OVERLAP_LOAD(stream->computation);
    if (communication >= 0) {
        __atomic_store_n(&event->clock.entry[communication], OVERLAP_LOAD(domain->now.entry[communication]),
                         __ATOMIC_RELAXED);
        set |= UINT32_C(1) << communication;
    }
    if (computation >= 0) { /* the same numbers as overlap_computation_now() */
        const uint64_t launched =
                           OVERLAP_LOAD(domain->computation[computation].base[0]) + OVERLAP_LOAD(stream->launched),
                       filling = OVERLAP_LOAD(domain->computation[computation].base[1]) + OVERLAP_LOAD(stream->filling);
        uint64_t *const entries = &event->clock.entry[OVERLAP_CLOCK_COMMUNICATION + 2 * computation];
        __atomic_store_n(&entries[0], launched, __ATOMIC_RELAXED);
        __atomic_store_n(&entries[1], filling, __ATOMIC_RELAXED);
        set |= ((launched != 0) | (uint32_t)(filling != 0) << 1) << (OVERLAP_CLOCK_COMMUNICATION + 2 * computation);
    }
    __atomic_store_n(&event->clock.set, set, __ATOMIC_RELAXED);
}

/* Updates the flags of an event after a record. */
__attribute__((noinline)) static void record_flags(struct overlap_sync_model *model, struct overlap_event *event,
                                                   bool known, bool recorded) {
    if (recorded && known)
        __atomic_fetch_and(&event->flags, ~(uint32_t)OVERLAP_EVENT_UNKNOWN, __ATOMIC_RELEASE);
    else if (recorded) /* on an untracked stream */
        __atomic_fetch_or(&event->flags, (uint32_t)OVERLAP_EVENT_UNKNOWN, __ATOMIC_RELEASE);
    else
        __atomic_fetch_or(&event->flags, event->before & OVERLAP_EVENT_TWICE, __ATOMIC_RELEASE);
    if (OVERLAP_LOAD(event->flags) & OVERLAP_EVENT_IMPORTED) /* other processes may wait for it */
        __atomic_store_n(&model->exported, 1, __ATOMIC_RELEASE);
}

void overlap_sync_write(struct overlap_sync_model *model, struct overlap_event *event, struct overlap_stream *stream,
                        bool recorded) {
    stream = overlap_stream_here(stream);
    if (recorded)
        overlap_sync_action(model, stream);
    if (recorded && stream)
        write_clock(model, event, stream);
    if (__builtin_expect(!recorded || !stream || OVERLAP_LOAD(event->flags), 0))
        record_flags(model, event, stream != NULL, recorded);
    const uint32_t sequence = OVERLAP_RELAXED(event->sequence);
    /* Only the thread that made it odd changes it. */
    __atomic_store_n(&event->sequence, sequence + 1, __ATOMIC_RELEASE);
}
