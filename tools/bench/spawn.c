/* What the start and end of a process cost: microseconds of wall time, and page faults that needed no disk.
 *
 *   spawn COUNT VARIANT... -- PROGRAM [ARG ...]
 *     VARIANT   what LD_PRELOAD is for the child, `-` for none; after an `@`, what OVERLAP_TABLE is, and after another one
 *               what OVERLAP_RUN is
 *
 * Spawns and waits COUNT times for each variant, one variant after the other in each round, so that whatever else the
 * machine does hits all alike; in another order each time, because the one before leaves caches and free memory behind.
 * Prints a line for each, in the order in which they were named: the median time, and the fewest page faults, because
 * addresses are random where personality(2) may not change that.
 */
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

enum { VARIANTS = 16 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b) {
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

static void prepare(const char *variant) {
    static const char *const names[] = {"LD_PRELOAD", "OVERLAP_TABLE", "OVERLAP_RUN"};
    static char value[1 << 17];
    const char *at = variant;
    for (int i = 0; i < 3; i++) {
        const size_t length = at ? strcspn(at, "@") : 0;
        unsetenv(names[i]);
        if (length && length < sizeof value && strncmp(at, "-", length) != 0) {
            memcpy(value, at, length);
            value[length] = 0;
            setenv(names[i], value, 1);
        }
        at = at && at[length] ? at + length + 1 : NULL;
    }
}

int main(int argc, char **argv) {
    int variants = 0, count = argc > 1 ? atoi(argv[1]) : 0;
    while (variants + 2 < argc && strcmp(argv[variants + 2], "--") != 0)
        variants++;
    char **program = argv + variants + 3;
    if (count < 1 || variants < 1 || variants > VARIANTS || variants + 3 >= argc)
        return fprintf(stderr, "usage: spawn COUNT VARIANT... -- PROGRAM [ARG ...]\n"), 2;
    double *times[VARIANTS];
    long faults[VARIANTS];
    for (int v = 0; v < variants; v++)
        times[v] = malloc(sizeof **times * (size_t)count), faults[v] = LONG_MAX;
    personality(ADDR_NO_RANDOMIZE);
    int order[VARIANTS];
    for (int v = 0; v < variants; v++)
        order[v] = v;
    srand(1);
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < variants; k++) {
            const int other = k + rand() % (variants - k), v = order[other];
            order[other] = order[k];
            order[k] = v;
            pid_t child;
            int status;
            struct rusage usage;
            prepare(argv[v + 2]);
            double start = now();
            if (posix_spawnp(&child, *program, NULL, NULL, program, environ) != 0 ||
                wait4(child, &status, 0, &usage) != child || status != 0)
                return fprintf(stderr, "spawn: %s failed\n", *program), 1;
            times[v][i] = now() - start;
            faults[v] = usage.ru_minflt < faults[v] ? usage.ru_minflt : faults[v];
        }
    }
    for (int v = 0; v < variants; v++) {
        qsort(times[v], (size_t)count, sizeof **times, compare);
        printf("%.1f %ld\n", times[v][count / 2], faults[v]);
        free(times[v]);
    }
    return 0;
}
