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
    FOLLOWED = 16, /* launches after one communication launch */
    EACH = 512,
    ONE_OF = 31 /* prime: programs repeat in powers of two; do not always sample the same launch of a step */
};

static __thread struct {
    /* Identified by serial, not by handle: the program may have destroyed the stream, and its slot may hold another
     * one. */
    struct overlap_stream *its;
    uint64_t serial, number; /* sequence number of the launch */
    vendor_stream stream;
    enum default_stream whose;
    bool same, waited, overlapped, computed;
    uint32_t left;   /* 0: not following */
    uint32_t begun;  /* up to EACH */
    uint32_t counts; /* how many launches this one stands for */
    bool due;        /* launches were skipped since the last followed one */
} follow __attribute__((tls_model("initial-exec")));
__thread uint32_t follow_skips __attribute__((tls_model("initial-exec")));

/* Return the communication's stream, or NULL if it was destroyed: driver 580 crashes if it is queried about a
 * destroyed stream. */
static struct overlap_stream *still(void) {
    return follow.its && overlap_stream_is(follow.its, follow.serial) ? follow.its : NULL;
}

/* The launch was followed to its end: count it. A later launch, perhaps of another thread, may still overlap it;
 * windows.c then subtracts it again. */
static void conclude(void) {
    struct overlap_stream *its = follow.overlapped || !(follow.same || follow.waited) ? NULL : still();
    follow.its = NULL; /* count once only */
    if (!its)
        return;
    if (overlap_window_no_overlap(its, follow.number,
                                  follow.waited ? OVERLAP_NO_OVERLAP_WAITED_FOR : OVERLAP_NO_OVERLAP_SAME_STREAM,
                                  follow.counts))
        launch_count_many(follow.waited ? OVERLAP_COUNTER_WAITED_FOR : OVERLAP_COUNTER_SAME_STREAM, follow.counts);
}

static void stop(void) {
    follow.left = 0;
    launch_followed(false);
}

void follow_forget(void) {
    follow.left = 0;
    follow.its = NULL;
    follow.computed = false;
    follow.begun = follow_skips = 0;
    follow.due = false;
}

/* Skip the next launches. What follows this one stays unknown. */
static void skip(void) {
    follow.due = true;
    follow.computed = false;
    follow_skips = ONE_OF - 2;
    if (follow.left)
        stop();
}

void follow_begin(struct overlap_stream *its, vendor_stream stream, enum default_stream whose, bool overlapped) {
    if (follow.left)
        conclude();
    if (follow.begun == EACH && !follow.due) {
        skip();
        return;
    }
    follow.begun += follow.begun < EACH;
    follow.counts = follow.due ? ONE_OF : 1;
    follow.due = false;
    follow.its = its;
    follow.serial = its ? OVERLAP_LOAD(its->serial) : 0;
    follow.number = overlap_window_number(its);
    follow.stream = stream;
    follow.whose = whose;
    follow.same = follow.waited = follow.computed = false;
    follow.overlapped = overlapped;
    follow.left = FOLLOWED;
    launch_followed(true);
}

bool follow_computed(void) {
    return follow.computed;
}

void follow_launch(vendor_stream stream, enum default_stream whose, uint64_t word) {
    if (!follow.left)
        return;
    if (stream == follow.stream && whose == follow.whose) {
        follow.same = true;
    } else {
        follow.computed = true;
        bool unknown;
        /* Inside, or inside for so long that the window has expired. */
        if (window_where(stream, whose, &unknown) != OVERLAP_WHERE_OUTSIDE) {
            follow.overlapped = true;
            if (word & OVERLAP_WORD_LONG)
                overlap_window_beside(window_stream(windows(), stream, whose));
        } else if (!unknown)
            follow.waited = true;
    }
    if (follow.overlapped && follow.computed && !priority_may_end()) { /* later launches add nothing */
        stop();
        return;
    }
    const uint32_t left = follow.left; /* a signal handler may have launched the last one */
    follow.left = left ? left - 1 : 0;
    if (left == 1) {
        conclude();
        stop();
    }
}

void follow_host(void) {
    struct overlap_sync_model *model = follow.left ? windows() : NULL;
    if (!model || !overlap_window_is_over(model, still()))
        return;
    follow.waited |= !follow.same;
    conclude();
    stop();
}
