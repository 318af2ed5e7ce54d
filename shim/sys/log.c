/* The only output: whole lines, each by one write(2), on the stderr that the process started with. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "kernel.h"

enum { STDERR = 2 };

static struct overlap_identity at_start;

void overlap_log_start(void) {
    at_start = overlap_identify(STDERR);
}

/* Writes without affecting the program: it skips a full pipe, which would block, and suppresses the SIGPIPE of a pipe
 * without a reader. A pipe that is ready accepts a line of this length at once (POSIX: PIPE_BUF is 4,096 on Linux). */
static void write_safely(const char *line, size_t length) {
    struct pollfd ready = {.fd = STDERR, .events = POLLOUT};
    const struct timespec none = {0};
    if (kernel6(SYS_ppoll, (long)&ready, 1, (long)&none, 0, 0, 0) != 1 || ready.revents != POLLOUT)
        return;
    const uint64_t broken = UINT64_C(1) << (SIGPIPE - 1); /* the kernel's signal mask: 64 signals */
    uint64_t before, pending = 0;
    kernel3(SYS_rt_sigpending, (long)&pending, sizeof pending, 0);
    if (kernel4(SYS_rt_sigprocmask, SIG_BLOCK, (long)&broken, (long)&before, sizeof broken) != 0)
        return;
    if (kernel_write(STDERR, line, length) == -EPIPE && !(pending & broken))
        kernel4(SYS_rt_sigtimedwait, (long)&broken, 0, (long)&none, sizeof broken);
    kernel4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before);
}

/* Returns the bytes of the UTF-8 character at `at`. 0: it is none, or one that moves a terminal's cursor. */
static size_t printable(const uint8_t *at, size_t left) {
    const size_t size = *at < 0x80 ? 1 : *at >= 0xC2 && *at < 0xE0 ? 2 : *at >= 0xE0 && *at < 0xF0 ? 3 : 4;
    if (*at < 0x20 || *at == 0x7F || (*at >= 0x80 && *at < 0xC2) || *at > 0xF4 || size > left)
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((at[i] & 0xC0) != 0x80)
            return 0;
    const bool overlong = (*at == 0xE0 && at[1] < 0xA0) || (*at == 0xF0 && at[1] < 0x90);
    const bool no_character = (*at == 0xED && at[1] > 0x9F) || (*at == 0xF4 && at[1] > 0x8F);
    const bool control =
        (*at == 0xC2 && at[1] < 0xA0) || (*at == 0xE2 && at[1] == 0x80 && at[2] >= 0xA8 && at[2] <= 0xAE);
    return overlong || no_character || control ? 0 : size;
}

/* Names of directories, libraries and kernels may hold any character, but our line must stay one line. */
static void make_printable(char *bytes, size_t length) {
    for (size_t at = 0, size; at < length; at += size) {
        size = printable((const uint8_t *)bytes + at, length - at);
        if (!size) {
            bytes[at] = '?';
            size = 1;
        }
    }
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
    make_printable(line, length);
    line[length++] = '\n';
    write_safely(line, length);
}
