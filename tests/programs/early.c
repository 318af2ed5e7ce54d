/* Uses dlsym, and with it the driver, before the program and the preloaded library have started.
 * Built as a library that the program needs: its constructor runs before those of preloaded libraries. Built into the
 * program with PREINIT: runs before all constructors. */
#include "driver.h"

#include <pthread.h>

#ifndef COUNT
#define COUNT 0 /* threads; 0: this one */
#endif

enum { THREADS = 16 };
static pthread_barrier_t together;
static int launched;

static void *race(void *context) {
    void *module, *function;
    uint64_t a = 1;
    uint32_t b = 2;
    void *parameters[] = {&a, &b};
    char *text = ptx_of("early");
    pthread_barrier_wait(&together);
    driver_open();
    CU(cuInit)(0);
    CU(cuCtxSetCurrent)(context);
    if (CU(cuModuleLoadData)(&module, text) == 0 && CU(cuModuleGetFunction)(&function, module, "early") == 0 &&
        CU(cuLaunchKernel)(function, 4, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL) == 0)
        __atomic_fetch_add(&launched, 1, __ATOMIC_RELAXED);
    free(text);
    return NULL;
}

static void early(void) {
    void *context;
    pthread_t threads[THREADS];
    driver_open();
    CU(cuInit)(0);
    CU(cuDevicePrimaryCtxRetain)(&context, 0);
    int count = COUNT;
    pthread_barrier_init(&together, NULL, (unsigned)(count ? count : 1));
    if (count == 0)
        race(context);
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, race, context);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

#ifdef PREINIT
static void preinit(int argc, char **argv, char **environment) {
    (void)argc, (void)argv, (void)environment;
    early();
}
__attribute__((section(".preinit_array"), used)) static void (*const entry)(int, char **, char **) = preinit;
#else
__attribute__((constructor)) static void start(void) {
    early();
}
#endif

#ifdef LIBRARY
int early_launched(void);
int early_launched(void) {
    return launched;
}
#else
int main(void) {
    printf("launched early: %d\n", launched);
    return 0;
}
#endif
