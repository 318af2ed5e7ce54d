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

struct stream no_stream = {.slot = WORKS, .device = NO_DEVICE};
uint32_t streams_needed, contexts_changed;

/* ---- What the policies need ---- */

static bool shapes(const struct overlap_rule *rule) {
    return rule->shape != OVERLAP_SHAPE_LEAVE;
}

RARE uint32_t streams_need(void) {
    const struct overlap_settings *const settings = overlap_armed();
    uint32_t needed = STREAMS_KNOWN;
    if (!settings) {
        if (overlap_is_off())
            __atomic_store_n(&streams_needed, needed, __ATOMIC_RELAXED);
        return 0;
    }
    const struct overlap_view view = overlap_table_view(settings->table);
    for (uint32_t i = 0; i < view.table->policy_count; i++)
        needed |= view.policies[i].raise_share || view.policies[i].stream_creators.count ? STREAMS_RAISES : 0;
    for (uint32_t i = 0; i < view.table->rule_count; i++)
        if (shapes(&view.rules[i]))
            needed |= STREAMS_SHAPES | (view.rules[i].when == OVERLAP_WHEN_ALWAYS ? 0 : STREAMS_WINDOWS);
    __atomic_store_n(&streams_needed, needed, __ATOMIC_RELAXED);
    return needed;
}

/* ---- Contexts ---- */

RARE uint64_t context_ask(enum vendor vendor) {
    const uint32_t changed = __atomic_load_n(&contexts_changed, __ATOMIC_ACQUIRE);
    if (!driver_ready(vendor))
        return 0;
    if (this_thread.contexts_at != changed)
        for (int i = 0; i < VENDORS; i++)
            this_thread.context[i] = 0;
    this_thread.contexts_at = changed;
    this_thread.device[vendor] = 0;
    return this_thread.context[vendor] = OPERATION_OF(vendor, context)();
}

RARE int device_ask(enum vendor vendor) {
    const int device = driver_ready(vendor) ? OPERATION_OF(vendor, device)() : NO_DEVICE;
    this_thread.device[vendor] = device + 1;
    return device;
}

/* ---- Records ---- */

static struct pool streams = POOL_OF(stream, STREAMS);
static struct map numbers; /* stream_key() -> number of its record */

struct stream *stream_at(uint32_t number) {
    return number ? pool_at(&streams, number) : &no_stream;
}

uint32_t streams_used(void) {
    return OVERLAP_LOAD(streams.used);
}

struct stream *stream_find(uint64_t key) {
    struct stream *const found = stream_at((uint32_t)map_get(&numbers, key));
    return OVERLAP_RELAXED(found->handle) == key ? found : &no_stream;
}

struct stream *stream_known(vendor_stream stream, enum default_stream null_stream) {
    return stream_find(stream_key(stream, null_stream));
}

/* The record of a context's legacy default stream, which counts its blocking streams; the lock is held. */
static struct stream *make_default(enum vendor vendor, uint64_t key, uint64_t context);
static struct stream *legacy_of(const struct stream *stream) {
    const uint64_t key = stream->context | STREAM_LEGACY;
    struct stream *const legacy = stream_find(key);
    return legacy == &no_stream ? make_default(stream->vendor, key, stream->context) : legacy;
}

/* by: ONE_BLOCKING, or its negative. False: the table has no room for the default stream. */
static bool count_blocking(const struct stream *stream, uint64_t by) {
    struct stream *const legacy = legacy_of(stream);
    if (legacy != &no_stream)
        __atomic_store_n(&legacy->blocking, (legacy->blocking + by) ^ stream_number(stream), __ATOMIC_RELAXED);
    return legacy != &no_stream;
}

/* HIP's priorities are fixed when a stream is created. */
static struct stream *make(enum vendor vendor, uint64_t key, uint64_t context, bool is_default) {
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
    /* A thread may still look at the former stream. */
    for (size_t i = 0; i < sizeof fresh / sizeof(uint64_t); i++)
        __atomic_store_n((uint64_t *)made + i, ((const uint64_t *)&fresh)[i], __ATOMIC_RELAXED);
    if (map_put(&numbers, key, number))
        return made;
    __atomic_store_n(&made->handle, 0, __ATOMIC_RELAXED);
    pool_give(&streams, number);
    return &no_stream;
}

static struct stream *make_default(enum vendor vendor, uint64_t key, uint64_t context) {
    return make(vendor, key, context, true);
}

void stream_unlist(struct device *device, struct stream *stream) {
    if (stream->previous)
        stream_at(stream->previous)->next = stream->next;
    else
        device->streams = stream->next;
    if (stream->next)
        stream_at(stream->next)->previous = stream->previous;
    __atomic_store_n(&stream->listed, 0, __ATOMIC_RELAXED);
}

/* Ends a record; the lock is held. */
static void end(struct stream *stream) {
    const uint64_t key = stream->handle;
    struct device *const device = device_met(stream->vendor, stream->device);
    if (stream_number(stream) == map_get(&numbers, key))
        map_put(&numbers, key, 0);
    if (stream->is_blocking)
        count_blocking(stream, -ONE_BLOCKING);
    if (device && stream->listed)
        stream_unlist(device, stream);
    window_closes(stream);
    if (stream->record && overlap_current_page)
        __atomic_store_n(&overlap_current_page->streams[stream->record - 1].priority, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->handle, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->raised, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->wanted, 0, __ATOMIC_RELAXED);
    stream->is_blocking = 0;
    name_give(stream->creator);
    stream->creator = 0;
    __atomic_store_n(&stream->serial, stream->serial + 1, __ATOMIC_RELEASE);
    raise_release(stream);
    pool_give(&streams, stream_number(stream));
}

int stream_priority_in_range(enum vendor vendor, uint64_t context, int priority) {
    int least = 0, greatest = 0;
    if (priority == 0 || !OPERATION_OF(vendor, priorities)(context, &least, &greatest))
        return priority;
    return priority < greatest ? greatest : priority > least ? least : priority;
}

static int device_of_context(enum vendor vendor, uint64_t context) {
    return !context                          ? NO_DEVICE
           : context == context_here(vendor) ? device_here(vendor)
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
    return place.device == NO_DEVICE ? (struct place){context_here(vendor), device_here(vendor)} : place;
}

static struct stream *make_stream(enum vendor vendor, uint64_t key, uint64_t context, uint32_t flags, int priority,
                                  const char *creator) {
    const int device = device_of_context(vendor, context);
    priority = stream_priority_in_range(vendor, context, priority);
    if (!context || !lock_take())
        return &no_stream;
    struct stream *made = stream_find(key);
    if (made != &no_stream) /* its end was not seen */
        end(made);
    made = make(vendor, key, context, false);
    if (made != &no_stream) {
        __atomic_store_n(&made->own, priority, __ATOMIC_RELAXED);
        __atomic_store_n(&made->device, device, __ATOMIC_RELAXED);
        made->creator = *creator ? name_keep(creator) : 0;
        made->is_blocking = !(flags & STREAM_NON_BLOCKING) && count_blocking(made, ONE_BLOCKING);
    }
    lock_leave();
    return made;
}

struct stream *stream_made(enum vendor vendor, vendor_stream stream, uint32_t flags, int priority, uintptr_t site) {
    const uint64_t key = (uint64_t)(uintptr_t)stream;
    return key > STREAM_PER_THREAD
               ? make_stream(vendor, key, context_here(vendor), flags, priority, overlap_library(site))
               : &no_stream;
}

/* Its creation was not seen, or it is a default stream. */
static struct stream *meet(uint64_t key, vendor_stream stream, enum default_stream null_stream) {
    const enum vendor vendor = default_vendor(null_stream);
    uint64_t context = key & ~(uint64_t)(STREAM_LEGACY | STREAM_PER_THREAD);
    uint32_t flags = 0;
    int priority = 0;
    if ((uintptr_t)stream > STREAM_PER_THREAD)
        return OPERATION_OF(vendor, stream_facts)(stream, &context, &flags, &priority)
                   ? make_stream(vendor, key, context, flags, priority, "")
                   : &no_stream;
    if (!lock_take())
        return &no_stream;
    struct stream *made = stream_find(key);
    made = made == &no_stream ? make_default(vendor, key, context) : made;
    lock_leave();
    return made;
}

struct stream *stream_met(vendor_stream stream, enum default_stream null_stream) {
    const uint64_t key = stream_key(stream, null_stream);
    struct stream *const known = stream_find(key);
    return known != &no_stream || !key || !driver_ready(default_vendor(null_stream)) ? known
                                                                                     : meet(key, stream, null_stream);
}

void stream_ends(struct stream *stream) {
    if (stream == &no_stream)
        return;
    raise_hold(stream);
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
        raise_release(stream);
    } else if (lock_take()) {
        /* Only under the lock: a new stream may have the handle by now, and its maker would end this record as well. */
        __atomic_store_n(&stream->handle, key, __ATOMIC_RELAXED);
        POINT(stream_ending);
        end(stream);
        lock_leave();
    }
}

/* Also asked without the lock, while other threads make and end records. A default stream that has carried nothing has no
 * device, and may count the blocking streams of another one: it stays, as the handle of a primary context does. */
static bool is_of(const struct stream *stream, enum vendor vendor, uint64_t context, int device) {
    const int its = OVERLAP_RELAXED(stream->device);
    return OVERLAP_RELAXED(stream->handle) && OVERLAP_RELAXED(stream->vendor) == vendor &&
           (context ? OVERLAP_RELAXED(stream->context) == context
                    : its == device || (its == NO_DEVICE && !OVERLAP_RELAXED(stream->is_default)));
}

void streams_context_ends(enum vendor vendor, uint64_t context, int device) {
    for (uint32_t i = 1; streams_tracked() && i <= streams_used(); i++)
        if (is_of(stream_at(i), vendor, context, device))
            raise_hold(stream_at(i));
}

/* The lock is not to be had: they are not found any more, and their records are lost. */
static void lose(enum vendor vendor, uint64_t context, int device, bool gone) {
    for (uint32_t i = 1; i <= streams_used(); i++)
        if (is_of(stream_at(i), vendor, context, device)) {
            if (gone)
                __atomic_store_n(&stream_at(i)->handle, 0, __ATOMIC_RELAXED);
            raise_release(stream_at(i));
        }
}

/* Default streams last: a legacy one counts the blocking streams that end with it. */
void streams_context_ended(enum vendor vendor, uint64_t context, int device, bool gone) {
    if (gone) {
        __atomic_fetch_add(&contexts_changed, 1, __ATOMIC_ACQ_REL);
        captures_context_ended(context, device);
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
                end(stream);
            else
                raise_release(stream);
        }
    lock_leave();
}

void streams_prepare(void) {
    pool_prepare(&streams);
    map_prepare(&numbers);
    events_prepare();
    raise_prepare();
}

void streams_forked(void) {
    lock_forked();
    captures_forked();
    streams_needed = 0;
    for (uint32_t i = 1; i <= streams_used(); i++) /* marks of threads that do not exist here */
        if (stream_at(i)->changing)
            stream_at(i)->changing = 0;
}

/* ---- Work ---- */

/* Moves the work of a slot to its stream. */
static void move_work(struct work *work) {
    if (work->stream && work->stream != &no_stream && work->serial == OVERLAP_RELAXED(work->stream->serial))
        __atomic_fetch_add(&work->stream->gone_work, work->threads, __ATOMIC_RELAXED);
    __atomic_store_n(&work->threads, 0, __ATOMIC_RELAXED);
}

void launcher_take(struct launcher *launcher) {
    for (int i = 0; i < WORKS; i++) {
        move_work(&launcher->works[i]);
        __atomic_store_n(&launcher->works[i].stream, NULL, __ATOMIC_RELEASE);
    }
    launcher->works[WORKS].stream = &no_stream;
}

/* The reader in raise_judge() may see the work twice or not at all meanwhile, which the next judgement mends. */
RARE struct work *work_slot(struct launcher *launcher, struct stream *stream) {
    struct work *const work = &launcher->works[stream->slot];
    if (work->stream == stream && work->serial == OVERLAP_RELAXED(stream->serial))
        return work;
    move_work(work);
    __atomic_store_n(&work->serial, OVERLAP_RELAXED(stream->serial), __ATOMIC_RELAXED);
    __atomic_store_n(&work->stream, stream, __ATOMIC_RELEASE);
    return work;
}

/* ---- Launches ---- */

RARE void stream_carries(struct stream *stream, bool communication, bool wide) {
    const int ordinal = OVERLAP_RELAXED(stream->device);
    const bool has_device = ordinal != NO_DEVICE; /* default streams have none before their first launch */
    struct device *const its = has_device ? device_at(stream->vendor, ordinal) : device_current(stream->vendor);
    if (stream == &no_stream || !its)
        return;
    device_range(its, has_device ? OVERLAP_RELAXED(stream->context) : 0);
    if (!lock_take())
        return;
    if (!has_device)
        __atomic_store_n(&stream->device, its->ordinal, __ATOMIC_RELAXED);
    bool judge = false;
    if (!stream->listed && OVERLAP_RELAXED(stream->handle)) { /* else another thread has ended it */
        __atomic_store_n(&stream->listed, 1, __ATOMIC_RELAXED);
        stream->previous = 0;
        stream->next = its->streams;
        if (its->streams)
            stream_at(its->streams)->previous = stream_number(stream);
        its->streams = stream_number(stream);
    }
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
