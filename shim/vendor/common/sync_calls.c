/* Calls that order streams, or that tell the host what is finished. The driver is called first, and the model is
 * updated only if it succeeds. The exception is an event: it is marked before the driver records it, so that no
 * thread reads its clock meanwhile. */
#include "../../core/core.h"
#include "../../core/critical.h"
#include "../../core/sync_access.h"
#include "critical_streams.h"
#include "graph_exec.h"
#include "priority.h"
#include "resolve.h"
#include "sleep.h"
#include "sync_calls.h"
#include "windows.h"

static uint64_t key_of_event(vendor_event event) {
    return (uint64_t)(uintptr_t)event;
}

/* ---- While the model sleeps: separate functions, so that few registers are saved ---- */

__attribute__((noinline)) static vendor_result record_asleep(ENTRY, vendor_event event, vendor_stream stream) {
    BEHIND((vendor_event event, vendor_stream stream));
    vendor_result result = real(event, stream);
    return __builtin_expect(window_asleep(), 1) ? result : window_missed_record(event, result);
}

__attribute__((noinline)) static vendor_result wait_asleep(ENTRY, vendor_stream stream, vendor_event event,
                                                           uint32_t flags) {
    BEHIND((vendor_stream stream, vendor_event event, uint32_t flags));
    vendor_result result = real(stream, event, flags);
    return __builtin_expect(window_asleep(), 1) ? result : window_missed_wait(stream, hook_default(hook), result);
}

/* ---- Events ---- */

RARE vendor_result event_create_body(ENTRY, vendor_event *event, uint32_t flags) {
    BEHIND((vendor_event * event, uint32_t flags));
    struct overlap_sync_model *model = windows();
    vendor_result result = real(event, flags);
    if (model && result == VENDOR_SUCCESS && event)
        /* Drop an earlier event at this address that was destroyed with its context. */
        overlap_sync_event_gone(model, key_of_event(*event));
    return result;
}

RARE vendor_result event_destroy_body(ENTRY, vendor_event event) {
    BEHIND((vendor_event event));
    struct overlap_sync_model *model = windows();
    if (model)
        overlap_sync_event_gone(model, key_of_event(event)); /* before the driver can reuse its address */
    return real(event);
}

vendor_result event_record_body(ENTRY, vendor_event event, vendor_stream stream) {
    if (window_asleep())
        return record_asleep(route, hook, site, event, stream);
    BEHIND((vendor_event event, vendor_stream stream));
    struct overlap_sync_model *model = windows();
    if (!model)
        return real(event, stream);
    struct overlap_stream *tracked = window_stream(model, stream, hook_default(hook));
    struct overlap_event *recording = overlap_sync_recording(model, key_of_event(event), tracked);
    vendor_result result = real(event, stream);
    overlap_sync_recorded(model, recording, tracked, result == VENDOR_SUCCESS);
    window_check_legacy(model);
    return result;
}

RARE vendor_result event_record_flags_body(ENTRY, vendor_event event, vendor_stream stream, uint32_t flags) {
    BEHIND((vendor_event event, vendor_stream stream, uint32_t flags));
    if (window_asleep()) {
        vendor_result result = real(event, stream, flags);
        return __builtin_expect(window_asleep(), 1) ? result : window_missed_record(event, result);
    }
    struct overlap_sync_model *model = windows();
    if (!model)
        return real(event, stream, flags);
    struct overlap_stream *tracked = window_stream(model, stream, hook_default(hook));
    if (flags & EVENT_RECORD_EXTERNAL && overlap_stream_here(tracked) != tracked) { /* a graph node records it */
        vendor_result result = real(event, stream, flags);
        if (result == VENDOR_SUCCESS)
            overlap_sync_event_unknown(model, key_of_event(event));
        return result;
    }
    struct overlap_event *recording = overlap_sync_recording(model, key_of_event(event), tracked);
    vendor_result result = real(event, stream, flags);
    overlap_sync_recorded(model, recording, tracked, result == VENDOR_SUCCESS);
    window_check_legacy(model);
    return result;
}

/* While the model sleeps, record only what critical_streams.c needs. polls: the call queries the event instead of
 * waiting for it. */
static vendor_result sync_event_asleep(struct overlap_sync_model *model, enum vendor vendor, vendor_event event,
                                       vendor_result (*real)(vendor_event event), bool polls) {
    struct overlap_completion completion;
    vendor_result result = real(event);
    if (polls ? !critical_polled(key_of_event(event), result == VENDOR_SUCCESS) : result != VENDOR_SUCCESS)
        return result;
    /* Most programs wait for the same events repeatedly, and so for one that was recorded while the model was awake. */
    completion.by = overlap_critical_recorded_last(model, key_of_event(event), &completion.serial);
    if (completion.by)
        critical_host_waits(model, vendor, &completion);
    else
        critical_untracked_event(model);
    return result;
}

static inline vendor_result sync_event(struct overlap_sync_model *model, enum vendor vendor, vendor_event event,
                                       vendor_result (*real)(vendor_event event), bool polls) {
    struct overlap_completion completion;
    if (!model)
        return real(event);
    if (window_asleep())
        return sync_event_asleep(model, vendor, event, real, polls);
    if (!overlap_sync_completion_of_event(model, key_of_event(event), &completion))
        return real(event); /* known to be finished: not a wait */
    vendor_result result = real(event);
    if (result == VENDOR_SUCCESS) {
        critical_host_waits(model, vendor, &completion);
        window_host_waited(model, &completion);
    }
    return result;
}

vendor_result event_query_body(ENTRY, vendor_event event) {
    BEHIND((vendor_event event));
    return window_asleep_deeply() ? real(event) : sync_event(windows(), hook_vendor(hook), event, real, true);
}

vendor_result event_synchronize_body(ENTRY, vendor_event event) {
    BEHIND((vendor_event event));
    return window_asleep_deeply() ? real(event) : sync_event(windows(), hook_vendor(hook), event, real, false);
}

RARE vendor_result event_elapsed_body(ENTRY, float *ms, vendor_event from, vendor_event to) {
    BEHIND((float *ms, vendor_event from, vendor_event to));
    struct overlap_sync_model *model = window_asleep() ? NULL : windows();
    struct overlap_completion completion[2];
    if (!model)
        return real(ms, from, to);
    const bool news[2] = {overlap_sync_completion_of_event(model, key_of_event(from), &completion[0]),
                          overlap_sync_completion_of_event(model, key_of_event(to), &completion[1])};
    vendor_result result = real(ms, from, to);
    for (int i = 0; result == VENDOR_SUCCESS && i < 2; i++)
        if (news[i])
            window_host_waited(model, &completion[i]);
    return result;
}

RARE vendor_result event_export_body(ENTRY, void *handle, vendor_event event) {
    BEHIND((void *handle, vendor_event event));
    struct overlap_sync_model *model = windows();
    if (model)
        overlap_sync_event_exported(model, key_of_event(event));
    return real(handle, event);
}

RARE vendor_result event_import_body(ENTRY, vendor_event *event, vendor_ipc_event handle) {
    BEHIND((vendor_event * event, vendor_ipc_event handle));
    struct overlap_sync_model *model = windows();
    vendor_result result = real(event, handle);
    if (model && result == VENDOR_SUCCESS && event) {
        overlap_sync_event_gone(model, key_of_event(*event));
        overlap_sync_event_imported(model, key_of_event(*event));
    }
    return result;
}

void order_event_unknown(vendor_event event) {
    struct overlap_sync_model *model = windows();
    if (model)
        overlap_sync_event_unknown(model, key_of_event(event));
}

/* ---- Streams ---- */

vendor_result stream_wait_body(ENTRY, vendor_stream stream, vendor_event event, uint32_t flags) {
    if (window_asleep())
        return wait_asleep(route, hook, site, stream, event, flags);
    BEHIND((vendor_stream stream, vendor_event event, uint32_t flags));
    struct overlap_sync_model *model = windows();
    vendor_result result = real(stream, event, flags);
    struct overlap_stream *tracked =
        model && result == VENDOR_SUCCESS ? window_stream(model, stream, hook_default(hook)) : NULL;
    if (tracked) {
        if (flags) /* in a capture: a graph node waits */
            __atomic_store_n(&exec_may_wait, 1, __ATOMIC_RELAXED);
        critical_event_waited(model, hook_vendor(hook), tracked, key_of_event(event));
        if (window_waits(model, tracked, key_of_event(event)))
            priority_waited_late();
        window_check_legacy(model);
    }
    return result;
}

static inline vendor_result sync_stream(struct overlap_sync_model *model, vendor_stream stream,
                                        enum default_stream null_stream, vendor_result (*real)(vendor_stream stream),
                                        bool polls) {
    struct overlap_completion completion;
    const bool asleep = window_asleep();
    if (!model)
        return real(stream);
    struct overlap_stream *const tracked = window_stream(model, stream, null_stream);
    if (asleep)
        critical_completion_of_stream(tracked, &completion);
    else
        overlap_sync_completion_of_stream(model, tracked, &completion);
    vendor_result result = real(stream);
    if (asleep && polls ? critical_polled((uint64_t)(uintptr_t)stream, result == VENDOR_SUCCESS)
                        : result == VENDOR_SUCCESS)
        critical_host_waits(model, default_vendor(null_stream), &completion);
    if (!asleep && result == VENDOR_SUCCESS)
        window_host_waited(model, &completion);
    return result;
}

vendor_result stream_synchronize_body(ENTRY, vendor_stream stream) {
    BEHIND((vendor_stream stream));
    return window_asleep_deeply() ? real(stream) : sync_stream(windows(), stream, hook_default(hook), real, false);
}

vendor_result stream_query_body(ENTRY, vendor_stream stream) {
    BEHIND((vendor_stream stream));
    return window_asleep_deeply() ? real(stream) : sync_stream(windows(), stream, hook_default(hook), real, true);
}

RARE vendor_result order_wait_untracked(enum hook hook, vendor_stream stream, vendor_result result) {
    struct overlap_sync_model *model = windows();
    if (model && result == VENDOR_SUCCESS) {
        struct overlap_stream *tracked = window_stream(model, stream, hook_default(hook));
        if (overlap_stream_here(tracked) != tracked)
            __atomic_store_n(&exec_may_wait, 1, __ATOMIC_RELAXED);
        overlap_sync_unknown(model, tracked);
        window_check_legacy(model);
        window_wake_if_asleep(model);
    }
    return result;
}

/* ---- Contexts, devices ---- */

RARE vendor_result context_synchronize_body(ENTRY) {
    BEHIND((void));
    struct overlap_sync_model *model = window_asleep() ? NULL : windows();
    struct overlap_completion completion;
    if (!model)
        return real();
    overlap_sync_completion_of_context(model, window_context(hook_vendor(hook)), &completion);
    vendor_result result = real();
    if (result == VENDOR_SUCCESS)
        window_host_waited(model, &completion);
    return result;
}
