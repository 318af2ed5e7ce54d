/* What the start of a process costs, in microseconds of wall time: spawn COUNT PROGRAM [ARG ...]. Spawns and waits;
 * prints the median. The environment is passed on, so LD_PRELOAD applies to the child; spawn itself is best started
 * without it and given the child's preload by BENCH_PRELOAD. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b) {
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

int main(int argc, char **argv) {
    if (argc < 3)
        return fprintf(stderr, "usage: spawn COUNT PROGRAM [ARG ...]\n"), 2;
    int count = atoi(argv[1]);
    double *times = malloc(sizeof *times * (size_t)count);
    const char *preload = getenv("BENCH_PRELOAD");
    if (preload)
        setenv("LD_PRELOAD", preload, 1);
    for (int i = 0; i < count; i++) {
        pid_t child;
        int status;
        double start = now();
        if (posix_spawnp(&child, argv[2], NULL, NULL, argv + 2, environ) != 0 || waitpid(child, &status, 0) != child ||
            status != 0)
            return fprintf(stderr, "spawn: %s failed\n", argv[2]), 1;
        times[i] = now() - start;
    }
    qsort(times, (size_t)count, sizeof *times, compare);
    printf("%.1f\n", times[count / 2]);
    free(times);
    return 0;
}
