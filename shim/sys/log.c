/* One way to speak: whole lines, by one write(2), on the stderr that the process started with. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "private.h"

OVERLAP_STARTUP_DATA static struct overlap_identity at_start;

OVERLAP_STARTUP void overlap_log_start(void) {
    at_start = overlap_identify(STDERR_FILENO);
}

/* Writes without consequences: a pipe that is full would stop the program, and one whose reader is gone would kill it
 * by SIGPIPE. A pipe that is ready takes a line of this length at once (POSIX: PIPE_BUF is 4,096 on Linux). */
static void write_safely(const char *line, size_t length) {
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&ready, 1, 0) != 1 || ready.revents != POLLOUT)
        return;
    sigset_t broken, before, pending;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    bool was_pending = sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE);
    if (sigprocmask(SIG_BLOCK, &broken, &before) != 0) /* the calling thread's mask, on Linux */
        return;
    ssize_t written = write(STDERR_FILENO, line, length);
    const struct timespec none = {0};
    if (written < 0 && errno == EPIPE && !was_pending)
        sigtimedwait(&broken, NULL, &none);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

void overlap_say(const char *a, const char *b, const char *c) {
    static const char prefix[] = "overlap: ";
    const char *const pieces[] = {prefix, a, b, c};
    int saved = errno;
    char line[1024];
    size_t length = 0;
    if (overlap_start.settings.quiet || !overlap_is_still(STDERR_FILENO, &at_start))
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
    errno = saved;
}
