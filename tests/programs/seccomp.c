/* seccomp ERRNO[,CALL] PROGRAM [ARG ...]: runs a program in a sandbox that refuses, by that error, the system calls which the
 * preloaded library makes and a program that only computes does not; or one of them: fallocate (as some file systems do), gettid,
 * tgkill. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    unsigned number;
} single[] = {{"fallocate", SYS_fallocate}, {"gettid", SYS_gettid}, {"tgkill", SYS_tgkill}};
static const unsigned refused[] = {
    SYS_fallocate, SYS_statfs, SYS_uname,       SYS_getppid,         SYS_prlimit64, SYS_ppoll,  SYS_rt_sigpending,
    SYS_gettid,    SYS_tgkill, SYS_sched_yield, SYS_rt_sigtimedwait, SYS_fchmod,    SYS_getcwd,
#ifdef SYS_poll
    SYS_poll,
#endif
#ifdef SYS_getrlimit
    SYS_getrlimit,
#endif
#ifdef SYS_readlink
    SYS_readlink,
#endif
};
enum { COUNT = sizeof refused / sizeof *refused };

int main(int argc, char **argv) {
    struct sock_filter filter[2 * COUNT + 2];
    const unsigned answer = SECCOMP_RET_ERRNO | (argc > 1 ? (unsigned)atoi(argv[1]) : 0);
    const char *only = argc > 1 ? strchr(argv[1], ',') : NULL;
    const unsigned *numbers = refused;
    unsigned at = 0, count = COUNT;
    for (unsigned i = 0; only && i < sizeof single / sizeof *single; i++)
        if (strcmp(only + 1, single[i].name) == 0)
            numbers = &single[i].number, count = 1;
    if (argc < 3)
        return 2;
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < count; i++) {
        filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, numbers[i], 0, 1);
        filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
    }
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {(unsigned short)at, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return perror("seccomp"), 3;
    execv(argv[2], argv + 2);
    return 4;
}
