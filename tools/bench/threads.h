/* Several threads that make the same calls, each on a stream of its own, after some that nobody counts. */
#include <pthread.h>

#include "measure.h"

/* Streams that the program made: of the default stream the library knows the priority without asking. */
enum {
    FUNCTIONS = 64,
    MOST_FUNCTIONS = 1 << 17,
    THREADS = 256,
    STREAM = 0x1000,
    OTHER_STREAM = 0x800,
    EVENT = 0x1000000
};

struct thread {
    void (*run)(long, void *);
    long calls;
    char *stream;
    double result;
};

/* What is launched in turn: so many kernels, each with so many dynamic sizes, 16 bytes apart. */
static long functions_used = FUNCTIONS, sizes_used = 1;

static long warming(void) {
    return functions_used * sizes_used * 4;
}

static void *measure(void *its) {
    struct thread *thread = its;
    thread->run(warming(), thread->stream);
    thread->result = median_of(thread->run, thread->calls, thread->stream);
    return NULL;
}

/* Prints the mean of their medians. */
static void measure_threads(int threads, void (*run)(long, void *), long calls) {
    static struct thread all[THREADS];
    pthread_t ids[THREADS];
    double sum = 0;
    for (int i = 0; i < threads && i < THREADS; i++) {
        all[i] = (struct thread){run, calls, (char *)(uintptr_t)(STREAM * ((uintptr_t)i + 1)), 0};
        pthread_create(&ids[i], NULL, measure, &all[i]);
    }
    for (int i = 0; i < threads && i < THREADS; i++) {
        pthread_join(ids[i], NULL);
        sum += all[i].result;
    }
    printf("%.3f\n", sum / threads);
}
