/* A program that works while a signal's handler does what a profiler's does, or uses the driver itself. The driver does nothing
 * (tools/bench/null_driver.c), so all that could hang is the preloaded library.
 *
 *   interrupted WORK HANDLER STACK SOURCE COUNT
 *     WORK     retain: launches, and retains and releases the primary context, as UCX does for each copy
 *              jit: a module with a new kernel is loaded, launched and unloaded    first: kernels in sizes of their own
 *              stream: the life of a stream, on which the host waits for a launch
 *              walk: the loaded objects are walked, as unwinders do for an exception
 *     HANDLER  walk: the loaded objects are walked, as libunwind, gperftools and HPCToolkit do    backtrace: libc's own
 *              launch: a known kernel, one in a size of its own, and a wait for its stream    jit: as the work
 *     STACK    own: that of the thread    on: an alternate one    below, above: an alternate one that the kernel disarms
 *              while the handler runs (SS_AUTODISARM), in memory below or above the thread's stack
 *     SOURCE   timer: as often as signals come
 *              step: at each instruction of the work, by the processor's trap flag
 *              others: those that others send
 *              locked: none, but another thread walks the loaded objects all the time: it waits in a callback
 * Works until COUNT signals have been handled; `step`, `locked`: COUNT times; `others`: for COUNT milliseconds of processor time;
 * then launches AFTER times undisturbed. Prints what went wrong, and on stderr how much was done.
 */
#define WAY_LINKED
#include "driver.h"
#include "trap.h"

#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

enum { KERNELS = 64, FRAMES = 32, LARGE = 3000, AFTER = 100000, STACK = 1 << 18 };
static const char *work_is, *handler_does, *source;
static char *memory; /* of three stacks: one below that of the thread, that, and one above */
static int stack_used = -1, count, steps_made;
static void *functions[KERNELS], *stream, *beside;
static volatile sig_atomic_t handled;
static int bad, launched; /* added to in one instruction, which no handler interrupts */
static int by_timer;

static void add(int wrong) {
    if (wrong)
        __atomic_fetch_add(&bad, wrong, __ATOMIC_RELAXED);
}

static int launch(void *function, unsigned blocks, unsigned threads, void *on) {
    __atomic_fetch_add(&launched, 1, __ATOMIC_RELAXED);
    return launch_kernel(function, blocks, threads, on);
}

static int visit(struct dl_phdr_info *object, size_t size, void *count) {
    (void)object, (void)size;
    ++*(int *)count;
    return 0;
}

static int walk(void) {
    int objects = 0;
    return dl_iterate_phdr(visit, &objects) + (objects < 3);
}

/* Later each time by a little, so that signals come everywhere. */
static void again(void) {
    const struct itimerval once = {.it_value.tv_usec = 30 + handled % 23};
    setitimer(ITIMER_REAL, &once, NULL);
}

/* snprintf may not be called by a handler. */
static int jit(int step) {
    void *module, *function;
    char name[] = "jit_00000000";
    for (int at = sizeof name - 2; step; step /= 10)
        name[at--] = (char)('0' + step % 10);
    return cuModuleLoadData(&module, "x") + cuModuleGetFunction(&function, module, name) +
           launch(function, 4, 128, stream) + cuModuleUnload(module);
}

static void handle(int number) {
    const int before = errno;
    void *frames[FRAMES];
    (void)number;
    if (strcmp(handler_does, "walk") == 0)
        add(walk());
    else if (strcmp(handler_does, "backtrace") == 0)
        add(backtrace(frames, FRAMES) < 2);
    else if (strcmp(handler_does, "jit") == 0)
        add(jit(50000000 + handled));
    else
        add(launch(functions[0], 1, 128, stream) +
            launch(functions[handled % KERNELS], 1 + (unsigned)handled % 1000, 128, stream) +
            launch(functions[1], LARGE, 128, beside) + cuStreamSynchronize(stream));
    handled++;
    if (by_timer)
        again();
    errno = before;
}

static int retain(int step) {
    void *context;
    return launch(functions[step % KERNELS], 4, 128, stream) + cuDevicePrimaryCtxRetain(&context, 0) +
           cuDevicePrimaryCtxRelease_v2(0);
}

static int first(int step) {
    return launch(functions[step % KERNELS], 4, 32 + (unsigned)(step / KERNELS) % 900, stream);
}

static int lives(int step) {
    void *own;
    return cuStreamCreate(&own, 1) + launch(functions[step % KERNELS], 4, 128, own) + cuStreamSynchronize(own) +
           launch(functions[step % KERNELS], LARGE, 128, beside) + cuStreamDestroy_v2(own);
}

static int walks(int step) {
    (void)step;
    return walk();
}

static int milliseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (int)(time.tv_sec * 1000 + time.tv_nsec / 1000000);
}

static int goes_on(void) {
    if (strcmp(source, "step") == 0 || strcmp(source, "locked") == 0)
        return steps_made <= count;
    return (strcmp(source, "others") == 0 ? milliseconds() : handled) < count;
}

static void *run(void *unused) {
    static const struct {
        const char *name;
        int (*run)(int step);
    } works[] = {{"retain", retain}, {"jit", jit}, {"first", first}, {"stream", lives}, {"walk", walks}};
    struct sigaction action = {.sa_handler = handle, .sa_flags = stack_used >= 0 ? SA_ONSTACK : 0};
    const int by_steps = strcmp(source, "step") == 0;
    int (*work)(int) = NULL;
    void *module;
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (strcmp(work_is, works[i].name) == 0)
            work = works[i].run;
    driver_start();
    if (!work || cuModuleLoadData(&module, "x") || cuStreamCreate(&stream, 1) || cuStreamCreate(&beside, 1))
        exit(3);
    for (int i = 0; i < KERNELS; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%d", i);
        add(cuModuleGetFunction(&functions[i], NULL, name));
    }
    if (stack_used >= 0)
        add(sigaltstack(&(stack_t){.ss_sp = memory + (size_t)stack_used * STACK,
                                   .ss_size = STACK,
                                   .ss_flags = stack_used == 3 ? 0 : (int)SS_AUTODISARM},
                        NULL));
    handle(0);
    add(work(0));
    by_timer = strcmp(source, "timer") == 0;
    if (by_steps || by_timer) /* those of others are not touched */
        sigaction(by_steps ? SIGTRAP : SIGALRM, &action, NULL);
    if (by_timer)
        again();
    for (steps_made = 1; goes_on(); steps_made++) {
        if (by_steps)
            trap(1);
        add(work(steps_made));
        if (by_steps)
            trap(0);
    }
    if (by_timer)
        by_timer = 0, setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    for (int i = 0; i < AFTER; i++)
        add(launch(functions[i % KERNELS], 4, 128, stream));
    return unused;
}

static int begin(const pthread_attr_t *attributes) {
    pthread_t thread;
    return pthread_create(&thread, attributes, run, NULL) + pthread_join(thread, NULL);
}

static int begin_locked(struct dl_phdr_info *object, size_t size, void *attributes) {
    (void)object, (void)size;
    add(begin(attributes));
    return 1;
}

int main(int argc, char **argv) {
    static const char *const stacks[] = {"below", "", "above", "on"};
    pthread_attr_t attributes;
    void *frames[1];
    if (argc != 6)
        return 2;
    work_is = argv[1], handler_does = argv[2], source = argv[4], count = atoi(argv[5]);
    for (int i = 0; i < 4; i++)
        if (strcmp(argv[3], stacks[i]) == 0)
            stack_used = i;
    memory = mmap(NULL, 4 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, memory + STACK, STACK);
    if (memory == MAP_FAILED)
        return 3;
    backtrace(frames, 1); /* loads what it needs */
    if (strcmp(source, "locked") == 0)
        dl_iterate_phdr(begin_locked, &attributes);
    else if (stack_used < 0)
        run(NULL);
    else
        add(begin(&attributes));
    printf("bad: %d\n", bad);
    fprintf(stderr, "signals: %d\nsteps: %d\nlaunches: %d\n", (int)handled, steps_made, launched);
    return 0;
}
