/* What a wait for a stream means: it counts for the rule, a judgement may be due, and an overlap window ends. The calls
 * that wait are in wait_calls.c. */
#include "../core/core.h"
#include "launch.h"
#include "point.h"
#include "table.h"
#include "streams.h"
#include "raise.h"
#include "waits.h"
#include "windows.h"

/* Waits are the device's, of all threads. While judgements follow each other closely each wait is added to the device's; later
 * a thread adds them by STEP, so that threads that wait often do not share a word at each wait. */
enum { STEP = 16 };

/* Returns by how many the device's waits increase now. *own: waits until that, or 0 while each one is added. */
static uint32_t step_of(uint32_t *own) {
    if (*own > 1) {
        --*own;
        return 0;
    }
    return *own ? STEP : 1;
}

static struct device *device_of(const struct stream *stream) {
    return device_cached((enum vendor)OVERLAP_RELAXED(stream->vendor), OVERLAP_RELAXED(stream->device));
}

/* Adds to the waits of the stream's device. The one thread that finds a judgement due, and exchanges the number at which it is
 * due, judges. Not inline, nor is the function below: they would cost every wait the registers that they save. */
RARE __attribute__((noinline)) static void add_waits(struct device *device, uint32_t *own, uint32_t step) {
    if (!device)
        return;
    const uint64_t waits = __atomic_add_fetch(&device->waits, step, __ATOMIC_RELAXED);
    uint64_t due = OVERLAP_RELAXED(device->due);
    if (own && waits >= OVERLAP_JUDGEMENTS_EVERY)
        *own = STEP;
    POINT(wait_counted);
    if (waits >= (due ? due : OVERLAP_JUDGEMENTS_FROM) &&
        __atomic_compare_exchange_n(&device->due, &due, overlap_next_judgement(waits), false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
        POINT(judgement_due);
        raise_judge(device, waits);
    }
}

/* Something waits for communication. The first time the device is judged at once. */
RARE __attribute__((noinline)) static void communication_waited(struct stream *stream) {
    if (OVERLAP_RELAXED(stream->met_wait))
        return;
    __atomic_store_n(&stream->met_wait, 1, __ATOMIC_RELAXED);
    raise_judge(device_of(stream), 0);
}

/* Counts a wait of this thread, and judges the device when it is due. */
static void count_wait(struct stream *stream) {
    struct launcher *const launcher = this_thread.launcher;
    const uint32_t ordinal = (uint32_t)OVERLAP_RELAXED(stream->device);
    if (ordinal >= OVERLAP_DEVICES) /* or NO_DEVICE */
        return;
    uint32_t *const own = launcher ? &launcher->waits[ordinal] : NULL;
    const uint32_t step = own ? step_of(own) : 1;
    if (step)
        add_waits(device_of(stream), own, step);
    if (OVERLAP_RELAXED(stream->judged.communicates))
        communication_waited(stream);
}

void stream_waited(struct stream *stream, bool behind) {
    if (stream == &no_stream) {
        if (behind)
            other_waited();
        return;
    }
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
    struct stream *known = (uintptr_t)stream > STREAM_PER_THREAD ? stream_of_key((uint64_t)(uintptr_t)stream)
                                                                 : stream_find(stream, null_stream);
    if (__builtin_expect(known->is_default, 0)) {
        const uint64_t blocking = OVERLAP_RELAXED(known->blocking);
        window_closes(known);
        known = blocking / ONE_BLOCKING == 1 ? stream_at((uint32_t)blocking) : &no_stream;
    }
    stream_waited(known, true);
}

RARE __attribute__((noinline)) void device_waited(void) {
    if (!OVERLAP_RELAXED(captures_open))
        add_waits(device_cached(VENDOR_CUDA, current_ordinal(VENDOR_CUDA)), NULL, 1);
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
