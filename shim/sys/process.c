/* This process and its threads, as the kernel knows them, and bounded waits for other threads.
 *
 * A waiter sleeps: on a core that it shares with the thread it waits for, yielding would never let that thread run if the
 * waiter has the higher priority. */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <time.h>

#include "kernel.h"

struct overlap_start overlap_start;
static const uint32_t *given_up[8]; /* waits that timed out: later waits on the same object fail at once */

static const uint32_t **waits_on(const uint32_t *waited) {
    return &given_up[(uintptr_t)waited / 64 % 8];
}

int overlap_pid(void) {
    return (int)kernel0(SYS_getpid);
}

/* If a sandbox refuses gettid(2), the result is a number that no thread has (PID_MAX_LIMIT is 1 << 22). */
enum { UNNUMBERED = 1 << 23 };
uint32_t overlap_thread_id(void) {
    static uint32_t unnumbered = UNNUMBERED;
    const long id = kernel0(SYS_gettid);
    return id > 0 ? (uint32_t)id : __atomic_add_fetch(&unnumbered, 1, __ATOMIC_RELAXED) & FUTEX_TID_MASK;
}

uint64_t overlap_kernel_clock(void) {
    struct timespec now = {0};
    kernel3(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now, 0);
    return (uint64_t)now.tv_sec * OVERLAP_SECOND + (uint64_t)now.tv_nsec;
}

/* A pause between two looks at something that another thread does: at first the processor is left to others that may run,
 * then the thread sleeps, each time longer, up to a millisecond. False: `limit` nanoseconds have passed, by the clock or,
 * where a sandbox refuses that, by the sleeps. */
struct pauses {
    uint64_t begun, slept;
    uint32_t count;
};
static bool pause_within(struct pauses *pauses, uint64_t limit) {
    enum { YIELDS = 16, DOUBLINGS = 6 };
    if (pauses->count++ < YIELDS) {
        kernel0(SYS_sched_yield);
        return true;
    }
    const uint32_t doublings = pauses->count - YIELDS < DOUBLINGS ? pauses->count - YIELDS : DOUBLINGS;
    const struct timespec time = {.tv_nsec = 16000L << doublings};
    const uint64_t now = overlap_kernel_clock();
    pauses->begun = pauses->begun ? pauses->begun : now;
    kernel3(SYS_nanosleep, (long)&time, 0, 0);
    pauses->slept += (uint64_t)time.tv_nsec;
    return (now ? now - pauses->begun : pauses->slept) < limit;
}

static bool wait_for(const uint32_t *waited, uint32_t value, uint64_t limit) {
    const uint32_t **before = waits_on(waited);
    struct pauses pauses = {0, 0, 0};
    do {
        if (__atomic_load_n(waited, __ATOMIC_ACQUIRE) == value) {
            if (__atomic_load_n(before, __ATOMIC_RELAXED) == waited)
                __atomic_store_n(before, NULL, __ATOMIC_RELAXED);
            return true;
        }
        if (__atomic_load_n(before, __ATOMIC_RELAXED) == waited)
            return false;
    } while (pause_within(&pauses, limit));
    __atomic_store_n(before, waited, __ATOMIC_RELAXED);
    return false;
}

bool overlap_wait(const uint32_t *waited, uint32_t value) {
    return wait_for(waited, value, OVERLAP_SECOND);
}

bool overlap_wait_for_driver(const uint32_t *waited, uint32_t value) {
    return wait_for(waited, value, 2 * OVERLAP_SECOND);
}

void overlap_wait_reset(const uint32_t *waited) {
    if (__builtin_expect(__atomic_load_n(waits_on(waited), __ATOMIC_RELAXED) == waited, 0))
        __atomic_store_n(waits_on(waited), NULL, __ATOMIC_RELAXED);
}

void overlap_wait_forked(void) {
    for (size_t i = 0; i < sizeof given_up / sizeof *given_up; i++)
        given_up[i] = NULL;
}

/* ---- The lock ---- */

uint32_t overlap_lock_owner(uint32_t word) {
    return word & FUTEX_TID_MASK;
}

/* futex(2): FUTEX_LOCK_PI2, since Linux 5.14, takes the timeout of the monotonic clock; that of FUTEX_LOCK_PI is of the
 * system's time, which may be set. -ENOSYS: the kernel has no priority inheritance. */
static long lock_inheriting(uint32_t *word, uint64_t limit) {
    enum { LOCK_PI2 = 13 };
    for (int operation = LOCK_PI2; operation; operation = operation == LOCK_PI2 ? FUTEX_LOCK_PI : 0) {
        struct timespec end = {0};
        kernel3(SYS_clock_gettime, operation == LOCK_PI2 ? CLOCK_MONOTONIC : CLOCK_REALTIME, (long)&end, 0);
        end.tv_sec += (time_t)(limit / OVERLAP_SECOND);
        const long result = kernel6(SYS_futex, (long)word, operation | FUTEX_PRIVATE_FLAG, 0, (long)&end, 0, 0);
        if (result != -ENOSYS && result != -EINVAL)
            return result;
    }
    return -ENOSYS;
}

enum overlap_lock_result overlap_lock_wait(uint32_t *word, uint32_t own) {
    enum { LOOKS = 100, YIELDS = 64 }; /* the lock is held for less than a microsecond, as a rule */
    struct pauses pauses = {0, 0, 0};
    const uint32_t found = __atomic_load_n(word, __ATOMIC_RELAXED);
    for (int look = 0; look < LOOKS + YIELDS; look++) {
        uint32_t free = 0;
        if (!__atomic_load_n(word, __ATOMIC_RELAXED) &&
            __atomic_compare_exchange_n(word, &free, own, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return OVERLAP_LOCK_TAKEN;
        if (look < LOOKS)
            kernel_relax();
        else /* many threads: handing the lock on through the kernel takes longer */
            kernel0(SYS_sched_yield);
    }
    const bool numbered = own <= UNNUMBERED && overlap_lock_owner(found) <= UNNUMBERED;
    const long result = numbered ? lock_inheriting(word, OVERLAP_SECOND) : -ENOSYS;
    switch (result) {
    case 0:
        (void)__atomic_load_n(word, __ATOMIC_ACQUIRE);
        return OVERLAP_LOCK_TAKEN;
    case -ETIMEDOUT:
        return OVERLAP_LOCK_TIMED_OUT;
    case -ESRCH: /* there is no such thread, unless the lock has changed hands */
        return __atomic_load_n(word, __ATOMIC_RELAXED) == found ? OVERLAP_LOCK_ORPHANED : OVERLAP_LOCK_RETRY;
    case -EAGAIN: /* its owner is about to end */
    case -EINTR:
        return OVERLAP_LOCK_RETRY;
    default:
        break;
    }
    while (pause_within(&pauses, OVERLAP_SECOND))
        if (!__atomic_load_n(word, __ATOMIC_RELAXED))
            return OVERLAP_LOCK_RETRY;
    return OVERLAP_LOCK_TIMED_OUT;
}

void overlap_lock_pass(uint32_t *word, uint32_t own) {
    /* Orders what the owner has written before what the next one reads, however that one gets the lock: race detectors do
     * not see that order in system calls. */
    __atomic_fetch_or(word, 0, __ATOMIC_RELEASE);
    if (kernel6(SYS_futex, (long)word, FUTEX_UNLOCK_PI | FUTEX_PRIVATE_FLAG, 0, 0, 0, 0) != 0 &&
        overlap_lock_owner(__atomic_load_n(word, __ATOMIC_RELAXED)) == own)
        __atomic_store_n(word, 0, __ATOMIC_RELEASE); /* the kernel does not know of waiters */
}

/* If a sandbox refuses the call, or has refused the thread's number, the thread counts as alive. */
bool overlap_thread_alive(uint32_t tid) {
    return tid > UNNUMBERED || kernel3(SYS_tgkill, kernel0(SYS_getpid), tid, 0) != -ESRCH;
}

bool overlap_once(uint32_t *done, void (*work)(void)) {
    uint32_t now = __atomic_load_n(done, __ATOMIC_ACQUIRE);
    if (now == OVERLAP_FRESH &&
        __atomic_compare_exchange_n(done, &now, OVERLAP_WORKING, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        work();
        __atomic_store_n(done, OVERLAP_DONE, __ATOMIC_RELEASE);
        return true;
    }
    return now == OVERLAP_DONE || overlap_wait(done, OVERLAP_DONE);
}
