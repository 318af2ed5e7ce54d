/* The lock of gpu/lock.c: taken, in a signal handler of its holder, again, after a jump out of its holder, by another thread, and
 * by a thread after another one's wait has timed out; and how long it takes until a wait times out on a busy processor. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "gpu/lock.c"
#include "sys/process.c"

static __thread uint32_t thread = 7;
static int in_handler = -1, late;
static jmp_buf out;

uint32_t thread_id(void) {
    return thread;
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

static void *wait_for_it(void *unused) {
    thread = 9;
    late = lock_take();
    return unused;
}

__attribute__((noreturn)) static void *spin(void *forever) {
    for (;;)
        __atomic_load_n((int *)forever, __ATOMIC_RELAXED);
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
    pthread_t waiter;
    thread = 7;
    lock_leave();
    lock_take();
    pthread_create(&waiter, NULL, wait_for_it, NULL);
    usleep(1000);
    lock_leave();
    pthread_join(waiter, NULL);
    sched_setaffinity(0, sizeof(cpu_set_t), &(cpu_set_t){{1UL << sched_getcpu() % 64}});
    pthread_create(&waiter, NULL, spin, &late);
    pthread_create(&waiter, NULL, spin, &late);
    const long begun = seconds();
    overlap_wait_long(&holder, 7);
    printf("%d %d %d %d %d %d %d\n", taken, in_handler, again, behind, other, late, seconds() - begun < 10);
    return 0;
}
