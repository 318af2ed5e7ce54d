/* Switches between the arms of a trial: see arms.h.
 *
 * One trial a process, of the first device whose policy has arms. Its turn applies to all devices with that policy, because a step of
 * the program uses all of them.
 */
#include <string.h>

#include "../../core/trial.h"
#include "../../sys/sys.h"
#include "arms.h"
#include "critical_streams.h"
#include "facts.h"
#include "launch_slow.h"
#include "page.h"
#include "vendor_ops.h"

enum { WARM_UP = 64, WAITS_WITHOUT = 256 };

uint32_t arms_counts;
static uint32_t chosen;     /* + 1: the policy whose arms are tried; 0: none */
static enum vendor vendor;  /* of its device */
static uint32_t marks[2];   /* before the trial, by enum arms_mark */
static uint32_t counted;    /* + 1: the marks of the trial; 0: it has not begun */
static int64_t left;        /* marks to the end of the turn; whoever makes it 0 ends the turn */
static uint32_t capturing;  /* captures in progress */
static uint32_t turn_arm;   /* the arm whose turn it is */
static uint32_t active;     /* the arm that is in force */
static struct overlap_trial trial;

static const struct overlap_policy *policy_at(uint32_t index) {
    return &overlap_table_view(overlap_armed()->table).policies[index];
}

void arms_found(const struct device *device) {
    uint32_t none = 0;
    if (policy_at(device->policy)->arms.count &&
        __atomic_compare_exchange_n(&chosen, &none, device->policy + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        vendor = device->vendor;
        __atomic_store_n(&arms_counts, 1, __ATOMIC_RELEASE);
    }
}

uint32_t arms_policy(const struct device *device) {
    const uint32_t arm = __atomic_load_n(&active, __ATOMIC_ACQUIRE);
    return !arm || device->policy + 1 != __atomic_load_n(&chosen, __ATOMIC_RELAXED)
               ? device->policy
               : policy_at(device->policy)->arms.first + arm - 1;
}

/* Puts the arm whose turn it is in force. */
static void apply(void) {
    const uint32_t arm = __atomic_load_n(&capturing, __ATOMIC_ACQUIRE) ? 0 : __atomic_load_n(&turn_arm, __ATOMIC_RELAXED);
    if (__atomic_exchange_n(&active, arm, __ATOMIC_ACQ_REL) == arm)
        return;
    invalidate_decisions();
    overlap_cache_forget_all(&launch_cache);
    OPERATION_OF(vendor, forget_carveouts)();
    critical_switch(vendor);
}

static void record(struct overlap_trial_turn turn, uint64_t now) {
    static uint64_t schedule; /* marks */
    struct overlap_page_trial *const page = &overlap_current_page->trial;
    const struct overlap_view view = overlap_table_view(overlap_armed()->table);
    for (uint32_t i = 0; i < trial.arms; i++) {
        const struct overlap_trial_arm *const arm = &trial.arm[i];
        const struct overlap_trial_samples *const samples = arm->level.count > 1 ? &arm->level : &arm->last;
        const struct overlap_policy *const policy = policy_at(i ? policy_at(chosen - 1)->arms.first + i - 1 : chosen - 1);
        strncpy((char *)page->arm[i].policy, view.strings + policy->name, sizeof page->arm[i].policy - 1);
        page->arm[i].status = arm->status;
        page->arm[i].count = samples->count;
        page->arm[i].sum = samples->sum;
        page->arm[i].squares = samples->squares;
    }
    page->arms = trial.arms;
    page->kept = trial.kept;
    page->mark = counted;
    if (page->turns < OVERLAP_TURNS && !(trial.measuring && turn.marks))
        page->turn[page->turns++] = (struct overlap_page_turn){now, turn.arm, (uint32_t)schedule};
    schedule += turn.marks;
    __atomic_store_n(&page->status, trial.status, __ATOMIC_RELEASE);
}

static void take(struct overlap_trial_turn turn, uint64_t now) {
    __atomic_store_n(&turn_arm, turn.arm, __ATOMIC_RELAXED);
    record(turn, now);
    if (!turn.marks)
        __atomic_store_n(&arms_counts, 0, __ATOMIC_RELEASE);
    apply();
}

__attribute__((cold, noinline)) static void begin(enum arms_mark mark) {
    uint32_t none = 0;
    if (!__atomic_compare_exchange_n(&counted, &none, (uint32_t)mark + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    const struct overlap_table *const table = overlap_armed()->table;
    const struct overlap_policy *const policy = policy_at(chosen - 1);
    const uint64_t now = overlap_clock();
    const struct overlap_trial_turn turn =
        overlap_trial_begin(&trial, policy->arms.count + 1, policy->worth, table->checksum, now);
    take(turn, now);
    __atomic_store_n(&left, turn.marks, __ATOMIC_RELEASE);
}

/* Marks of other threads meanwhile make `left` negative: they count for the next turn. */
__attribute__((cold, noinline)) static void end_turn(void) {
    struct overlap_trial_turn turn;
    do {
        const uint64_t now = overlap_clock();
        turn = overlap_trial_next(&trial, now);
        take(turn, now);
    } while (turn.marks && __atomic_add_fetch(&left, turn.marks, __ATOMIC_ACQ_REL) <= 0);
}

void arms_marked(enum arms_mark mark) {
    const uint32_t kind = __atomic_load_n(&counted, __ATOMIC_ACQUIRE);
    if (kind) {
        if (kind == (uint32_t)mark + 1 && __atomic_sub_fetch(&left, 1, __ATOMIC_ACQ_REL) == 0)
            end_turn();
        return;
    }
    const uint32_t count = __atomic_add_fetch(&marks[mark], 1, __ATOMIC_RELAXED);
    const bool communicates = __atomic_load_n(&marks[ARMS_COMMUNICATION], __ATOMIC_RELAXED);
    if (count >= (mark == ARMS_COMMUNICATION ? WARM_UP : WAITS_WITHOUT) && (mark == ARMS_COMMUNICATION || !communicates))
        begin(mark);
}

void arms_captured(int captures) {
    if (!__atomic_load_n(&chosen, __ATOMIC_RELAXED))
        return;
    __atomic_add_fetch(&capturing, captures, __ATOMIC_ACQ_REL);
    apply();
}

void arms_forked(void) {
    chosen = arms_counts = counted = capturing = turn_arm = active = 0;
    marks[0] = marks[1] = 0;
    left = 0;
}
