/* The host and the clocks of rank.c, which is linked to this: gethostname() and clock_gettime() of a library behind the preloaded
 * one. There are as many hosts as HOST says, their clocks are AHEAD seconds ahead. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int gethostname(char *name, size_t size) {
    const char *host = getenv("HOST");
    snprintf(name, size, "%s", host ? host : "node");
    return 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    const char *ahead = getenv("AHEAD");
    const long error = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME && ahead)
        now->tv_sec += atol(ahead);
    return (int)error;
}
