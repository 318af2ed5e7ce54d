/* The lock of gpu/lock.c: taken, in a signal handler of its holder, again, after a jump out of its holder, of another thread. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

#include "gpu/lock.c"

static uint32_t thread = 7;
static int in_handler = -1;
static jmp_buf out;

uint32_t thread_id(void) {
    return thread;
}
bool overlap_wait(const uint32_t *waited, uint32_t value) { /* the holder does not leave it */
    return __atomic_load_n(waited, __ATOMIC_RELAXED) == value;
}
bool overlap_on_signal_stack(void) {
    return false;
}

static void handler(int number) {
    (void)number;
    in_handler = lock_take();
}

__attribute__((noinline)) static void jumps_out(void) {
    volatile char frame[256] = {0};
    if (lock_take())
        longjmp(out, 1 + frame[0]);
}

int main(void) {
    signal(SIGUSR1, handler);
    const int taken = lock_take();
    raise(SIGUSR1);
    lock_leave();
    const int again = lock_take();
    lock_leave();
    if (setjmp(out) == 0)
        jumps_out();
    const int behind = lock_take();
    thread = 8;
    const int other = lock_take();
    printf("%d %d %d %d %d\n", taken, in_handler, again, behind, other);
    return 0;
}
