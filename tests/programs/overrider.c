/* Another tool that overrides dlsym, and finds the next one by its version: placed before us it must find ours. Counts
 * what passes. Its answers have its own place in RTLD_NEXT, which is why nobody should write one like this. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef NODE
#define NODE "GLIBC_2.34"
#endif

static void *(*next)(void *, const char *);
static int count;

__attribute__((visibility("default"))) void *dlsym(void *handle, const char *name);
void *dlsym(void *handle, const char *name) {
    if (!next)
        next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", NODE);
    count += strncmp(name, "cu", 2) == 0;
    return next(handle, name);
}

__attribute__((destructor)) static void end(void) {
    if (getenv("OVERRIDER_SAYS") && count && write(1, "overrider was asked\n", 20) < 0)
        _exit(98);
}
