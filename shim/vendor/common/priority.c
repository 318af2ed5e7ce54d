/* The priority of communication launches. `auto` begins with the greatest. It ends for good, downwards only, once
 * the process has shown a reason: it sets priorities of communication itself; a grid that fills the GPU in one wave
 * may run beside communication (blocks that find their multiprocessor occupied would run as a second wave);
 * communication is waited for late; or its grids are wide. */
#include "../../core/core.h"
#include "device.h"
#include "facts.h"
#include "launch_slow.h"
#include "priority.h"
#include "vendor_ops.h"

enum { WIDE = 1U << 31 };
static uint32_t ended;   /* the reason, with or without WIDE; 0: auto is active (no such reason is 0) */
static uint32_t asked;   /* the policy of a device in use says auto */
static uint32_t refused; /* the driver has refused a launch priority */
_Static_assert(OVERLAP_REASON_shaped == 0, "not among the reasons for which auto ends");

/* True if launches accept a priority. */
static bool works(enum vendor vendor) {
    return !OVERLAP_RELAXED(refused) && OPERATION_OF(vendor, raises)();
}

bool priority_is_auto(enum vendor vendor, const struct overlap_policy *policy) {
    return vendor == VENDOR_CUDA && policy && policy->priority == OVERLAP_PRIORITY_AUTO &&
           !__atomic_load_n(&ended, __ATOMIC_ACQUIRE);
}

bool priority_for(enum vendor vendor, const struct overlap_policy *policy, int *priority, uint32_t *reason) {
    if (!policy || vendor == VENDOR_HIP) /* HIP has no launch priority (hip_raises()) */
        return false;
    const bool is_auto = policy->priority == OVERLAP_PRIORITY_AUTO;
    uint32_t why = is_auto ? __atomic_load_n(&ended, __ATOMIC_ACQUIRE) : 0;
    if (is_auto)
        __atomic_store_n(&asked, 1, __ATOMIC_RELAXED);
    if (why) {
        *reason = why & ~(uint32_t)WIDE;
        return false;
    }
    return device_priority(vendor, policy->priority, policy->priority_value, priority) && works(vendor);
}

bool priority_may_end(void) {
    return OVERLAP_RELAXED(asked) && !OVERLAP_RELAXED(ended);
}

static void end(uint32_t reason) {
    uint32_t none = 0;
    if (!__atomic_compare_exchange_n(&ended, &none, reason, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    invalidate_decisions();
    overlap_cache_forget_all(&launch_cache);
}

void priority_program_sets(void) {
    end(OVERLAP_REASON_program_sets_priority);
}

void priority_refused(void) {
    __atomic_store_n(&refused, 1, __ATOMIC_RELAXED);
    invalidate_decisions();
    overlap_cache_forget_all(&launch_cache);
}

/* If blocks of lower priority are held back until communication is resident (as on H200), every raised launch costs
 * about half a block's time on all multiprocessors. That pays off if computation waits for the communication after
 * the one long kernel beside it. If there are several such kernels, or if communication is launched ahead of time,
 * it gets in between kernels anyway (tools/bench/README.md compares the rules). */
void priority_waited_late(void) {
    if (OVERLAP_RELAXED(asked)) /* else `auto` is not in use */
        end(OVERLAP_REASON_communication);
}

void priority_wide(void) {
    end(OVERLAP_REASON_communication | WIDE);
}

void priority_left(void) {
    const uint32_t why = OVERLAP_RELAXED(ended);
    if (why == OVERLAP_REASON_communication)
        launch_count(OVERLAP_COUNTER_UNHURRIED);
    else if (why == (OVERLAP_REASON_communication | WIDE))
        launch_count(OVERLAP_COUNTER_WIDE);
}

void priority_one_wave_beside(void) {
    end(OVERLAP_REASON_one_wave_neighbour);
}
