/* One way to speak: whole lines, by one write(2), on the stderr that the process started with. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "kernel.h"

enum { STDERR = 2 };

OVERLAP_STARTUP_DATA static struct overlap_identity at_start;

OVERLAP_STARTUP void overlap_log_start(void) {
    at_start = overlap_identify(STDERR);
}

/* Writes without consequences: a pipe that is full would stop the program, and one whose reader is gone would kill it
 * by SIGPIPE. A pipe that is ready takes a line of this length at once (POSIX: PIPE_BUF is 4,096 on Linux). */
static void write_safely(const char *line, size_t length) {
    struct pollfd ready = {.fd = STDERR, .events = POLLOUT};
    const struct timespec none = {0};
    if (kernel6(SYS_ppoll, (long)&ready, 1, (long)&none, 0, 0, 0) != 1 || ready.revents != POLLOUT)
        return;
    const uint64_t broken = UINT64_C(1) << (SIGPIPE - 1); /* a mask of the kernel's: 64 signals */
    uint64_t before, pending = 0;
    kernel3(SYS_rt_sigpending, (long)&pending, sizeof pending, 0);
    if (kernel4(SYS_rt_sigprocmask, SIG_BLOCK, (long)&broken, (long)&before, sizeof broken) != 0)
        return;
    if (kernel_write(STDERR, line, length) == -EPIPE && !(pending & broken))
        kernel4(SYS_rt_sigtimedwait, (long)&broken, 0, (long)&none, sizeof broken);
    kernel4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before);
}

void overlap_say(const char *a, const char *b, const char *c) {
    static const char prefix[] = "overlap: ";
    const char *const pieces[] = {prefix, a, b, c};
    char line[1024];
    size_t length = 0;
    if (overlap_start.settings.quiet || !overlap_is_still(STDERR, &at_start))
        return;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        size_t size = pieces[i] ? strlen(pieces[i]) : 0;
        if (size > sizeof line - 1 - length)
            size = sizeof line - 1 - length;
        memcpy(line + length, pieces[i] ? pieces[i] : "", size);
        length += size;
    }
    line[length++] = '\n';
    write_safely(line, length);
}
