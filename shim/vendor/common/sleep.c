/* The model of what orders what sleeps while nothing can follow from it.
 *
 * Two things follow from it: overlap windows, which need communication, and streams that are raised because somebody waits for them,
 * which are learnt in periods of counting (critical.c). So it is awake
 *   - while a period of counting lasts,
 *   - from the first communication launch on, until the host has waited QUIET_LONG times without another one,
 *   - where a policy shapes launches in windows, from the start, until the host has waited QUIET times: what was launched before the
 *     first communication is of interest there,
 *   - while a stream captures, and for good once a stream has waited for something unknown.
 * Asleep, the calls that a program makes most (event record, stream wait, synchronise, query, copies) go to the driver after one look at
 * window_sleeps. Everything else (streams and events that come and go, captures, unknown waits, graphs of communication) is told
 * always, so that the model is complete but for what ordered the launches so far.
 *
 * That is made up for when it wakes: all that was launched counts as over, which closes windows and never opens one, and a new era
 * begins: an event that was recorded in an older one tells nothing, because it may have been recorded anew since.
 *
 * What wakes it: a communication launch, a capture, an unknown wait; and, where streams are raised (LIGHT), the host, whose waits are
 * rare beside launches. They are told to critical.c, which begins a period when it is time for one, when the host waits for a
 * stream for the first time, or for an event that no period has seen, and when a raised stream is launched on while the host waits for
 * nothing at all.
 */
#include "windows.h"

enum { QUIET = 64, QUIET_LONG = 4096 };

uint32_t window_sleeps;
static uint32_t quiet; /* waits of the host since communication was launched last */

static void sleep_now(struct overlap_order *order) {
    if (OVERLAP_LOAD(critical_counts) || !overlap_order_may_rest(order))
        return;
    overlap_order_rest(order); /* first: what is no longer told must not be asked of a window that is open */
    const uint64_t version = __atomic_load_n(&order->version, __ATOMIC_SEQ_CST);
    __atomic_store_n(&window_sleeps, critical_matters() ? WINDOW_LIGHT : WINDOW_DEEP, __ATOMIC_SEQ_CST);
    /* Another thread has told something meanwhile that must be followed; one that does so from now on wakes the model. */
    if (__atomic_load_n(&order->version, __ATOMIC_SEQ_CST) != version ||
        __atomic_load_n(&critical_counts, __ATOMIC_SEQ_CST))
        window_wake(order);
    else
        overlap_order_rest(order);
}

void window_sleeps_from_the_start(void) {
    __atomic_store_n(&window_sleeps, WINDOW_DEEP, __ATOMIC_RELEASE);
}

void window_rests(struct overlap_order *order) {
    if (!OVERLAP_LOAD(order->eager.communications))
        sleep_now(order);
}

void window_quiet(struct overlap_order *order) {
    uint32_t before = __atomic_load_n(&quiet, __ATOMIC_RELAXED);
    const uint32_t now = before + 1;
    if (!__atomic_compare_exchange_n(&quiet, &before, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return; /* communication that begins to count anew stays counted */
    if (now >= (OVERLAP_LOAD(order->eager.communications) ? QUIET_LONG : QUIET) && !window_asleep())
        sleep_now(order);
}

void window_loud(struct overlap_order *order) {
    if (__atomic_load_n(&quiet, __ATOMIC_RELAXED))
        __atomic_store_n(&quiet, 0, __ATOMIC_RELAXED);
    if (window_asleep()) {
        window_wake(order);
        critical_begin(order); /* what is new may concern any stream */
    }
}

__attribute__((cold, noinline)) void window_wake(struct overlap_order *order) {
    const bool locked = overlap_order_locked(order); /* once only: what is told from now on must stay */
    if (window_asleep()) {
        overlap_order_resume(order);
        __atomic_store_n(&quiet, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&window_sleeps, 0, __ATOMIC_SEQ_CST);
    }
    if (locked)
        overlap_order_unlock(order);
}

/* ---- Calls that began while it slept, and ended when it did not ---- */

vendor_result window_missed_record(vendor_event event, vendor_result result) {
    struct overlap_order *order = windows();
    if (order && result == VENDOR_SUCCESS) /* on no stream that is known */
        overlap_order_recorded(order, overlap_order_recording(order, (uint64_t)(uintptr_t)event, NULL), NULL, true);
    return result;
}

vendor_result window_missed_wait(vendor_stream stream, enum default_stream whose, vendor_result result) {
    struct overlap_order *order = windows();
    if (order && result == VENDOR_SUCCESS)
        overlap_order_behind_all(order, window_stream(order, stream, whose));
    return result;
}

void window_sleep_forked(void) {
    window_sleeps = quiet = 0;
}
