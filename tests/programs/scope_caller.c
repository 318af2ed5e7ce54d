/* A library that launches by a runtime: by the name that it is bound to, or by the one that dlsym answers (ASKS).
 * ANSWER: it has the runtime in itself. DRIVER: it calls a driver instead; HIP: a HIP runtime.
 * ENDS: its destructor launches. BEGINS: its constructor waits for a thread that does.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

#ifdef ANSWER
#include "scope_runtime.c"
#else
typedef struct {
    unsigned x, y, z;
} dim3;
#endif
typedef int Launch(const void *, dim3, dim3, void **, unsigned long, void *);

int scope_launch(void);
#ifdef DRIVER
extern int cuInit(unsigned);
int scope_launch(void) {
    return cuInit(0);
}
#elif defined HIP
extern int hipMalloc(void **, size_t);
int scope_launch(void) {
    void *address;
    return hipMalloc(&address, 1);
}
#else
extern Launch cudaLaunchKernel;
int scope_launch(void) {
#ifdef ASKS
    Launch *launch = (Launch *)dlsym(RTLD_DEFAULT, "cudaLaunchKernel");
#else
    Launch *launch = cudaLaunchKernel;
#endif
    return launch ? launch(NULL, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL) : -1;
}
#endif

#ifdef BEGINS
static void *run(void *answer) {
    *(int *)answer = scope_launch();
    return NULL;
}
__attribute__((constructor)) static void begin(void) {
    pthread_t thread;
    int answer = -1;
    if (pthread_create(&thread, NULL, run, &answer) == 0)
        pthread_join(thread, NULL);
    printf("began: %d\n", answer);
}
#endif
#ifdef ENDS
__attribute__((destructor)) static void end(void) {
    printf("ended: %d\n", scope_launch());
    fflush(stdout);
}
#endif
