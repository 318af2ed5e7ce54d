/* Judgements and priorities: see raise.h.
 *
 * A judgement runs under the lock and only decides (stream->wanted). The driver is called without the lock. A stream
 * whose priority is being changed is marked (stream->changing); its end, the program's own change and the beginning of a
 * capture wait for the mark.
 */
#include <string.h>
#include <time.h>

#include "../core/core.h"
#include "../sys/kernel.h"
#include "../sys/sys.h"
#include "launch.h"
#include "names.h"
#include "table.h"
#include "page.h"
#include "point.h"
#include "streams.h"
#include "thread.h"
#include "vendor_ops.h"
#include "raise.h"

enum { CHANGES = 32 }; /* of one judgement; the others follow at the waits for their streams */

/* ---- The page ---- */

static struct {
    struct stream *stream;
    uint32_t serial;
} owners[OVERLAP_PAGE_STREAMS];

/* Has it carried nothing between the last two judgements? */
static bool is_idle(const struct stream *stream) {
    return !stream->judged.share && !stream->judged.communicates && !OVERLAP_RELAXED(stream->created);
}

/* The page's record of a stream, claimed if need be. Where none is free, that of a stream that has ended or idles: of one
 * that was not raised at its last judgement, if there is one. NULL: there is none. The lock is held. */
static struct overlap_page_stream *record_of(struct stream *stream, const struct device *device) {
    if (stream->record)
        return &overlap_current_page->streams[stream->record - 1];
    if (!overlap_page_start())
        return NULL;
    uint32_t at = OVERLAP_PAGE_STREAMS, raised = OVERLAP_PAGE_STREAMS;
    for (uint32_t i = 0; i < OVERLAP_PAGE_STREAMS; i++) {
        const struct overlap_page_stream *const record = &overlap_current_page->streams[i];
        const struct stream *const owner = owners[i].stream;
        const bool is_free = !OVERLAP_RELAXED(record->state);
        const bool may_go = owner && (owner->serial != owners[i].serial || is_idle(owner));
        if (is_free || (may_go && record->status != OVERLAP_STREAM_RAISED))
            at = i;
        else if (may_go)
            raised = i;
        if (is_free)
            break;
    }
    at = at == OVERLAP_PAGE_STREAMS ? raised : at;
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

static uint64_t now(void) {
    struct timespec time = {0};
    overlap_clock_read(CLOCK_REALTIME, &time);
    return (uint64_t)time.tv_sec * OVERLAP_SECOND + (uint64_t)time.tv_nsec;
}

static void note(struct stream *stream, const struct device *device) {
    if (!stream->record && is_idle(stream) && stream->judged.status != OVERLAP_STREAM_RAISED)
        return;
    struct overlap_page_stream *const record = record_of(stream, device);
    if (!record)
        return;
    const bool created = OVERLAP_RELAXED(stream->created);
    const bool raised = created || stream->judged.status == OVERLAP_STREAM_RAISED;
    const bool before = record->status == OVERLAP_STREAM_RAISED;
    if (raised != before || !OVERLAP_RELAXED(record->state))
        __atomic_store_n(&record->since, raised ? now() : 0, __ATOMIC_RELAXED);
    __atomic_store_n(&record->status, raised ? OVERLAP_STREAM_RAISED : stream->judged.status, __ATOMIC_RELAXED);
    __atomic_store_n(&record->share, stream->judged.share, __ATOMIC_RELAXED);
    __atomic_store_n(&record->communicates, stream->judged.communicates, __ATOMIC_RELAXED);
    __atomic_store_n(&record->priority,
                     OVERLAP_RELAXED(stream->wanted) && !device_observes(device) ? device->greatest : 0,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&record->work, stream->judged.work, __ATOMIC_RELAXED);
    __atomic_store_n(&record->state, 2, __ATOMIC_RELEASE);
}

/* ---- Judgements ---- */

static struct stream **streams; /* of the device that is judged; STREAMS of them, as below */
static struct overlap_judged **judged;

/* Maps what a judgement needs. The lock is held. False: there is no memory. */
static bool has_room(void) {
    if (!judged)
        judged = overlap_map(STREAMS * sizeof *judged);
    if (!streams)
        streams = overlap_map(STREAMS * sizeof *streams);
    return judged && streams;
}

/* Finds the device's streams that have carried a launch. Returns how many there are. */
static uint32_t find_streams(const struct device *device) {
    uint32_t found = 0;
    for (uint32_t i = 1; i <= streams_used(); i++) {
        struct stream *const stream = stream_at(i);
        if (!stream->carries || stream->device != device->ordinal || stream->vendor != device->vendor)
            continue;
        stream->judged.work = OVERLAP_RELAXED(stream->gone_work);
        judged[found] = &stream->judged;
        streams[found++] = stream;
    }
    return found;
}

/* Adds up what all threads have launched on the streams of the device. */
static void sum_work(const struct device *device) {
    const struct launcher *launcher;
    for (uint32_t i = 0; (launcher = launcher_at(i)) != NULL; i++) {
        for (int slot = 0; slot < WORKS; slot++) {
            const struct work *const works = launcher->works;
            struct stream *const stream = __atomic_load_n(&works[slot].stream, __ATOMIC_ACQUIRE);
            if (stream && stream->carries && stream->device == device->ordinal && stream->vendor == device->vendor &&
                OVERLAP_RELAXED(works[slot].serial) == stream->serial)
                stream->judged.work += OVERLAP_RELAXED(works[slot].sum);
        }
    }
}

/* Decides; the lock is held. Returns how many streams are to change. */
static uint32_t judge(struct device *device, uint64_t waits, uint32_t share, struct stream **changes) {
    uint32_t changed = 0;
    POINT(judging);
    if (!has_room() || (waits && waits <= device->judged)) /* another thread's judgement has covered these waits */
        return 0;
    if (waits) {
        device->judged = OVERLAP_RELAXED(device->waits);
        __atomic_store_n(&device->due, overlap_next_judgement(device->judged), __ATOMIC_RELAXED);
    }
    const uint32_t found = find_streams(device);
    sum_work(device);
    if (!overlap_judge(judged, found, !waits, share, device->programs))
        return 0;
    count(OVERLAP_COUNTER_JUDGEMENTS);
    for (uint32_t i = 0; i < found; i++)
        if (!OVERLAP_RELAXED(streams[i]->created))
            __atomic_store_n(&streams[i]->wanted, streams[i]->judged.status == OVERLAP_STREAM_RAISED, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < found; i++) {
        note(streams[i], device);
        if (OVERLAP_RELAXED(streams[i]->wanted) != OVERLAP_RELAXED(streams[i]->raised) && changed < CHANGES)
            changes[changed++] = streams[i];
    }
    return changed;
}

RARE void raise_judge(struct device *device, uint64_t waits) {
    const struct overlap_policy *const policy = device_policy(device);
    struct stream *changes[CHANGES];
    if (!device || !policy || !policy->raise_share || device->vendor != VENDOR_CUDA || !device_is_ranged(device) ||
        !lock_take())
        return;
    const uint32_t changed = judge(device, waits, overlap_share_of(policy), changes);
    lock_leave();
    for (uint32_t i = 0; i < changed; i++)
        raise_apply(changes[i]);
}

/* ---- Launches ---- */

RARE void stream_carries(struct stream *stream, bool communication, bool wide) {
    const int ordinal = OVERLAP_RELAXED(stream->device);
    const bool has_device = ordinal != NO_DEVICE; /* default streams have none before their first launch */
    struct device *const its = has_device ? device_get(stream->vendor, ordinal) : current_device(stream->vendor);
    if (stream == &no_stream || !its)
        return;
    device_range(its, has_device ? OVERLAP_RELAXED(stream->context) : 0);
    if (!lock_take())
        return;
    if (!has_device)
        __atomic_store_n(&stream->device, its->ordinal, __ATOMIC_RELAXED);
    bool judge = false;
    if (OVERLAP_RELAXED(stream->handle)) /* else another thread has ended it */
        __atomic_store_n(&stream->carries, 1, __ATOMIC_RELAXED);
    if (communication)
        __atomic_store_n(&stream->judged.communicates, true, __ATOMIC_RELAXED);
    if (wide)
        __atomic_store_n(&stream->judged.is_wide, true, __ATOMIC_RELAXED);
    if (OVERLAP_RELAXED(stream->own) != 0 && !stream->judged.is_fixed && !its->programs)
        judge = its->programs = true; /* who sets priorities has decided */
    lock_leave();
    if (judge)
        raise_judge(its, 0);
}

/* ---- Priorities ---- */

void raise_set(struct stream *stream, bool raised) {
    const struct device *const device =
        device_cached((enum vendor)OVERLAP_RELAXED(stream->vendor), OVERLAP_RELAXED(stream->device));
    if (raised == OVERLAP_RELAXED(stream->raised) || (raised && !device_is_ranged(device)))
        return;
    if (device &&
        device_observes(device)) { /* as if it had been: its launches are counted, and the driver is not asked */
        __atomic_store_n(&stream->raised, raised, __ATOMIC_RELAXED);
        invalidate_decisions();
        return;
    }
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
    if (OVERLAP_RELAXED(captures_open))
        return;
    POINT(raise_looked);
    if (!stream_try_raising(stream))
        return;
    POINT(raise_marked);
    const uint64_t handle = OVERLAP_RELAXED(stream->handle);
    if (!__atomic_load_n(&captures_open, __ATOMIC_SEQ_CST) && handle &&
        stream_find((vendor_stream)(uintptr_t)handle, STREAM_OF_CONTEXT) == stream) { /* it has not ended */
        POINT(raise_sets);
        raise_set(stream, OVERLAP_RELAXED(stream->wanted));
    }
    stream_release(stream);
}

/* A capture that has begun since the caller looked may not have seen the stream, which is new. */
void raise_created(struct stream *stream, bool raised) {
    if (stream == &no_stream)
        return;
    const bool held = stream_hold_raising(stream);
    __atomic_store_n(&stream->created, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->touched, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->wanted, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->raised, raised, __ATOMIC_RELAXED);
    if (__atomic_load_n(&captures_open, __ATOMIC_SEQ_CST))
        raise_set(stream, false);
    if (held)
        stream_release(stream);
}
