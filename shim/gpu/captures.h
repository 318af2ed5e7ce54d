/* Captures of streams. All raised streams have the program's priorities while one is open in the process. */
#pragma once

#include "streams.h"

#pragma GCC visibility push(hidden)

/* A capture begins (before the call), and has ended. All raised streams have the program's priorities in between. */
void capture_opens(uint64_t key, uint64_t context, int device);
void capture_closes(uint64_t key);
/* Is one of this key open? Asked before a call that ends its stream: when it returns, another stream may have the handle. */
bool capture_is_open(uint64_t key);
/* Those of a context (0: any of the device), asked before a call that may end it, and that many of them when it has. */
uint32_t captures_of_context(uint64_t context, int device);
void captures_context_ended(uint64_t context, int device, uint32_t count);
void captures_forked(void);

#pragma GCC visibility pop
