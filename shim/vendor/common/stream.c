/* Streams of communication libraries. Streams that these create for themselves are raised if the policy says so, as
 * in the published method. NCCL and RCCL run no collective on them (only copies and events), so this alone raises no
 * communication launch. */
#include "windows.h"

bool stream_wanted(enum vendor vendor, uintptr_t site, int *priority) {
    const struct overlap_settings *settings = overlap_armed();
    const struct overlap_policy *policy = settings ? device_policy(device_current(vendor)) : NULL;
    if (!policy || policy->stream_priority == OVERLAP_PRIORITY_INHERIT || policy->stream_creators.count == 0)
        return false;
    char library[256];
    library_of(outer_site(site), library, sizeof library);
    struct overlap_view view = overlap_table_view(settings->table);
    return overlap_match_any(&view, policy->stream_creators, library) &&
           device_priority(vendor, policy->stream_priority, policy->stream_priority_value, priority);
}

uint32_t stream_some_prioritised;

/* Streams of communication libraries do not count: programs launch no graphs on them. */
void stream_prioritised(uintptr_t site, int priority) {
    char library[256];
    if (priority >= 0 || !overlap_armed() || __atomic_load_n(&stream_some_prioritised, __ATOMIC_RELAXED))
        return;
    library_of(outer_site(site), library, sizeof library);
    if (!overlap_is_communication_library(library))
        __atomic_store_n(&stream_some_prioritised, 1, __ATOMIC_RELAXED);
}

/* ---- Streams that we have raised ---- */

uint64_t stream_key(vendor_stream stream, enum default_stream whose) {
    const uintptr_t value = (uintptr_t)stream;
    if (value == STREAM_PER_THREAD || (value == 0 && default_is_thread(whose)))
        return (uint64_t)thread_id() << 8 | STREAM_PER_THREAD;
    return value ? value : STREAM_LEGACY;
}

/* Streams whose priority we have set or tried to set, once each. Once the table is full, further streams stay as
 * they are. */
enum { TRIED = 64 };
static struct tried {
    uint64_t key;    /* 0: free */
    uint32_t raised; /* the driver has accepted it */
} tried[TRIED];

static struct tried *tried_find(uint64_t key) {
    for (int i = 0; i < TRIED; i++)
        if (__atomic_load_n(&tried[i].key, __ATOMIC_ACQUIRE) == key)
            return &tried[i];
    return NULL;
}

/* Claim a slot for an untracked stream; NULL: the table is full. */
static struct tried *tried_new(uint64_t key) {
    for (int i = 0; i < TRIED; i++) {
        uint64_t none = 0;
        if (__atomic_compare_exchange_n(&tried[i].key, &none, key, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            __atomic_store_n(&tried[i].raised, 0, __ATOMIC_RELEASE);
            return &tried[i];
        }
    }
    return NULL;
}

void stream_note_raised(vendor_stream stream) {
    struct tried *place = tried_new(stream_key(stream, STREAM_OF_CONTEXT));
    if (place)
        __atomic_store_n(&place->raised, 1, __ATOMIC_RELEASE);
    launch_count(OVERLAP_COUNTER_STREAMS_RAISED);
}

bool stream_is_raised(vendor_stream stream, enum default_stream whose) {
    struct tried *place = tried_find(stream_key(stream, whose));
    return place && __atomic_load_n(&place->raised, __ATOMIC_ACQUIRE);
}

void stream_is_programs(vendor_stream stream, enum default_stream whose) {
    struct tried *place = tried_find(stream_key(stream, whose));
    if (place)
        __atomic_store_n(&place->raised, 0, __ATOMIC_RELEASE);
}

/* ---- Calls with the same signature for both vendors ---- */

vendor_result stream_created(enum vendor vendor, uintptr_t site, const vendor_stream *stream, vendor_result result) {
    if (result == VENDOR_SUCCESS && stream)
        window_stream_made(vendor, site, *stream);
    return result;
}

/* On failure the caller makes the program's own call. */
static vendor_result try_raised(enum vendor vendor,
                                vendor_result (*create)(vendor_stream *stream, uint32_t flags, int priority),
                                vendor_stream *stream, uint32_t flags, int priority) {
    const vendor_result pending = OPERATION_OF(vendor, pending)();
    return OPERATION_OF(vendor, settle)(pending, create(stream, flags, priority));
}

vendor_result stream_create_priority_body(enum overlap_way way, enum hook hook, uintptr_t site, vendor_stream *stream,
                                          uint32_t flags, int priority) {
    BEHIND((vendor_stream * stream, uint32_t flags, int priority));
    int raised = priority;
    stream_prioritised(site, priority);
    if (stream_wanted(hook_vendor(hook), site, &raised) && raised != priority &&
        try_raised(hook_vendor(hook), real, stream, flags, raised) == VENDOR_SUCCESS) {
        stream_note_raised(*stream);
        return stream_created(hook_vendor(hook), site, stream, VENDOR_SUCCESS);
    }
    return stream_created(hook_vendor(hook), site, stream, real(stream, flags, priority));
}

/* Forget the stream before the call: the driver may reuse its address at once. */
vendor_result stream_destroy_body(enum overlap_way way, enum hook hook, uintptr_t site, vendor_stream stream) {
    BEHIND((vendor_stream stream));
    struct overlap_order *order = windows();
    struct tried *place = tried_find(stream_key(stream, STREAM_OF_CONTEXT));
    if (place)
        __atomic_store_n(&place->key, 0, __ATOMIC_RELEASE);
    if (order && (uintptr_t)stream > STREAM_PER_THREAD) {
        critical_gone(order, stream);
        overlap_order_stream_gone(order, (uint64_t)(uintptr_t)stream);
    }
    return real(stream);
}
