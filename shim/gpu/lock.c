/* The lock (table.h): a word with the holder's thread id, waited for by sys/process.c. */
#include "../sys/sys.h"
#include "table.h"
#include "thread.h"

static uint32_t holder;                 /* thread id; 0: free */
static uintptr_t held_at = UINTPTR_MAX; /* stack address of the holder, once it has stored that */

bool lock_take(void) {
    const uint32_t own = thread_id();
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    for (int tries = 0; tries < 100; tries++) {
        uint32_t found = 0;
        if (__atomic_compare_exchange_n(&holder, &found, own, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            held_at = here;
            return true;
        }
        /* If our frame is not below the recorded one, a handler has jumped out of that call; unless we run on a signal
         * stack. */
        if (found == own && (here < held_at || overlap_on_signal_stack()))
            return false;
        if (found == own) {
            held_at = here;
            return true;
        }
        if (!overlap_wait(&holder, 0))
            return false;
    }
    return false;
}

void lock_leave(void) {
    held_at = UINTPTR_MAX;
    __atomic_store_n(&holder, 0, __ATOMIC_RELEASE);
    overlap_wait_again(&holder);
}

void lock_forked(void) {
    held_at = UINTPTR_MAX;
    holder = 0;
}
