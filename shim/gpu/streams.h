/* Streams: a record for each, found by handle; the work of each thread on them; overlap windows. What the rule
 * (core/judge.h) makes of them is in raise.c, the calls that report here in stream_calls.c and wait_calls.c.
 *
 * A record is looked up without a lock, and made and ended under the lock (table.h). Its serial changes when its stream
 * ends; records are used again, never unmapped. */
#pragma once

#include "../core/judge.h"
#include "device.h"
#include "hook.h"
#include "thread.h"
#include "vendor_abi.h"

#pragma GCC visibility push(hidden)

enum { STREAMS = 1 << 14 }; /* living at a time; further ones are not tracked, and so never raised */
#define ONE_BLOCKING (UINT64_C(1) << 32)

struct stream {
    uint32_t next;   /* in the list of free records (table.h), or device->streams: number of the next one, or 0 */
    uint32_t serial; /* incremented when the stream ends */
    uint32_t slot;   /* in struct launcher's works; no_stream: the last one, which is read by no judgement */
    uint32_t record; /* of the page, + 1; 0: none */
    uint64_t handle; /* the program's; of a default stream its key; 0: free */
    uint64_t ending; /* its handle while a call is destroying it */
    uint64_t context;
    enum vendor vendor;
    int32_t device; /* ordinal, or NO_DEVICE */
    int32_t own;    /* priority, as the program set it */
    uint8_t is_default, is_blocking;
    uint8_t wanted;    /* the rule wants it raised */
    uint8_t raised;    /* the driver has our priority */
    uint8_t touched;   /* we have set its priority at some time: from then on `own` answers the program's questions */
    uint8_t created;   /* raised at its creation (`created_by`): the rule leaves it alone */
    uint8_t met_wait;  /* something has waited for it since it communicated for the first time */
    uint8_t listed;    /* in device->streams */
    uint32_t previous; /* in that list: number of the one before, or 0 */
    uint32_t changing; /* mark: a thread is changing its priority, or it ends (raise.c) */
    uint32_t number;   /* of this record (stream_at()) */
    uint32_t creator;  /* name of the library that created it (names.h); 0: unknown */
    /* Of a context's legacy default stream: how many blocking streams the context has, times ONE_BLOCKING, and the
     * exclusive or of their numbers, which names a sole one. One word, because waits read it without the lock. */
    uint64_t blocking;
    uint32_t open;           /* overlap window: communication was launched, and nothing has waited for it yet */
    uint32_t communications; /* launches of communication so far, for windows */
    uint64_t gone_work;      /* of judged.work: what no thread holds in its own table (struct work) */
    struct overlap_judged judged;
};

/* 1: some policy of the table raises streams (RAISES), has rules for overlap windows (WINDOWS), or changes any launch
 * (SHAPES). 0: the calls of streams and events are passed on at once. */
enum { STREAMS_RAISES = 1, STREAMS_WINDOWS = 2, STREAMS_SHAPES = 4, STREAMS_KNOWN = 8 };
extern uint32_t streams_needed;
uint32_t streams_need(void);
static inline uint32_t streams_wanted(void) {
    const uint32_t needed = OVERLAP_RELAXED(streams_needed);
    return __builtin_expect(needed, STREAMS_KNOWN) ? needed : streams_need();
}
static inline bool streams_tracked(void) {
    return streams_wanted() & (STREAMS_RAISES | STREAMS_WINDOWS);
}

/* ---- Contexts ---- */

/* Incremented when a context ends: threads that had it current must ask again. */
extern uint32_t contexts_changed;
uint64_t context_ask(enum vendor vendor);
/* The current context, or 0. Asks the driver once after each call that may have changed it. */
static inline uint64_t context_here(enum vendor vendor) {
    const uint64_t known = this_thread.context[vendor];
    return __builtin_expect(known && this_thread.contexts_at == OVERLAP_RELAXED(contexts_changed), 1)
               ? known
               : context_ask(vendor);
}
/* Its device, or NO_DEVICE. */
int device_ask(enum vendor vendor);
static inline int device_here(enum vendor vendor) {
    return context_here(vendor) && this_thread.device[vendor] ? this_thread.device[vendor] - 1 : device_ask(vendor);
}
/* A call may have changed the current context of this thread. */
static inline void context_unknown(enum vendor vendor) {
    this_thread.context[vendor] = 0;
    this_thread.device[vendor] = 0;
}

/* ---- Records ---- */

/* The key of a stream in tables: its handle, or for a default stream the context's and which one it is. 0: there is no
 * current context. */
static inline uint64_t stream_key(vendor_stream stream, enum default_stream null_stream) {
    const uintptr_t value = (uintptr_t)stream;
    if (__builtin_expect(value > STREAM_PER_THREAD, 1))
        return value;
    const uint64_t context = context_here(default_vendor(null_stream));
    const bool of_thread = value == STREAM_PER_THREAD || (value == 0 && default_is_thread(null_stream));
    return context ? context | (of_thread ? STREAM_PER_THREAD : STREAM_LEGACY) : 0;
}

/* Stands for all streams without a record. */
extern struct stream no_stream;

/* The record of a number, and the number of a record (0: no_stream). */
struct stream *stream_at(uint32_t number);
static inline uint32_t stream_number(const struct stream *stream) {
    return stream->number;
}
/* Numbers of records are at most this. */
uint32_t streams_used(void);
/* Returns the record of a key, which is a stream's handle or stream_key(), or no_stream. */
struct stream *stream_find(uint64_t key);
/* Returns the record of a stream, or no_stream. */
struct stream *stream_known(vendor_stream stream, enum default_stream null_stream);
/* The same, and makes one. */
struct stream *stream_met(vendor_stream stream, enum default_stream null_stream);
/* A call of the program has created the stream with this priority. */
struct stream *stream_made(enum vendor vendor, vendor_stream stream, uint32_t flags, int priority, uintptr_t site);
/* A priority as the driver takes it: clamped to the range of the context (0: of the current one). */
int stream_priority_in_range(enum vendor vendor, uint64_t context, int priority);
/* Around the program's call that destroys it: the driver may use the handle again before it returns. */
void stream_ends(struct stream *stream);
void stream_ended(struct stream *stream, bool gone);
/* Around a call that may end a context (0: any of the device), and its streams with it. gone: it has. */
void streams_context_ends(enum vendor vendor, uint64_t context, int device);
void streams_context_ended(enum vendor vendor, uint64_t context, int device, bool gone);
void streams_forked(void);
/* Maps the tables. The lock is held. */
void streams_prepare(void);

/* ---- Work ---- */

enum { WORKS = 64 };

/* Threads that one thread launched on a stream. */
struct work {
    struct stream *stream; /* NULL: free */
    uint32_t serial, padding;
    uint64_t threads;
};

/* A launch that this thread has made before, and the answer. Valid while the epoch and the stream's serial are. */
struct known {
    uint64_t function;     /* function_key() in launch.h */
    uint64_t stream;       /* stream_key() */
    uint64_t key;          /* launch_key() */
    uint32_t least, range; /* blocks of the grid: from least, and so many more */
    struct stream *record;
    uint32_t serial, epoch;
    uint32_t size; /* dynamic bytes to launch with */
    uint16_t row;  /* of the page */
    uint8_t communicates, raised;
    uint64_t padding;
};
_Static_assert(sizeof(struct known) == 64, "one cache line of the processor");

/* Of one thread that launches, and written by that thread only. */
struct launcher {
    uint32_t owner; /* thread id; the next owner takes it over once that thread has ended */
    uint32_t bits;  /* 1 << bits entries */
    /* By device: how many waits until those that count for the rule are added to device->waits; 0: each one is (waits.c). */
    uint32_t waits[OVERLAP_DEVICES];
    struct work works[WORKS + 1];
    struct known known[];
};

/* A thread takes over the table of one that has ended: its work is moved to the streams, its answers are dropped. */
void launcher_take(struct launcher *launcher);
/* The launchers that are mapped so far, from 0 on; NULL after the last one. */
struct launcher *launcher_at(uint32_t number);
/* The slot of this thread for work on the stream: moves what another stream has there to that stream's record. */
struct work *work_slot(struct launcher *launcher, struct stream *stream);

/* Takes the stream off its device's list; the lock is held. */
void stream_unlist(struct device *device, struct stream *stream);
/* Where a launch on the stream runs: for a stream given by its handle in the stream's own context, whichever is current, and
 * also if none is. record: the stream's, or no_stream. */
struct place {
    uint64_t context;
    int device; /* or NO_DEVICE */
};
struct place stream_place(vendor_stream stream, enum default_stream null_stream, const struct stream *record);

/* A first launch on the stream. wide: of communication, on more than a third of the multiprocessors. */
void stream_carries(struct stream *stream, bool communication, bool wide);

/* ---- Waits and windows ---- */

extern uint32_t captures_open; /* stream captures in progress in this process */

/* The host, or another stream, waits for the stream. behind: the latest communication on it is waited for, too. */
void stream_waited(struct stream *stream, bool behind);
/* The same for a stream by its handle; for the legacy default stream its context's only blocking stream, if there is
 * only one. */
void stream_waited_by_handle(vendor_stream stream, enum default_stream null_stream);
/* The host waits for a context: closes its windows, and counts for nothing else. */
void context_waited(enum vendor vendor, uint64_t context);

/* Communication was launched on the stream; something waits for it, or it ends. */
void window_opens(struct stream *stream);
void window_closes(struct stream *stream);
/* Can communication run beside a launch on this stream now? */
static inline bool window_is_open(const struct device *device, const struct stream *stream) {
    return OVERLAP_LOAD(device->open) > (OVERLAP_RELAXED(stream->open) ? 1U : 0U);
}

/* ---- Judgements and priorities (raise.c): the device's streams get the priorities that the rule wants ---- */

/* Maps what a judgement needs. The lock is held. False: there is no memory. */
bool raise_prepare(void);
/* Judge the streams of a device, because so many waits have made that due. 0: now, before it is due. */
void raise_judge(struct device *device, uint64_t waits);

/* The stream was created at the greatest priority, or will get it when no capture is open any more. */
void raise_created(struct stream *stream, bool raised);

/* Give the stream the priority that the rule wants; does nothing while a capture is open. */
void raise_apply(struct stream *stream);

/* Wait until no thread changes the stream's priority, and keep others from it until raise_release(). False: it has no
 * record, or another thread does not finish; the caller goes on all the same. */
bool raise_hold(struct stream *stream);
void raise_release(struct stream *stream);

/* A capture begins (before the call), and has ended. All raised streams have the program's priorities in between. */
void capture_opens(uint64_t key, uint64_t context, int device);
void capture_closes(uint64_t key);
/* Of a context (0: any of the device) that has ended. */
void captures_context_ended(uint64_t context, int device);
void captures_forked(void);

#pragma GCC visibility pop
