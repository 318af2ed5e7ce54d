/* Calls that order streams, or tell the host what is over. The driver is asked first, and what it has refused has not
 * happened; only an event is marked before, so that nobody takes what it says while it is being recorded. */
#include "windows.h"

static uint64_t key_of_event(vendor_event event) {
    return (uint64_t)(uintptr_t)event;
}

/* ---- Events ---- */

vendor_result event_create_body(enum overlap_way way, enum hook hook, uintptr_t site, vendor_event *event,
                                uint32_t flags) {
    BEHIND((vendor_event * event, uint32_t flags));
    struct overlap_order *order = windows();
    vendor_result result = real(event, flags);
    if (order && result == VENDOR_SUCCESS && event)
        overlap_order_event_gone(order, key_of_event(*event)); /* one that had its address, and went with its context */
    return result;
}

vendor_result event_destroy_body(enum overlap_way way, enum hook hook, uintptr_t site, vendor_event event) {
    BEHIND((vendor_event event));
    struct overlap_order *order = windows();
    if (order)
        overlap_order_event_gone(order, key_of_event(event)); /* before its address is another's */
    return real(event);
}

vendor_result event_record_body(enum overlap_way way, enum hook hook, uintptr_t site, vendor_event event,
                                vendor_stream stream) {
    BEHIND((vendor_event event, vendor_stream stream));
    struct overlap_order *order = windows();
    if (!order)
        return real(event, stream);
    struct overlap_stream *its = window_stream(order, stream, hook_default(hook));
    struct overlap_event *recording = overlap_order_recording(order, key_of_event(event), its);
    vendor_result result = real(event, stream);
    overlap_order_recorded(order, recording, its, result == VENDOR_SUCCESS);
    window_after(order);
    return result;
}

vendor_result event_record_flags_body(enum overlap_way way, enum hook hook, uintptr_t site, vendor_event event,
                                      vendor_stream stream, uint32_t flags) {
    BEHIND((vendor_event event, vendor_stream stream, uint32_t flags));
    struct overlap_order *order = windows();
    if (!order)
        return real(event, stream, flags);
    struct overlap_stream *its = window_stream(order, stream, hook_default(hook));
    if (flags & EVENT_RECORD_EXTERNAL && overlap_stream_here(its) != its) { /* a node of the graph records it */
        vendor_result result = real(event, stream, flags);
        if (result == VENDOR_SUCCESS)
            overlap_order_event_unknown(order, key_of_event(event));
        return result;
    }
    struct overlap_event *recording = overlap_order_recording(order, key_of_event(event), its);
    vendor_result result = real(event, stream, flags);
    overlap_order_recorded(order, recording, its, result == VENDOR_SUCCESS);
    window_after(order);
    return result;
}

static vendor_result saw_event(struct overlap_order *order, enum vendor vendor, vendor_event event,
                               vendor_result (*real)(vendor_event event)) {
    struct overlap_seen seen;
    if (!overlap_order_see_event(order, key_of_event(event), &seen))
        return real(event); /* nobody waits for what is known to be over */
    vendor_result result = real(event);
    if (result == VENDOR_SUCCESS) {
        critical_host_waits(order, vendor, &seen);
        window_saw(order, &seen);
    }
    return result;
}

vendor_result event_query_body(enum overlap_way way, enum hook hook, uintptr_t site, vendor_event event) {
    BEHIND((vendor_event event));
    struct overlap_order *order = windows();
    return order ? saw_event(order, hook_vendor(hook), event, real) : real(event);
}

vendor_result event_synchronize_body(enum overlap_way way, enum hook hook, uintptr_t site, vendor_event event) {
    BEHIND((vendor_event event));
    struct overlap_order *order = windows();
    return order ? saw_event(order, hook_vendor(hook), event, real) : real(event);
}

vendor_result event_elapsed_body(enum overlap_way way, enum hook hook, uintptr_t site, float *ms, vendor_event from,
                                 vendor_event to) {
    BEHIND((float *ms, vendor_event from, vendor_event to));
    struct overlap_order *order = windows();
    struct overlap_seen seen[2];
    if (!order)
        return real(ms, from, to);
    const bool news[2] = {overlap_order_see_event(order, key_of_event(from), &seen[0]),
                          overlap_order_see_event(order, key_of_event(to), &seen[1])};
    vendor_result result = real(ms, from, to);
    for (int i = 0; result == VENDOR_SUCCESS && i < 2; i++)
        if (news[i])
            window_saw(order, &seen[i]);
    return result;
}

vendor_result event_export_body(enum overlap_way way, enum hook hook, uintptr_t site, void *handle,
                                vendor_event event) {
    BEHIND((void *handle, vendor_event event));
    struct overlap_order *order = windows();
    if (order)
        overlap_order_event_exported(order, key_of_event(event));
    return real(handle, event);
}

vendor_result event_import_body(enum overlap_way way, enum hook hook, uintptr_t site, vendor_event *event,
                                vendor_ipc_event handle) {
    BEHIND((vendor_event * event, vendor_ipc_event handle));
    struct overlap_order *order = windows();
    vendor_result result = real(event, handle);
    if (order && result == VENDOR_SUCCESS && event) {
        overlap_order_event_gone(order, key_of_event(*event));
        overlap_order_event_imported(order, key_of_event(*event));
    }
    return result;
}

void order_event_of_launch(vendor_event event) {
    struct overlap_order *order = windows();
    if (order)
        overlap_order_event_unknown(order, key_of_event(event));
}

/* ---- Streams ---- */

vendor_result stream_wait_body(enum overlap_way way, enum hook hook, uintptr_t site, vendor_stream stream,
                               vendor_event event, uint32_t flags) {
    BEHIND((vendor_stream stream, vendor_event event, uint32_t flags));
    struct overlap_order *order = windows();
    vendor_result result = real(stream, event, flags);
    struct overlap_stream *its =
        order && result == VENDOR_SUCCESS ? window_stream(order, stream, hook_default(hook)) : NULL;
    if (its) {
        if (flags) /* in a capture: a node of the graph waits */
            __atomic_store_n(&exec_may_wait, 1, __ATOMIC_RELAXED);
        critical_fed(order, hook_vendor(hook), its, key_of_event(event));
        if (window_waits(order, its, key_of_event(event)))
            priority_unhurried();
        window_after(order);
    }
    return result;
}

static vendor_result saw_stream(struct overlap_order *order, vendor_stream stream, enum default_stream whose,
                                vendor_result (*real)(vendor_stream stream)) {
    struct overlap_seen seen;
    overlap_order_see_stream(order, window_stream(order, stream, whose), &seen);
    vendor_result result = real(stream);
    if (result == VENDOR_SUCCESS) {
        critical_host_waits(order, default_vendor(whose), &seen);
        window_saw(order, &seen);
    }
    return result;
}

vendor_result stream_synchronize_body(enum overlap_way way, enum hook hook, uintptr_t site, vendor_stream stream) {
    BEHIND((vendor_stream stream));
    struct overlap_order *order = windows();
    return order ? saw_stream(order, stream, hook_default(hook), real) : real(stream);
}

vendor_result stream_query_body(enum overlap_way way, enum hook hook, uintptr_t site, vendor_stream stream) {
    BEHIND((vendor_stream stream));
    struct overlap_order *order = windows();
    return order ? saw_stream(order, stream, hook_default(hook), real) : real(stream);
}

vendor_result order_waits_unseen(enum hook hook, vendor_stream stream, vendor_result result) {
    struct overlap_order *order = windows();
    if (order && result == VENDOR_SUCCESS) {
        struct overlap_stream *its = window_stream(order, stream, hook_default(hook));
        if (overlap_stream_here(its) != its)
            __atomic_store_n(&exec_may_wait, 1, __ATOMIC_RELAXED);
        overlap_order_unknown(order, its);
        window_after(order);
    }
    return result;
}

/* ---- Contexts, devices ---- */

vendor_result context_synchronize_body(enum overlap_way way, enum hook hook, uintptr_t site) {
    BEHIND((void));
    struct overlap_order *order = windows();
    struct overlap_seen seen;
    if (!order)
        return real();
    overlap_order_see_context(order, window_context(hook_vendor(hook)), &seen);
    vendor_result result = real();
    if (result == VENDOR_SUCCESS)
        window_saw(order, &seen);
    return result;
}
