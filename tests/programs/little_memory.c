/* A process that gets no pieces of memory from LARGE to LARGEST MiB, whoever asks for them (seccomp(2)). Preloaded behind the
 * library. The simulated driver's own piece is larger than 128 MiB. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define LOW(number) (offsetof(struct seccomp_data, args) + 8 * (number)) /* of a little-endian argument */
#define LOAD(place) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, place)

__attribute__((constructor)) static void start(void) {
    struct sock_filter filter[] = {
        LOAD(offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 8),
        LOAD(LOW(1)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, LARGE << 20, 0, 6),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, LARGEST << 20, 5, 0),
        LOAD(LOW(2)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROT_READ | PROT_WRITE, 0, 3),
        LOAD(LOW(4)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffff, 0, 1), /* no file */
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
