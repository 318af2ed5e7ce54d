/* The lock of gpu/lock.c where its holder does not leave it as usual. A line for each case: its name, and what lock_take() answered. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu/table.h"
#include "gpu/thread.h"
#include "sys/sys.h"

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

enum {
    STACK = 1 << 18,
    ATTEMPTS = 900, /* a handler ends: after 1,000 attempts and a second it has jumped out */
    MOST = 200000000,
    FEW = 200,
    THREADS = 4,
    ROUNDS = 20000,
    PRIORITY = 50
};

__thread struct this_thread this_thread;
uint32_t thread_id(void) {
    if (!this_thread.id)
        this_thread.id = overlap_thread_id();
    return this_thread.id;
}

static char *memory; /* of three stacks: one below that of a thread, that, and one above */
static int in_handler;
static sigjmp_buf out;

static int attempts_that_succeed(int most) {
    int taken = 0;
    for (int i = 0; i < most; i++)
        if (lock_take()) {
            lock_leave();
            taken++;
        }
    return taken;
}

static time_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
}

/* ---- Handlers of the thread that holds it ---- */

static void handle(int number) {
    (void)number;
    in_handler = 0;
    for (int i = 0; i < ATTEMPTS; i++)
        in_handler += lock_take();
}

static void interrupted(const char *name, int flags) {
    const struct sigaction action = {.sa_handler = handle, .sa_flags = flags};
    sigaction(SIGUSR1, &action, NULL);
    in_handler = -1;
    const int taken = lock_take();
    raise(SIGUSR1);
    lock_leave();
    printf("%s %d %d %d\n", name, taken, in_handler, attempts_that_succeed(1));
}

static void *on_other_stacks(void *unused) {
    static const char *const names[] = {"below", "", "above"};
    for (int i = 0; i < 3; i += 2) {
        const stack_t stack = {.ss_sp = memory + (size_t)i * STACK, .ss_size = STACK, .ss_flags = (int)SS_AUTODISARM};
        sigaltstack(&stack, NULL);
        interrupted(names[i], SA_ONSTACK);
    }
    sigaltstack(&(stack_t){.ss_sp = memory, .ss_size = STACK}, NULL);
    interrupted("on", SA_ONSTACK);
    sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
    return unused;
}

/* ---- A holder that never leaves it ---- */

static void jump(int number) {
    siglongjmp(out, number);
}

/* Out of what holds it. How many attempts until it is taken over. */
static void jumped(void) {
    volatile int attempts = 0;
    signal(SIGUSR2, jump);
    if (sigsetjmp(out, 1) == 0) {
        if (lock_take())
            raise(SIGUSR2);
    } else {
        while (attempts < MOST && !lock_take())
            attempts = attempts + 1;
    }
    lock_leave();
    printf("jumped %d %d\n", attempts, attempts_that_succeed(1));
}

static void *takes(void *unused) {
    lock_take();
    return unused;
}

static void ended(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, takes, NULL);
    pthread_join(thread, NULL);
    const int taken = lock_take();
    lock_leave();
    printf("ended %d %d\n", taken, attempts_that_succeed(1));
}

static void forked(void) {
    int status = -1;
    lock_take();
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        this_thread.id = 0;
        lock_forked();
        _exit(10 + lock_take());
    }
    waitpid(child, &status, 0);
    lock_leave();
    printf("forked %d %d\n", WEXITSTATUS(status) - 10, attempts_that_succeed(1));
}

/* ---- A holder that does not run ---- */

static int first, more, soon;

static void *waits(void *unused) {
    const time_t begun = now();
    first = attempts_that_succeed(1);
    more = attempts_that_succeed(FEW);
    soon = now() - begun < 60; /* had each one waited for a second: 200 */
    return unused;
}

static void stopped(void) {
    pthread_t thread;
    lock_take();
    pthread_create(&thread, NULL, waits, NULL);
    pthread_join(thread, NULL);
    lock_leave();
    printf("stopped %d %d %d", first, more, soon);
    pthread_create(&thread, NULL, waits, NULL);
    pthread_join(thread, NULL);
    printf(" %d\n", more);
}

static void *waits_a_little(void *unused) {
    first = attempts_that_succeed(1);
    return unused;
}

/* Held by an ordinary thread that has work to do, while one with real-time priority wants it, on one core. 77: the system refuses that
 * priority. */
static int wanted;
static void *wants(void *unused) {
    const struct sched_param parameter = {PRIORITY};
    if (sched_setscheduler(0, SCHED_FIFO, &parameter)) {
        first = 77;
        __atomic_store_n(&wanted, 1, __ATOMIC_RELEASE);
        return unused;
    }
    __atomic_store_n(&wanted, 1, __ATOMIC_RELEASE);
    return waits_a_little(unused);
}

static void realtime(void) {
    cpu_set_t all, one;
    pthread_t thread;
    CPU_ZERO(&one);
    CPU_SET((unsigned)sched_getcpu(), &one);
    sched_getaffinity(0, sizeof all, &all);
    sched_setaffinity(0, sizeof one, &one);
    lock_take();
    pthread_create(&thread, NULL, wants, NULL);
    while (!__atomic_load_n(&wanted, __ATOMIC_ACQUIRE))
        sched_yield();
    const clock_t begun = clock();
    while (clock() - begun < CLOCKS_PER_SEC / 50)
        continue;
    lock_leave();
    pthread_join(thread, NULL);
    sched_setaffinity(0, sizeof all, &all);
    printf("realtime %d\n", first);
}

/* ---- Many ---- */

static long counted;
static void *take_often(void *successes) {
    for (int i = 0; i < ROUNDS; i++)
        if (lock_take()) {
            counted++;
            ++*(long *)successes;
            lock_leave();
        }
    return NULL;
}

static void contended(void) {
    pthread_t threads[THREADS];
    long successes[THREADS][16] = {{0}}, sum = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, take_often, successes[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += successes[i][0];
    }
    printf("contended %d %d\n", sum == counted, sum == (long)THREADS * ROUNDS);
}

int main(void) {
    pthread_t thread, waiter;
    pthread_attr_t attributes;
    memory = mmap(NULL, 3 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, memory + STACK, STACK);
    interrupted("handler", 0);
    if (pthread_create(&thread, &attributes, on_other_stacks, NULL))
        return 2;
    pthread_join(thread, NULL);
    lock_take();
    pthread_create(&waiter, NULL, waits_a_little, NULL);
    usleep(1000);
    lock_leave();
    pthread_join(waiter, NULL);
    printf("waited %d\n", first);
    forked();
    contended();
    jumped();
    ended();
    lock_forked();
    stopped();
    realtime();
    return 0;
}
