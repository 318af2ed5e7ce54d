/* Calls that order streams (sync_calls.c), and copies (copy_calls.c). */
#pragma once

#include "hook.h"
#include "vendor_abi.h"

#pragma GCC visibility push(hidden)

/* A launch call records this event itself. */
void order_event_of_launch(vendor_event event);
/* A copy, fill or similar call was made on a stream. */
void copy_made(vendor_stream stream, enum default_stream null_stream);
/* The stream waits for something that this library cannot track. */
vendor_result order_wait_untracked(enum hook hook, vendor_stream stream, vendor_result result);

#pragma GCC visibility pop
