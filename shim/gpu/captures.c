/* Captures of streams: while one is open in the process, all raised streams have the program's priorities (streams.h). */
#include <string.h>

#include "../core/core.h"
#include "../sys/sys.h"
#include "point.h"
#include "streams.h"
#include "table.h"
#include "captures.h"
#include "raise.h"

enum { AT_ONCE = 32 };  /* streams */
enum { CAPTURES = 64 }; /* more are only counted */
#define TAKEN UINT64_MAX
static struct {
    uint64_t key, context;
    int device;
} captures[CAPTURES];    /* where each began; key 0: free; TAKEN: context and device are not there yet */
static uint32_t further; /* open captures that found no entry */

/* Is the stream to be given the program's priority, or ours? Also one that a thread is raising just now: that thread set
 * the mark before it looked for open captures. The mark is read first: a raise that has ended since then shows in
 * `raised`. */
static bool is_other(const struct stream *stream, bool raised) {
    const bool raising = stream_is_raising(stream);
    POINT(capture_looks);
    const bool is_raised = __atomic_load_n(&stream->raised, __ATOMIC_ACQUIRE);
    return OVERLAP_RELAXED(stream->handle) &&
           (raised ? OVERLAP_RELAXED(stream->wanted) && !is_raised : is_raised || raising);
}

/* Every raised stream gets the program's priority, or ours back. */
static void all_streams(bool raised) {
    struct stream *found[AT_ONCE];
    for (uint32_t from = 1, listed = AT_ONCE; listed == AT_ONCE;) {
        listed = 0;
        if (!lock_take())
            return;
        for (; from <= streams_used() && listed < AT_ONCE; from++)
            if (is_other(stream_at(from), raised))
                found[listed++] = stream_at(from);
        lock_leave();
        for (uint32_t i = 0; i < listed; i++) {
            if (raised) {
                raise_apply(found[i]);
            } else if (stream_hold(found[i])) {
                raise_set(found[i], false);
                stream_release(found[i]);
            }
        }
    }
}

RARE void capture_opens(uint64_t key, uint64_t context, int device) {
    if (!key || !(streams_wanted() & ~(uint32_t)STREAMS_KNOWN))
        return;
    int i = 0;
    for (; i < CAPTURES; i++) {
        uint64_t free = 0;
        if (__atomic_compare_exchange_n(&captures[i].key, &free, TAKEN, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            __atomic_store_n(&captures[i].context, context, __ATOMIC_RELAXED);
            __atomic_store_n(&captures[i].device, device, __ATOMIC_RELAXED);
            __atomic_store_n(&captures[i].key, key, __ATOMIC_RELEASE);
            break;
        }
    }
    if (i == CAPTURES)
        __atomic_fetch_add(&further, 1, __ATOMIC_RELAXED);
    if (__atomic_fetch_add(&captures_open, 1, __ATOMIC_SEQ_CST) == 0)
        invalidate_decisions();
    POINT(capture_counted);
    all_streams(false); /* another thread, whose capture is open already, may not have finished that */
}

static void closed(void) {
    if (__atomic_sub_fetch(&captures_open, 1, __ATOMIC_SEQ_CST) == 0) {
        invalidate_decisions();
        all_streams(true);
    }
}

RARE void capture_closes(uint64_t key) {
    for (int i = 0; key && OVERLAP_RELAXED(captures_open) && i < CAPTURES; i++) {
        uint64_t its = key;
        if (__atomic_compare_exchange_n(&captures[i].key, &its, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            closed();
            return;
        }
    }
    uint32_t left = OVERLAP_RELAXED(further);
    while (key && left &&
           !__atomic_compare_exchange_n(&further, &left, left - 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    if (key && left)
        closed();
}

bool capture_is_open(uint64_t key) {
    bool found = false;
    for (int i = 0; key && OVERLAP_RELAXED(captures_open) && i < CAPTURES; i++)
        found |= OVERLAP_RELAXED(captures[i].key) == key;
    return found;
}

/* The key of an entry that is of the context, or 0. */
static uint64_t key_of(int entry, uint64_t context, int device) {
    const uint64_t key = __atomic_load_n(&captures[entry].key, __ATOMIC_ACQUIRE);
    const uint64_t its = OVERLAP_RELAXED(captures[entry].context);
    const bool is_of =
        context ? its == context : OVERLAP_RELAXED(captures[entry].device) == device && !context_is_made(its);
    return key != TAKEN && is_of ? key : 0;
}

uint32_t captures_of_context(uint64_t context, int device) {
    uint32_t found = 0;
    for (int i = 0; OVERLAP_RELAXED(captures_open) && i < CAPTURES; i++)
        found += key_of(i, context, device) != 0;
    return found;
}

void captures_context_ended(uint64_t context, int device, uint32_t count) {
    for (int i = 0; count && i < CAPTURES; i++) {
        const uint64_t key = key_of(i, context, device);
        if (key) {
            capture_closes(key);
            count--;
        }
    }
}

void captures_forked(void) {
    memset(captures, 0, sizeof captures);
    captures_open = 0;
    further = 0;
}
