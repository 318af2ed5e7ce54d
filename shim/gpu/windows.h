/* Overlap windows: communication on a stream is open from its launch until something waits for it (docs/reference.md). */
#pragma once

#include "streams.h"

#pragma GCC visibility push(hidden)

/* Communication was launched on the stream; something waits for it, or it ends. */
void window_opens(struct stream *stream);
void window_changes(struct stream *stream, uint32_t open);
static inline void window_closes(struct stream *stream) {
    if (OVERLAP_RELAXED(stream->open))
        window_changes(stream, 0);
}
extern uint32_t windows_open; /* on all devices */
/* Can communication run beside a launch on this stream now? */
static inline bool window_is_open(const struct device *device, const struct stream *stream) {
    return OVERLAP_LOAD(device->open) > (OVERLAP_RELAXED(stream->open) ? 1U : 0U);
}

#pragma GCC visibility pop
