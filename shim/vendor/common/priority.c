/* Which priority communication gets. `auto` begins with the greatest and ends for good, downwards only, once the process
 * has shown that it should not: it sets priorities of communication itself; a grid that fills the GPU in one wave may run
 * beside communication (its blocks that find their place taken would run as a second wave); nobody is in a hurry for
 * communication; or its grids are wide. */
#include "vendor.h"

enum { WIDE = 1U << 31 };
static uint32_t ended;   /* reason, with WIDE or not; 0: auto goes on (no reason of its own is 0) */
static uint32_t asked;   /* some device that was used has a policy that says auto */
static uint32_t refused; /* launches take no priority of their own */
_Static_assert(OVERLAP_REASON_shaped == 0, "not among the reasons for which auto ends");

/* Do launches take one? */
static bool works(enum vendor vendor) {
    return !__atomic_load_n(&refused, __ATOMIC_RELAXED) && vendor_raises(vendor);
}

bool priority_is_auto(enum vendor vendor, const struct overlap_policy *policy) {
    return vendor == VENDOR_CUDA && policy && policy->priority == OVERLAP_PRIORITY_AUTO &&
           !__atomic_load_n(&ended, __ATOMIC_ACQUIRE);
}

bool priority_for(enum vendor vendor, const struct overlap_policy *policy, int *priority, uint32_t *reason) {
    if (!policy || vendor == VENDOR_HIP) /* HIP knows no priority of a launch (hip_raises()) */
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
    return __atomic_load_n(&asked, __ATOMIC_RELAXED) && !__atomic_load_n(&ended, __ATOMIC_RELAXED);
}

static void end(uint32_t reason) {
    uint32_t none = 0;
    if (!__atomic_compare_exchange_n(&ended, &none, reason, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    facts_changed();
    overlap_cache_forget_all(&launch_cache);
}

void priority_program_sets(void) {
    end(OVERLAP_REASON_program_sets_priority);
}

void priority_refused(void) {
    __atomic_store_n(&refused, 1, __ATOMIC_RELAXED);
    facts_changed();
    overlap_cache_forget_all(&launch_cache);
}

/* Where blocks of lower priority are held up until communication is placed (an H200 does that), every raised launch costs
 * about half a block's time on all multiprocessors. That pays where computation waits for it after the one long kernel
 * beside it. Where there are several, or where communication comes ahead of time, it gets in between kernels anyway
 * (tools/bench/README.md has the comparison of rules). */
void priority_unhurried(void) {
    if (__atomic_load_n(&asked, __ATOMIC_RELAXED)) /* else there is nothing to end, and nothing to say about it */
        end(OVERLAP_REASON_communication);
}

void priority_wide(void) {
    end(OVERLAP_REASON_communication | WIDE);
}

void priority_left(void) {
    const uint32_t why = __atomic_load_n(&ended, __ATOMIC_RELAXED);
    if (why == OVERLAP_REASON_communication)
        launch_count(OVERLAP_COUNTER_UNHURRIED);
    else if (why == (OVERLAP_REASON_communication | WIDE))
        launch_count(OVERLAP_COUNTER_WIDE);
}

void priority_one_wave_beside(void) {
    end(OVERLAP_REASON_one_wave_neighbour);
}
