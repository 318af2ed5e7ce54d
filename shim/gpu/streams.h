/* Streams: a record for each, found by handle. What each thread has launched on them is in work.h, what the rule (core/judge.h)
 * makes of them in raise.h, what captures and windows do in captures.h and windows.h; the calls that report all that are in
 * launch.c, stream_calls.c and wait_calls.c.
 *
 * A record is looked up without a lock, and made and ended under the lock (table.h). Its serial changes when its stream
 * ends; records are used again, never unmapped. */
#pragma once

#include "../core/judge.h"
#include "current.h"
#include "device.h"
#include "hook.h"
#include "thread.h"
#include "vendor_abi.h"
#include "page.h"
#include "work.h"

#pragma GCC visibility push(hidden)

enum { STREAMS = 1 << 14 }; /* living at a time; further ones are not tracked, and so never raised */
#define ONE_BLOCKING (UINT64_C(1) << 32)

/* Who writes each group of fields is said at its head; readers without the lock may look at a record that has ended. */
struct stream {
    /* Identity. Written under the lock, when the record is made and when it ends. `handle` is also set to 0 and back by the
     * holder of the mark, around the program's call that destroys the stream. */
    uint32_t next; /* in the list of free records (table.h) */
    uint32_t
        serial; /* incremented when the stream ends; released, because a launch that finds the old one is of that stream */
    uint32_t slot;   /* in struct launcher's works; no_stream: the last one, which is read by no judgement */
    uint32_t number; /* of this record (stream_at()) */
    uint64_t handle; /* the program's; of a default stream its key; 0: free */
    uint64_t ending; /* its handle while a call is destroying it */
    uint64_t context;
    enum vendor vendor;
    int32_t device; /* ordinal, or NO_DEVICE; of a default stream set by its first launch */
    uint8_t is_default, is_blocking;

    /* Priority. Written by the holder of the mark `changing`, which is exchanged (streams.c): the holder is a thread that
     * changes the priority, the program's own change, or the end of the stream. `wanted` is also written by a judgement, and by the
     * first launch of a graph. */
    uint8_t wanted;   /* the rule wants it raised */
    uint8_t raised;   /* the driver has our priority; under `observe`: would have it */
    uint8_t touched;  /* we have set its priority at some time: from then on `own` answers the program's questions */
    uint8_t created;  /* raised at its creation (`created_by`): the rule leaves it alone */
    uint8_t met_wait; /* something has waited for it since it communicated for the first time; any thread */
    uint8_t carries;  /* has carried a launch, so the rule judges it; under the lock */
    int32_t own;      /* priority, as the program set it */

    /* For the page, under the lock. */
    uint32_t record;  /* of the page, + 1; 0: none */
    uint32_t creator; /* name of the library that created it (names.h); 0: unknown */

    /* Of a context's legacy default stream, under the lock: how many blocking streams the context has, times ONE_BLOCKING,
     * and the exclusive or of their numbers, which names a sole one. One word, because waits read it without the lock. */
    uint64_t blocking;

    /* Launches and waits, by any thread. */
    uint32_t open;                /* overlap window: communication was launched, and nothing has waited for it yet */
    uint32_t communications;      /* launches of communication so far, for windows */
    uint64_t gone_work;           /* of judged.work: what no thread holds in its own table (struct work) */
    struct overlap_judged judged; /* under the lock, but for `waited` and what a launch is the first to show */

    /* The mark: thread id and why; 0: none. In one total order with captures_open (captures.c). The last one, because it stays
     * when the record is used again: a thread that was about to raise the former stream may hold it. */
    _Alignas(uint64_t) uint32_t changing;
};

/* ---- Records ---- */

/* The key of a stream in tables: its handle, or for a default stream the context's and which one it is. 0: there is no
 * current context. */
static inline uint64_t stream_key(vendor_stream stream, enum default_stream null_stream) {
    const uintptr_t value = (uintptr_t)stream;
    if (__builtin_expect(value > STREAM_PER_THREAD, 1))
        return value;
    const uint64_t context = current_context(default_vendor(null_stream));
    const bool of_thread = value == STREAM_PER_THREAD || (value == 0 && default_is_thread(null_stream));
    return context ? context | (of_thread ? STREAM_PER_THREAD : STREAM_LEGACY) : 0;
}

/* The record of a number, and the number of a record (0: no_stream). */
struct stream *stream_at(uint32_t number);
static inline uint32_t stream_number(const struct stream *stream) {
    return stream->number;
}
/* Numbers of records are at most this. */
uint32_t streams_used(void);
/* Returns the record of a key, which is a stream's handle or stream_key(), or no_stream. */
struct stream *stream_of_key(uint64_t key);
/* Returns the record of a stream, or no_stream. */
struct stream *stream_find(vendor_stream stream, enum default_stream null_stream);
/* The same, and makes one. */
struct stream *stream_get(vendor_stream stream, enum default_stream null_stream);
/* A call of the program has created the stream with this priority. */
struct stream *stream_record(enum vendor vendor, vendor_stream stream, uint32_t flags, int priority, uintptr_t site);
/* A priority as the driver takes it: clamped to the range of the context (0: of the current one). */
int stream_priority_in_range(enum vendor vendor, uint64_t context, int priority);
/* Around the program's call that destroys it: the driver may use the handle again before it returns. */
void stream_ends(struct stream *stream);
void stream_ended(struct stream *stream, bool gone);
/* Around a call that may end a context (0: any of the device), and its streams with it. gone: it has. */
void streams_context_ends(enum vendor vendor, uint64_t context, int device);
void streams_context_ended(enum vendor vendor, uint64_t context, int device, bool gone);

/* ---- The mark of a stream whose priority is being changed, or which ends ---- */

/* Wait until no thread changes the stream's priority, and keep others from it until stream_release(). False: it has no
 * record, or another thread does not finish; the caller goes on all the same. */
bool stream_hold(struct stream *stream);
void stream_release(struct stream *stream);
/* The same to raise it, or give it back, without waiting. False: it is marked already. */
bool stream_try_raising(struct stream *stream);
/* The same for a stream that is new: waits, because its record may be marked for the one before. */
bool stream_hold_raising(struct stream *stream);
/* Is a thread raising it, or giving it back, now? */
bool stream_is_raising(const struct stream *stream);

/* Where a launch on the stream runs: for a stream given by its handle in the stream's own context, whichever is current, and
 * also if none is. record: the stream's, or no_stream. */
struct place {
    uint64_t context;
    int device; /* or NO_DEVICE */
};
struct place stream_place(vendor_stream stream, enum default_stream null_stream, const struct stream *record);

#pragma GCC visibility pop
