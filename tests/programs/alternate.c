/* A library whose first call of its runtime is made by a signal handler on an alternate stack of 8 KiB, which SIGSTKSZ was for long. */
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>

enum { SIZE = 8192, GUARD = 1 << 16 };
typedef struct {
    unsigned x, y, z;
} dim3;
extern int cudaLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
int scope_launch(void);
static volatile int answer = -1;

static void handle(int signal) {
    (void)signal;
    answer = cudaLaunchKernel(NULL, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL);
}

int scope_launch(void) {
    char *memory = mmap(NULL, GUARD + SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    mprotect(memory + GUARD, SIZE, PROT_READ | PROT_WRITE);
    sigaltstack(&(stack_t){.ss_sp = memory + GUARD, .ss_size = SIZE}, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    return answer;
}
