/* What is known of the computation of a stream; see critical.h. */
#pragma once

#include <stdint.h>

struct overlap_stream;

/* Which part of the computation of its context is a stream's own, and who waits for it: critical.h. */
struct overlap_part {
    uint64_t work;     /* threads of the computation that was launched on it while it was measured */
    uint64_t over;     /* how much of that the host has seen to be over */
    uint64_t own, all; /* work, and that of its context, when its round began */
    uint32_t round;    /* one has begun, at this begin of counting (order->counted); 0: none */
    uint32_t busy;     /* a thread is judging */
    uint32_t state;    /* enum overlap_part_state */
    uint32_t leans;    /* the state that the last round speaks for */
    uint32_t streak;   /* such rounds in a row, where it is another one */
    uint32_t falls;    /* how often it was critical, and then no more */
    uint32_t why;      /* enum overlap_critical, by bit */
    uint32_t share;    /* in the last round, in thousandths */
    uint32_t since;    /* launches on it since somebody waited */
    /* The caller's: its key is the program's handle; raised: 1, 2: it cannot be, 3: the program has set its priority; number of its
     * record in the page, + 1; and of its device; its priority without us, as the caller writes it, 0: not asked; the code that made it. */
    uint32_t handle, raised, record, device, priority;
    uintptr_t site;
    struct { /* other streams' work that was waited for last */
        struct overlap_stream *stream;
        uint64_t serial, work;
    } behind[4];
};
