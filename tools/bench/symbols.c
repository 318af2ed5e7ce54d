/* What dlsym costs, in nanoseconds: symbols NAME COUNT. Prints the median over chunks. */
#include <dlfcn.h>
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

int main(int argc, char **argv) {
    if (argc != 3)
        return fprintf(stderr, "usage: symbols NAME COUNT\n"), 2;
    long count = atol(argv[2]);
    void *handle = dlopen(NULL, RTLD_NOW);
    double chunk[CHUNKS];
    for (int i = 0; i < CHUNKS; i++) {
        double start = now();
        for (long k = 0; k < count / CHUNKS; k++)
            dlsym(handle, argv[1]);
        chunk[i] = (now() - start) / (double)(count / CHUNKS);
    }
    qsort(chunk, CHUNKS, sizeof *chunk, compare);
    printf("%.3f\n", (chunk[CHUNKS / 2 - 1] + chunk[CHUNKS / 2]) / 2);
    return 0;
}
