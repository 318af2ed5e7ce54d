/* Judgements and priorities: the streams of a device get the priorities that the rule (core/judge.h) wants. */
#pragma once

#include "streams.h"

#pragma GCC visibility push(hidden)

/* A first launch on the stream. wide: of communication, on more than a third of the multiprocessors. */
void stream_carries(struct stream *stream, bool communication, bool wide);

/* Judge the streams of a device, because so many waits have made that due. 0: now, before it is due. */
void raise_judge(struct device *device, uint64_t waits);

/* The stream was created at the greatest priority, or will get it when no capture is open any more. */
void raise_created(struct stream *stream, bool raised);

/* Give the stream the priority that the rule wants; does nothing while a capture is open. */
void raise_apply(struct stream *stream);

/* Give the stream our priority, or the program's. Its mark is held. */
void raise_set(struct stream *stream, bool raised);

#pragma GCC visibility pop
