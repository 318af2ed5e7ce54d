/* While nothing depends on the model, calls that order work go straight to the driver. */
#pragma once

#include "../../core/sync_model.h"
#include "hook.h"
#include "vendor_abi.h"

#pragma GCC visibility push(hidden)

/* 0: awake. LIGHT: host waits still go to critical_streams.c. DEEP: they do not, or there is no model. */
enum { WINDOW_LIGHT = 1, WINDOW_DEEP = 2 };
extern uint32_t window_sleep_depth;
static inline bool window_asleep(void) {
    return __atomic_load_n(&window_sleep_depth, __ATOMIC_ACQUIRE);
}
static inline bool window_asleep_deeply(void) {
    return __atomic_load_n(&window_sleep_depth, __ATOMIC_ACQUIRE) == WINDOW_DEEP;
}
void window_start_asleep(void);
/* Put the model to sleep if nothing depends on it: after a counting period, and after the host has waited for work. */
void window_sleep_after_period(struct overlap_sync_model *model);
void window_sleep_after_wait(struct overlap_sync_model *model);
/* Wake the model: it was given something that it must track, such as a capture or an unknown wait. */
void window_wake(struct overlap_sync_model *model);
static inline void window_wake_if_asleep(struct overlap_sync_model *model) {
    /* seq_cst: ordered after the update of the model that precedes this call. */
    if (__builtin_expect(__atomic_load_n(&window_sleep_depth, __ATOMIC_SEQ_CST), 0))
        window_wake(model);
}
/* Communication is launched: wake the model, and keep it awake for longer. */
void window_wake_for_communication(struct overlap_sync_model *model);
/* The call began while the model slept and returned after it woke. */
vendor_result window_missed_record(vendor_event event, vendor_result result);
vendor_result window_missed_wait(vendor_stream stream, enum default_stream null_stream, vendor_result result);
void window_sleep_forked(void);

#pragma GCC visibility pop
