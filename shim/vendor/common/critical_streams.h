/* Streams that the host or communication waits for. */
#pragma once

#include "../../core/sync_model.h"
#include "hook.h"
#include "vendor_abi.h"

#pragma GCC visibility push(hidden)

struct overlap_settings;
struct request;

enum { CRITICAL_STREAMS = 16 }; /* raised at the same time */
struct critical_stream {
    uint64_t handle; /* 0: free */
    struct overlap_stream *tracked;
    struct overlap_page_stream *record; /* may be NULL */
    int priority;
};

/* critical_counting: a counting period is running. critical_any: some stream is raised. If either is 1, computation
 * launches call critical_launch(). */
extern uint32_t critical_counting, critical_any;
/* 0: not checked yet; 1: no policy asks for critical streams, so everything below is a no-op; 2: one does. */
extern uint32_t critical_wanted;
static inline bool critical_matters(void) {
    return OVERLAP_RELAXED(critical_wanted) != 1;
}

/* A Bloom filter of the raised streams, one bit for each by a hash of its handle: it spares most launches on other
 * streams the lookup. */
enum { CRITICAL_BLOOM_BITS = 6 };
extern uint64_t critical_bloom;
static inline uint64_t critical_bit(uint64_t handle) {
    return UINT64_C(1) << (handle * OVERLAP_CACHE_FACTOR >> (64 - CRITICAL_BLOOM_BITS));
}
static inline bool critical_may_be(vendor_stream stream) {
    return OVERLAP_RELAXED(critical_bloom) & critical_bit((uint64_t)(uintptr_t)stream);
}

/* True if a policy of the table asks for critical streams. */
bool critical_is_wanted(const struct overlap_settings *settings);

/* Begin a counting period. */
void critical_begin(struct overlap_sync_model *model);

/* Record a computation launch. Returns the entry of its stream if that is raised, else NULL. */
struct critical_stream *critical_launch(const struct request *request);
/* The same for a stream that is raised, outside counting periods. False: the stream is no longer raised. */
bool critical_launch_raised(const struct request *request, struct critical_stream *entry);
/* Look the stream up without recording a launch; NULL: not raised. */
struct critical_stream *critical_find_any(vendor_stream stream);
static inline struct critical_stream *critical_find(vendor_stream stream) {
    return __builtin_expect(critical_may_be(stream), 0) ? critical_find_any(stream) : NULL;
}
/* Record a graph launch on the stream. */
void critical_graph(struct overlap_stream *tracked);

/* The host or another stream waits for `tracked` (NULL: untracked). why: enum overlap_critical. communication: the
 * waiter communicates. */
void critical_waited(struct overlap_sync_model *model, enum vendor vendor, struct overlap_stream *tracked, uint32_t why,
                     bool communication);
/* `tracked` waits for an event: the stream that recorded the event is waited for, too. */
void critical_feeder_waited(struct overlap_sync_model *model, enum vendor vendor, struct overlap_stream *tracked,
                            uint64_t event);
static inline void critical_event_waited(struct overlap_sync_model *model, enum vendor vendor,
                                         struct overlap_stream *tracked, uint64_t event) {
    if (__builtin_expect(OVERLAP_RELAXED(tracked->part.why), 0))
        critical_feeder_waited(model, vendor, tracked, event);
}
/* The host has waited for the work in *completion. */
void critical_host_waits(struct overlap_sync_model *model, enum vendor vendor,
                         const struct overlap_completion *completion);

/* ---- While the model sleeps ---- */

/* Sets *completion to the awaited stream. */
void critical_completion_of_stream(struct overlap_stream *tracked, struct overlap_completion *completion);
/* The host has queried `what`. Does that count as a wait? Not if the previous query already said that it is finished. */
bool critical_polled(uint64_t what, bool is_over);
/* The host has waited for an untracked event. */
void critical_untracked_event(struct overlap_sync_model *model);

/* ---- Streams and their priorities ---- */

/* True, with *priority set, if the stream that the code at `site` created before was critical. */
bool critical_site_priority(enum vendor vendor, uintptr_t site, int *priority);
void critical_stream_created(enum vendor vendor, uintptr_t site, struct overlap_stream *tracked);
void critical_program_set_priority(vendor_stream stream);
/* An attribute copy has given the capturing stream `to` the priority that we gave `from`: `to` counts as raised
 * until it can be lowered. */
void critical_priority_copied(vendor_stream to, enum default_stream null_stream, const struct critical_stream *from);
void critical_stream_destroyed(struct overlap_sync_model *model, vendor_stream stream);
void critical_forked(void);

/* Another arm of a trial is active: raises or lowers the critical streams. */
void critical_switch(enum vendor vendor);

#pragma GCC visibility pop
