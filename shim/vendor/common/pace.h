/* How long turns of a trial take by the GPU's clock. The host may be far ahead of the GPU, so an event is recorded where a
 * turn ends, and read later. */
#pragma once

#include "../../core/trial.h"
#include "request.h"

#pragma GCC visibility push(hidden)

enum {
    PACE_TURNS = 128, /* that may be in flight */
    PACE_ERRORS = 16  /* without a time between: the driver cannot time turns */
};
#define PACE_NO_BLOCK UINT32_MAX

struct pace {
    struct pace_turn {
        struct overlap_trial_turn turn;
        vendor_event event; /* at its end; kept for later turns */
        uint32_t block;     /* its number, or PACE_NO_BLOCK */
        bool begins;        /* nothing is measured before it */
    } turns[PACE_TURNS];
    uint64_t ended, read; /* number of turns */
    enum vendor vendor;
    bool gap;        /* the end of the last turn was not recorded */
    uint32_t errors; /* of the driver, since it last told a time */
};

void pace_begin(struct pace *pace, enum vendor vendor);

/* Writes to the page how many nanoseconds a block took. */
void pace_write(uint32_t block, uint64_t took);

/* A turn ends behind this launch. It is lost if that cannot be recorded. */
void pace_ended(struct pace *pace, struct overlap_trial *trial, const struct overlap_trial_turn *turn, uint32_t block,
                const struct request *request);

/* Gives the trial the times of the turns that the GPU has finished. */
void pace_read(struct pace *pace, struct overlap_trial *trial);

void pace_end(struct pace *pace);

#pragma GCC visibility pop
