/* Times turns with events: see pace.h. */
#include <string.h>

#include "../../core/core.h"
#include "../../sys/sys.h"
#include "pace.h"
#include "vendor_ops.h"

static struct pace_turn *turn_at(struct pace *pace, uint64_t number) {
    return &pace->turns[number % PACE_TURNS];
}

void pace_begin(struct pace *pace, enum vendor vendor) {
    pace->vendor = vendor;
    pace->ended = pace->read = 0;
    pace->gap = true;
}

/* The event of the last turn that was read is where the next one begins. */
static bool has_room(const struct pace *pace) {
    return pace->ended + 1 - pace->read < PACE_TURNS;
}

/* A capture forbids it: the event would become part of a graph. */
static bool record(const struct pace *pace, struct pace_turn *at, const struct request *request) {
    const enum default_stream null_stream = hook_default(request->hook);
    if (OPERATION_OF(pace->vendor, captures)(request->config.hStream, null_stream))
        return false;
    if (!at->event)
        at->event = OPERATION_OF(pace->vendor, timer_make)();
    return at->event && OPERATION_OF(pace->vendor, timer_record)(at->event, request->config.hStream, null_stream);
}

void pace_ended(struct pace *pace, struct overlap_trial *trial, const struct overlap_trial_turn *turn, uint32_t block,
                const struct request *request) {
    struct pace_turn *const at = turn_at(pace, pace->ended);
    const bool begins = pace->gap;
    pace->gap = !has_room(pace) || !record(pace, at, request);
    if (begins || pace->gap)
        overlap_trial_lose(trial, turn);
    if (pace->gap)
        return;
    at->turn = *turn;
    at->block = block;
    at->begins = begins;
    pace->ended++;
}

void pace_read(struct pace *pace, struct overlap_trial *trial) {
    for (; pace->read < pace->ended; pace->read++) {
        struct pace_turn *const at = turn_at(pace, pace->read);
        uint64_t took = 0;
        if (at->begins)
            continue;
        switch (OPERATION_OF(pace->vendor, timer_read)(turn_at(pace, pace->read - 1)->event, at->event, &took)) {
        case TIMER_LATER:
            return;
        case TIMER_FAILED:
            overlap_trial_lose(trial, &at->turn);
            break;
        case TIMER_READ:
            overlap_trial_took(trial, &at->turn, took);
            if (at->turn.measured && at->block < OVERLAP_TURNS)
                __atomic_store_n(&overlap_current_page->trial.turn[at->block].took, took, __ATOMIC_RELAXED);
        }
    }
}

void pace_end(struct pace *pace) {
    for (uint32_t i = 0; i < PACE_TURNS; i++)
        if (pace->turns[i].event)
            OPERATION_OF(pace->vendor, timer_drop)(pace->turns[i].event);
    memset(pace, 0, sizeof *pace);
}
