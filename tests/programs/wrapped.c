/* A program of three libraries, none of them in its global scope: USER calls many functions of a driver, and so does PLUGIN, but one of
 * them by a WRAPPER of its own, which is unmapped with it. Then USER calls the same function.
 */
#ifdef WRAPPER
int cuEventCreate(void **event, unsigned flags);
int cuEventCreate(void **event, unsigned flags) {
    (void)flags;
    *event = event;
    return 0;
}
#elif defined PLUGIN
extern int cuEventCreate(void **, unsigned);
int call(void);
int call(void) {
    void *event;
    return cuEventCreate(&event, 0);
}
#elif defined USER
#define WAY_LINKED
#include "driver.h"
int first(void);
int first(void) {
    void *stream;
    driver_start();
    const int result =
        cuStreamCreate(&stream, 1) || cuStreamSynchronize(stream) || cuStreamQuery(stream) || cuCtxSynchronize();
    cuModuleUnload(0), cuEventRecord(0, stream), cuEventQuery(0), cuEventSynchronize(0); /* refused */
    cuStreamWaitEvent(stream, 0, 0);
    return result;
}
int call(void);
int call(void) {
    void *event;
    return cuEventCreate(&event, 0);
}
#else
#include <dlfcn.h>
#include <stdio.h>

static int call(void *library, const char *name) {
    int (*function)(void) = library ? (int (*)(void))dlsym(library, name) : 0;
    return function ? function() : -1;
}

int main(int count, char **words) {
    if (count != 3)
        return 2;
    void *user = dlopen(words[1], RTLD_NOW | RTLD_LOCAL), *plugin = dlopen(words[2], RTLD_NOW | RTLD_LOCAL);
    printf("user: %d\n", call(user, "first"));
    printf("plugin: %d\n", call(plugin, "call"));
    printf("closed: %d\n", dlclose(plugin));
    printf("user: %d\n", call(user, "call"));
    return 0;
}
#endif
