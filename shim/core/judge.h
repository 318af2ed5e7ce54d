/* The one rule: raise the smaller streams that something waits for.
 *
 * A stream of a device is to have the greatest priority when, since the judgement before,
 *   1. something waited for it: the host, or another stream;
 *   2. it carried at most `share` of the device's computation (overlap_block_work()). Communication is no computation; a graph
 *      counts what its kernels add up to, and a stream that launches one whose work is not known counts as large;
 *   3. no stream to which the program gave a priority other than 0 has carried a launch on this device;
 *   4. it is no default stream, and no communication kernel on it takes more than a third of the multiprocessors;
 *   5. all streams for which 1 to 4 hold carried at most TOGETHER; else none is raised, because eight equal streams in
 *      turn are all of the work. Streams of communication alone carry nothing, and stay raised.
 * So a wrong raise ends with the next judgement, and so does one that nothing waits for any more. A raised stream that never
 * communicated and has carried next to no computation since it was last waited for, compared with what it carried then,
 * counts as waited for: its thread may have had no turn, or lost it between a launch and the wait.
 *
 * Pure: who launches, waits and raises is in gpu/launch.c, waits.c and raise.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "../abi.h"

enum {
    OVERLAP_SHARE_TOGETHER = 60,     /* per cent; `share` is the policy's, 50 by default */
    OVERLAP_PART_NOTHING = 32,       /* of what it carried then: a launch or two, whose wait may be to come */
    OVERLAP_JUDGEMENTS_FROM = 16,    /* waits before the first judgement, which is repeated when they have doubled... */
    OVERLAP_JUDGEMENTS_EVERY = 1024, /* ...until there are so many, and then every so many */
    OVERLAP_WIDE_PART = 3,           /* of the multiprocessors: wider communication is not raised */
};

/* The work of a block: its threads, times the square of their registers by OVERLAP_REGISTERS. With twice the registers a
 * thread takes twice the room on a multiprocessor, and does about twice as much. In the median of 43 traces the time of a
 * kernel differs from its threads by a factor of 8.5, from this by 3.7 (tools/gpu/results/work-measures.csv).
 * registers: of a thread; 0: not known. */
static inline uint32_t overlap_block_work(uint32_t threads, uint32_t registers) {
    const uint64_t of_thread = registers && registers < 1024 ? registers : OVERLAP_REGISTERS;
    const uint64_t work = threads * of_thread * of_thread / OVERLAP_REGISTERS / OVERLAP_REGISTERS;
    return work ? (uint32_t)work : 1;
}

/* What a judgement reads and writes of a stream. */
struct overlap_judged {
    uint64_t work;   /* launched on it so far */
    uint64_t before; /* the same at the judgement before; overlap_judge() sets it to `work`, unless it judges early */
    uint64_t usual;  /* work between two judgements while something waited for it; overlap_judge() sets it, likewise */
    uint64_t alone;  /* work since the last judgement that saw a wait for it; overlap_judge() sets it, likewise */
    bool waited;     /* something has waited for it since the judgement before; overlap_judge() clears it, likewise */
    bool communicates, launches_graphs, is_default, is_wide, is_fixed;
    uint8_t status; /* result: enum overlap_stream_status */
    uint32_t share; /* result: of the device's work since the judgement before, in thousandths */
};

/* After how many waits is the next judgement due, if one is made after so many? */
static inline uint64_t overlap_next_judgement(uint64_t waits) {
    uint64_t next = OVERLAP_JUDGEMENTS_FROM;
    if (waits >= OVERLAP_JUDGEMENTS_EVERY)
        return waits - waits % OVERLAP_JUDGEMENTS_EVERY + OVERLAP_JUDGEMENTS_EVERY;
    while (next <= waits)
        next *= 2;
    return next;
}

/* Judges the streams of a device that have carried a launch. early: before it is due: what is raised counts as waited for,
 * and the next judgement covers this one's time, too. share: per cent. programs: condition 3 does not hold. False: no computation was
 * launched since the judgement before, so there is nothing to judge, and nothing is written. But streams are given back all
 * the same once condition 3 does not hold, and a device that has never computed is judged once a stream that communicates was
 * waited for. */
bool overlap_judge(struct overlap_judged *const *streams, uint32_t count, bool early, uint32_t share, bool programs);
