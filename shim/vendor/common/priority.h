/* The priority of communication launches, and the events that end `priority: auto`. */
#pragma once

#include "../../core/core.h"
#include "hook.h"

#pragma GCC visibility push(hidden)

/* Sets *priority to that of communication launches by the policy of the device. False: they get none; *reason says
 * why. */
bool priority_for(enum vendor vendor, const struct overlap_policy *policy, int *priority, uint32_t *reason);

/* Each of these ends `auto` for good. In this order: the program launches communication at a priority of its own; a
 * grid that fills the GPU in one wave overlaps communication; computation waits for communication late; the grids of
 * communication are wide. */
void priority_program_sets(void);
void priority_one_wave_beside(void);
void priority_waited_late(void);
void priority_wide(void);

/* Counts a communication launch that was not raised, if `auto` has ended because of a late wait or wide grids. */
void priority_left(void);
bool priority_is_auto(enum vendor vendor, const struct overlap_policy *policy);

/* May `auto` still end because of a launch that overlaps communication? */
bool priority_may_end(void);

/* The driver has refused a priority: launches get no priority from now on. */
void priority_refused(void);

#pragma GCC visibility pop
