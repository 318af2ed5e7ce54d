/* The rule of streams for test_streams.py, made into a shared library: what is inline, and the layout that it assumes. */
#include <stddef.h>

#include "core/judge.h"

bool is_due(uint64_t waits) {
    return waits && overlap_next_judgement(waits - 1) == waits;
}

uint32_t block_work(uint32_t threads, uint32_t registers) {
    return overlap_block_work(threads, registers);
}

size_t layout(size_t field) {
    static const size_t offsets[] = {
        offsetof(struct overlap_judged, work),
        offsetof(struct overlap_judged, before),
        offsetof(struct overlap_judged, usual),
        offsetof(struct overlap_judged, alone),
        offsetof(struct overlap_judged, waited),
        offsetof(struct overlap_judged, communicates),
        offsetof(struct overlap_judged, launches_graphs),
        offsetof(struct overlap_judged, is_default),
        offsetof(struct overlap_judged, is_wide),
        offsetof(struct overlap_judged, is_fixed),
        offsetof(struct overlap_judged, status),
        offsetof(struct overlap_judged, share),
        sizeof(struct overlap_judged),
    };
    return field < sizeof offsets / sizeof *offsets ? offsets[field] : 0;
}
