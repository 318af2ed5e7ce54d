/* A program that goes into a sandbox before it launches.
 *
 *   sandboxed MODE KERNEL BEFORE [thread]
 *     MODE    none
 *             strict  only read, write, exit and sigreturn, and no instruction that reads the clock (x86): prctl(PR_SET_SECCOMP)
 *             kill    what strict allows and memory for malloc; anything else kills, and its number is printed before
 *             refuse  every system call but mmap, which fails with EPERM
 *     KERNEL  launched BEFORE times before, then 600 times with two grids inside, by cuLaunchKernel and by cuLaunchKernelEx
 *     thread  another thread does all that after cuInit
 * Prints what the launches answered, by write(2).
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver.h"

static const unsigned allowed[] = {SYS_read, SYS_write, SYS_exit,   SYS_exit_group, SYS_rt_sigreturn,
                                   SYS_brk,  SYS_mmap,  SYS_munmap, SYS_mremap,     SYS_futex};
enum { COUNT = sizeof allowed / sizeof *allowed };
static const char *mode, *kernel;
static int before;
static void *function;
static uint64_t a;
static uint32_t b;
static void *parameters[] = {&a, &b};

static void say(const char *text, int number) {
    char line[64];
    const int length = snprintf(line, sizeof line, "%s%d\n", text, number);
    if (write(1, line, (size_t)length) < 0)
        syscall(SYS_exit, 9);
}

static void trapped(int signal, siginfo_t *info, void *unused) {
    (void)signal, (void)unused;
    say("refused system call: ", info->si_syscall);
    syscall(SYS_exit_group, 8);
}

static int enter(void) {
    struct sock_filter filter[2 * COUNT + 2];
    unsigned at = 0;
    if (strcmp(mode, "strict") == 0)
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    const int refuse = strcmp(mode, "refuse") == 0;
    if (!refuse && strcmp(mode, "kill") != 0)
        return 0;
    const struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; !refuse && i < COUNT; i++) {
        filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
        filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    if (refuse) {
        filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 1);
        filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, refuse ? SECCOMP_RET_ALLOW : SECCOMP_RET_TRAP);
    const struct sock_fprog program = {(unsigned short)at, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int launch(unsigned blocks) {
    const Config config = {.grid = {blocks, 1, 1}, .block = {256, 1, 1}};
    return CU(cuLaunchKernel)(function, blocks, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL) +
           CU(cuLaunchKernelEx)(&config, function, parameters, NULL);
}

static void *work(void *context) {
    int bad = CU(cuCtxSetCurrent)(context);
    for (int i = 0; i < before; i++)
        bad += launch(4000);
    if (enter() != 0)
        syscall(SYS_exit_group, 3);
    for (int i = 0; i < 600; i++)
        bad += launch(i % 2 ? 4000 : 8);
    say("bad: ", bad);
    syscall(strcmp(mode, "strict") == 0 ? SYS_exit : SYS_exit_group, 0);
    return NULL;
}

int main(int argc, char **argv) {
    void *context, *module;
    pthread_t thread;
    if (argc < 4)
        return 2;
    driver_open();
    mode = argv[1], kernel = argv[2], before = atoi(argv[3]);
    if (CU(cuInit)(0) || CU(cuDevicePrimaryCtxRetain)(&context, 0) || CU(cuCtxSetCurrent)(context) ||
        CU(cuModuleLoadData)(&module, ptx_of(argv[2])) || CU(cuModuleGetFunction)(&function, module, kernel))
        return 4;
    if (argc == 4)
        work(context);
    pthread_create(&thread, NULL, work, context);
    pthread_join(thread, NULL);
    syscall(SYS_exit_group, 0);
}
