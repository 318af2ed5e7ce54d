/* Records of streams: see streams.h. */
#include "../core/core.h"
#include "../sys/sys.h"
#include "launch.h"
#include "names.h"
#include "table.h"
#include "page.h"
#include "point.h"
#include "streams.h"
#include "resolve.h"
#include "vendor_ops.h"
#include "calls.h"
#include "windows.h"

/* ---- Records ---- */

static struct pool streams = POOL_OF(stream, STREAMS);
static struct map numbers; /* stream_key() -> number of its record */

struct stream *stream_at(uint32_t number) {
    return number ? pool_at(&streams, number) : &no_stream;
}

uint32_t streams_used(void) {
    return OVERLAP_LOAD(streams.used);
}

struct stream *stream_of_key(uint64_t key) {
    struct stream *const found = stream_at((uint32_t)map_get(&numbers, key));
    return OVERLAP_RELAXED(found->handle) == key ? found : &no_stream;
}

struct stream *stream_find(vendor_stream stream, enum default_stream null_stream) {
    return stream_of_key(stream_key(stream, null_stream));
}

/* ---- The mark of a stream whose priority is being changed, or which ends ---- */

enum { HELD = 1, RAISING, KIND = 3 };

/* The mark of this thread. */
static uint32_t mark(uint32_t kind) {
    return thread_id() << 2 | kind;
}

static bool hold(struct stream *stream, uint32_t kind) {
    if (stream == &no_stream)
        return false;
    for (int tries = 0; tries < 100; tries++) {
        uint32_t free = 0;
        if (__atomic_compare_exchange_n(&stream->changing, &free, mark(kind), false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED))
            return true;
        POINT(hold_waits);
        const bool is_ours = (free | KIND) == mark(KIND); /* we are in a callback of the driver, or a signal handler */
        if (is_ours || !overlap_wait_for_driver(&stream->changing, 0))
            break;
    }
    return false;
}

bool stream_hold(struct stream *stream) {
    return hold(stream, HELD);
}

bool stream_hold_raising(struct stream *stream) {
    return hold(stream, RAISING);
}

void stream_release(struct stream *stream) {
    __atomic_store_n(&stream->changing, 0, __ATOMIC_SEQ_CST);
    overlap_wait_reset(&stream->changing);
}

bool stream_try_raising(struct stream *stream) {
    uint32_t free = 0;
    return __atomic_compare_exchange_n(&stream->changing, &free, mark(RAISING), false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_RELAXED);
}

bool stream_is_raising(const struct stream *stream) {
    return (__atomic_load_n(&stream->changing, __ATOMIC_SEQ_CST) & KIND) == RAISING;
}

/* ---- Making ---- */

/* The record of a context's legacy default stream, which counts its blocking streams; the lock is held. */
static struct stream *record_new_default(enum vendor vendor, uint64_t key, uint64_t context);
static struct stream *legacy_of(const struct stream *stream) {
    const uint64_t key = stream->context | STREAM_LEGACY;
    struct stream *const legacy = stream_of_key(key);
    return legacy == &no_stream ? record_new_default(stream->vendor, key, stream->context) : legacy;
}

/* by: ONE_BLOCKING, or its negative. False: the table has no room for the default stream. */
static bool count_blocking(const struct stream *stream, uint64_t by) {
    struct stream *const legacy = legacy_of(stream);
    if (legacy != &no_stream)
        __atomic_store_n(&legacy->blocking, (legacy->blocking + by) ^ stream_number(stream), __ATOMIC_RELAXED);
    return legacy != &no_stream;
}

/* HIP's priorities are fixed when a stream is created. */
static struct stream *record_new(enum vendor vendor, uint64_t key, uint64_t context, bool is_default) {
    const uint32_t number = pool_take(&streams);
    struct stream *const made = stream_at(number);
    if (!number)
        return made;
    const struct stream fresh = {.serial = OVERLAP_RELAXED(made->serial),
                                 .number = number,
                                 .slot = number % WORKS,
                                 .vendor = vendor,
                                 .handle = key,
                                 .context = context,
                                 .device = NO_DEVICE,
                                 .is_default = is_default,
                                 .judged = {.is_default = is_default, .is_fixed = vendor == VENDOR_HIP}};
    /* A thread may still look at the former stream, or be about to raise it: its mark stays. */
    for (size_t i = 0; i < offsetof(struct stream, changing) / sizeof(uint64_t); i++)
        __atomic_store_n((uint64_t *)made + i, ((const uint64_t *)&fresh)[i], __ATOMIC_RELAXED);
    if (map_put(&numbers, key, number))
        return made;
    __atomic_store_n(&made->handle, 0, __ATOMIC_RELAXED);
    pool_give(&streams, number);
    return &no_stream;
}

static struct stream *record_new_default(enum vendor vendor, uint64_t key, uint64_t context) {
    return record_new(vendor, key, context, true);
}

/* Ends a record; the lock is held. */
static void record_end(struct stream *stream) {
    const uint64_t key = stream->handle;
    if (stream_number(stream) == map_get(&numbers, key))
        map_put(&numbers, key, 0);
    if (stream->is_blocking)
        count_blocking(stream, -ONE_BLOCKING);
    window_closes(stream);
    if (stream->record && overlap_current_page)
        __atomic_store_n(&overlap_current_page->streams[stream->record - 1].priority, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->handle, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->raised, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->wanted, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->carries, 0, __ATOMIC_RELAXED);
    stream->is_blocking = 0;
    name_give(stream->creator);
    stream->creator = 0;
    __atomic_store_n(&stream->serial, stream->serial + 1, __ATOMIC_RELEASE);
    stream_release(stream);
    pool_give(&streams, stream_number(stream));
}

int stream_priority_in_range(enum vendor vendor, uint64_t context, int priority) {
    int least = 0, greatest = 0;
    if (priority == 0 || !OPERATION_OF(vendor, priorities)(context, &least, &greatest))
        return priority;
    return priority < greatest ? greatest : priority > least ? least : priority;
}

static int device_of_context(enum vendor vendor, uint64_t context) {
    return !context                             ? NO_DEVICE
           : context == current_context(vendor) ? current_ordinal(vendor)
                                                : OPERATION_OF(vendor, context_device)(context);
}

struct place stream_place(vendor_stream stream, enum default_stream null_stream, const struct stream *record) {
    const enum vendor vendor = default_vendor(null_stream);
    struct place place = {.context = 0, .device = NO_DEVICE};
    if ((uintptr_t)stream > STREAM_PER_THREAD) {
        place = (struct place){OVERLAP_RELAXED(record->context), OVERLAP_RELAXED(record->device)};
        /* NVIDIA's driver tells the context of a stream that is being captured, too (tools/gpu/README.md). */
        if (place.device == NO_DEVICE && vendor == VENDOR_CUDA) {
            place.context = OPERATION_OF(vendor, stream_context)(stream);
            place.device = device_of_context(vendor, place.context);
        }
    }
    return place.device == NO_DEVICE ? (struct place){current_context(vendor), current_ordinal(vendor)} : place;
}

static struct stream *record_stream(enum vendor vendor, uint64_t key, uint64_t context, uint32_t flags, int priority,
                                    const char *creator) {
    const int device = device_of_context(vendor, context);
    priority = stream_priority_in_range(vendor, context, priority);
    if (!context || !lock_take())
        return &no_stream;
    struct stream *made = stream_of_key(key);
    if (made != &no_stream) /* its end was not seen */
        record_end(made);
    made = record_new(vendor, key, context, false);
    if (made != &no_stream) {
        __atomic_store_n(&made->own, priority, __ATOMIC_RELAXED);
        __atomic_store_n(&made->device, device, __ATOMIC_RELAXED);
        made->creator = *creator ? name_keep(creator) : 0;
        made->is_blocking = !(flags & STREAM_NON_BLOCKING) && count_blocking(made, ONE_BLOCKING);
    }
    lock_leave();
    return made;
}

struct stream *stream_record(enum vendor vendor, vendor_stream stream, uint32_t flags, int priority, uintptr_t site) {
    const uint64_t key = (uint64_t)(uintptr_t)stream;
    return key > STREAM_PER_THREAD
               ? record_stream(vendor, key, current_context(vendor), flags, priority, overlap_library(site))
               : &no_stream;
}

/* Its creation was not seen, or it is a default stream. */
static struct stream *record_unseen(uint64_t key, vendor_stream stream, enum default_stream null_stream) {
    const enum vendor vendor = default_vendor(null_stream);
    uint64_t context = key & ~(uint64_t)(STREAM_LEGACY | STREAM_PER_THREAD);
    uint32_t flags = 0;
    int priority = 0;
    if ((uintptr_t)stream > STREAM_PER_THREAD)
        return OPERATION_OF(vendor, stream_facts)(stream, &context, &flags, &priority)
                   ? record_stream(vendor, key, context, flags, priority, "")
                   : &no_stream;
    if (!lock_take())
        return &no_stream;
    struct stream *made = stream_of_key(key);
    made = made == &no_stream ? record_new_default(vendor, key, context) : made;
    lock_leave();
    return made;
}

struct stream *stream_get(vendor_stream stream, enum default_stream null_stream) {
    const uint64_t key = stream_key(stream, null_stream);
    struct stream *const known = stream_of_key(key);
    return known != &no_stream || !key || !driver_ready(default_vendor(null_stream))
               ? known
               : record_unseen(key, stream, null_stream);
}

void stream_ends(struct stream *stream) {
    if (stream == &no_stream)
        return;
    stream_hold(stream);
    __atomic_store_n(&stream->ending, OVERLAP_RELAXED(stream->handle), __ATOMIC_RELAXED);
    __atomic_store_n(&stream->handle, 0, __ATOMIC_RELAXED); /* not found from now on */
}

void stream_ended(struct stream *stream, bool gone) {
    if (stream == &no_stream)
        return;
    POINT(stream_gone);
    const uint64_t key = OVERLAP_RELAXED(stream->ending);
    if (!gone) { /* the driver has refused */
        __atomic_store_n(&stream->handle, key, __ATOMIC_RELAXED);
        stream_release(stream);
        return;
    }
    POINT(stream_goes);
    if (lock_take()) {
        /* Only under the lock: a new stream may have the handle by now, and its maker would end this record as well. */
        __atomic_store_n(&stream->handle, key, __ATOMIC_RELAXED);
        POINT(stream_ending);
        record_end(stream);
        lock_leave();
    } else {
        __atomic_store_n(&stream->carries, 0, __ATOMIC_RELAXED); /* its record is lost, and is judged no more */
    }
}

/* Also asked without the lock, while other threads make and end records. A default stream that has carried nothing has no
 * device, and may count the blocking streams of another one: it stays, as the handle of a primary context does. */
static bool is_of(const struct stream *stream, enum vendor vendor, uint64_t context, int device) {
    const int its = OVERLAP_RELAXED(stream->device);
    return OVERLAP_RELAXED(stream->handle) && OVERLAP_RELAXED(stream->vendor) == vendor &&
           (context ? OVERLAP_RELAXED(stream->context) == context
                    : (its == device || (its == NO_DEVICE && !OVERLAP_RELAXED(stream->is_default))) &&
                          !context_is_made(OVERLAP_RELAXED(stream->context)));
}

void streams_context_ends(enum vendor vendor, uint64_t context, int device) {
    for (uint32_t i = 1; streams_tracked() && i <= streams_used(); i++)
        if (is_of(stream_at(i), vendor, context, device))
            stream_hold(stream_at(i));
}

/* The lock is not to be had: they are not found any more, and their records are lost. */
static void lose(enum vendor vendor, uint64_t context, int device, bool gone) {
    for (uint32_t i = 1; i <= streams_used(); i++)
        if (is_of(stream_at(i), vendor, context, device)) {
            if (gone) {
                __atomic_store_n(&stream_at(i)->handle, 0, __ATOMIC_RELAXED);
                __atomic_store_n(&stream_at(i)->carries, 0, __ATOMIC_RELAXED);
            }
            stream_release(stream_at(i));
        }
}

/* Default streams last: a legacy one counts the blocking streams that end with it. */
void streams_context_ended(enum vendor vendor, uint64_t context, int device, bool gone) {
    if (gone) {
        __atomic_fetch_add(&contexts_changed, 1, __ATOMIC_ACQ_REL);
    }
    if (!streams_tracked())
        return;
    if (!lock_take()) {
        lose(vendor, context, device, gone);
        return;
    }
    for (int defaults = 0; defaults < 2; defaults++)
        for (uint32_t i = 1; i <= streams_used(); i++) {
            struct stream *const stream = stream_at(i);
            if (!is_of(stream, vendor, context, device) || stream->is_default != defaults)
                continue;
            if (gone)
                record_end(stream);
            else
                stream_release(stream);
        }
    lock_leave();
}
