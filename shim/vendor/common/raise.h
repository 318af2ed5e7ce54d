/* Judges the streams of a device by the rule (core/streams.h), and gives them the priorities that follow. */
#pragma once

#include "streams.h"

#pragma GCC visibility push(hidden)

/* Maps what a judgement needs. The lock is held. False: there is no memory. */
bool raise_prepare(void);
/* Judge the streams of a device now. */
void raise_judge(struct device *device);

/* Give the stream the priority that the rule wants; does nothing while a capture is open. */
void raise_apply(struct stream *stream);

/* Wait until no thread changes the stream's priority, and keep others from it until raise_release(). False: it has no
 * record, or another thread does not finish; the caller goes on all the same. */
bool raise_hold(struct stream *stream);
void raise_release(struct stream *stream);

/* A capture begins (before the call), and has ended. All raised streams have the program's priorities in between. */
void capture_opens(uint64_t key, uint64_t context);
void capture_closes(uint64_t key);
/* Of a context (0: any) that has ended. */
void captures_context_ended(uint64_t context);
void captures_forked(void);

#pragma GCC visibility pop
