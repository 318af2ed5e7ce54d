/* What a wait for a stream means: it counts for the rule, a judgement may be due, and an overlap window ends. */
#pragma once

#include "streams.h"

#pragma GCC visibility push(hidden)

/* The host, or another stream, waits for the stream. behind: the latest communication on it is waited for, too. */
void stream_waited(struct stream *stream, bool behind);
/* The same for a stream by its handle; for the legacy default stream its context's only blocking stream, if there is
 * only one. */
void stream_waited_by_handle(vendor_stream stream, enum default_stream null_stream);
/* The host waits for all of the current context, or a default stream. That counts for no stream, but judgements come due: else a
 * program that waits for streams at first, and for contexts later, would never be judged again. Few count, because a stream
 * that is waited for now and then must be found waited for at each judgement. Of NVIDIA: AMD is not judged. */
void device_waited(void);
static inline void other_waited(void) {
    enum { OTHERS = 16 };
    if (++this_thread.others % OTHERS == 0)
        device_waited();
}
/* The host waits for a context: closes its windows. */
void context_waited(enum vendor vendor, uint64_t context);

#pragma GCC visibility pop
