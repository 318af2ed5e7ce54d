/* A stream's share of the computation of its context; critical.h says how it is learned. */
#pragma once

#include <stdint.h>

struct overlap_stream;

enum overlap_part_raised {
    OVERLAP_PART_NOT_RAISED = 0,
    OVERLAP_PART_RAISED = 1,
    OVERLAP_PART_CANNOT_RAISE = 2,
    OVERLAP_PART_PROGRAM_SETS = 3, /* the program has set the priority of the stream */
};

/* Units of work: threads launched. "Finished" means that the host has seen it. */
struct overlap_part {
    uint64_t work;     /* launched on the stream while work was counted */
    uint64_t over;     /* part of it that has finished */
    uint64_t own, all; /* `work` and that of the context when the round began */
    uint32_t round;    /* model->counted when the round began; 0: none has begun */
    uint32_t busy;     /* a thread is judging a round */
    uint32_t state;    /* enum overlap_part_state */
    uint32_t leans;    /* the state that the last round suggests */
    uint32_t streak;   /* consecutive rounds that suggest another state */
    uint32_t falls;    /* how often it stopped being critical */
    uint32_t why;      /* enum overlap_critical, as bits */
    uint32_t share;    /* in the last round, in thousandths */
    uint32_t since;    /* launches since something last waited for the stream */
    /* Owned by the caller. handle: 1 if the key is the program's handle. raised: enum overlap_part_raised. record:
     * index + 1 of its record in the page. device: index + 1. priority: the stream's original one, as the caller
     * encodes it; 0: not queried. site: code that created the stream. */
    uint32_t handle, raised, record, device, priority;
    uintptr_t site;
    struct { /* the last waits for other streams' work */
        struct overlap_stream *stream;
        uint64_t serial, work;
    } behind[4];
};
