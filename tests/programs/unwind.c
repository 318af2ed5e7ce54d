/* Cancels threads that wait inside the driver, by both ways, with arguments in registers and on the stack: unwind. Prints how many were cancelled, and of how
 * many the clean-up ran.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

typedef int synchronize(void *stream);
typedef int copy(void *to, unsigned long from, unsigned long bytes, void *stream);
typedef int batch(void *to, void *from, void *sizes, unsigned long count, void *attributes, void *indices,
                  unsigned long attribute_count, void *stream);
synchronize cuStreamSynchronize;
copy cuMemcpyDtoHAsync_v2;
batch cuMemcpyBatchAsync_v2;
int unwind_waiting(void);
int cuInit(unsigned flags);

static int cleaned;
static void clean(void *argument) {
    (void)argument;
    cleaned++;
}

static void *found(const char *name, int by_name) {
    return by_name ? dlsym(RTLD_DEFAULT, name) : NULL;
}

static void *work(void *argument) {
    const int which = (int)(long)argument, by_name = which >= 3;
    synchronize *const volatile wait = (synchronize *)found("cuStreamSynchronize", by_name);
    copy *const volatile one = (copy *)found("cuMemcpyDtoHAsync_v2", by_name);
    batch *const volatile many = (batch *)found("cuMemcpyBatchAsync_v2", by_name);
    int result = 0;
    pthread_cleanup_push(clean, NULL);
    if (which % 3 == 0)
        result = (by_name ? wait : cuStreamSynchronize)(NULL);
    else if (which % 3 == 1)
        result = (by_name ? one : cuMemcpyDtoHAsync_v2)((void *)1, 2, 3, (void *)4);
    else
        result = (by_name ? many : cuMemcpyBatchAsync_v2)((void *)1, (void *)2, (void *)3, 4, (void *)5, (void *)6, 7,
                                                          (void *)8);
    pthread_cleanup_pop(0);
    fprintf(stderr, "call %d returned %d\n", which, result);
    return NULL;
}

int main(void) {
    int cancelled = 0;
    cuInit(0);
    for (long which = 0; which < 6; which++) {
        pthread_t thread;
        void *result;
        if (pthread_create(&thread, NULL, work, (void *)which))
            return 2;
        while (unwind_waiting() <= which)
            sched_yield();
        pthread_cancel(thread);
        pthread_join(thread, &result);
        cancelled += result == PTHREAD_CANCELED;
    }
    printf("cancelled: %d cleaned: %d\n", cancelled, cleaned);
    return 0;
}
