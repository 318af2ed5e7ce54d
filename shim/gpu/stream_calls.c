/* Calls that create, destroy and describe streams, and those that begin and end captures; of both vendors. */
#include "../core/core.h"
#include "../sys/sys.h"
#include "launch.h"
#include "point.h"
#include "streams.h"
#include "resolve.h"
#include "calls.h"
#include "vendor_ops.h"
#include "captures.h"
#include "graphs.h"
#include "raise.h"

/* ---- Creation ---- */

/* Does the policy say that the library at `site` creates its streams at the greatest priority? */
static bool is_wanted(enum vendor vendor, uintptr_t site, int *priority) {
    const struct overlap_settings *const settings = overlap_armed();
    struct device *const device = settings ? current_device(vendor) : NULL;
    const struct overlap_policy *const policy = device_policy(device);
    if (!settings || !policy || !policy->stream_creators.count || overlap_observes(policy))
        return false;
    const struct overlap_view view = overlap_table_view(settings->table);
    if (!overlap_match_any(&view, policy->stream_creators, overlap_library(outer_site(site))) ||
        !device_range(device, 0))
        return false;
    *priority = device->greatest;
    return true;
}

vendor_result stream_create_at(enum vendor vendor, uintptr_t site, vendor_stream *stream, uint32_t flags, int asked,
                               vendor_result (*create)(vendor_stream *stream, uint32_t flags, int priority),
                               bool *tried) {
    int priority = asked;
    *tried = false;
    if (!create || !stream || !(streams_wanted() & STREAMS_RAISES) || !is_wanted(vendor, site, &priority) ||
        priority == asked)
        return VENDOR_SUCCESS;
    /* While a capture is open the stream has the program's priority, and gets ours when it ends. */
    const bool later = vendor == VENDOR_CUDA && OVERLAP_RELAXED(captures_open);
    const vendor_result pending = OPERATION_OF(vendor, last_error)();
    const vendor_result result =
        OPERATION_OF(vendor, restore_last_error)(pending, create(stream, flags, later ? asked : priority));
    if (result != VENDOR_SUCCESS) /* the caller makes the program's own call */
        return result;
    *tried = true;
    count(OVERLAP_COUNTER_STREAMS_CREATED_RAISED);
    POINT(stream_created);
    raise_created(stream_record(vendor, *stream, flags, asked, outer_site(site)), !later);
    return result;
}

vendor_result stream_created(enum vendor vendor, uintptr_t site, const vendor_stream *stream, uint32_t flags,
                             int priority, vendor_result result) {
    if (result == VENDOR_SUCCESS && stream && streams_tracked() && driver_ready(vendor))
        stream_record(vendor, *stream, flags, priority, outer_site(site));
    return result;
}

vendor_result stream_create_priority_body(ENTRY, vendor_stream *stream, uint32_t flags, int priority) {
    REAL_OR_RETURN(stream_create_priority_body);
    const enum vendor vendor = hook_vendor(hook);
    bool raised;
    const vendor_result result = stream_create_at(vendor, site, stream, flags, priority, real, &raised);
    return raised ? result : stream_created(vendor, site, stream, flags, priority, real(stream, flags, priority));
}

/* ---- The end ---- */

vendor_result stream_destroy_body(ENTRY, vendor_stream stream) {
    REAL_OR_RETURN(stream_destroy_body);
    if (!streams_tracked() || (uintptr_t)stream <= STREAM_PER_THREAD)
        return real(stream);
    struct stream *const known = stream_find(stream, hook_default(hook));
    const uint64_t key = (uint64_t)(uintptr_t)stream;
    const bool captures = capture_is_open(key);
    stream_ends(known);
    const vendor_result result = real(stream);
    stream_ended(known, result == VENDOR_SUCCESS);
    if (captures && result == VENDOR_SUCCESS)
        capture_closes(key);
    return result;
}

/* ---- What the program asks and sets ---- */

/* `touched` is set before the driver gets our priority, so of a changed value that the driver has answered this tells. */
vendor_result stream_get_priority_body(ENTRY, vendor_stream stream, int *priority) {
    REAL_OR_RETURN(stream_get_priority_body);
    const vendor_result result = real(stream, priority);
    if (result == VENDOR_SUCCESS && priority && streams_tracked()) {
        const struct stream *const known = stream_find(stream, hook_default(hook));
        if (__atomic_load_n(&known->touched, __ATOMIC_SEQ_CST))
            *priority = OVERLAP_RELAXED(known->own);
    }
    return result;
}

/* ---- Captures ---- */

/* Before the driver's call: raised streams must have the program's priorities by then, and after a call that has failed
 * the driver must not be asked anything. */
static uint64_t begins(enum hook hook, vendor_stream stream) {
    const enum default_stream null_stream = hook_default(hook);
    const uint64_t key = stream_key(stream, null_stream);
    if (key && streams_wanted() & ~(uint32_t)STREAMS_KNOWN && driver_ready(hook_vendor(hook))) {
        const struct place place = stream_place(stream, null_stream, stream_find(stream, null_stream));
        capture_opens(key, place.context, place.device);
    }
    return key;
}

static vendor_result begun(uint64_t key, vendor_result result) {
    if (result != VENDOR_SUCCESS)
        capture_closes(key);
    return result;
}

vendor_result capture_begin_v1_body(ENTRY, vendor_stream stream) {
    REAL_OR_RETURN(capture_begin_v1_body);
    const uint64_t key = begins(hook, stream);
    return begun(key, real(stream));
}

vendor_result capture_begin_body(ENTRY, vendor_stream stream, int mode) {
    REAL_OR_RETURN(capture_begin_body);
    const uint64_t key = begins(hook, stream);
    return begun(key, real(stream, mode));
}

vendor_result capture_begin_graph_body(ENTRY, vendor_stream stream, vendor_graph graph, const vendor_node *dependencies,
                                       const vendor_edge *edges, size_t count, int mode) {
    REAL_OR_RETURN(capture_begin_graph_body);
    const uint64_t key = begins(hook, stream);
    return begun(key, real(stream, graph, dependencies, edges, count, mode));
}

/* Into a graph that was captured before. `differs` is called for each node that is no longer as it was: also if its
 * priority were ours (cuda.h 13.3). */
vendor_result capture_again_body(ENTRY, vendor_stream stream, int mode, vendor_graph graph, void *differs, void *data) {
    REAL_OR_RETURN(capture_again_body);
    const uint64_t key = begins(hook, stream);
    return begun(key, real(stream, mode, graph, differs, data));
}

/* An invalidated capture ends with an error, but it ends. A call on the wrong stream or thread fails without ending
 * it. */
vendor_result capture_end_body(ENTRY, vendor_stream stream, vendor_graph *graph) {
    REAL_OR_RETURN(capture_end_body);
    const enum default_stream null_stream = hook_default(hook);
    const uint64_t key = OVERLAP_RELAXED(captures_open) ? stream_key(stream, null_stream) : 0;
    const vendor_result result = real(stream, graph);
    if (key &&
        (result == VENDOR_SUCCESS || OPERATION_OF(hook_vendor(hook), capture_ended)(stream, null_stream, result)))
        capture_closes(key);
    return result;
}

/* The kernels of a graph run at the priority of the stream. A stream that launches a graph whose work is not known is
 * never taken for a small one: if the rule has raised it, it gets the program's priority before its first such graph. */
static void launches_unknown(struct stream *stream) {
    if (OVERLAP_RELAXED(stream->judged.launches_graphs))
        return;
    __atomic_store_n(&stream->judged.launches_graphs, true, __ATOMIC_RELAXED);
    stream_carries(stream, false, false);
    if (OVERLAP_RELAXED(stream->wanted) && !OVERLAP_RELAXED(stream->created)) {
        __atomic_store_n(&stream->wanted, 0, __ATOMIC_RELAXED);
        raise_apply(stream);
    }
}

static void launches_graph(struct stream *stream, vendor_exec graph) {
    uint64_t work;
    if (stream == &no_stream)
        return;
    if (!graph_work(graph, &work)) {
        launches_unknown(stream);
        return;
    }
    if (!work) /* copies alone, which count no more than by their own calls */
        return;
    if (!OVERLAP_RELAXED(stream->carries))
        stream_carries(stream, false, false);
    add_work_slow(stream, work);
    if (OVERLAP_RELAXED(stream->raised))
        count(OVERLAP_COUNTER_GRAPHS_RAISED);
}

vendor_result graph_launch_body(ENTRY, vendor_exec graph, vendor_stream stream) {
    REAL_OR_RETURN(graph_launch_body);
    if (!overlap_armed() || !driver_ready(hook_vendor(hook)))
        return real(graph, stream);
    count(OVERLAP_COUNTER_GRAPH_LAUNCHES);
    if (streams_tracked() && !OVERLAP_RELAXED(captures_open))
        launches_graph(stream_get(stream, hook_default(hook)), graph);
    return real(graph, stream);
}
