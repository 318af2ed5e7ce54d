/* What a wait for a stream means: it counts for the rule, a judgement may be due, and an overlap window ends. The calls
 * that wait are in wait_calls.c. */
#include "../core/core.h"
#include "launch.h"
#include "table.h"
#include "streams.h"

/* ---- Windows ---- */

static uint32_t windows_open; /* on all devices */

static void window_changes(struct stream *stream, uint32_t open) {
    struct device *const device = device_met(stream->vendor, OVERLAP_RELAXED(stream->device));
    uint32_t before = !open;
    if (!device ||
        !__atomic_compare_exchange_n(&stream->open, &before, open, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    const uint32_t by = open ? 1 : UINT32_MAX;
    __atomic_fetch_add(&device->open, by, __ATOMIC_RELEASE);
    __atomic_fetch_add(&windows_open, by, __ATOMIC_RELAXED);
    invalidate_decisions();
}

void window_closes(struct stream *stream) {
    if (OVERLAP_RELAXED(stream->open))
        window_changes(stream, 0);
}

void window_opens(struct stream *stream) {
    if (!OVERLAP_RELAXED(stream->listed) || OVERLAP_RELAXED(captures_open))
        return;
    __atomic_store_n(&stream->communications, OVERLAP_RELAXED(stream->communications) + 1, __ATOMIC_RELAXED);
    if (!OVERLAP_RELAXED(stream->open))
        window_changes(stream, 1);
}

/* ---- Waits ---- */

/* Counts a wait of this thread, and judges the device when it is due. */
static void count_wait(struct stream *stream) {
    static uint64_t of_others[OVERLAP_DEVICES]; /* threads without a table of their own */
    struct launcher *const launcher = this_thread.launcher;
    const int device = OVERLAP_RELAXED(stream->device);
    if (device == NO_DEVICE)
        return;
    const uint64_t waits = launcher ? ++launcher->waits[device % OVERLAP_DEVICES]
                                    : __atomic_add_fetch(&of_others[device % OVERLAP_DEVICES], 1, __ATOMIC_RELAXED);
    bool judge = !(waits % OVERLAP_JUDGEMENTS_FROM) && overlap_judgement_is_due(waits);
    if (OVERLAP_RELAXED(stream->judged.communicates) && !OVERLAP_RELAXED(stream->met_wait)) {
        __atomic_store_n(&stream->met_wait, 1, __ATOMIC_RELAXED);
        judge = true;
    }
    if (judge)
        raise_judge(device_at((enum vendor)OVERLAP_RELAXED(stream->vendor), device));
}

void stream_waited(struct stream *stream, bool behind) {
    if (stream == &no_stream)
        return;
    if (behind)
        window_closes(stream);
    if (__builtin_expect(OVERLAP_RELAXED(captures_open), 0))
        return;
    if (!OVERLAP_RELAXED(stream->judged.waited))
        __atomic_store_n(&stream->judged.waited, true, __ATOMIC_RELAXED);
    if (OVERLAP_RELAXED(stream->wanted) != OVERLAP_RELAXED(stream->raised))
        raise_apply(stream);
    count_wait(stream);
}

void stream_waited_by_handle(vendor_stream stream, enum default_stream null_stream) {
    struct stream *known = stream_known(stream, null_stream);
    if (known->is_default) {
        const uint64_t blocking = OVERLAP_RELAXED(known->blocking);
        window_closes(known);
        known = blocking / ONE_BLOCKING == 1 ? stream_at((uint32_t)blocking) : &no_stream;
    }
    stream_waited(known, true);
}

RARE void context_waited(enum vendor vendor, uint64_t context) {
    uint32_t open = OVERLAP_RELAXED(windows_open); /* no further records are read */
    if (!context || !open || !lock_take())
        return;
    for (uint32_t i = 1; open && i <= streams_used(); i++) {
        struct stream *const stream = stream_at(i);
        if (!OVERLAP_RELAXED(stream->open))
            continue;
        open--;
        if (stream->vendor == vendor && stream->context == context)
            window_closes(stream);
    }
    lock_leave();
}
