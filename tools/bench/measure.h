/* What the programs here measure with: processor time of the calling thread, in nanoseconds, and the median over chunks of calls. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CHUNKS = 20 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

/* Of one call, where run(count, of) makes so many. */
static double median_of(void (*run)(long, void *), long calls, void *of) {
    double chunk[CHUNKS];
    for (int i = 0; i < CHUNKS; i++) {
        double start = now();
        run(calls / CHUNKS, of);
        chunk[i] = (now() - start) / (double)(calls / CHUNKS);
    }
    qsort(chunk, CHUNKS, sizeof *chunk, compare);
    return (chunk[CHUNKS / 2 - 1] + chunk[CHUNKS / 2]) / 2;
}
