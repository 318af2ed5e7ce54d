/* Calls by which the host or a stream waits for a stream: events, waits, queries, blocking copies; of both vendors. The
 * driver is called first; a call that fails, or a query that finds work unfinished, is no wait.
 *
 * An event's entry names the stream that recorded it last: number, serial, and how much communication was on the stream.
 * Events of other processes, host functions and waits for memory are not followed. */
#include "../core/core.h"
#include "table.h"
#include "resolve.h"
#include "streams.h"
#include "calls.h"
#include "waits.h"

/* ---- Events ---- */

enum { SERIAL_SHIFT = 16, COMMUNICATIONS_SHIFT = 32 }; /* bits 0 to 15: number of the stream */
_Static_assert(STREAMS < 1 << SERIAL_SHIFT, "an event's entry of 48 bits");

static struct map events; /* -> entry */

static void put(uint64_t event, uint64_t entry) {
    if (lock_take()) {
        map_put(&events, event, entry);
        lock_leave();
    }
}

static uint64_t entry_of(const struct stream *stream) {
    return stream == &no_stream
               ? 0
               : stream_number(stream) | (uint64_t)(uint16_t)OVERLAP_RELAXED(stream->serial) << SERIAL_SHIFT |
                     (uint64_t)(uint16_t)OVERLAP_RELAXED(stream->communications) << COMMUNICATIONS_SHIFT;
}

void event_recorded(vendor_event event, vendor_stream stream, enum default_stream null_stream) {
    const uint64_t key = (uint64_t)(uintptr_t)event;
    if (OVERLAP_RELAXED(captures_open)) /* it may be a node's; the event keeps its entry */
        return;
    const uint64_t entry = entry_of(stream_find(stream, null_stream)), before = map_get(&events, key);
    if (before == entry)
        return;
    if (before && entry)
        map_replace(&events, key, before, entry);
    else
        put(key, entry);
}

static void event_waited(vendor_event event, const struct stream *by) {
    const uint64_t entry = map_get(&events, (uint64_t)(uintptr_t)event);
    struct stream *const stream = stream_at((uint32_t)(entry & ((1U << SERIAL_SHIFT) - 1)));
    if (stream != &no_stream && stream != by &&
        (uint16_t)(entry >> SERIAL_SHIFT) == (uint16_t)OVERLAP_RELAXED(stream->serial))
        stream_waited(stream,
                      (uint16_t)(entry >> COMMUNICATIONS_SHIFT) == (uint16_t)OVERLAP_RELAXED(stream->communications));
}

vendor_result event_record_body(ENTRY, vendor_event event, vendor_stream stream) {
    REAL_OR_RETURN(event_record_body);
    const vendor_result result = real(event, stream);
    if (result == VENDOR_SUCCESS && streams_tracked())
        event_recorded(event, stream, hook_default(hook));
    return result;
}

vendor_result event_record_flags_body(ENTRY, vendor_event event, vendor_stream stream, uint32_t flags) {
    REAL_OR_RETURN(event_record_flags_body);
    const vendor_result result = real(event, stream, flags);
    if (result == VENDOR_SUCCESS && streams_tracked())
        event_recorded(event, stream, hook_default(hook));
    return result;
}

/* Before the call: the driver may use the address again at once. */
vendor_result event_destroy_body(ENTRY, vendor_event event) {
    REAL_OR_RETURN(event_destroy_body);
    if (streams_tracked() && map_get(&events, (uint64_t)(uintptr_t)event))
        put((uint64_t)(uintptr_t)event, 0);
    return real(event);
}

vendor_result event_wait_body(ENTRY, vendor_event event) {
    REAL_OR_RETURN(event_wait_body);
    const vendor_result result = real(event);
    if (result != VENDOR_SUCCESS)
        return result;
    if (streams_tracked())
        event_waited(event, NULL);
    count_host_wait();
    return result;
}

/* ---- Streams ---- */

vendor_result stream_wait_event_body(ENTRY, vendor_stream stream, vendor_event event, uint32_t flags) {
    REAL_OR_RETURN(stream_wait_event_body);
    const vendor_result result = real(stream, event, flags);
    if (result == VENDOR_SUCCESS && streams_tracked())
        event_waited(event, stream_find(stream, hook_default(hook)));
    return result;
}

vendor_result host_has_waited(enum hook hook, vendor_stream stream) {
    if (streams_tracked())
        stream_waited_by_handle(stream, hook_default(hook));
    count_host_wait();
    return VENDOR_SUCCESS;
}

vendor_result stream_wait_body(ENTRY, vendor_stream stream) {
    REAL_OR_RETURN(stream_wait_body);
    return host_waited(hook, stream, real(stream));
}

vendor_result context_wait_body(ENTRY) {
    REAL_OR_RETURN(context_wait_body);
    const vendor_result result = real();
    if (result != VENDOR_SUCCESS)
        return result;
    if (streams_wanted() & STREAMS_WINDOWS)
        context_waited(hook_vendor(hook), current_context(hook_vendor(hook)));
    if (streams_tracked())
        other_waited();
    count_host_wait();
    return result;
}
