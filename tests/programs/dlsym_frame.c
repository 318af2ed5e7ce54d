/* What others did, for contrast: a dlsym that calls the real one from a frame of its own, so that whoever asks for the next
 * definition of his own name is given the next one after this library. */
#include <dlfcn.h>
#include <stddef.h>

#ifndef NODE
#define NODE "GLIBC_2.34"
#endif

__attribute__((visibility("default"))) void *dlsym(void *handle, const char *name);
void *dlsym(void *handle, const char *name) {
    static void *(*real)(void *, const char *);
    if (!real && (real = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", NODE)) == NULL)
        return NULL;
    void *volatile found = real(handle, name); /* volatile: no sibling call */
    return found;
}
