/* The arms of a trial (core/trial.h): which policy is in force, and when that changes. */
#pragma once

#include "device.h"
#include "request.h"

#pragma GCC visibility push(hidden)

extern uint32_t arms_counts; /* 1: a trial needs marks */

/* The device's policy has arms: tries them once the program has warmed up. policies: their indices in the table, first
 * the reference's. */
void arms_found(const struct device *device, const uint32_t *policies, uint32_t count);

/* Index in the table of the policy that is in force for a device that has one. lasting: of that for what outlasts a turn,
 * such as new streams. */
uint32_t arms_policy(const struct device *device, bool lasting);

/* A communication launch was made. */
void arms_mark_communication(const struct request *request);
static inline void arms_communicated(const struct request *request) {
    if (__builtin_expect(__atomic_load_n(&arms_counts, __ATOMIC_ACQUIRE), 0))
        arms_mark_communication(request);
}

/* The host has waited; critical: for a critical stream. */
void arms_mark_wait(bool critical);
static inline void arms_waited(bool critical) {
    if (__builtin_expect(__atomic_load_n(&arms_counts, __ATOMIC_ACQUIRE), 0))
        arms_mark_wait(critical);
}

/* A capture is about to begin on the stream with this stream_key(), or has ended, or has not begun. What is captured may
 * run at any time, so it is captured under the reference until the trial has settled. False: there was none to end, or
 * too many at a time. */
bool arms_captures(uint64_t stream, bool begins);

/* This context has ended (0: it may have been any), and captures in it and our events with it: no more trial if it is the
 * trial's. */
void arms_context_gone(uint64_t context);
void arms_forked(void);

#pragma GCC visibility pop
