/* This process and its threads, as the kernel knows them, and bounded waits for other threads. */
#include <errno.h>
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

/* If a sandbox refuses gettid(2), the result is a number that no other thread has. */
uint32_t overlap_thread_id(void) {
    static uint32_t unnumbered = INT32_MAX;
    const long id = kernel0(SYS_gettid);
    return id > 0 ? (uint32_t)id : __atomic_add_fetch(&unnumbered, 1, __ATOMIC_RELAXED);
}

bool overlap_on_signal_stack(void) {
    stack_t now = {0};
    return kernel3(SYS_sigaltstack, 0, (long)&now, 0) == 0 && now.ss_flags & SS_ONSTACK;
}

void overlap_pause(void) {
    kernel0(SYS_sched_yield);
}

/* By the kernel's own clock. 0: a sandbox refuses the call. */
static long seconds(void) {
    struct timespec now = {0};
    kernel3(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now, 0);
    return now.tv_sec;
}

/* Where other threads keep the processor busy, each pause takes milliseconds: hence the limit, in seconds. */
static bool wait_for(const uint32_t *waited, uint32_t value, int most, long limit) {
    const uint32_t **before = waits_on(waited);
    long begun = 0;
    for (int i = 0; i < most; i++) {
        if (__atomic_load_n(waited, __ATOMIC_ACQUIRE) == value) {
            if (__atomic_load_n(before, __ATOMIC_RELAXED) == waited)
                __atomic_store_n(before, NULL, __ATOMIC_RELAXED);
            return true;
        }
        if (__atomic_load_n(before, __ATOMIC_RELAXED) == waited)
            return false;
        overlap_pause();
        const long now = i % 64 == 63 ? seconds() : begun;
        begun = begun ? begun : now;
        if (now - begun > limit)
            break;
    }
    __atomic_store_n(before, waited, __ATOMIC_RELAXED);
    return false;
}

bool overlap_wait(const uint32_t *waited, uint32_t value) {
    return wait_for(waited, value, 20000, 1);
}

bool overlap_wait_long(const uint32_t *waited, uint32_t value) {
    return wait_for(waited, value, 2000000, 2);
}

void overlap_wait_again(const uint32_t *waited) {
    if (__builtin_expect(__atomic_load_n(waits_on(waited), __ATOMIC_RELAXED) == waited, 0))
        __atomic_store_n(waits_on(waited), NULL, __ATOMIC_RELAXED);
}

void overlap_wait_forked(void) {
    for (size_t i = 0; i < sizeof given_up / sizeof *given_up; i++)
        given_up[i] = NULL;
}

/* If a sandbox refuses the call, the thread counts as alive. */
bool overlap_thread_alive(uint32_t tid) {
    return kernel3(SYS_tgkill, kernel0(SYS_getpid), tid, 0) != -ESRCH;
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
