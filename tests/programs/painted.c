/* Preloaded: gives every thread a stack of 256 KiB that is painted, and says on stderr how much of it was used when the thread is
 * joined. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { SIZE = 262144, PAINT = 0xA5 };
static unsigned char *stack;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *), void *argument) {
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
    pthread_attr_t own;
    (void)attributes;
    stack = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(stack, PAINT, SIZE);
    pthread_attr_init(&own);
    pthread_attr_setstack(&own, stack, SIZE);
    return real(thread, &own, work, argument);
}

int pthread_join(pthread_t thread, void **result) {
    int (*real)(pthread_t, void **) = (int (*)(pthread_t, void **))dlsym(RTLD_NEXT, "pthread_join");
    const int wrong = real(thread, result);
    size_t left = 0;
    while (left < SIZE && stack[left] == PAINT)
        left++;
    fprintf(stderr, "stack: %zu\n", SIZE - left);
    return wrong;
}
