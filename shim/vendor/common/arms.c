/* Switches between the arms of a trial: see arms.h.
 *
 * There is one trial in a process: of the first device whose policy has arms. The arm in force is that of all devices
 * with this policy, because a step of the program uses all of them. Marks are counted on the device where the trial
 * began. A turn is ended by the one thread that makes its last mark.
 */
#include <string.h>

#include "../../core/sync_access.h"
#include "../../core/trial.h"
#include "../../sys/sys.h"
#include "../../text.h"
#include "arms.h"
#include "critical_streams.h"
#include "facts.h"
#include "launch_slow.h"
#include "pace.h"
#include "page.h"
#include "state.h"
#include "vendor_ops.h"
#include "windows.h"

enum {
    WAITS_EACH = 16, /* more waits than this for each communication launch: those are counted */
    BEGINNING = 3,
    /* Host waits without communication, as in an evaluation: that runs under the reference. Twice as many after a pause
     * that was soon over, because some programs wait as often in each step. */
    WAITS_WITHOUT = 256,
    CAPTURED = 16, /* turns with a capture, one after the other: that is what the program does */
};
/* Nanoseconds. Shorter blocks show how fast decisions are made anew rather than how fast the GPU is; by the host's
 * clock, also how fast launches are queued. */
#define SHORTEST_OF_GPU UINT64_C(500000)
#define SHORTEST_OF_HOST UINT64_C(2000000)

enum disturbance { UNDISTURBED, PAUSE, CAPTURE };

uint32_t arms_counts;
static struct {
    uint32_t chosen;    /* + 1: the policy whose arms are tried; 0: none */
    uint32_t ready;     /* its arms are known */
    uint32_t mark;      /* enum overlap_trial_mark, or BEGINNING: what is counted */
    uint32_t early[3];  /* marks before the trial, by enum overlap_trial_mark */
    int32_t left;       /* marks to the end of the turn */
    uint32_t waits;     /* of the host, since the last communication launch */
    uint32_t patience;  /* waits before a pause */
    uint32_t paused;    /* there is no communication for now */
    int32_t capturing;  /* captures in progress */
    uint32_t disturbed; /* enum disturbance: something in this turn takes another time than usual */
    uint32_t settled;
    uint32_t over;     /* what was raised is gone with its context */
    uint32_t turn_arm; /* of the present turn */
    uint32_t active;   /* in force */
} now;

static const struct overlap_policy *policy_at(uint32_t index) {
    return &overlap_table_view(overlap_armed()->table).policies[index];
}

/* What the table says of the trial. */
static const struct overlap_table_trial *given(void) {
    return &overlap_table_view(overlap_armed()->table).trials[policy_at(state->trial.policies[0])->trial - 1];
}

static struct overlap_page_trial *page_trial(void) {
    return &overlap_current_page->trial;
}

static void note_obstacle(enum overlap_trial_obstacle obstacle) {
    if (!OVERLAP_RELAXED(now.over)) /* a turn may end in another thread than the context */
        __atomic_store_n(&page_trial()->obstacle, obstacle, __ATOMIC_RELAXED);
}

/* ---- What is in force ---- */

uint32_t arms_policy(const struct device *device, bool lasting) {
    const uint32_t arm = lasting && !OVERLAP_RELAXED(now.settled) ? 0 : __atomic_load_n(&now.active, __ATOMIC_ACQUIRE);
    return arm && device->policy + 1 == OVERLAP_RELAXED(now.chosen) ? state->trial.policies[arm] : device->policy;
}

static uint32_t wanted(void) {
    if (OVERLAP_RELAXED(now.over))
        return 0;
    const enum disturbance found = __atomic_load_n(&now.capturing, __ATOMIC_ACQUIRE) ? CAPTURE
                                   : OVERLAP_RELAXED(now.paused)                     ? PAUSE
                                                                                     : UNDISTURBED;
    if (!found || OVERLAP_RELAXED(now.settled))
        return OVERLAP_RELAXED(now.turn_arm);
    if (OVERLAP_RELAXED(now.disturbed) != CAPTURE)
        __atomic_store_n(&now.disturbed, found,
                         __ATOMIC_RELAXED); /* also of the reference, in whose time it would be */
    return 0;
}

/* Switches to the arm that is to be in force. Another thread may change which that is meanwhile. */
static void apply(void) {
    const enum vendor vendor = state->trial.vendor;
    uint32_t arm;
    do {
        arm = wanted();
        if (__atomic_exchange_n(&now.active, arm, __ATOMIC_ACQ_REL) == arm)
            continue;
        invalidate_decisions();
        overlap_cache_forget_all(&launch_cache);
        if (OVERLAP_RELAXED(now.over)) /* nothing of a context that is gone may be named to the driver */
            return;
        OPERATION_OF(vendor, forget_carveouts)();
        critical_switch(vendor);
    } while (arm != wanted());
}

/* ---- The page ---- */

static void write_page(void) {
    struct overlap_page_trial *const page = page_trial();
    const struct overlap_trial *const trial = &state->trial.trial;
    for (uint32_t i = 0; i < trial->arms; i++) {
        page->arm[i].status = trial->arm[i].status;
        if (trial->arm[i].samples.count < 2)
            continue; /* those of the level before say more */
        page->arm[i].samples = trial->arm[i].samples;
        page->arm[i].level = trial->level;
    }
    page->mark = state->trial.counted;
    page->marks = state->trial.marks;
    page->kept = trial->kept;
    __atomic_store_n(&page->status, trial->status, __ATOMIC_RELEASE);
}

/* ---- The trial ---- */

void arms_found(const struct device *device, const uint32_t *policies, uint32_t count) {
    const char *const strings = overlap_table_view(overlap_armed()->table).strings;
    uint32_t none = 0;
    if (!__atomic_compare_exchange_n(&now.chosen, &none, policies[0] + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    state->trial.vendor = device->vendor;
    state->trial.arms = count;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *const name = page_trial()->arm[i].policy;
        state->trial.policies[i] = policies[i];
        strncpy((char *)name, strings + policy_at(policies[i])->name, sizeof page_trial()->arm[i].policy - 1);
        if (i && policies[i] == given()->arms.first + given()->first_arm - 1)
            now.turn_arm = i;
    }
    page_trial()->arms = count;
    __atomic_store_n(&now.ready, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&arms_counts, 1, __ATOMIC_RELEASE);
    apply();
}

/* The same on every rank that has these arms, whatever earlier runs knew. */
static uint32_t seed(void) {
    uint64_t hash = OVERLAP_FNV;
    for (uint32_t i = 0; i < state->trial.arms; i++)
        hash = overlap_fnv(hash, page_trial()->arm[i].policy, sizeof page_trial()->arm[i].policy);
    return (uint32_t)(hash >> 32);
}

static void settle(uint64_t clock) {
    __atomic_store_n(&now.settled, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&arms_counts, 0, __ATOMIC_RELEASE);
    page_trial()->settled = clock;
    if (state->trial.counted == OVERLAP_MARK_COMMUNICATION)
        pace_end(&state->trial.pace);
}

/* Begins the next turn; returns its marks. */
static int32_t next_turn(uint64_t clock) {
    struct trial *const own = &state->trial;
    struct overlap_page_trial *const page = page_trial();
    own->turn = overlap_trial_next(&own->trial);
    own->since = clock;
    own->block = PACE_NO_BLOCK;
    if (own->turn.measured) {
        own->block = page->blocks;
        page->block[own->block % OVERLAP_BLOCKS] = (struct overlap_page_block){
            .begun = (uint32_t)((clock - page->begun) / 100000), .arm = own->turn.arm, .marks = own->turn.marks};
        page->blocks++;
    }
    __atomic_store_n(&now.turn_arm, own->turn.arm, __ATOMIC_RELAXED);
    if (!own->turn.marks)
        settle(clock);
    write_page();
    own->marks += own->turn.marks;
    __atomic_store_n(&now.disturbed, 0, __ATOMIC_RELAXED);
    apply();
    return (int32_t)own->turn.marks;
}

/* request: the launch that is the last mark; NULL where waits are counted. */
static void end_turn(const struct request *request, uint64_t clock) {
    struct trial *const own = &state->trial;
    const uint32_t disturbed = OVERLAP_RELAXED(now.disturbed);
    if (disturbed) {
        overlap_trial_lose(&own->trial, &own->turn);
        own->block = PACE_NO_BLOCK;
    }
    own->captured = disturbed == CAPTURE ? own->captured + 1 : 0;
    note_obstacle(own->captured < CAPTURED ? OVERLAP_OBSTACLE_NONE : OVERLAP_OBSTACLE_CAPTURES);
    if (request) {
        pace_ended(&own->pace, &own->trial, &own->turn, own->block, request);
        pace_read(&own->pace, &own->trial);
        return;
    }
    overlap_trial_took(&own->trial, &own->turn, clock - own->since);
    pace_write(own->block, clock - own->since);
}

__attribute__((cold, noinline)) static void begin(enum overlap_trial_mark counted, const struct request *request) {
    uint32_t none = OVERLAP_MARK_NONE;
    if (!__atomic_compare_exchange_n(&now.mark, &none, BEGINNING, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    struct trial *const own = &state->trial;
    own->counted = counted;
    now.patience = WAITS_WITHOUT;
    const struct overlap_table_trial *const table = given();
    struct overlap_samples known[OVERLAP_PAGE_ARMS] = {{0}};
    for (uint32_t i = 1; i < own->arms; i++)
        known[i] = table->known[own->policies[i] - table->arms.first];
    overlap_trial_begin(&own->trial, own->arms, table->worth, seed(), request ? SHORTEST_OF_GPU : SHORTEST_OF_HOST,
                        table->first_level, known);
    const uint64_t clock = overlap_clock();
    page_trial()->begun = clock;
    note_obstacle(OVERLAP_OBSTACLE_NONE);
    own->turn = (struct overlap_trial_turn){0};
    if (request) {
        own->context = OPERATION_OF(own->vendor, context)();
        pace_begin(&own->pace, own->vendor);
        pace_ended(&own->pace, &own->trial, &own->turn, PACE_NO_BLOCK, request);
    }
    __atomic_store_n(&now.left, next_turn(clock), __ATOMIC_RELAXED);
    __atomic_store_n(&now.mark, (uint32_t)counted, __ATOMIC_RELEASE);
}

/* The last mark of a turn. Marks of other threads meanwhile make `left` negative: they belong to the next turn. */
__attribute__((cold, noinline)) static void switch_turns(const struct request *request) {
    int32_t marks;
    do {
        const uint64_t clock = overlap_clock();
        end_turn(request, clock);
        if (state->trial.pace.errors >= PACE_ERRORS) {
            pace_end(&state->trial.pace);
            note_obstacle(OVERLAP_OBSTACLE_TIMES);
            __atomic_store_n(&arms_counts, 0, __ATOMIC_RELEASE);
            __atomic_store_n(&now.turn_arm, 0, __ATOMIC_RELAXED);
            apply();
            return;
        }
        marks = next_turn(clock);
    } while (marks && __atomic_add_fetch(&now.left, marks, __ATOMIC_ACQ_REL) <= 0);
}

static void count(const struct request *request) {
    if (__atomic_sub_fetch(&now.left, 1, __ATOMIC_ACQ_REL) == 0)
        switch_turns(request);
}

/* Return the number of marks of this kind before the trial. */
static uint32_t count_early(enum overlap_trial_mark kind) {
    const uint32_t count = __atomic_add_fetch(&now.early[kind], 1, __ATOMIC_RELAXED);
    __atomic_store_n(&page_trial()->early[kind - 1], count, __ATOMIC_RELAXED);
    return count;
}

void arms_mark_communication(const struct request *request) {
    const uint32_t counted = __atomic_load_n(&now.mark, __ATOMIC_ACQUIRE);
    if (hook_vendor(request->hook) != state->trial.vendor)
        return;
    if (counted == OVERLAP_MARK_NONE && count_early(OVERLAP_MARK_COMMUNICATION) >= OVERLAP_TRIAL_WARM_UP) {
        if (OVERLAP_RELAXED(now.capturing))
            note_obstacle(OVERLAP_OBSTACLE_CAPTURES);
        else
            begin(OVERLAP_MARK_COMMUNICATION, request);
    }
    if (counted != OVERLAP_MARK_COMMUNICATION || OPERATION_OF(state->trial.vendor, context)() != state->trial.context)
        return;
    const uint32_t waits = OVERLAP_RELAXED(now.waits), patience = OVERLAP_RELAXED(now.patience);
    __atomic_store_n(&now.waits, 0, __ATOMIC_RELAXED);
    if (OVERLAP_RELAXED(now.paused) && __atomic_exchange_n(&now.paused, 0, __ATOMIC_RELAXED)) {
        if (waits < 2 * patience)
            __atomic_store_n(&now.patience, 2 * patience, __ATOMIC_RELAXED);
        apply();
    }
    count(request);
}

void arms_mark_wait(bool critical) {
    switch (__atomic_load_n(&now.mark, __ATOMIC_ACQUIRE)) {
    case OVERLAP_MARK_NONE:
        if (critical && count_early(OVERLAP_MARK_HOST_WAIT) >= OVERLAP_TRIAL_WAITS &&
            OVERLAP_RELAXED(now.early[OVERLAP_MARK_HOST_WAIT]) / WAITS_EACH >
                OVERLAP_RELAXED(now.early[OVERLAP_MARK_COMMUNICATION]))
            begin(OVERLAP_MARK_HOST_WAIT, NULL);
        return;
    case OVERLAP_MARK_HOST_WAIT:
        if (critical)
            count(NULL);
        return;
    case OVERLAP_MARK_COMMUNICATION:
        if (__atomic_add_fetch(&now.waits, 1, __ATOMIC_RELAXED) == OVERLAP_RELAXED(now.patience)) {
            __atomic_store_n(&now.paused, 1, __ATOMIC_RELAXED);
            apply();
        }
        return;
    default:
        return;
    }
}

/* ---- Captures, contexts, forks ---- */

bool arms_captures(uint64_t stream, bool begins) {
    for (uint32_t i = 0; state && (begins || OVERLAP_RELAXED(now.capturing)) && i < CAPTURES; i++) {
        uint64_t before = begins ? 0 : stream;
        if (!__atomic_compare_exchange_n(&state->trial.captures[i], &before, begins ? stream : 0, false,
                                         __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        __atomic_add_fetch(&now.capturing, begins ? 1 : -1, __ATOMIC_ACQ_REL);
        if (__atomic_load_n(&now.ready, __ATOMIC_ACQUIRE))
            apply();
        return true;
    }
    return false;
}

void arms_context_gone(uint64_t context) {
    for (uint32_t i = 0; window_model && OVERLAP_RELAXED(now.capturing) && i < CAPTURES; i++) {
        const uint64_t stream = OVERLAP_RELAXED(state->trial.captures[i]);
        const struct overlap_stream *const tracked = stream ? overlap_sync_find(window_model, stream) : NULL;
        const struct overlap_context *const its = tracked ? OVERLAP_LOAD(tracked->context) : NULL;
        if (its && OVERLAP_LOAD(its->key) == context)
            arms_captures(stream, false);
    }
    if (!OVERLAP_RELAXED(arms_counts) || __atomic_load_n(&now.mark, __ATOMIC_ACQUIRE) != OVERLAP_MARK_COMMUNICATION ||
        (context && context != state->trial.context))
        return;
    note_obstacle(OVERLAP_OBSTACLE_CONTEXT);
    __atomic_store_n(&now.over, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&arms_counts, 0, __ATOMIC_RELEASE);
    apply();
}

void arms_forked(void) {
    arms_counts = 0;
    memset(&now, 0, sizeof now);
    if (state)
        memset(&state->trial, 0, sizeof state->trial);
}
