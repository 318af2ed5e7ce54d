/* The arms of a trial (core/trial.h): which policy is active, and when that changes. */
#pragma once

#include "device.h"

#pragma GCC visibility push(hidden)

enum arms_mark { ARMS_COMMUNICATION, ARMS_HOST_WAIT };

extern uint32_t arms_counts; /* 1: a trial needs marks */

/* The device's policy has arms: the trial begins when the program has warmed up. */
void arms_found(const struct device *device);

/* Index in the table of the policy that is active for a device. */
uint32_t arms_policy(const struct device *device);

/* A communication launch was made, or the host has waited for a critical stream. The end of a turn switches the policy. */
void arms_marked(enum arms_mark mark);
static inline void arms_mark(enum arms_mark mark) {
    if (__builtin_expect(__atomic_load_n(&arms_counts, __ATOMIC_RELAXED), 0))
        arms_marked(mark);
}

/* A capture is about to begin (1); it has ended, or has not begun (-1). What is captured may run at any time, so it is captured under the reference. */
void arms_captured(int captures);

void arms_forked(void);

#pragma GCC visibility pop
