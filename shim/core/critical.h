/* Critical streams: something waits for them, although they are a minor part of what the device does.
 *
 * They are learned in rounds. A round of a stream ends at the first wait for it before which another stream of its
 * context has launched computation, too; the next round begins there. The share of a stream is that of its threads
 * among all threads launched in the round. A stream becomes critical after two consecutive rounds with a small share,
 * and major after two with a large one. To leave the critical state, the share must exceed 1.5 times the limit, so that
 * a stream near the limit does not flap; each time it does leave, the number of rounds to become critical again
 * doubles. Hence a single wait decides nothing, a critical stream is known in the third iteration, and a stream that
 * carries only communication or copies has nothing to raise.
 *
 * The state is part of the model (sync_model.h), and so are the rules: any thread may call any function at any time.
 * Work is counted only while the caller counts; launches at other times are in no share.
 */
#pragma once

#include "sync_access.h"

enum overlap_part_state {
    OVERLAP_PART_UNKNOWN = 0,
    OVERLAP_PART_EMPTY = 1,    /* waited for, but launches no computation */
    OVERLAP_PART_CRITICAL = 2, /* waited for, with a minor share */
    OVERLAP_PART_MAJOR = 3,    /* waited for, with a larger share */
};

/* The caller counts work from now on; all streams begin new rounds. */
void overlap_critical_count(struct overlap_sync_model *model);

/* A computation kernel with this many threads in its grid is launched on the stream. */
void overlap_critical_launched(struct overlap_stream *stream, uint64_t threads);

/* Something begins to wait for the stream, or the host has waited for it. why: one value of enum overlap_critical;
 * OVERLAP_CRITICAL_HOST_WAITS has an effect only while other streams of the context have unfinished work. share:
 * largest share of a minor stream, in per cent. Returns whether the state of the stream changed. */
bool overlap_critical_waited(struct overlap_sync_model *model, struct overlap_stream *stream, uint32_t why,
                             uint32_t share);

/* Returns the stream that recorded the event last. NULL: unknown, or the stream launches no computation. */
struct overlap_stream *overlap_critical_recorder(struct overlap_sync_model *model, uint64_t event);

/* As overlap_critical_recorder(), even if the event may have been recorded again while the model slept. NULL: none, or
 * the stream was destroyed. */
struct overlap_stream *overlap_critical_recorded_last(struct overlap_sync_model *model, uint64_t event,
                                                      uint64_t *serial);

/* Is something known to wait for the stream, without it being major? Then streams that feed it are waited for as
 * well. */
static inline bool overlap_critical_passes_on(const struct overlap_stream *stream) {
    return OVERLAP_RELAXED(stream->part.why) && OVERLAP_RELAXED(stream->part.state) != OVERLAP_PART_MAJOR;
}

/* ---- Called by event.c and sync_model.c ---- */

/* The stream waits for an event. by, serial: the stream that recorded the event (NULL: unknown), and its serial; work:
 * how much that stream had launched by then. */
void overlap_critical_behind(struct overlap_stream *stream, struct overlap_stream *by, uint64_t serial, uint64_t work);

/* The host has seen the stream's work up to `work` finish, and hence the work that this had waited for. For the legacy
 * default stream that includes all blocking streams. */
void overlap_critical_over(struct overlap_sync_model *model, struct overlap_stream *stream, uint64_t serial,
                           uint64_t work);
/* All work of a context has finished. NULL: of every context. */
void overlap_critical_all_over(struct overlap_sync_model *model, const struct overlap_context *context);

/* The stream was destroyed: its work counts as finished. */
void overlap_critical_gone(struct overlap_stream *stream);
