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
    pace->errors = 0;
    pace->gap = true;
}

void pace_write(uint32_t block, uint64_t took) {
    struct overlap_page_trial *const page = &overlap_current_page->trial;
    const uint64_t microseconds = took / 1000;
    /* Older blocks were overwritten. */
    if (block != PACE_NO_BLOCK && page->blocks - block <= OVERLAP_BLOCKS)
        __atomic_store_n(&page->block[block % OVERLAP_BLOCKS].took,
                         microseconds < UINT32_MAX ? (uint32_t)microseconds : UINT32_MAX, __ATOMIC_RELAXED);
}

/* Calls of ours: the program must not see their errors, and a stream may be capturing. */
struct ours {
    enum vendor vendor;
    vendor_result pending;
    int mode;
};

static struct ours begin(enum vendor vendor) {
    const vendor_result pending = OPERATION_OF(vendor, pending)();
    return (struct ours){vendor, pending, OPERATION_OF(vendor, relax)()};
}

static vendor_result end(struct ours ours, vendor_result result) {
    OPERATION_OF(ours.vendor, settle)(ours.pending, result);
    OPERATION_OF(ours.vendor, restore)(ours.mode);
    return result;
}

/* The event of the last turn that was read is where the next one begins. */
static bool has_room(const struct pace *pace) {
    return pace->ended + 1 - pace->read < PACE_TURNS;
}

/* A capture forbids it: the event would become part of a graph. */
static bool record(struct pace *pace, struct pace_turn *at, const struct request *request) {
    const enum default_stream null_stream = hook_default(request->hook);
    if (OPERATION_OF(pace->vendor, captures)(request->config.hStream, null_stream))
        return false;
    const struct ours ours = begin(pace->vendor);
    vendor_result result = at->event ? VENDOR_SUCCESS : OPERATION_OF(pace->vendor, event_make)(&at->event);
    if (result == VENDOR_SUCCESS)
        result = OPERATION_OF(pace->vendor, event_record)(at->event, request->config.hStream, null_stream);
    pace->errors += result != VENDOR_SUCCESS;
    return end(ours, result) == VENDOR_SUCCESS;
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
        float ms = 0;
        if (at->begins)
            continue;
        const struct ours ours = begin(pace->vendor);
        const vendor_result result =
            end(ours, OPERATION_OF(pace->vendor, event_elapsed)(&ms, turn_at(pace, pace->read - 1)->event, at->event));
        if (result == VENDOR_NOT_READY)
            return;
        if (result != VENDOR_SUCCESS || !(ms >= 0)) {
            pace->errors++;
            overlap_trial_lose(trial, &at->turn);
            continue;
        }
        const uint64_t took = (uint64_t)((double)ms * 1e6);
        pace->errors = 0;
        overlap_trial_took(trial, &at->turn, took);
        pace_write(at->block, took);
    }
}

void pace_end(struct pace *pace) {
    const struct ours ours = begin(pace->vendor);
    vendor_result result = VENDOR_SUCCESS;
    for (uint32_t i = 0; i < PACE_TURNS; i++)
        if (pace->turns[i].event)
            result |= OPERATION_OF(pace->vendor, event_drop)(pace->turns[i].event);
    end(ours, result);
    memset(pace, 0, sizeof *pace);
}
