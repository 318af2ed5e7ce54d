/* Streams of communication libraries, and streams that the program gives a priority. */
#pragma once

#include "hook.h"
#include "vendor_abi.h"

#pragma GCC visibility push(hidden)

/* Returns a number that identifies a stream, never 0. Each thread's default stream has its own. */
uint64_t stream_key(vendor_stream stream, enum default_stream null_stream);

/* Sets *priority to that of a stream that the code at `site` creates. False: the priority stays as it is. */
bool stream_wanted(enum vendor vendor, uintptr_t site, int *priority);

/* Records a new stream that got a priority from us. */
void stream_note_raised(vendor_stream stream);

/* 1: the program has, or had, a stream with a priority other than 0. stream_prioritised(): the code at `site` sets
 * one. */
extern uint32_t stream_some_prioritised;
void stream_prioritised(uintptr_t site, int priority);
/* Did the stream get its priority from us? */
bool stream_is_raised(vendor_stream stream, enum default_stream null_stream);
/* The priority is the program's own from now on. */
void stream_is_programs(vendor_stream stream, enum default_stream null_stream);

/* Records the result of a call that creates a stream, and returns it. */
vendor_result stream_created(enum vendor vendor, uintptr_t site, const vendor_stream *stream, vendor_result result);

#pragma GCC visibility pop
