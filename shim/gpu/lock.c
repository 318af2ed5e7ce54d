/* The lock (table.h): a word with the owner's thread id, as the kernel wants it for priority inheritance
 * (sys/process.c): a waiting thread lends the owner its priority, so that the owner runs even where the waiter has a
 * real-time priority and both share a core. */
#include "../core/core.h"
#include "../sys/sys.h"
#include "table.h"
#include "thread.h"

static uint32_t holder; /* thread id of the owner, and the kernel's mark that threads wait; 0: free */
static uint32_t stuck;  /* owner for which a wait has timed out: further ones fail at once until it leaves */

/* Does the owner find that it holds the lock itself? Then this is a signal handler that has interrupted it, on whatever
 * stack. Or it has jumped out of its critical section (siglongjmp): no frame or stack tells the two apart, but a handler
 * ends. So after many attempts, and a long time, it has jumped. Only the owner writes these. */
enum { HANDLER_ATTEMPTS = 1000 };
static uint32_t attempts;
static uint64_t first_attempt; /* nanoseconds */

static bool has_jumped(void) {
    if (!attempts++)
        first_attempt = overlap_kernel_clock();
    if (attempts < HANDLER_ATTEMPTS || overlap_kernel_clock() - first_attempt < OVERLAP_SECOND)
        return false;
    attempts = 0;
    return true;
}

/* The thread that held it is gone, and what it was writing stays as it is. */
static bool inherit(uint32_t own, uint32_t gone) {
    if (!__atomic_compare_exchange_n(&holder, &gone, own, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return false;
    attempts = 0;
    return true;
}

RARE static bool take_contended(uint32_t own) {
    for (int tries = 0; tries < 100; tries++) {
        uint32_t found = OVERLAP_RELAXED(holder);
        const uint32_t owner = overlap_lock_owner(found);
        if (owner == own)
            return has_jumped();
        if (found && OVERLAP_RELAXED(stuck) == owner)
            return false;
        switch (overlap_lock_wait(&holder, own)) {
        case OVERLAP_LOCK_TAKEN:
            attempts = 0;
            return true;
        case OVERLAP_LOCK_ORPHANED:
            if (inherit(own, found))
                return true;
            break;
        case OVERLAP_LOCK_TIMED_OUT:
            __atomic_store_n(&stuck, owner, __ATOMIC_RELAXED);
            return false;
        case OVERLAP_LOCK_RETRY:
            break;
        }
    }
    return false;
}

bool lock_take(void) {
    const uint32_t own = thread_id();
    uint32_t found = 0;
    if (__builtin_expect(!__atomic_compare_exchange_n(&holder, &found, own, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED),
                         0))
        return take_contended(own);
    attempts = 0;
    return true;
}

void lock_leave(void) {
    const uint32_t own = thread_id();
    uint32_t found = own;
    if (__builtin_expect(OVERLAP_RELAXED(stuck) != 0, 0))
        __atomic_store_n(&stuck, 0, __ATOMIC_RELAXED);
    if (__builtin_expect(!__atomic_compare_exchange_n(&holder, &found, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED),
                         0))
        overlap_lock_pass(&holder, own);
}

void lock_forked(void) {
    holder = stuck = attempts = 0;
}
