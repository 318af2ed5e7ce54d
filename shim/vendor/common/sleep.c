/* The happens-before model sleeps while nothing depends on it.
 *
 * Two things depend on it: overlap windows, which need communication; and streams that are raised because the host or
 * communication waits for them, which are learnt in counting periods (critical_streams.c). So the model is awake
 *   - during a counting period,
 *   - from the first communication launch until the host has waited QUIET_LONG times without another one,
 *   - if a policy shapes launches in windows: from the start until the host has waited QUIET times, because launches
 *     before the first communication matter there,
 *   - while a stream captures, and for good once a stream has waited for something unknown.
 *
 * While it sleeps, the most frequent calls (event record, stream wait, synchronise, query, copies) go to the driver
 * after one load of window_sleep_depth. All other calls (creation and destruction of streams and events, captures,
 * unknown waits, graphs with communication) are always recorded, so the model lacks only the order of the launches so
 * far.
 *
 * Waking makes up for that. All launched work counts as finished, which closes windows and never opens one. A new era
 * begins: an event recorded in an older era carries no order, because it may have been recorded again since.
 *
 * A communication launch, a capture or an unknown wait wakes the model. If streams are raised (LIGHT), host waits also
 * go to critical_streams.c, because they are rare compared with launches. critical_streams.c begins a period when one
 * is due, when the host waits for a stream for the first time or for an event that no period has seen, and when
 * launches continue on a raised stream while the host waits for nothing.
 */
#include "../../core/sync_access.h"
#include "critical_streams.h"
#include "sleep.h"
#include "windows.h"

enum { QUIET = 64, QUIET_LONG = 4096 };

uint32_t window_sleep_depth;
static uint32_t quiet; /* host waits since the last communication launch */

static void sleep_now(struct overlap_sync_model *model) {
    if (OVERLAP_LOAD(critical_counting) || !overlap_sync_may_sleep(model))
        return;
    overlap_sync_sleep(model); /* first: a window still open must not be queried once calls go unrecorded */
    const uint64_t version = __atomic_load_n(&model->version, __ATOMIC_SEQ_CST);
    __atomic_store_n(&window_sleep_depth, critical_matters() ? WINDOW_LIGHT : WINDOW_DEEP, __ATOMIC_SEQ_CST);
    /* Another thread may have recorded something that must be tracked. After this check, such a thread wakes the
     * model itself. */
    if (__atomic_load_n(&model->version, __ATOMIC_SEQ_CST) != version ||
        __atomic_load_n(&critical_counting, __ATOMIC_SEQ_CST))
        window_wake(model);
    else
        overlap_sync_sleep(model);
}

void window_start_asleep(void) {
    __atomic_store_n(&window_sleep_depth, WINDOW_DEEP, __ATOMIC_RELEASE);
}

void window_sleep_after_period(struct overlap_sync_model *model) {
    if (!OVERLAP_LOAD(model->eager.communications))
        sleep_now(model);
}

void window_sleep_after_wait(struct overlap_sync_model *model) {
    uint32_t before = OVERLAP_RELAXED(quiet);
    const uint32_t now = before + 1;
    if (!__atomic_compare_exchange_n(&quiet, &before, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return; /* lost the race against another host wait, or a communication launch reset the count: keep theirs */
    if (now >= (OVERLAP_LOAD(model->eager.communications) ? QUIET_LONG : QUIET) && !window_asleep())
        sleep_now(model);
}

void window_wake_for_communication(struct overlap_sync_model *model) {
    if (OVERLAP_RELAXED(quiet))
        __atomic_store_n(&quiet, 0, __ATOMIC_RELAXED);
    if (window_asleep()) {
        window_wake(model);
        critical_begin(model); /* the new communication may concern any stream */
    }
}

__attribute__((cold, noinline)) void window_wake(struct overlap_sync_model *model) {
    const bool locked = overlap_sync_lock(model); /* wake once only: what is recorded from now on must stay */
    if (window_asleep()) {
        overlap_sync_wake(model);
        __atomic_store_n(&quiet, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&window_sleep_depth, 0, __ATOMIC_SEQ_CST);
    }
    if (locked)
        overlap_sync_unlock(model);
}

/* ---- Calls that began while the model slept and returned after it woke ---- */

vendor_result window_missed_record(vendor_event event, vendor_result result) {
    struct overlap_sync_model *model = windows();
    if (model && result == VENDOR_SUCCESS) /* the stream is unknown */
        overlap_sync_recorded(model, overlap_sync_recording(model, (uint64_t)(uintptr_t)event, NULL), NULL, true);
    return result;
}

vendor_result window_missed_wait(vendor_stream stream, enum default_stream null_stream, vendor_result result) {
    struct overlap_sync_model *model = windows();
    if (model && result == VENDOR_SUCCESS)
        overlap_sync_behind_all(model, window_stream(model, stream, null_stream));
    return result;
}

void window_sleep_forked(void) {
    window_sleep_depth = quiet = 0;
}
