/* A library as cuDNN 9: its cudnnCreate is a doorway to the one of a library that it opens. INNER: that one. */
#include <dlfcn.h>
#include <stddef.h>

#ifndef INNER
#define INNER "libcudnn_graph.so.9"
#endif

int cudnnCreate(void);
int cudnnCreate(void) {
    void *library = dlopen(INNER, RTLD_NOW | RTLD_LOCAL);
    int (*create)(void) = library ? (int (*)(void))dlsym(library, "cudnnCreate") : NULL;
    return create ? create() + 1000 : -1;
}
