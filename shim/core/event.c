/* Events carry clocks from stream to stream, and to the host. An event that is not in the table was never recorded, or
 * with nothing to tell; unless one was lost for want of a place: then what is not there may know everything that was
 * launched when that happened last. */
#include <string.h>

#include "critical.h"

#define DEAD UINT64_MAX
enum { PROBES = 32 };

enum {
    UNKNOWN = 1,  /* its last record is not known: behind all that came before */
    ALWAYS = 2,   /* graphs or other processes record it: likewise, whatever we record */
    IMPORTED = 4, /* another process's: tells of this process only if that waits for events of ours */
    TWICE = 8,    /* two threads recorded it at the same time: who was last? */
};

static inline struct overlap_event *place(struct overlap_order *order, uint64_t key, uint64_t probe) {
    return &order->events[((overlap_order_hash(key) >> 40) + probe) & (OVERLAP_ORDER_EVENTS - 1)];
}

/* NULL, which a program may pass by mistake, is the key of a free slot. */
static bool is_event(uint64_t key) {
    return key != 0 && key != DEAD;
}

__attribute__((noinline)) static struct overlap_event *find_further(struct overlap_order *order, uint64_t key) {
    for (uint64_t probe = 0; probe < PROBES && is_event(key); probe++) {
        struct overlap_event *event = place(order, key, probe);
        const uint64_t owner = OVERLAP_LOAD(event->key);
        if (owner == key)
            return event;
        if (owner == 0)
            return NULL;
    }
    return NULL;
}

static inline struct overlap_event *find(struct overlap_order *order, uint64_t key) {
    struct overlap_event *const first = place(order, key, 0);
    const uint64_t owner = OVERLAP_LOAD(first->key);
    if (owner == 0)
        return NULL;
    return __builtin_expect(owner == key && key != DEAD, 1) ? first : find_further(order, key);
}

/* Does it tell anything that the host has not seen? */
static bool is_news(const struct overlap_order *order, const struct overlap_clock *clock) {
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
    const bool free = owner == 0 || owner == DEAD;
    if (!(free || (used && means_nothing(order, event))) || !begin(event, owner))
        return false;
    if (free || means_nothing(order, event)) { /* still, where nobody else writes */
        __atomic_store_n(&event->key, DEAD, __ATOMIC_RELEASE);
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

static struct overlap_event *add(struct overlap_order *order, uint64_t key) {
    struct overlap_event *event = find(order, key);
    if (event || !overlap_order_locked(order))
        return event;
    event = find(order, key);
    for (uint64_t probe = 0; !event && probe < UINT64_C(2) * PROBES; probe++)
        if (take(order, place(order, key, probe % PROBES), key, probe >= PROBES))
            event = place(order, key, probe % PROBES);
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
    struct overlap_event *event = find(order, key);
    if (!event || !overlap_order_locked(order))
        return;
    if (event->key == key)
        __atomic_store_n(&event->key, DEAD, __ATOMIC_RELEASE);
    overlap_order_unlock(order);
}

static void mark(struct overlap_order *order, uint64_t key, uint32_t flag) {
    if (!is_event(key))
        return;
    struct overlap_event *event = add(order, key);
    if (event)
        __atomic_fetch_or(&event->flags, flag, __ATOMIC_RELEASE);
    else
        __atomic_store_n(&order->vague, 1, __ATOMIC_RELEASE);
}

void overlap_order_event_unknown(struct overlap_order *order, uint64_t key) {
    mark(order, key, ALWAYS);
}

void overlap_order_event_imported(struct overlap_order *order, uint64_t key) {
    mark(order, key, IMPORTED);
}

void overlap_order_event_exported(struct overlap_order *order, uint64_t key) {
    __atomic_store_n(&order->exported, 1, __ATOMIC_RELEASE);
    mark(order, key, ALWAYS);
}

/* ---- Recording ---- */

/* Would an event recorded here tell anything? */
static bool tells(struct overlap_order *order, struct overlap_stream *stream) {
    if (!stream || stream->world != &order->eager || overlap_stream_is_unknown(order, stream))
        return true;
    const struct overlap_stream *legacy = overlap_stream_behind(stream);
    const int32_t own = OVERLAP_LOAD(stream->communication);
    return OVERLAP_LOAD(stream->computation) >= 0 || OVERLAP_LOAD(stream->part.work) > OVERLAP_LOAD(stream->part.over) ||
           (own >= 0 && OVERLAP_LOAD(order->eager.now.entry[own]) > OVERLAP_LOAD(order->finished.entry[own])) ||
           is_news(order, &stream->clock) || (legacy && is_news(order, &legacy->clock)) ||
           (stream->kind == OVERLAP_STREAM_LEGACY && is_news(order, &stream->context->blocking));
}

static inline void forget(struct overlap_event *event, uint32_t flag) {
    if (OVERLAP_LOAD(event->flags) & flag)
        __atomic_fetch_and(&event->flags, ~flag, __ATOMIC_ACQ_REL);
}

/* One that is not in the table. NULL: it need not be there, or there is no place for it. */
__attribute__((noinline)) static struct overlap_event *record_first(struct overlap_order *order, uint64_t key,
                                                                    struct overlap_stream *stream) {
    if (!is_event(key) || (!tells(order, overlap_stream_here(stream)) && !OVERLAP_LOAD(order->untold_any)))
        return NULL;
    struct overlap_event *const event = add(order, key);
    if (!event)
        lose(order, overlap_stream_here(stream));
    return event;
}

__attribute__((cold, noinline)) static void record_twice(struct overlap_order *order, struct overlap_event *event,
                                                         uint64_t key, struct overlap_stream *stream) {
    if (OVERLAP_LOAD(event->key) == key)
        __atomic_fetch_or(&event->flags, (uint32_t)TWICE, __ATOMIC_RELEASE);
    else /* another one has its place by now */
        lose(order, overlap_stream_here(stream));
}

struct overlap_event *overlap_order_recording(struct overlap_order *order, uint64_t key,
                                              struct overlap_stream *stream) {
    struct overlap_event *event = find(order, key);
    if (!event && !(event = record_first(order, key, stream)))
        return NULL;
    const uint32_t before = OVERLAP_LOAD(event->flags);
    forget(event, TWICE);
    if (__builtin_expect(!begin(event, key), 0)) {
        record_twice(order, event, key, stream);
        return NULL;
    }
    event->before = before;
    return event;
}

/* Number of the unknown wait that it is behind; 0: none. */
__attribute__((noinline)) static uint64_t unknown_of(struct overlap_order *order, const struct overlap_stream *stream) {
    if (!overlap_stream_is_unknown(order, stream))
        return 0;
    if (stream->world != &order->eager)
        return UINT64_MAX;
    const struct overlap_stream *legacy = overlap_stream_behind(stream);
    const uint64_t own = OVERLAP_LOAD(stream->unknown), its = legacy ? OVERLAP_LOAD(legacy->unknown) : 0;
    return own > its ? own : its;
}

static inline uint32_t write_entry(struct overlap_event *event, uint32_t entry, uint64_t value) {
    __atomic_store_n(&event->clock.entry[entry], value, __ATOMIC_RELAXED);
    return value ? UINT32_C(1) << entry : 0; /* else it tells nothing */
}

/* All that the stream knows but what the host knows, too. */
static inline void write_clock(struct overlap_order *order, struct overlap_event *event,
                               const struct overlap_stream *stream) {
    struct overlap_world *const world = stream->world;
    const struct overlap_stream *legacy = world == &order->eager ? overlap_stream_behind(stream) : NULL;
    const bool unknown = OVERLAP_LOAD(stream->unknown) || legacy || OVERLAP_LOAD(world->doubted); /* perhaps */
    __atomic_store_n(&event->world, world, __ATOMIC_RELAXED);
    __atomic_store_n(&event->generation, OVERLAP_LOAD(world->generation), __ATOMIC_RELAXED);
    __atomic_store_n(&event->context, stream->context, __ATOMIC_RELAXED);
    __atomic_store_n(&event->unknown, unknown ? unknown_of(order, stream) : 0, __ATOMIC_RELAXED);
    __atomic_store_n(&event->by, stream, __ATOMIC_RELAXED);
    __atomic_store_n(&event->serial, OVERLAP_LOAD(stream->serial), __ATOMIC_RELAXED);
    __atomic_store_n(&event->work, OVERLAP_LOAD(stream->part.work), __ATOMIC_RELAXED);
    const int32_t communication = OVERLAP_LOAD(stream->communication), computation = OVERLAP_LOAD(stream->computation);
    const uint32_t its = legacy ? OVERLAP_LOAD(legacy->clock.set) : 0;
    uint32_t set = OVERLAP_LOAD(stream->clock.set) | its;
    for (uint32_t left = set; left; left &= left - 1) {
        const uint32_t e = overlap_entry_of(left);
        const uint64_t own = OVERLAP_LOAD(stream->clock.entry[e]);
        const uint64_t above = __builtin_expect(its >> e & 1, 0) ? OVERLAP_LOAD(legacy->clock.entry[e]) : 0;
        write_entry(event, e, above > own ? above : own);
    }
    if (communication >= 0)
        set |= write_entry(event, (uint32_t)communication, OVERLAP_LOAD(world->now.entry[communication]));
    for (uint32_t filling = 0; computation >= 0 && filling < 2; filling++)
        set |= write_entry(event, OVERLAP_CLOCK_COMMUNICATION + 2 * (uint32_t)computation + filling,
                           overlap_computation_now(world, (uint32_t)computation, filling));
    __atomic_store_n(&event->clock.set, set, __ATOMIC_RELAXED);
}

/* What becomes of an event's flags. */
__attribute__((noinline)) static void record_flags(struct overlap_order *order, struct overlap_event *event, bool known,
                                                   bool recorded) {
    if (recorded && known)
        __atomic_fetch_and(&event->flags, ~(uint32_t)UNKNOWN, __ATOMIC_RELEASE);
    else if (recorded) /* on a stream that found no place */
        __atomic_fetch_or(&event->flags, (uint32_t)UNKNOWN, __ATOMIC_RELEASE);
    else
        __atomic_fetch_or(&event->flags, event->before & TWICE, __ATOMIC_RELEASE);
    if (OVERLAP_LOAD(event->flags) & IMPORTED) /* others may wait for it */
        __atomic_store_n(&order->exported, 1, __ATOMIC_RELEASE);
}

void overlap_order_recorded(struct overlap_order *order, struct overlap_event *event, struct overlap_stream *stream,
                            bool recorded) {
    stream = overlap_stream_here(stream);
    if (recorded)
        overlap_order_action(order, stream);
    if (!event)
        return;
    if (recorded && stream)
        write_clock(order, event, stream);
    if (__builtin_expect(!recorded || !stream || OVERLAP_LOAD(event->flags), 0))
        record_flags(order, event, stream != NULL, recorded);
    const uint32_t sequence = __atomic_load_n(&event->sequence, __ATOMIC_RELAXED);
    __atomic_store_n(&event->sequence, sequence + 1, __ATOMIC_RELEASE); /* only its writer changes an odd one */
}

/* ---- Waiting ---- */

enum knowledge { NOTHING, A_CLOCK, EVERYTHING, NO_ONE_KNOWS };

static inline void copy_clock(struct overlap_clock *copy, const struct overlap_clock *clock) {
    copy->set = OVERLAP_LOAD(clock->set);
    for (uint32_t left = copy->set; left; left &= left - 1)
        copy->entry[overlap_entry_of(left)] = __atomic_load_n(&clock->entry[overlap_entry_of(left)], __ATOMIC_RELAXED);
}

/* Of an event that is not in the table, once one was lost. */
__attribute__((cold, noinline)) static enum knowledge untold(struct overlap_order *order, struct overlap_event *copy) {
    copy->world = &order->eager;
    copy->generation = OVERLAP_LOAD(order->eager.generation);
    copy->unknown = 0;
    copy->by = NULL;
    copy_clock(&copy->clock, &order->untold);
    return A_CLOCK;
}

/* What waiting for an event tells. The event is copied, as far as it is not torn (world NULL). */
static inline __attribute__((always_inline)) enum knowledge read_event(struct overlap_order *order, uint64_t key,
                                                                       struct overlap_event *copy) {
    const struct overlap_event *event = find(order, key);
    copy->world = NULL;
    copy->by = NULL;
    if (!event)
        return OVERLAP_LOAD(order->vague)        ? EVERYTHING
               : OVERLAP_LOAD(order->untold_any) ? untold(order, copy)
                                                 : NOTHING;
    const uint32_t sequence = OVERLAP_LOAD(event->sequence), flags = OVERLAP_LOAD(event->flags);
    struct overlap_world *const world = __atomic_load_n(&event->world, __ATOMIC_RELAXED);
    copy->generation = __atomic_load_n(&event->generation, __ATOMIC_RELAXED);
    copy->context = __atomic_load_n(&event->context, __ATOMIC_RELAXED);
    copy->unknown = __atomic_load_n(&event->unknown, __ATOMIC_RELAXED);
    copy->by = __atomic_load_n(&event->by, __ATOMIC_RELAXED);
    copy->serial = __atomic_load_n(&event->serial, __ATOMIC_RELAXED);
    copy->work = __atomic_load_n(&event->work, __ATOMIC_RELAXED);
    copy_clock(&copy->clock, &event->clock);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (sequence % 2 || __atomic_load_n(&event->sequence, __ATOMIC_RELAXED) != sequence ||
        OVERLAP_LOAD(event->key) != key)
        return EVERYTHING; /* torn */
    copy->world = world;
    /* What a wait means in a capture is what was recorded in that capture, whoever else records the event; once the capture
     * has ended, it is what a graph records. */
    if (flags & (UNKNOWN | TWICE) ||
        (flags & ALWAYS && (world == &order->eager || copy->generation != OVERLAP_LOAD(world->generation))))
        return EVERYTHING;
    if (flags & IMPORTED)
        return OVERLAP_LOAD(order->exported) ? EVERYTHING : NOTHING;
    return copy->unknown && (copy->unknown == UINT64_MAX || copy->unknown > OVERLAP_LOAD(copy->context->settled))
               ? NO_ONE_KNOWS
               : A_CLOCK;
}

static void finish(struct overlap_order *order, const struct overlap_clock *clock) {
    bool news = false;
    for (uint32_t left = clock->set; left; left &= left - 1)
        news |= overlap_clock_raise(&order->finished, overlap_entry_of(left), clock->entry[overlap_entry_of(left)]);
    if (news)
        overlap_order_changed(order);
}

static void finish_all(struct overlap_order *order) {
    struct overlap_clock now;
    now.set = overlap_world_set(&order->eager);
    for (uint32_t left = now.set; left; left &= left - 1)
        now.entry[overlap_entry_of(left)] = overlap_world_now(&order->eager, overlap_entry_of(left));
    finish(order, &now);
}

/* Every stream there is waits, and any that will be. */
__attribute__((cold, noinline)) static void all_wait(struct overlap_order *order, enum knowledge knows,
                                                     const struct overlap_event *event) {
    if (knows == A_CLOCK && event->world == &order->eager)
        finish(order, &event->clock);
    else if (knows != NOTHING)
        finish_all(order);
    if (knows == NO_ONE_KNOWS)
        __atomic_store_n(&order->eager.doubted, 1, __ATOMIC_RELEASE);
}

/* It waits for communication now: did anybody care when it came? news: what it had not waited for before, by bit. */
static inline uint32_t patience(const struct overlap_event *event, const struct overlap_stream *here, uint32_t news) {
    uint32_t found = 0;
    for (; news; news &= news - 1) {
        const uint32_t c = overlap_entry_of(news);
        if (__atomic_load_n(&here->beside, __ATOMIC_RELAXED) > 1)
            found |= OVERLAP_WAITED_BESIDE;
        if (event->clock.entry[c] == OVERLAP_LOAD(here->world->now.entry[c]) &&
            __atomic_load_n(&here->world->communication[c].prefetch, __ATOMIC_RELAXED))
            found |= OVERLAP_WAITED_PREFETCH;
    }
    return found;
}

/* The entries that it need not learn: of its own launches it knows all. A blocking stream does, for the legacy one. */
static inline uint32_t own_set(const struct overlap_stream *stream) {
    const int32_t own = OVERLAP_LOAD(stream->communication);
    if (OVERLAP_LOAD(stream->kind) != OVERLAP_STREAM_NON_BLOCKING)
        return 0;
    return (own < 0 ? 0 : UINT32_C(1) << own) | overlap_computation_set(OVERLAP_LOAD(stream->computation));
}

/* Its clock includes the event's from now on. */
static inline uint32_t learn(struct overlap_order *order, struct overlap_stream *here,
                             const struct overlap_event *event) {
    uint32_t news = 0;
    bool learned = false;
    for (uint32_t left = event->clock.set & ~own_set(here); left; left &= left - 1) {
        const uint32_t e = overlap_entry_of(left);
        const uint64_t its = event->clock.entry[e];
        if (its <= OVERLAP_LOAD(here->clock.entry[e]))
            continue;
        if (e < OVERLAP_CLOCK_COMMUNICATION && its > overlap_stream_knows(order, here, e))
            news |= UINT32_C(1) << e;
        learned |= overlap_stream_learns_more(order, here, e, its);
    }
    if (!learned)
        return 0;
    const uint32_t found = patience(event, here, news);
    overlap_window_left(order, here);
    return found | (overlap_stream_changed(order, here) ? OVERLAP_WAITED_STALE : 0);
}

uint32_t overlap_order_waits(struct overlap_order *order, struct overlap_stream *stream, uint64_t key) {
    struct overlap_event event;
    enum knowledge knows = read_event(order, key, &event);
    if (!stream) {
        all_wait(order, knows, &event);
        return 0;
    }
    struct overlap_stream *here = overlap_stream_here(stream);
    overlap_order_action(order, here);
    if (event.world && event.world != &order->eager && here->world == &order->eager) {
        overlap_order_join_capture(order, stream, event.world, event.generation);
        here = overlap_stream_here(stream);
    }
    if (knows == A_CLOCK && here->world != &order->eager && event.world == &order->eager && !find(order, key))
        knows = EVERYTHING; /* lost, perhaps when it was recorded in this capture */
    if (!__atomic_load_n(&here->waited, __ATOMIC_RELAXED))
        __atomic_store_n(&here->waited, 1, __ATOMIC_RELAXED);
    overlap_window_left(order, here); /* of what is over nothing is left, nor of what is waited for now (learn) */
    if (knows == EVERYTHING)
        overlap_order_behind_all(order, stream);
    if (knows == NOTHING || knows == EVERYTHING)
        return 0;
    if (__builtin_expect(event.world != here->world || event.generation != OVERLAP_LOAD(here->world->generation), 0)) {
        if (event.world == &order->eager) /* a node of the graph waits, for whatever is recorded then */
            overlap_order_unknown(order, stream);
        return 0;
    }
    if (knows == NO_ONE_KNOWS)
        overlap_order_unknown(order, stream);
    if (here->world == &order->eager)
        overlap_critical_behind(here, &event);
    return learn(order, here, &event);
}

/* ---- The host ---- */

static void see_nothing(struct overlap_seen *seen) {
    seen->all = false;
    seen->clock.set = 0;
    seen->stream = NULL;
    seen->context = NULL;
    seen->by = NULL;
    seen->unknown = seen->settled = 0;
}

static inline void see(struct overlap_seen *seen, uint32_t entry, uint64_t value) {
    seen->clock.entry[entry] = value;
    seen->clock.set |= UINT32_C(1) << entry;
}

/* Of an entry of computation: is its owner this stream, or one that this stream waits for by its kind? A stream's clock
 * does not hold its own launches. */
static bool is_seen(const struct overlap_order *order, const struct overlap_stream *stream, uint32_t entry) {
    const uint32_t i = (entry - OVERLAP_CLOCK_COMMUNICATION) / 2;
    const struct overlap_stream *owner =
        entry < OVERLAP_CLOCK_COMMUNICATION ? NULL : OVERLAP_LOAD(order->eager.computation[i].owner);
    return owner && (owner == stream || (OVERLAP_LOAD(stream->kind) == OVERLAP_STREAM_LEGACY &&
                                         OVERLAP_LOAD(owner->context) == OVERLAP_LOAD(stream->context) &&
                                         OVERLAP_LOAD(owner->kind) == OVERLAP_STREAM_BLOCKING));
}

void overlap_order_see_stream(struct overlap_order *order, struct overlap_stream *stream, struct overlap_seen *seen) {
    see_nothing(seen);
    if (!stream) {
        seen->all = OVERLAP_LOAD(order->lost);
        return;
    }
    if (OVERLAP_LOAD(stream->captured))
        return;
    seen->by = stream;
    seen->serial = OVERLAP_LOAD(stream->serial);
    seen->work = OVERLAP_LOAD(stream->part.work);
    seen->all = overlap_stream_is_unknown(order, stream) ||
                (stream->kind == OVERLAP_STREAM_LEGACY &&
                 OVERLAP_LOAD(stream->context->blocking_unknown) > OVERLAP_LOAD(stream->context->settled));
    seen->stream = stream;
    seen->unknown = OVERLAP_LOAD(stream->unknown);
    for (uint32_t left = overlap_world_set(&order->eager); left; left &= left - 1) {
        const uint32_t e = overlap_entry_of(left);
        uint64_t known = overlap_stream_knows(order, stream, e);
        if (stream->kind == OVERLAP_STREAM_LEGACY) {
            const uint64_t blocking = OVERLAP_LOAD(stream->context->blocking.entry[e]);
            known = blocking > known ? blocking : known;
        }
        see(seen, e, is_seen(order, stream, e) ? overlap_world_now(&order->eager, e) : known);
    }
}

void overlap_order_see_event(struct overlap_order *order, uint64_t key, struct overlap_seen *seen) {
    struct overlap_event event;
    const enum knowledge knows = read_event(order, key, &event);
    see_nothing(seen);
    seen->all = knows == EVERYTHING || knows == NO_ONE_KNOWS;
    if (knows == A_CLOCK && event.world == &order->eager) {
        seen->by = event.by;
        seen->serial = event.serial;
        seen->work = event.work;
        copy_clock(&seen->clock, &event.clock);
    }
}

void overlap_order_see_context(struct overlap_order *order, uint64_t key, struct overlap_seen *seen) {
    see_nothing(seen);
    for (int i = 0; i < OVERLAP_ORDER_CONTEXTS; i++)
        if (OVERLAP_LOAD(order->contexts[i].key) == key)
            seen->context = &order->contexts[i];
    if (!seen->context) {
        seen->all = OVERLAP_LOAD(order->lost);
        return;
    }
    seen->settled = OVERLAP_LOAD(seen->context->unknown);
    seen->all = seen->settled > OVERLAP_LOAD(seen->context->settled);
    for (uint32_t left = overlap_world_set(&order->eager); left; left &= left - 1) {
        const uint32_t e = overlap_entry_of(left);
        see(seen, e,
            overlap_context_of_entry(&order->eager, e) == seen->context ? overlap_world_now(&order->eager, e)
                                                                        : OVERLAP_LOAD(seen->context->known.entry[e]));
    }
}

void overlap_order_saw(struct overlap_order *order, const struct overlap_seen *seen) {
    if (seen->all)
        finish_all(order);
    else
        finish(order, &seen->clock);
    overlap_critical_over(order, seen->by, seen->serial, seen->work);
    if (seen->all || seen->context)
        overlap_critical_all_over(order, seen->all ? NULL : seen->context);
    if (seen->context && overlap_raise(&seen->context->settled, seen->settled))
        overlap_order_changed(order);
    if (!seen->stream || !seen->unknown || seen->unknown == UINT64_MAX)
        return;
    uint64_t own = seen->unknown, last = seen->unknown;
    __atomic_compare_exchange_n(&seen->stream->unknown, &own, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    __atomic_compare_exchange_n(&seen->stream->context->blocking_unknown, &last, 0, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_RELAXED);
    overlap_order_changed(order);
}

struct overlap_stream *overlap_critical_recorder(struct overlap_order *order, uint64_t event) {
    struct overlap_event copy;
    const enum knowledge knows = read_event(order, event, &copy);
    return (knows == A_CLOCK || knows == NO_ONE_KNOWS) && copy.by && copy.world == &order->eager &&
                   overlap_stream_is(copy.by, copy.serial)
               ? copy.by
               : NULL;
}
