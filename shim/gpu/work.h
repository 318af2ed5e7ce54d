/* What each thread has launched, in a table of its own: the answers to launches that it has made before, and its work on
 * streams, which a judgement adds up. Written by that thread only. */
#pragma once

#include "../core/core.h"

#pragma GCC visibility push(hidden)

struct stream;

/* Stands for all streams without a record (streams.h). */
extern struct stream no_stream;

enum { WORKS = 64 };

/* What one thread launched on a stream, as work (core/judge.h). */
struct work {
    struct stream *stream; /* NULL: free */
    uint32_t serial, padding;
    uint64_t sum;
};

/* A launch that this thread has made before, and the answer. Valid while the epoch and the stream's serial are. */
struct cached_launch {
    uint64_t function;     /* function_key() in launch.h */
    uint64_t stream;       /* stream_key() */
    uint64_t key;          /* launch_key() */
    uint32_t least, range; /* blocks of the grid: from least, and so many more */
    struct stream *record;
    uint32_t serial, epoch;
    uint32_t size; /* dynamic bytes to launch with */
    uint16_t row;  /* of the page */
    uint8_t communicates, raised;
    uint32_t block_work; /* of each block: struct decision */
    uint32_t padding;
};
_Static_assert(sizeof(struct cached_launch) == 64, "one cache line of the processor");

/* Of one thread that launches, and written by that thread only. */
struct launcher {
    uint32_t owner; /* thread id; the next owner takes it over once that thread has ended */
    uint32_t bits;  /* 1 << bits entries */
    /* By device: how many waits until those that count for the rule are added to device->waits; 0: each one is (waits.c). */
    uint32_t waits[OVERLAP_DEVICES];
    struct work works[WORKS + 1];
    struct cached_launch cached[];
};

/* Returns a table for the thread: a new one, or that of a thread that has ended. NULL: there is none. */
struct launcher *launcher_claim(uint32_t thread);
/* The launchers that are mapped so far, from 0 on; NULL after the last one. */
struct launcher *launcher_at(uint32_t number);
/* The slot of this thread for work on the stream: moves what another stream has there to that stream's record. */
struct work *work_slot(struct launcher *launcher, struct stream *stream);

#pragma GCC visibility pop
