/* What an event carries to a stream or the host that waits for it. */
#include "critical.h"
#include "event.h"
#include "sync_access.h"
#include "window.h"

/* ---- Waiting ---- */

enum knowledge { NOTHING, A_CLOCK, EVERYTHING, UNKNOWN_ORDER };

static inline void copy_clock(struct overlap_clock *copy, const struct overlap_clock *clock) {
    copy->set = OVERLAP_LOAD(clock->set);
    for (uint32_t left = copy->set; left; left &= left - 1)
        copy->entry[overlap_entry_of(left)] = OVERLAP_RELAXED(clock->entry[overlap_entry_of(left)]);
}

/* An event that is missing from the table, after one was dropped for want of a slot, carries model->event_overflow. */
__attribute__((cold, noinline)) static enum knowledge event_overflow(struct overlap_sync_model *model,
                                                                     struct overlap_event *copy) {
    copy->domain = &model->eager;
    copy->generation = OVERLAP_LOAD(model->eager.generation);
    copy->unknown = 0;
    copy->by = NULL;
    copy->serial = copy->work = 0;
    copy_clock(&copy->clock, &model->event_overflow);
    return A_CLOCK;
}

/* Seqlock check: has the slot been given to another event, or has this one been recorded again, since `sequence` was
 * read? */
static inline bool is_torn(const struct overlap_event *event, uint64_t key, uint32_t sequence) {
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return sequence % 2 || OVERLAP_RELAXED(event->sequence) != sequence || OVERLAP_LOAD(event->key) != key;
}

/* Returns what a wait for the event orders. The event (NULL: not in the table) is copied to *copy; a torn or missing
 * one leaves copy->domain NULL. */
static enum knowledge read_event(struct overlap_sync_model *model, const struct overlap_event *event, uint64_t key,
                                 struct overlap_event *copy) {
    copy->domain = NULL;
    copy->by = NULL;
    if (!event)
        return OVERLAP_LOAD(model->event_unknown)        ? EVERYTHING
               : OVERLAP_LOAD(model->event_overflow_any) ? event_overflow(model, copy)
                                                         : NOTHING;
    const uint32_t sequence = OVERLAP_LOAD(event->sequence), flags = OVERLAP_LOAD(event->flags);
    struct overlap_clock_domain *const domain = OVERLAP_RELAXED(event->domain);
    copy->generation = OVERLAP_RELAXED(event->generation);
    copy->context = OVERLAP_RELAXED(event->context);
    copy->unknown = OVERLAP_RELAXED(event->unknown);
    copy->by = OVERLAP_RELAXED(event->by);
    copy->serial = OVERLAP_RELAXED(event->serial);
    copy->work = OVERLAP_RELAXED(event->work);
    copy_clock(&copy->clock, &event->clock);
    const uint64_t era = OVERLAP_LOAD(model->eager.generation);
    if (domain == &model->eager && copy->generation != era) {
        /* Recorded before the model slept, and perhaps again meanwhile. Everything launched until it woke counts as
         * finished. */
        copy->generation = era;
        copy->unknown = 0;
        copy->by = NULL;
        copy->clock.set = 0;
    }
    if (is_torn(event, key, sequence))
        return EVERYTHING;
    copy->domain = domain;
    /* During a capture, a wait refers to the record made in that capture, even if graphs or other processes record the
     * event, too. Once the capture has ended, that record belongs to the graph. */
    if (flags & (OVERLAP_EVENT_UNKNOWN | OVERLAP_EVENT_TWICE) ||
        (flags & OVERLAP_EVENT_ALWAYS &&
         (domain == &model->eager || copy->generation != OVERLAP_LOAD(domain->generation))))
        return EVERYTHING;
    if (flags & OVERLAP_EVENT_IMPORTED)
        return OVERLAP_LOAD(model->exported) ? EVERYTHING : NOTHING;
    return copy->unknown && (copy->unknown == UINT64_MAX || copy->unknown > OVERLAP_LOAD(copy->context->settled))
               ? UNKNOWN_ORDER
               : A_CLOCK;
}

static void finish(struct overlap_sync_model *model, const struct overlap_clock *clock) {
    bool news = false;
    for (uint32_t left = clock->set; left; left &= left - 1)
        news |= overlap_clock_raise(&model->finished, overlap_entry_of(left), clock->entry[overlap_entry_of(left)]);
    if (news)
        overlap_sync_changed(model);
}

__attribute__((cold)) static void finish_all(struct overlap_sync_model *model) {
    struct overlap_clock now;
    now.set = overlap_domain_set(&model->eager);
    for (uint32_t left = now.set; left; left &= left - 1)
        now.entry[overlap_entry_of(left)] = overlap_domain_now(&model->eager, overlap_entry_of(left));
    finish(model, &now);
}

/* Every stream waits, including streams that do not exist yet. */
__attribute__((cold, noinline)) static void all_wait(struct overlap_sync_model *model, enum knowledge knows,
                                                     const struct overlap_event *event) {
    if (knows == A_CLOCK && event->domain == &model->eager)
        finish(model, &event->clock);
    else if (knows != NOTHING)
        finish_all(model);
    if (knows == UNKNOWN_ORDER)
        __atomic_store_n(&model->eager.order_unknown, 1, __ATOMIC_RELEASE);
}

/* The stream begins to wait for communication launch `number` of an entry. Returns the flags of enum overlap_waited
 * which say that nothing needed that launch early. */
static uint32_t patience(const struct overlap_stream *here, const struct overlap_clock_domain *domain, uint32_t entry,
                         uint64_t number) {
    return (OVERLAP_RELAXED(here->beside) > 1 ? OVERLAP_WAITED_BESIDE : 0) |
           (number == OVERLAP_LOAD(domain->now.entry[entry]) && OVERLAP_RELAXED(domain->communication[entry].prefetch)
                ? OVERLAP_WAITED_PREFETCH
                : 0);
}

/* Entries that the stream need not join: it knows all its own launches. A blocking stream has to join even these,
 * because the legacy default stream inherits them from its clock. */
static inline uint32_t own_set(const struct overlap_stream *stream) {
    const int32_t own = OVERLAP_LOAD(stream->communication);
    if (OVERLAP_LOAD(stream->kind) != OVERLAP_STREAM_NON_BLOCKING)
        return 0;
    return (own < 0 ? 0 : UINT32_C(1) << own) | overlap_computation_set(OVERLAP_LOAD(stream->computation));
}

/* Entries of an event that are newer than what the stream knows. */
struct news {
    uint32_t count, entry[OVERLAP_CLOCK_ENTRIES];
    uint64_t value[OVERLAP_CLOCK_ENTRIES];
};
static inline void gather(struct news *news, const struct overlap_clock *clock, const struct overlap_stream *here) {
    uint32_t count = 0;
    for (uint32_t left = OVERLAP_LOAD(clock->set) & ~own_set(here); left; left &= left - 1) {
        const uint32_t e = overlap_entry_of(left);
        const uint64_t number = OVERLAP_RELAXED(clock->entry[e]);
        if (number <= OVERLAP_LOAD(here->clock.entry[e]))
            continue;
        news->entry[count] = e;
        news->value[count++] = number;
    }
    news->count = count;
}

/* Joins the event's clock into the stream's. */
static inline uint32_t learn(struct overlap_sync_model *model, struct overlap_stream *here, const struct news *news) {
    uint32_t found = 0;
    bool learned = false;
    for (uint32_t i = 0; i < news->count; i++) {
        const uint32_t e = news->entry[i];
        const uint64_t number = news->value[i];
        const uint32_t patient = e < OVERLAP_CLOCK_COMMUNICATION ? patience(here, here->domain, e, number) : 0;
        if (__builtin_expect(patient, 0)) {
            const struct overlap_sight sight = overlap_stream_sight(model, here);
            found |= number > overlap_sight_knows(&sight, e) ? patient : 0;
        }
        learned |= overlap_stream_learns_more(model, here, e, number);
    }
    if (!learned)
        return 0;
    overlap_window_left(model, here);
    return found | (overlap_stream_changed(model, here) ? OVERLAP_WAITED_STALE : 0);
}

static inline void begin_wait(struct overlap_sync_model *model, struct overlap_stream *here) {
    if (!OVERLAP_RELAXED(here->waited))
        __atomic_store_n(&here->waited, 1, __ATOMIC_RELAXED);
    overlap_window_left(model, here); /* communication may be over already; learn() handles what this wait orders */
}

__attribute__((noinline)) static uint32_t wait_any(struct overlap_sync_model *model, struct overlap_stream *stream,
                                                   uint64_t key) {
    struct overlap_event event;
    enum knowledge knows = read_event(model, overlap_event_find(model, key), key, &event);
    if (!stream) {
        all_wait(model, knows, &event);
        return 0;
    }
    struct overlap_stream *here = overlap_stream_here(stream);
    overlap_sync_action(model, here);
    if (event.domain && event.domain != &model->eager && here->domain == &model->eager) {
        overlap_sync_join_capture(model, stream, event.domain, event.generation);
        here = overlap_stream_here(stream);
    }
    if (knows == A_CLOCK && here->domain != &model->eager && event.domain == &model->eager &&
        !overlap_event_find(model, key))
        knows = EVERYTHING; /* the event was dropped, perhaps when this capture recorded it */
    begin_wait(model, here);
    if (knows == EVERYTHING)
        overlap_sync_behind_all(model, stream);
    if (knows == NOTHING || knows == EVERYTHING)
        return 0;
    if (__builtin_expect(event.domain != here->domain || event.generation != OVERLAP_LOAD(here->domain->generation),
                         0)) {
        if (event.domain == &model->eager &&
            here->domain != &model->eager) /* a wait node, for the record that is last when the graph runs */
            overlap_sync_unknown(model, stream);
        return 0;
    }
    if (knows == UNKNOWN_ORDER)
        overlap_sync_unknown(model, stream);
    if (here->domain == &model->eager)
        overlap_critical_behind(here, event.by, event.serial, event.work);
    struct news news;
    gather(&news, &event.clock, here);
    return learn(model, here, &news);
}

/* The fast path of most waits: no capture, not the legacy default stream, and the event carries a clock. Only newer
 * entries are copied, because most events carry few entries that are new to the stream. */
uint32_t overlap_sync_waits(struct overlap_sync_model *model, struct overlap_stream *stream, uint64_t key) {
    const struct overlap_event *const event = overlap_event_find(model, key);
    if (!event || !stream || OVERLAP_LOAD(stream->captured) || OVERLAP_LOAD(stream->kind) == OVERLAP_STREAM_LEGACY)
        return wait_any(model, stream, key);
    const uint32_t sequence = OVERLAP_LOAD(event->sequence);
    struct news news;
    if (OVERLAP_LOAD(event->flags) || OVERLAP_RELAXED(event->unknown) ||
        OVERLAP_RELAXED(event->domain) != &model->eager ||
        OVERLAP_RELAXED(event->generation) != OVERLAP_LOAD(model->eager.generation))
        return wait_any(model, stream, key);
    gather(&news, &event->clock, stream);
    const uint64_t work = OVERLAP_RELAXED(event->work), serial = OVERLAP_RELAXED(event->serial);
    struct overlap_stream *const by = OVERLAP_RELAXED(event->by);
    if (is_torn(event, key, sequence))
        return wait_any(model, stream, key);
    begin_wait(model, stream);
    if (work)
        overlap_critical_behind(stream, by, serial, work);
    return news.count ? learn(model, stream, &news) : 0;
}

/* ---- The host ---- */

static void clear_completion(struct overlap_completion *completion) {
    completion->all = false;
    completion->clock.set = 0;
    completion->stream = NULL;
    completion->context = NULL;
    completion->by = NULL;
    completion->event = NULL;
    completion->unknown = completion->settled = 0;
}

static inline void complete_entry(struct overlap_completion *completion, uint32_t entry, uint64_t value) {
    completion->clock.entry[entry] = value;
    completion->clock.set |= UINT32_C(1) << entry;
}

/* Does this entry of computation belong to the stream, or to a blocking stream that this legacy default stream waits
 * for implicitly? A stream's clock does not hold its own launches. */
static bool is_completed(const struct overlap_sync_model *model, const struct overlap_stream *stream, uint32_t entry) {
    const uint32_t i = (entry - OVERLAP_CLOCK_COMMUNICATION) / 2;
    const struct overlap_stream *owner =
        entry < OVERLAP_CLOCK_COMMUNICATION ? NULL : OVERLAP_LOAD(model->eager.computation[i].owner);
    return owner && (owner == stream || (OVERLAP_LOAD(stream->kind) == OVERLAP_STREAM_LEGACY &&
                                         OVERLAP_LOAD(owner->context) == OVERLAP_LOAD(stream->context) &&
                                         OVERLAP_LOAD(owner->kind) == OVERLAP_STREAM_BLOCKING));
}

__attribute__((cold)) void overlap_sync_completion_of_stream(struct overlap_sync_model *model,
                                                             struct overlap_stream *stream,
                                                             struct overlap_completion *completion) {
    clear_completion(completion);
    if (!stream) {
        completion->all = OVERLAP_LOAD(model->stream_overflow);
        return;
    }
    if (OVERLAP_LOAD(stream->captured))
        return;
    completion->by = stream;
    completion->serial = OVERLAP_LOAD(stream->serial);
    completion->work = OVERLAP_LOAD(stream->part.work);
    completion->all = overlap_stream_is_unknown(model, stream) ||
                      (stream->kind == OVERLAP_STREAM_LEGACY &&
                       OVERLAP_LOAD(stream->context->blocking_unknown) > OVERLAP_LOAD(stream->context->settled));
    completion->stream = stream;
    completion->unknown = OVERLAP_LOAD(stream->unknown);
    for (uint32_t left = overlap_domain_set(&model->eager); left; left &= left - 1) {
        const uint32_t e = overlap_entry_of(left);
        uint64_t known = overlap_stream_knows(model, stream, e);
        if (stream->kind == OVERLAP_STREAM_LEGACY) {
            const uint64_t blocking = OVERLAP_LOAD(stream->context->blocking.entry[e]);
            known = blocking > known ? blocking : known;
        }
        complete_entry(completion, e, is_completed(model, stream, e) ? overlap_domain_now(&model->eager, e) : known);
    }
}

__attribute__((cold)) bool overlap_sync_completion_of_event(struct overlap_sync_model *model, uint64_t key,
                                                            struct overlap_completion *completion) {
    struct overlap_event event, *const at = overlap_event_find(model, key);
    const uint32_t sequence = at ? OVERLAP_LOAD(at->sequence) : 0;
    if (at && OVERLAP_RELAXED(at->completed) == sequence && !OVERLAP_LOAD(at->flags) && !is_torn(at, key, sequence))
        return false;
    const enum knowledge knows = read_event(model, at, key, &event);
    clear_completion(completion);
    completion->all = knows == EVERYTHING || knows == UNKNOWN_ORDER;
    if (knows == A_CLOCK && event.domain == &model->eager) {
        completion->by = event.by;
        completion->serial = event.serial;
        completion->work = event.work;
        completion->event = at;
        completion->sequence = sequence;
        copy_clock(&completion->clock, &event.clock);
    }
    return true;
}

__attribute__((cold)) void overlap_sync_completion_of_context(struct overlap_sync_model *model, uint64_t key,
                                                              struct overlap_completion *completion) {
    clear_completion(completion);
    for (int i = 0; i < OVERLAP_SYNC_CONTEXTS; i++)
        if (OVERLAP_LOAD(model->contexts[i].key) == key)
            completion->context = &model->contexts[i];
    if (!completion->context) {
        completion->all = OVERLAP_LOAD(model->stream_overflow);
        return;
    }
    completion->settled = OVERLAP_LOAD(completion->context->unknown);
    completion->all = completion->settled > OVERLAP_LOAD(completion->context->settled);
    for (uint32_t left = overlap_domain_set(&model->eager); left; left &= left - 1) {
        const uint32_t e = overlap_entry_of(left);
        complete_entry(completion, e,
                       overlap_context_of_entry(&model->eager, e) == completion->context
                           ? overlap_domain_now(&model->eager, e)
                           : OVERLAP_LOAD(completion->context->known.entry[e]));
    }
}

void overlap_sync_complete(struct overlap_sync_model *model, const struct overlap_completion *completion) {
    if (completion->all)
        finish_all(model);
    else
        finish(model, &completion->clock);
    if (completion->event && OVERLAP_LOAD(completion->event->sequence) == completion->sequence)
        __atomic_store_n(&completion->event->completed, completion->sequence, __ATOMIC_RELAXED);
    overlap_critical_over(model, completion->by, completion->serial, completion->work);
    if (completion->all || completion->context)
        overlap_critical_all_over(model, completion->all ? NULL : completion->context);
    if (completion->context && overlap_raise(&completion->context->settled, completion->settled))
        overlap_sync_changed(model);
    if (!completion->stream || !completion->unknown || completion->unknown == UINT64_MAX)
        return;
    uint64_t own = completion->unknown, last = completion->unknown;
    __atomic_compare_exchange_n(&completion->stream->unknown, &own, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    __atomic_compare_exchange_n(&completion->stream->context->blocking_unknown, &last, 0, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_RELAXED);
    overlap_sync_changed(model);
}

__attribute__((cold)) struct overlap_stream *overlap_critical_recorder(struct overlap_sync_model *model,
                                                                       uint64_t event) {
    struct overlap_event copy;
    const enum knowledge knows = read_event(model, overlap_event_find(model, event), event, &copy);
    return (knows == A_CLOCK || knows == UNKNOWN_ORDER) && copy.by && copy.domain == &model->eager &&
                   overlap_stream_is(copy.by, copy.serial)
               ? copy.by
               : NULL;
}

struct overlap_stream *overlap_critical_recorded_last(struct overlap_sync_model *model, uint64_t event,
                                                      uint64_t *serial) {
    const struct overlap_event *const at = overlap_event_find(model, event);
    struct overlap_stream *const by = at ? OVERLAP_RELAXED(at->by) : NULL;
    *serial = at ? OVERLAP_RELAXED(at->serial) : 0;
    return by && overlap_stream_is(by, *serial) ? by : NULL;
}

/* ---- While the model sleeps ---- */

bool overlap_sync_may_sleep(const struct overlap_sync_model *model) {
    for (int i = 0; i <= OVERLAP_SYNC_CAPTURES; i++)
        if (OVERLAP_LOAD(model->captures[i].generation))
            return false;
    return !OVERLAP_LOAD(model->waits);
}

void overlap_sync_sleep(struct overlap_sync_model *model) {
    finish_all(model);
}

void overlap_sync_wake(struct overlap_sync_model *model) {
    __atomic_fetch_add(&model->eager.generation, 1, __ATOMIC_RELEASE);
    finish_all(model);
    overlap_critical_all_over(model, NULL);
}
