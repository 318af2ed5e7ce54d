/* Calls that order streams (sync_calls.c), and copies (copy_calls.c). */
#pragma once

#include "hook.h"
#include "vendor_abi.h"

#pragma GCC visibility push(hidden)

/* The driver records this event outside an event call, such as a launch: a wait for it orders after everything. */
void order_event_unknown(vendor_event event);
/* A copy, fill or similar call was made on a stream. */
void copy_made(vendor_stream stream, enum default_stream null_stream);
/* The stream waits for something that this library cannot track. */
vendor_result order_wait_untracked(enum hook hook, vendor_stream stream, vendor_result result);

#pragma GCC visibility pop
