/* Find out whether a communication launch overlaps anything at all. Direct hits of the hot path never reach this
 * code. So a thread that has launched communication is followed for a few launches: its shard is hidden from the hot
 * path, which then takes the slow path. Once the case is clear it is counted: all other computation was on the same
 * stream, or waited for the communication. `auto` also learns here how much computation runs beside communication
 * before a stream or the host waits for it.
 *
 * A followed launch takes several times as long as a cached one. So a thread follows each of its first communication
 * launches, then a sample, each of which also counts for those skipped before it. */
#include "../../core/core.h"
#include "../../core/sync_access.h"
#include "../../core/window.h"
#include "follow.h"
#include "launch_slow.h"
#include "priority.h"
#include "windows.h"

enum {
    LAUNCHES = 16,     /* followed after one communication launch */
    FOLLOW_EACH = 512, /* communication launches */
    ONE_OF = 31        /* prime: programs repeat in powers of two; do not always sample the same launch of a step */
};

static __thread struct {
    /* Identified by serial, not by handle: the program may have destroyed the stream, and its slot may hold another
     * one. */
    struct overlap_stream *communication; /* the stream that it was launched on */
    uint64_t serial, number;              /* sequence number of the launch */
    vendor_stream stream;
    enum default_stream null_stream;
    /* Of the launches since: computation on the same stream; computation that waited for it; computation that overlaps
     * it; computation on another stream. */
    bool same_stream, waited_for, overlapped, computed_elsewhere;
    uint32_t launches_left; /* 0: not following */
    uint32_t followed;      /* communication launches so far, up to FOLLOW_EACH */
    uint32_t stands_for;    /* communication launches that this one counts for */
    bool skipped;           /* communication launches were skipped since the last followed one */
} follow __attribute__((tls_model("initial-exec")));
__thread uint32_t follow_skips __attribute__((tls_model("initial-exec")));

/* Return the communication's stream, or NULL if it was destroyed: driver 580 crashes if it is queried about a
 * destroyed stream. */
static struct overlap_stream *living_stream(void) {
    return follow.communication && overlap_stream_is(follow.communication, follow.serial) ? follow.communication : NULL;
}

/* The launch was followed to its end: count it. A later launch, perhaps of another thread, may still overlap it;
 * windows.c then subtracts it again. */
static void conclude(void) {
    struct overlap_stream *tracked =
        follow.overlapped || !(follow.same_stream || follow.waited_for) ? NULL : living_stream();
    follow.communication = NULL; /* count once only */
    if (!tracked)
        return;
    if (overlap_window_no_overlap(tracked, follow.number,
                                  follow.waited_for ? OVERLAP_NO_OVERLAP_WAITED_FOR : OVERLAP_NO_OVERLAP_SAME_STREAM,
                                  follow.stands_for))
        launch_count_many(follow.waited_for ? OVERLAP_COUNTER_WAITED_FOR : OVERLAP_COUNTER_SAME_STREAM,
                          follow.stands_for);
}

static void stop(void) {
    follow.launches_left = 0;
    launch_set_slow(false);
}

void follow_forget(void) {
    follow.launches_left = 0;
    follow.communication = NULL;
    follow.computed_elsewhere = false;
    follow.followed = follow_skips = 0;
    follow.skipped = false;
}

/* Skip the next launches. What follows this one stays unknown. */
static void skip(void) {
    follow.skipped = true;
    follow.computed_elsewhere = false;
    follow_skips = ONE_OF - 2;
    if (follow.launches_left)
        stop();
}

void follow_begin(struct overlap_stream *communication, vendor_stream stream, enum default_stream null_stream,
                  bool overlapped) {
    if (follow.launches_left)
        conclude();
    if (follow.followed == FOLLOW_EACH && !follow.skipped) {
        skip();
        return;
    }
    follow.followed += follow.followed < FOLLOW_EACH;
    follow.stands_for = follow.skipped ? ONE_OF : 1;
    follow.skipped = false;
    follow.communication = communication;
    follow.serial = communication ? OVERLAP_LOAD(communication->serial) : 0;
    follow.number = overlap_window_number(communication);
    follow.stream = stream;
    follow.null_stream = null_stream;
    follow.same_stream = follow.waited_for = follow.computed_elsewhere = false;
    follow.overlapped = overlapped;
    follow.launches_left = LAUNCHES;
    launch_set_slow(true);
}

bool follow_computed(void) {
    return follow.computed_elsewhere;
}

void follow_launch(vendor_stream stream, enum default_stream null_stream, uint64_t word) {
    if (!follow.launches_left)
        return;
    if (stream == follow.stream && null_stream == follow.null_stream) {
        follow.same_stream = true;
    } else {
        follow.computed_elsewhere = true;
        bool unknown;
        /* Inside, or inside for so long that the window has expired. */
        if (window_position(stream, null_stream, &unknown) != OVERLAP_POSITION_OUTSIDE) {
            follow.overlapped = true;
            if (word & OVERLAP_WORD_LONG)
                overlap_window_beside(window_stream(windows(), stream, null_stream));
        } else if (!unknown)
            follow.waited_for = true;
    }
    if (follow.overlapped && follow.computed_elsewhere && !priority_may_end()) { /* later launches add nothing */
        stop();
        return;
    }
    const uint32_t left = follow.launches_left; /* a signal handler may have launched the last one */
    follow.launches_left = left ? left - 1 : 0;
    if (left == 1) {
        conclude();
        stop();
    }
}

void follow_host(void) {
    struct overlap_sync_model *model = follow.launches_left ? windows() : NULL;
    if (!model || !overlap_window_is_over(model, living_stream()))
        return;
    follow.waited_for |= !follow.same_stream;
    conclude();
    stop();
}
