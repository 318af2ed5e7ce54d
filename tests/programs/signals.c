/* Signals in the middle of first decisions, against a driver that does nothing (stub_driver.c), so that all that could hang
 * is the preloaded library.
 *
 *   signals HANDLER SOURCE KERNELS
 *     HANDLER  launch: a kernel of its own    exec: fork and exec
 *              mask: signals are blocked and pending, and what of that is left is printed
 *     SOURCE   none    timers: every 100 us of time and of processor time    thread: as fast as another thread can
 *              altstack: as timers, on a stack of 16 KiB with nothing below it
 * Launches KERNELS kernels for the first time, each with two grids. Prints what went wrong, and how often signals came.
 */
#define WAY_LINKED
#include "driver.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MINE = 1234 };
static const char *handler_does;
static void *module;
static volatile sig_atomic_t handled, bad;
static volatile sig_atomic_t done;
static pthread_t worker;

static int launch(int number, unsigned blocks) {
    char name[24];
    void *function;
    name[0] = 'k';
    int at = 1, divisor = 1;
    while (number / divisor >= 10)
        divisor *= 10;
    for (; divisor; divisor /= 10)
        name[at++] = (char)('0' + number / divisor % 10);
    name[at] = 0;
    errno = MINE;
    int failed = cuModuleGetFunction(&function, module, name) + launch_kernel(function, blocks, 256, NULL);
    return failed + (errno != MINE);
}

static void handle(int number) {
    (void)number;
    const int before = errno;
    handled++;
    if (strcmp(handler_does, "launch") == 0) {
        bad += launch(1000000 + handled % 5000, 4000);
    } else if (strcmp(handler_does, "exec") == 0 && handled % 8 == 0) {
        pid_t child = fork();
        int status = 1;
        if (child == 0) {
            bad += launch(3, 4000);
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
        bad += status != 0;
    }
    errno = before;
}

static void *send(void *unused) {
    (void)unused;
    while (!done) {
        pthread_kill(worker, SIGUSR1);
        usleep(20);
    }
    return NULL;
}

static void *small_stack(void) {
    const size_t size = 16384, page = 4096;
    char *memory = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory, page, PROT_NONE);
    stack_t stack = {.ss_sp = memory + page, .ss_size = size};
    return sigaltstack(&stack, NULL) ? NULL : memory;
}

static void say_mask(const char *when) {
    sigset_t blocked, pending;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    sigpending(&pending);
    printf("%s:", when);
    for (int signal = 1; signal < 65; signal++)
        if (sigismember(&blocked, signal) || sigismember(&pending, signal))
            printf(" %d%s", signal, sigismember(&pending, signal) ? " pending" : "");
    printf("\n");
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    handler_does = argv[1];
    const char *source = argv[2];
    const int kernels = atoi(argv[3]);
    pthread_t sender;
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    worker = pthread_self();
    if (strcmp(source, "altstack") == 0 && small_stack())
        action.sa_flags |= SA_ONSTACK;
    for (int signal = 1; signal < 32; signal++)
        if (signal == SIGALRM || signal == SIGPROF || signal == SIGUSR1)
            sigaction(signal, &action, NULL);
    driver_start();
    if (cuModuleLoadData(&module, "x"))
        return 3;
    bad += launch(0, 4000); /* what interrupts the making of the page is counted where nobody sees it */
    if (strcmp(source, "thread") == 0) {
        pthread_create(&sender, NULL, send, NULL);
    } else if (strcmp(source, "none") != 0) {
        setitimer(ITIMER_REAL, &often, NULL);
        setitimer(ITIMER_PROF, &often, NULL);
    }
    if (strcmp(handler_does, "mask") == 0) {
        sigset_t some;
        sigemptyset(&some);
        sigaddset(&some, SIGUSR1);
        sigaddset(&some, SIGUSR2);
        sigprocmask(SIG_BLOCK, &some, NULL);
        raise(SIGUSR1);
        say_mask("before");
    }
    for (int i = 0; i < kernels; i++)
        bad += launch(i, 4000) + launch(i, 8);
    done = 1;
    setitimer(ITIMER_REAL, &never, NULL);
    setitimer(ITIMER_PROF, &never, NULL);
    if (strcmp(source, "thread") == 0)
        pthread_join(sender, NULL);
    bad += launch(0, 4000) + launch(kernels, 4000);
    if (strcmp(handler_does, "mask") == 0)
        say_mask("after");
    printf("bad: %d\n", (int)bad);
    fprintf(stderr, "signals: %d\n", (int)handled);
    return 0;
}
