/* While nothing depends on the model, calls that order work go straight to the driver. */
#pragma once

#include "../../core/sync_model.h"
#include "hook.h"
#include "vendor_abi.h"

#pragma GCC visibility push(hidden)

/* 0: awake. LIGHT: host waits still go to critical_streams.c. DEEP: they do not, or there is no model. */
enum { WINDOW_LIGHT = 1, WINDOW_DEEP = 2 };
extern uint32_t window_sleeps;
static inline bool window_asleep(void) {
    return __atomic_load_n(&window_sleeps, __ATOMIC_ACQUIRE);
}
static inline bool window_asleep_deeply(void) {
    return __atomic_load_n(&window_sleeps, __ATOMIC_ACQUIRE) == WINDOW_DEEP;
}
void window_sleeps_from_the_start(void);
/* window_rests(): a counting period has ended. window_quiet(): the host has seen some work to be finished. Both may
 * put the model to sleep. */
void window_rests(struct overlap_sync_model *model);
void window_quiet(struct overlap_sync_model *model);
/* window_wake() and window_stir(): the model was given something that it must track, such as a capture or an unknown
 * wait. window_loud(): communication is or was launched. */
void window_wake(struct overlap_sync_model *model);
static inline void window_stir(struct overlap_sync_model *model) {
    /* seq_cst: ordered after the update of the model that precedes this call. */
    if (__builtin_expect(__atomic_load_n(&window_sleeps, __ATOMIC_SEQ_CST), 0))
        window_wake(model);
}
void window_loud(struct overlap_sync_model *model);
/* The call began while the model slept and returned after it woke. */
vendor_result window_missed_record(vendor_event event, vendor_result result);
vendor_result window_missed_wait(vendor_stream stream, enum default_stream whose, vendor_result result);
void window_sleep_forked(void);

#pragma GCC visibility pop
