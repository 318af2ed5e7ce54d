/* Overlap windows: can a launch overlap a communication launch? Computed from the model of sync_model.h. */
#pragma once

#include "sync_model.h"

/* Launches that run beside a communication launch although they were made before it. */
struct overlap_before {
    uint64_t launched; /* launches that would have been shaped; each is counted once */
    uint64_t filling;  /* grids that fill the GPU in one wave */
};

/* Communication was launched on the stream. computed: computation was launched since the previous communication. */
struct overlap_before overlap_window_communicates(struct overlap_sync_model *model, struct overlap_stream *stream,
                                                  bool computed);

/* A grid of more than one wave was launched in a window. */
void overlap_window_beside(struct overlap_stream *stream);

/* The stream waits now, or has waited. If it has left its window, the count of grids beside communication is reset. */
void overlap_window_left_now(struct overlap_sync_model *model, struct overlap_stream *stream);
static inline void overlap_window_left(struct overlap_sync_model *model, struct overlap_stream *stream) {
    if (OVERLAP_RELAXED(stream->beside))
        overlap_window_left_now(model, stream);
}

/* The stream's last communication launch has this number in the caller's log. */
void overlap_window_set_sequence(struct overlap_sync_model *model, struct overlap_stream *stream, uint64_t sequence);

enum overlap_window_position {
    OVERLAP_POSITION_OUTSIDE,
    OVERLAP_POSITION_INSIDE,
    OVERLAP_POSITION_EXPIRED,
    OVERLAP_POSITION_SAME_STREAM, /* outside, and the newest communication is on the same stream */
};

/* Why a communication launch overlaps nothing. */
enum overlap_no_overlap {
    OVERLAP_NO_OVERLAP_SAME_STREAM, /* the next launches are on its stream */
    OVERLAP_NO_OVERLAP_WAITED_FOR,  /* the next launches wait for it */
};

struct overlap_window_answer {
    enum overlap_window_position position;
    uint32_t granted;        /* launches that may reuse this answer while the version is unchanged */
    uint64_t newest, serial; /* for overlap_window_return() */
    bool unknown;            /* outside, because the stream is behind an unknown wait */
    uint32_t undone[2];      /* launches reported to overlap nothing that do after all */
    uint64_t sequence;       /* INSIDE: number of the newest communication launch it could overlap, + 1; 0: none */
};

/* Is a launch on this stream (NULL: untracked) inside a window now? wanted: launches for which the thread may keep the
 * answer; 0: only look, count nothing. */
void overlap_window_query(struct overlap_sync_model *model, struct overlap_stream *stream, uint32_t wanted,
                          struct overlap_window_answer *found);

/* Returns the number of the stream's last communication launch; 0: none. */
uint64_t overlap_window_number(struct overlap_stream *stream);

/* Reports that the communication launch with this number overlaps nothing; it stands for `count` launches. False:
 * something overlaps it. */
bool overlap_window_no_overlap(struct overlap_stream *stream, uint64_t number, enum overlap_no_overlap why,
                               uint32_t count);

/* Has the host seen all communication of the stream finish? */
bool overlap_window_is_over(struct overlap_sync_model *model, struct overlap_stream *stream);

/* Returns the launches that were granted and not made. */
void overlap_window_return(struct overlap_stream *stream, uint64_t serial, uint64_t newest, uint32_t left);

/* Returns the counter for launches outside windows on this stream: those that would have been shaped, or (filling)
 * grids that fill the GPU in one wave. Only the launching thread adds to it. NULL: all counters are in use. */
uint64_t *overlap_window_outside(struct overlap_sync_model *model, struct overlap_stream *stream, bool filling);
