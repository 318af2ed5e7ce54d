/* Several threads that make the same calls, each on streams of its own, after some that are not measured. */
#include <pthread.h>

#include "measure.h"

enum { FUNCTIONS = 64, MOST_FUNCTIONS = 1 << 17, THREADS = 256, EVENT = 0x1000000 };

struct thread {
    void (*run)(long, void *);
    long calls;
    void **streams;
    double result;
};

/* What is launched in turn: so many kernels, each with so many dynamic sizes, 16 bytes apart. */
static long functions_used = FUNCTIONS, sizes_used = 1;

static void *measure(void *its) {
    struct thread *thread = its;
    thread->run(functions_used * sizes_used * 4, thread->streams);
    thread->result = median_of(thread->run, thread->calls, thread->streams);
    return NULL;
}

/* Prints the mean of their medians. streams: two for each thread. */
static void measure_threads(int threads, void (*run)(long, void *), long calls, void **streams) {
    static struct thread all[THREADS];
    pthread_t ids[THREADS];
    double sum = 0;
    for (int i = 0; i < threads && i < THREADS; i++) {
        all[i] = (struct thread){run, calls, streams + 2 * i, 0};
        pthread_create(&ids[i], NULL, measure, &all[i]);
    }
    for (int i = 0; i < threads && i < THREADS; i++) {
        pthread_join(ids[i], NULL);
        sum += all[i].result;
    }
    printf("%.3f\n", sum / threads);
}
