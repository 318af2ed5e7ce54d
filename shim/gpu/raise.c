/* Judgements, priorities, captures: see streams.h.
 *
 * A judgement runs under the lock and only decides (stream->wanted). The driver is called without the lock. A stream
 * whose priority is being changed is marked (stream->changing); its end, the program's own change and the beginning of a
 * capture wait for the mark.
 */
#include <string.h>

#include "../core/core.h"
#include "../sys/sys.h"
#include "launch.h"
#include "names.h"
#include "table.h"
#include "page.h"
#include "streams.h"
#include "thread.h"
#include "vendor_ops.h"

enum { CHANGES = 32 }; /* of one judgement; the others follow at the waits for their streams */

/* ---- The page ---- */

static struct {
    struct stream *stream;
    uint32_t serial;
} owners[OVERLAP_PAGE_STREAMS];

/* The page's record of a stream, claimed if need be. Where none is free, that of a stream that has ended or idles and was
 * not raised at its last judgement. NULL: there is none. The lock is held. */
static struct overlap_page_stream *record_of(struct stream *stream, const struct device *device) {
    if (stream->record)
        return &overlap_current_page->streams[stream->record - 1];
    if (!overlap_page_start())
        return NULL;
    uint32_t at = OVERLAP_PAGE_STREAMS;
    for (uint32_t i = 0; i < OVERLAP_PAGE_STREAMS; i++) {
        const struct overlap_page_stream *const record = &overlap_current_page->streams[i];
        const bool ended = owners[i].stream && owners[i].stream->serial != owners[i].serial; /* or forget_idle() */
        if (!OVERLAP_RELAXED(record->state) || (ended && record->status != OVERLAP_STREAM_RAISED))
            at = i;
        if (!OVERLAP_RELAXED(record->state))
            break;
    }
    if (at == OVERLAP_PAGE_STREAMS)
        return NULL;
    struct overlap_page_stream *const record = &overlap_current_page->streams[at];
    __atomic_store_n(&record->state, 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE); /* readers of the page see that before the new fields */
    if (owners[at].stream && owners[at].stream->record == at + 1)
        owners[at].stream->record = 0;
    owners[at].stream = stream;
    owners[at].serial = stream->serial;
    record->device = device->page_slot;
    strncpy((char *)record->creator, name_text(stream->creator), sizeof record->creator - 1);
    stream->record = at + 1;
    return record;
}

static void note(struct stream *stream, const struct device *device) {
    struct overlap_page_stream *const record = record_of(stream, device);
    if (!record)
        return;
    const bool created = OVERLAP_RELAXED(stream->created);
    __atomic_store_n(&record->status, created ? OVERLAP_STREAM_RAISED : stream->judged.status, __ATOMIC_RELAXED);
    __atomic_store_n(&record->share, stream->judged.share, __ATOMIC_RELAXED);
    __atomic_store_n(&record->communicates, stream->judged.communicates, __ATOMIC_RELAXED);
    __atomic_store_n(&record->priority, OVERLAP_RELAXED(stream->wanted) ? device->greatest : 0, __ATOMIC_RELAXED);
    __atomic_store_n(&record->threads, stream->judged.work, __ATOMIC_RELAXED);
    __atomic_store_n(&record->state, 2, __ATOMIC_RELEASE);
}

/* ---- Judgements ---- */

/* Adds up what all threads have launched on the streams of the device. */
static void sum_work(struct device *device) {
    for (uint32_t at = device->streams; at; at = stream_at(at)->next)
        stream_at(at)->judged.work = OVERLAP_RELAXED(stream_at(at)->gone_work);
    const struct launcher *launcher;
    for (uint32_t i = 0; (launcher = launcher_at(i)) != NULL; i++) {
        for (int slot = 0; slot < WORKS; slot++) {
            const struct work *const works = launcher->works;
            struct stream *const stream = __atomic_load_n(&works[slot].stream, __ATOMIC_ACQUIRE);
            if (stream && stream->listed && stream->device == device->ordinal && stream->vendor == device->vendor &&
                OVERLAP_RELAXED(works[slot].serial) == stream->serial)
                stream->judged.work += OVERLAP_RELAXED(works[slot].threads);
        }
    }
}

/* Takes streams off the list that were idle since the judgement before, so that a judgement takes the longer the more
 * streams are in use, not the more there are. */
static void forget_idle(struct device *device) {
    for (uint32_t at = device->streams, next; at; at = next) {
        struct stream *const stream = stream_at(at);
        next = stream->next;
        if (stream->judged.share || OVERLAP_RELAXED(stream->wanted) || OVERLAP_RELAXED(stream->raised) ||
            stream->judged.communicates)
            continue;
        stream_unlist(device, stream);
        __atomic_store_n(&stream->serial, stream->serial + 1, __ATOMIC_RELEASE); /* its next launch lists it */
        stream->gone_work = stream->judged.before = stream->judged.work;
    }
}

static struct overlap_judged **judged; /* STREAMS of them */

bool raise_prepare(void) {
    if (!judged)
        judged = overlap_map(STREAMS * sizeof *judged);
    return judged;
}

/* Decides; the lock is held. Returns how many streams are to change. */
static uint32_t judge(struct device *device, uint64_t waits, uint32_t share, struct stream **changes) {
    uint32_t listed = 0, changed = 0;
    if (!raise_prepare() || (waits && waits <= device->judged)) /* another thread's judgement has covered these waits */
        return 0;
    if (waits) {
        device->judged = OVERLAP_RELAXED(device->waits);
        __atomic_store_n(&device->due, overlap_next_judgement(device->judged), __ATOMIC_RELAXED);
    }
    sum_work(device);
    for (uint32_t at = device->streams; at && listed < STREAMS; at = stream_at(at)->next)
        judged[listed++] = &stream_at(at)->judged;
    if (!overlap_judge(judged, listed, !waits, share, device->programs))
        return 0;
    count(OVERLAP_COUNTER_JUDGEMENTS);
    for (uint32_t at = device->streams; at; at = stream_at(at)->next) {
        struct stream *const stream = stream_at(at);
        if (!OVERLAP_RELAXED(stream->created))
            __atomic_store_n(&stream->wanted, stream->judged.status == OVERLAP_STREAM_RAISED, __ATOMIC_RELAXED);
        note(stream, device);
        if (OVERLAP_RELAXED(stream->wanted) != OVERLAP_RELAXED(stream->raised) && changed < CHANGES)
            changes[changed++] = stream;
    }
    forget_idle(device);
    return changed;
}

RARE void raise_judge(struct device *device, uint64_t waits) {
    const struct overlap_policy *const policy = device_policy(device);
    struct stream *changes[CHANGES];
    if (!device || !policy || !policy->raise_share || OVERLAP_RELAXED(captures_open) || device->vendor != VENDOR_CUDA ||
        !device_is_ranged(device) || !lock_take())
        return;
    const uint32_t changed = judge(device, waits, policy->raise_share, changes);
    lock_leave();
    for (uint32_t i = 0; i < changed; i++)
        raise_apply(changes[i]);
}

/* ---- Priorities ---- */

enum { HELD = 1, RAISING, KIND = 3 };

/* The mark of this thread. */
static uint32_t mark(uint32_t kind) {
    return thread_id() << 2 | kind;
}

bool raise_hold(struct stream *stream) {
    if (stream == &no_stream)
        return false;
    for (int tries = 0; tries < 100; tries++) {
        uint32_t free = 0;
        if (__atomic_compare_exchange_n(&stream->changing, &free, mark(HELD), false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED))
            return true;
        const bool is_ours = (free | KIND) == mark(KIND); /* we are in a callback of the driver, or a signal handler */
        if (is_ours || !overlap_wait_long(&stream->changing, 0))
            break;
    }
    return false;
}

void raise_release(struct stream *stream) {
    __atomic_store_n(&stream->changing, 0, __ATOMIC_SEQ_CST);
    overlap_wait_again(&stream->changing);
}

/* Gives the stream our priority or the program's. The mark is held. */
static void set(struct stream *stream, bool raised) {
    const struct device *const device = device_met(stream->vendor, OVERLAP_RELAXED(stream->device));
    if (raised == OVERLAP_RELAXED(stream->raised) || (raised && !device_is_ranged(device)))
        return;
    const int priority = raised ? OVERLAP_RELAXED(device->greatest) : OVERLAP_RELAXED(stream->own);
    __atomic_store_n(&stream->touched, 1, __ATOMIC_SEQ_CST); /* before the driver has it: see stream_calls.c */
    const vendor_result result = OPERATION_OF(stream->vendor, stream_set_priority)(
        (vendor_stream)(uintptr_t)OVERLAP_RELAXED(stream->handle), priority);
    if (result == VENDOR_SUCCESS) {
        __atomic_store_n(&stream->raised, raised, __ATOMIC_RELAXED);
        invalidate_decisions(); /* its launches are counted as raised, and not shaped */
    } else if (raised) {
        __atomic_store_n(&stream->wanted, 0, __ATOMIC_RELAXED);
        if (result != VENDOR_INVALID_CONTEXT && result != VENDOR_CONTEXT_DESTROYED) /* a refusal, which lasts */
            __atomic_store_n(&stream->judged.is_fixed, true, __ATOMIC_RELAXED);
    }
}

RARE void raise_apply(struct stream *stream) {
    uint32_t free = 0;
    if (OVERLAP_RELAXED(captures_open) || !__atomic_compare_exchange_n(&stream->changing, &free, mark(RAISING), false,
                                                                       __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return;
    const uint64_t handle = OVERLAP_RELAXED(stream->handle);
    if (!__atomic_load_n(&captures_open, __ATOMIC_SEQ_CST) && handle &&
        stream_known((vendor_stream)(uintptr_t)handle, STREAM_OF_CONTEXT) == stream) /* it has not ended */
        set(stream, OVERLAP_RELAXED(stream->wanted));
    raise_release(stream);
}

/* The stream is new, so its mark is free. A capture that has begun since the caller looked may not have seen it. */
void raise_created(struct stream *stream, bool raised) {
    if (stream == &no_stream)
        return;
    __atomic_store_n(&stream->changing, mark(RAISING), __ATOMIC_SEQ_CST);
    __atomic_store_n(&stream->created, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->touched, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->wanted, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->raised, raised, __ATOMIC_RELAXED);
    if (__atomic_load_n(&captures_open, __ATOMIC_SEQ_CST))
        set(stream, false);
    raise_release(stream);
}

/* ---- Captures ---- */

enum { CAPTURES = 64 }; /* one more is never seen to end: nothing is raised from then on */
#define TAKEN UINT64_MAX
uint32_t captures_open;
static struct {
    uint64_t key, context;
    int device;
} captures[CAPTURES]; /* where each began; key 0: free; TAKEN: context and device are not there yet */

/* Is the stream to be given the program's priority, or ours? Also one that a thread is raising just now: that thread set
 * the mark before it looked for open captures. The mark is read first: a raise that has ended since then shows in
 * `raised`. */
static bool is_other(const struct stream *stream, bool raised) {
    const bool raising = (__atomic_load_n(&stream->changing, __ATOMIC_SEQ_CST) & KIND) == RAISING;
    const bool is_raised = __atomic_load_n(&stream->raised, __ATOMIC_ACQUIRE);
    return OVERLAP_RELAXED(stream->handle) &&
           (raised ? OVERLAP_RELAXED(stream->wanted) && !is_raised : is_raised || raising);
}

/* Every raised stream gets the program's priority, or ours back. */
static void all_streams(bool raised) {
    struct stream *found[CHANGES];
    for (uint32_t from = 1, listed = CHANGES; listed == CHANGES;) {
        listed = 0;
        if (!lock_take())
            return;
        for (; from <= streams_used() && listed < CHANGES; from++)
            if (is_other(stream_at(from), raised))
                found[listed++] = stream_at(from);
        lock_leave();
        for (uint32_t i = 0; i < listed; i++) {
            if (raised) {
                raise_apply(found[i]);
            } else if (raise_hold(found[i])) {
                set(found[i], false);
                raise_release(found[i]);
            }
        }
    }
}

RARE void capture_opens(uint64_t key, uint64_t context, int device) {
    if (!key || !(streams_wanted() & ~(uint32_t)STREAMS_KNOWN))
        return;
    for (int i = 0; i < CAPTURES; i++) {
        uint64_t free = 0;
        if (__atomic_compare_exchange_n(&captures[i].key, &free, TAKEN, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            __atomic_store_n(&captures[i].context, context, __ATOMIC_RELAXED);
            __atomic_store_n(&captures[i].device, device, __ATOMIC_RELAXED);
            __atomic_store_n(&captures[i].key, key, __ATOMIC_RELEASE);
            break;
        }
    }
    if (__atomic_fetch_add(&captures_open, 1, __ATOMIC_SEQ_CST) == 0)
        invalidate_decisions();
    all_streams(false); /* another thread, whose capture is open already, may not have finished that */
}

static void closed(void) {
    if (__atomic_sub_fetch(&captures_open, 1, __ATOMIC_SEQ_CST) == 0) {
        invalidate_decisions();
        all_streams(true);
    }
}

RARE void capture_closes(uint64_t key) {
    for (int i = 0; key && OVERLAP_RELAXED(captures_open) && i < CAPTURES; i++) {
        uint64_t its = key;
        if (__atomic_compare_exchange_n(&captures[i].key, &its, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            closed();
            return;
        }
    }
}

void captures_context_ended(uint64_t context, int device) {
    for (int i = 0; OVERLAP_RELAXED(captures_open) && i < CAPTURES; i++) {
        const uint64_t key = __atomic_load_n(&captures[i].key, __ATOMIC_ACQUIRE);
        if (key && key != TAKEN &&
            (context ? OVERLAP_RELAXED(captures[i].context) == context : OVERLAP_RELAXED(captures[i].device) == device))
            capture_closes(key);
    }
}

void captures_forked(void) {
    memset(captures, 0, sizeof captures);
    captures_open = 0;
}
