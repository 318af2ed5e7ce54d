/* Waits that the vendors' own calls report (wait_calls.c). */
#pragma once

#include "hook.h"
#include "vendor_abi.h"

#pragma GCC visibility push(hidden)

/* Maps the table of events. The lock is held. */
void events_prepare(void);
/* The program has recorded the event on the stream. */
void event_recorded(vendor_event event, vendor_stream stream, enum default_stream null_stream);

/* A copy after which the host has waited for the stream has returned `result`; returns that. */
vendor_result copied(enum hook hook, vendor_stream stream, vendor_result result);

#pragma GCC visibility pop
