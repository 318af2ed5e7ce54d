/* Streams of communication libraries. Streams that these create for themselves are raised if the policy says so, as
 * in the published method. NCCL and RCCL run no collective on them (only copies and events), so this alone raises no
 * communication launch. */
#include "../../core/core.h"
#include "../../core/sync_model.h"
#include "../../sys/sys.h"
#include "arms.h"
#include "comm_streams.h"
#include "critical_streams.h"
#include "device.h"
#include "facts.h"
#include "launch_slow.h"
#include "page.h"
#include "resolve.h"
#include "state.h"
#include "this_thread.h"
#include "vendor_ops.h"
#include "windows.h"

bool stream_wanted(enum vendor vendor, uintptr_t site, int *priority) {
    const struct overlap_settings *settings = overlap_armed();
    const struct overlap_policy *policy = settings ? device_policy_for(device_current(vendor), true) : NULL;
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
    if (priority >= 0 || !overlap_armed() || OVERLAP_RELAXED(stream_some_prioritised))
        return;
    library_of(outer_site(site), library, sizeof library);
    if (!overlap_is_communication_library(library))
        __atomic_store_n(&stream_some_prioritised, 1, __ATOMIC_RELAXED);
}

/* ---- Streams that we have raised ---- */

uint64_t stream_key(vendor_stream stream, enum default_stream null_stream) {
    const uintptr_t value = (uintptr_t)stream;
    if (value == STREAM_PER_THREAD || (value == 0 && default_is_thread(null_stream)))
        return (uint64_t)thread_id() << 8 | STREAM_PER_THREAD;
    return value ? value : STREAM_LEGACY;
}

void stream_note_raised(vendor_stream stream) {
    state_put(STATE_STREAMS, stream_key(stream, STREAM_OF_CONTEXT), 1);
    launch_count(OVERLAP_COUNTER_STREAMS_RAISED);
}

bool stream_is_raised(vendor_stream stream, enum default_stream null_stream) {
    return state_get(STATE_STREAMS, stream_key(stream, null_stream));
}

void stream_is_programs(vendor_stream stream, enum default_stream null_stream) {
    state_put(STATE_STREAMS, stream_key(stream, null_stream), 0);
}

/* ---- Calls with the same signature for both vendors ---- */

vendor_result stream_created(enum vendor vendor, uintptr_t site, const vendor_stream *stream, vendor_result result) {
    if (result == VENDOR_SUCCESS && stream)
        window_stream_created(vendor, site, *stream);
    return result;
}

/* On failure the caller makes the program's own call. */
static vendor_result try_raised(enum vendor vendor,
                                vendor_result (*create)(vendor_stream *stream, uint32_t flags, int priority),
                                vendor_stream *stream, uint32_t flags, int priority) {
    const vendor_result pending = OPERATION_OF(vendor, pending)();
    return OPERATION_OF(vendor, settle)(pending, create(stream, flags, priority));
}

vendor_result stream_create_priority_body(ENTRY, vendor_stream *stream, uint32_t flags, int priority) {
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
vendor_result stream_destroy_body(ENTRY, vendor_stream stream) {
    BEHIND((vendor_stream stream));
    struct overlap_sync_model *model = windows();
    const bool captures = (uintptr_t)stream > STREAM_PER_THREAD && arms_captures((uint64_t)(uintptr_t)stream, false);
    stream_is_programs(stream, STREAM_OF_CONTEXT);
    if (model && (uintptr_t)stream > STREAM_PER_THREAD) {
        critical_stream_destroyed(model, stream);
        overlap_sync_stream_gone(model, (uint64_t)(uintptr_t)stream);
    }
    const vendor_result result = real(stream);
    if (captures && result != VENDOR_SUCCESS)
        arms_captures((uint64_t)(uintptr_t)stream, true);
    return result;
}
