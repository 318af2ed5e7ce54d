/* Shared by event.c, which holds the table of events, and knowledge.c, which computes what a wait for one orders. */
#pragma once

#include "sync_access.h"

#define OVERLAP_EVENT_TOMBSTONE UINT64_MAX
enum { OVERLAP_EVENT_PROBES = 32 };

enum overlap_event_flag {
    OVERLAP_EVENT_UNKNOWN = 1, /* last recorded on an untracked stream: ordered after everything launched before */
    OVERLAP_EVENT_ALWAYS = 2,  /* graphs or other processes record it: as UNKNOWN, also after a record of ours */
    /* Of another process: carries our launches only if that process can wait for our events. */
    OVERLAP_EVENT_IMPORTED = 4,
    OVERLAP_EVENT_TWICE = 8, /* two threads recorded it at the same time: which record was last is unknown */
};

static inline uint32_t *overlap_event_index(struct overlap_sync_model *model, uint64_t key, uint64_t probe) {
    return &model->event_indices[(overlap_spread(key, OVERLAP_SYNC_EVENT_BITS) + probe) & (OVERLAP_SYNC_EVENTS - 1)];
}
static inline struct overlap_event *overlap_event_slot(struct overlap_sync_model *model, uint64_t key, uint64_t probe) {
    return &model->events[OVERLAP_LOAD(*overlap_event_index(model, key, probe))];
}

/* NULL is no event: a program may pass it by mistake, and it is the key of a free slot. */
static inline bool overlap_is_event(uint64_t key) {
    return key != 0 && key != OVERLAP_EVENT_TOMBSTONE;
}

/* Return the event of this key, or NULL. find_further continues after the first probe. */
struct overlap_event *overlap_event_find_further(struct overlap_sync_model *model, uint64_t key);
static inline struct overlap_event *overlap_event_find(struct overlap_sync_model *model, uint64_t key) {
    struct overlap_event *const first = overlap_event_slot(model, key, 0);
    const uint64_t owner = OVERLAP_LOAD(first->key);
    if (owner == 0)
        return NULL;
    return __builtin_expect(owner == key && key != OVERLAP_EVENT_TOMBSTONE, 1) ? first
                                                                               : overlap_event_find_further(model, key);
}
