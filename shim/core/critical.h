/* Critical streams: those that somebody waits for although they are a minor part of what the device does.
 *
 * Learnt in rounds. A round of a stream lasts from one wait for it to the first one before which another stream of its context has
 * launched computation, too. Its share is that of its own threads among all that were launched in the round. Two rounds in a row with a
 * small share make it critical; two with a large one make it major again, where large is half as much again as small, so that
 * one at the edge does not flap; and each time that this happens twice as many rounds are asked for. So a stream that was waited for once
 * is nothing yet, one that is learnt is so in the third iteration, and one that carries nothing but communication or copies
 * has nothing that could be raised.
 *
 * The state is that of the order model (window.h), so are the rules: any thread may call anything at any time. Work is only counted
 * while the caller says so; what is launched at other times is in no share.
 */
#pragma once

#include "window.h"

enum overlap_part_state {
    OVERLAP_PART_UNKNOWN = 0,
    OVERLAP_PART_EMPTY = 1,    /* waited for, and it launches nothing of its own */
    OVERLAP_PART_CRITICAL = 2, /* waited for, and minor */
    OVERLAP_PART_MAJOR = 3,    /* waited for, and not minor */
};

/* The caller counts work from now on: rounds begin anew. */
void overlap_critical_count(struct overlap_order *order);

/* Computation of so many threads is launched on the stream. */
void overlap_critical_launched(struct overlap_stream *stream, uint64_t threads);

/* Somebody waits for the stream now, or (the host) has waited. why: one of enum overlap_critical; that the host waits counts only where
 * others of its context have work that is not known to be over. share: per cent, at most, of a minor stream. Returns whether its state has changed. */
bool overlap_critical_waited(struct overlap_order *order, struct overlap_stream *stream, uint32_t why, uint32_t share);

/* The stream that has recorded the event last; NULL: nothing is known, or it launches no computation. */
struct overlap_stream *overlap_critical_recorder(struct overlap_order *order, uint64_t event);

/* The same, also where the event may have been recorded again while the model slept. NULL: none, or the stream is gone. */
struct overlap_stream *overlap_critical_recorded_last(struct overlap_order *order, uint64_t event, uint64_t *serial);

/* Is it waited for, as far as is known, without being major? Then what feeds it is waited for as well. */
static inline bool overlap_critical_passes_on(const struct overlap_stream *stream) {
    return __atomic_load_n(&stream->part.why, __ATOMIC_RELAXED) &&
           __atomic_load_n(&stream->part.state, __ATOMIC_RELAXED) != OVERLAP_PART_MAJOR;
}

/* ---- Called by event.c and order.c ---- */

/* The stream waits for what another one (NULL: not known) of this serial had launched when it recorded an event: so much work. */
void overlap_critical_behind(struct overlap_stream *stream, struct overlap_stream *by, uint64_t serial, uint64_t work);

/* The host has seen a stream's work up to this to be over, and what that had waited for (of the legacy default stream: that of all
 * blocking ones). */
void overlap_critical_over(struct overlap_order *order, struct overlap_stream *stream, uint64_t serial, uint64_t work);
/* All of a context's; NULL: everything. */
void overlap_critical_all_over(struct overlap_order *order, const struct overlap_context *context);

/* The stream is gone, and so is what it had to do. */
void overlap_critical_gone(struct overlap_stream *stream);
