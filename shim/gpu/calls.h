/* Calls that both vendors report: creation of streams (stream_calls.c), waits (wait_calls.c), and what copies wait for. */
#pragma once

#include "hook.h"
#include "resolve.h"
#include "vendor_abi.h"

#pragma GCC visibility push(hidden)

/* Creates the stream at the greatest priority if the policy says so of the library at `site` (`created_by`). *tried:
 * done, and the result is that of the program's call. asked: the priority that the program asks for. create: the
 * driver's function, or NULL. */
vendor_result stream_create_at(enum vendor vendor, uintptr_t site, vendor_stream *stream, uint32_t flags, int asked,
                               vendor_result (*create)(vendor_stream *stream, uint32_t flags, int priority),
                               bool *tried);

/* The program's own call has created it, or not (`result`, which is returned). */
vendor_result stream_created(enum vendor vendor, uintptr_t site, const vendor_stream *stream, uint32_t flags,
                             int priority, vendor_result result);

/* The program has recorded the event on the stream. */
void event_recorded(vendor_event event, vendor_stream stream, enum default_stream null_stream);

/* A call in which the host has waited for the stream, such as a blocking copy, has returned `result`; returns that. */
vendor_result host_has_waited(enum hook hook, vendor_stream stream);
static inline vendor_result host_waited(enum hook hook, vendor_stream stream, vendor_result result) {
    return result == VENDOR_SUCCESS ? host_has_waited(hook, stream) : result; /* queries mostly fail: at once */
}

#pragma GCC visibility pop
