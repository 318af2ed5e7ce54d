/* One way to speak: whole lines, by one write(2), on the stderr that the process started with. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "private.h"

/* A daemon closes stderr and its number goes to a socket or a data file: that one must not get our lines. */
static struct stat start_stat;
static bool start_known;

/* The system call itself: fstat() is a libc function only since glibc 2.33, and the kernel's structure is libc's here.
 */
static bool stderr_is(struct stat *now) {
    return syscall(SYS_fstat, STDERR_FILENO, now) == 0;
}

void overlap_log_start(void) {
    int saved = errno;
    start_known = stderr_is(&start_stat);
    errno = saved;
}

void overlap_say(const char *a, const char *b, const char *c) {
    static const char prefix[] = "overlap: ";
    const char *const pieces[] = {prefix, a, b, c};
    int saved = errno;
    struct stat now;
    char line[1024];
    size_t length = 0;
    if (overlap_start.settings.quiet || !start_known || !stderr_is(&now) || now.st_dev != start_stat.st_dev ||
        now.st_ino != start_stat.st_ino) {
        errno = saved;
        return;
    }
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        size_t size = pieces[i] ? strlen(pieces[i]) : 0;
        if (size > sizeof line - 1 - length)
            size = sizeof line - 1 - length;
        memcpy(line + length, pieces[i] ? pieces[i] : "", size);
        length += size;
    }
    line[length++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, length);
    (void)written; /* nobody left to tell */
    errno = saved;
}
