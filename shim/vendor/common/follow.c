/* Can a communication launch overlap anything at all? Launches that need no look go their way without us, so a thread that
 * has launched communication is followed for a few launches: its shard is hidden from the hot path, which therefore asks.
 * What they show is counted once it is clear: computation on the same stream, or only such as waits for it. And `auto`
 * learns from them how much computation there is beside communication before anybody waits for it.
 *
 * A followed launch takes several times as long as one in the cache. So a thread follows its first communication launches each, and
 * then a sample of them, each of which counts for those that were skipped before it as well. */
#include "windows.h"

enum {
    FOLLOWED = 16, /* launches behind one */
    EACH = 512,
    ONE_OF = 31 /* prime: programs repeat powers of two, and the sample must not always be the same one of a step */
};

static __thread struct {
    /* Not by its handle: the program may have destroyed it meanwhile, and then its place has another number. */
    struct overlap_stream *its;
    uint64_t serial, number; /* of the launch */
    vendor_stream stream;
    enum default_stream whose;
    bool same, waited, overlapped, computed;
    uint32_t left;   /* 0: not following */
    uint32_t begun;  /* up to EACH */
    uint32_t counts; /* how many this one counts for */
    bool due;        /* since the last one that was followed some have been skipped */
} follow __attribute__((tls_model("initial-exec")));
__thread uint32_t follow_skips __attribute__((tls_model("initial-exec")));

/* The stream of the communication; NULL: it is gone. The driver must not be asked about it any more (driver 580 crashes). */
static struct overlap_stream *still(void) {
    return follow.its && overlap_stream_is(follow.its, follow.serial) ? follow.its : NULL;
}

/* It was followed to its end. A later launch, perhaps of another thread, may still show that something overlaps it: then it is
 * taken back (windows.c). */
static void conclude(void) {
    struct overlap_stream *its = follow.overlapped || !(follow.same || follow.waited) ? NULL : still();
    follow.its = NULL; /* once */
    if (!its)
        return;
    if (overlap_window_alone(its, follow.number, follow.waited ? OVERLAP_ALONE_WAITED_FOR : OVERLAP_ALONE_SAME_STREAM,
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

/* The next ones are skipped. Of this one it is not known what comes behind it. */
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
        if (window_where(stream, whose, &unknown) !=
            OVERLAP_WHERE_OUTSIDE) { /* inside, or so long that it has expired */
            follow.overlapped = true;
            if (word & OVERLAP_WORD_LONG)
                overlap_window_beside(window_stream(windows(), stream, whose));
        } else if (!unknown)
            follow.waited = true;
    }
    if (follow.overlapped && follow.computed && !priority_may_end()) { /* no later launch shows anything more */
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
    struct overlap_order *order = follow.left ? windows() : NULL;
    if (!order || !overlap_window_is_over(order, still()))
        return;
    follow.waited |= !follow.same;
    conclude();
    stop();
}
