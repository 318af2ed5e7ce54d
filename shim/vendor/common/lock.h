/* The lock of the slow paths: records of streams, judgements, captures. Never held across a call of the driver, because
 * profilers call back from any of them.
 *
 * lock_take() fails, and the caller does as the program asked without us, if this thread holds the lock already (a
 * signal handler has interrupted the holder) or the holder does not leave it for some milliseconds (it was stopped, or
 * jumped out of a signal handler; later attempts then fail at once). */
#pragma once

#include <stdbool.h>

#pragma GCC visibility push(hidden)

bool lock_take(void);
void lock_leave(void);
/* In a forked child, where the holder may not exist. */
void lock_forked(void);

#pragma GCC visibility pop
