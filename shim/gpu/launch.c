/* Launches that the thread's table does not hold: first launches, launches whose answer may have changed, those that the
 * driver has not accepted yet.
 *
 * Whatever goes wrong here, the program's own launch is made exactly as asked. A changed launch that the driver refuses
 * is repeated as asked, at once. Any other error is the program's own and is returned.
 */
#include <string.h>

#include "../sys/sys.h"
#include "launch.h"
#include "device.h"
#include "handle.h"
#include "page.h"
#include "point.h"
#include "resolve.h"
#include "vendor_ops.h"
#include "raise.h"
#include "windows.h"

void count_special(bool communicates, bool raised, struct stream *stream) {
    struct overlap_shard *const shard = this_thread.shard;
    if (raised && shard)
        thread_add(&shard->counters[OVERLAP_COUNTER_RAISED]);
    else if (raised)
        count(OVERLAP_COUNTER_RAISED);
    if (communicates) {
        count(OVERLAP_COUNTER_COMMUNICATION);
        if (streams_wanted() & STREAMS_WINDOWS)
            window_opens(stream);
    }
}

void add_work_slow(struct stream *stream, uint64_t more) {
    struct launcher *const launcher = this_thread.launcher;
    if (launcher) {
        work_slot(launcher, stream); /* the record may be of another stream since the last launch */
        add_work(launcher, stream, more);
    } else {
        __atomic_fetch_add(&stream->gone_work, more, __ATOMIC_RELAXED);
    }
}

/* ---- Making launches ---- */

static vendor_result with_size(struct request *request, uint32_t dynamic) {
    return OPERATION_OF(hook_vendor(request->hook), launch_with)(request, dynamic);
}

static vendor_result as_asked(struct request *request) {
    return with_size(request, request->config.sharedMemBytes);
}

static bool is_refusal(const struct request *request, vendor_result result) {
    return OPERATION_OF(hook_vendor(request->hook), is_refusal)(result);
}

/* During capture a success proves nothing, because the driver checks the launch later. */
static bool captures(const struct request *request) {
    return OPERATION_OF(hook_vendor(request->hook), captures)(request->config.hStream, hook_default(request->hook));
}

/* Repeats a changed launch as asked after it was refused, or could not be tried. The change was at fault unless the
 * driver refuses the launch as asked, too. It was also at fault if that call fails only because our launch has
 * invalidated the capture. Returns the reason under which it is counted in *reason. */
static vendor_result launch_again(struct request *request, bool tried, uint32_t *reason) {
    const vendor_result result = as_asked(request);
    struct handle *const handle = handle_find(request->function);
    *reason = OVERLAP_REASON_refused;
    if (is_refusal(request, result) && tried) {
        *reason = OVERLAP_REASON_invalid_as_asked; /* the program's own error says nothing about the kernel */
        return result;
    }
    if (handle)
        handle_mark(handle, HANDLE_REFUSED); /* left alone from now on */
    if (tried)
        count(OVERLAP_COUNTER_REFUSED);
    return result;
}

/* Launches with a size that the driver has not accepted yet. handle: NULL if the decision is not kept. */
static vendor_result launch_unproven(struct request *request, struct handle *handle, struct decision *decision,
                                     uint32_t *reason) {
    struct handle *const kernel = handle_find(request->function);
    const bool possible =
        kernel && OPERATION_OF(hook_vendor(request->hook), prepare)(kernel, request->device, decision->size);
    const vendor_result result = possible ? with_size(request, decision->size) : VENDOR_INVALID_VALUE;
    if (result == VENDOR_SUCCESS) {
        if (handle && !captures(request)) {
            decision->proven = 1;
            decision_is_proven(handle, decision);
        }
        return result;
    }
    return is_refusal(request, result) ? launch_again(request, possible, reason) : result;
}

/* ---- Any launch ---- */

/* Finds the decision about a launch, or makes and keeps it. Returns the kernel; NULL: the decision holds for this launch
 * only. */
static struct handle *find_or_decide(const struct request *request, uint32_t epoch, struct decision *decision) {
    const enum vendor vendor = hook_vendor(request->hook);
    const uint64_t threads = threads_of(request), blocks = blocks_of(request);
    const uint32_t shared = request->config.sharedMemBytes;
    const bool keeps = has_launch_key(threads, shared) && blocks <= UINT32_MAX;
    struct handle *const handle = OPERATION_OF(vendor, handle_of)(request);
    const struct decision asked = {.key = launch_key(threads, shared, request->site),
                                   .flags = request->flags,
                                   .device = request->device ? request->device->ordinal : NO_DEVICE,
                                   .block_work = overlap_block_work((uint32_t)threads, 0),
                                   .least = (uint32_t)blocks};
    *decision = asked;
    if (handle && keeps && decision_find(handle, &asked, decision))
        return handle;
    return decide(request, handle, decision) && keeps && decision_keep(handle, decision, epoch) ? handle : NULL;
}

/* Why a launch with this decision is made as asked; the decision's own reason: it is not, or that is why. */
static uint32_t reason_now(const struct decision *decision, const struct stream *stream, const struct device *device) {
    if (decision->communicates || decision->reason == OVERLAP_REASON_invalid_as_asked)
        return decision->reason;
    if (OVERLAP_RELAXED(stream->raised) && !(device && device_observes(device)))
        return OVERLAP_REASON_raised;
    if (decision->changes && OVERLAP_RELAXED(captures_open))
        return OVERLAP_REASON_captured;
    return decision->changes && decision->windowed && !(device && window_is_open(device, stream))
               ? OVERLAP_REASON_not_overlapping
               : decision->reason;
}

/* A signal handler may launch meanwhile. The entry is not valid while it is written; if the handler has written it as well,
 * it stays so. */
static void write_cached(struct cached_launch *known, const struct cached_launch *answer) {
    struct cached_launch fresh = *answer;
    fresh.epoch = 0;
    known->epoch = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    memcpy(known, &fresh, sizeof fresh);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (memcmp(known, &fresh, sizeof fresh) == 0) {
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        known->epoch = answer->epoch;
    }
}

/* Keeps the answer in the thread's table, for as long as the epoch is what it was before the answer was found. */
static void remember(const struct cached_launch *answer) {
    struct launcher *const launcher = this_thread.launcher;
    if (!launcher || !answer->stream)
        return;
    struct cached_launch *const known = cached_at(launcher, answer->function, answer->stream, answer->key);
    const struct cached_launch before = *known;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (before.epoch == answer->epoch && memcmp(known, &before, sizeof before) == 0 && /* copied as a whole */
        !(before.function == answer->function && before.stream == answer->stream && before.key == answer->key))
        write_cached(cached_neighbour(launcher, known), &before); /* the other launch moves over */
    write_cached(known, answer);
}

/* Is this communication on more than a third of the multiprocessors? Raised, it takes them from computation at once; on
 * an H200 raised grids of 64 blocks cost up to 5.7 % of a kernel and its collective, grids of 24 up to 3.6 %
 * (docs/data/overlap.csv). */
static bool is_wide(const struct request *request, const struct device *device) {
    return blocks_of(request) > device->gpu.multiprocessors / OVERLAP_WIDE_PART;
}

/* Finds the stream's record (no_stream: streams are not tracked now), and where the launch runs. */
static struct stream *find_stream(struct request *request, bool captured) {
    const enum default_stream null_stream = hook_default(request->hook);
    vendor_stream handle = request->config.hStream;
    struct stream *stream = &no_stream;
    if (is_forked_child)
        return stream;
    if (streams_tracked())
        stream = captured ? stream_find(handle, null_stream) : stream_get(handle, null_stream);
    const struct place place = OVERLAP_RELAXED(stream->device) != NO_DEVICE
                                   ? (struct place){OVERLAP_RELAXED(stream->context), OVERLAP_RELAXED(stream->device)}
                                   : stream_place(handle, null_stream, stream);
    request->context = this_thread.launches_in = place.context;
    request->device = device_get(default_vendor(null_stream), place.device);
    return captured ? &no_stream : stream;
}

static void mark_communication(const struct request *request) {
    struct handle *const kernel = handle_find(request->function);
    if (kernel)
        handle_mark(kernel, HANDLE_COMMUNICATES);
}

/* Notes what this launch is the first to show of its stream. */
static void first_of_stream(const struct request *request, struct stream *stream, bool communicates) {
    const bool wide = communicates && is_wide(request, request->device);
    if (!OVERLAP_RELAXED(stream->carries) || (communicates && !OVERLAP_RELAXED(stream->judged.communicates)) ||
        (wide && !OVERLAP_RELAXED(stream->judged.is_wide)))
        stream_carries(stream, communicates, wide);
}

vendor_result launch_slow(struct request *request) {
    const enum vendor vendor = hook_vendor(request->hook);
    const uint32_t epoch = OVERLAP_LOAD(launch_epoch);
    struct decision decision;
    if (!overlap_armed() || !real_function(request->route, request->hook, request->site) || !driver_ready(vendor))
        return as_asked(request);
    /* Before the call: after one that has failed the driver must not be asked anything. */
    const uint64_t of = stream_key(request->config.hStream, hook_default(request->hook));
    const bool captured = OVERLAP_RELAXED(captures_open);
    struct stream *const stream = find_stream(request, captured);
    struct handle *const handle = find_or_decide(request, epoch, &decision);
    const struct device *const device = streams_tracked() ? request->device : NULL;
    if (captured && decision.communicates)
        mark_communication(request);
    if (device && stream != &no_stream)
        first_of_stream(request, stream, decision.communicates);
    const uint32_t serial = OVERLAP_LOAD(stream->serial);
    uint32_t reason = reason_now(&decision, stream, device);
    const bool changes = decision.changes && reason == decision.reason;
    const uint32_t size = changes ? decision.size : request->config.sharedMemBytes;
    const vendor_result result =
        changes && !decision.proven ? launch_unproven(request, handle, &decision, &reason) : with_size(request, size);
    if (result == VENDOR_INVALID_HANDLE || result == VENDOR_INVALID_CONTEXT) {
        struct handle *const kernel = handle_find(request->function);
        if (kernel) /* any other error, as of an earlier kernel, says nothing about its context */
            handle_unassign_context(kernel);
    }
    const uint32_t row = reason == decision.reason ? decision.row : row_of_reason(decision.row, reason);
    const bool raised = OVERLAP_RELAXED(stream->raised);
    count_launch(row);
    count_special(decision.communicates, raised, stream);
    const bool made = result == VENDOR_SUCCESS; /* a refused one is no work, nor when it is repeated: not kept */
    if (made && !decision.communicates && stream != &no_stream)
        add_work_slow(stream, blocks_of(request) * decision.block_work);
    if (made && handle && !captured && (!changes || decision.proven)) {
        POINT(answer_found);
        const struct cached_launch answer = {.function = function_key(request->function, request->flags),
                                             .stream = of,
                                             .key = decision.key,
                                             .least = decision.least,
                                             .range = decision.most - decision.least,
                                             .record = stream,
                                             .serial = serial,
                                             .epoch = epoch,
                                             .size = size,
                                             .row = (uint16_t)row,
                                             .communicates = decision.communicates,
                                             .block_work = decision.block_work,
                                             .raised = raised};
        remember(&answer);
    }
    this_thread.launches_in = 0;
    return result;
}
