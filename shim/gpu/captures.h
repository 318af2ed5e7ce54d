/* Captures of streams. All raised streams have the program's priorities while one is open in the process. */
#pragma once

#include "streams.h"

#pragma GCC visibility push(hidden)

/* A capture begins (before the call), and has ended. All raised streams have the program's priorities in between. */
void capture_opens(uint64_t key, uint64_t context, int device);
void capture_closes(uint64_t key);
/* Of a context (0: any of the device) that has ended. */
void captures_context_ended(uint64_t context, int device);
void captures_forked(void);

#pragma GCC visibility pop
