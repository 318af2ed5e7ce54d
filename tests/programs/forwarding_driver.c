/* A libcuda.so.1 that is only a doorway, as on WSL 2: it opens another driver and looks for that one's functions by dlsym,
 * some of them under the very names that a preload stands in front of. FUNCTIONS: a file of lines FUNCTION(symbol).
 * INNER: the driver's path. EARLY: it opens it when it is loaded; else with the first call.
 *
 * As any driver it loads the library that CUDA_INJECTION64_PATH names, in cuInit, and calls its InitializeInjection()
 * (CUPTI, "CUDA_INJECTION64_PATH"). */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uintptr_t W;
#define WORDS W a, W b, W c, W d, W e, W f, W g, W h, W i, W j, W k, W l
#define GIVEN a, b, c, d, e, f, g, h, i, j, k, l

static void *inner(const char *name) {
    static void *library;
    if (!library && (library = dlopen(INNER, RTLD_NOW | RTLD_LOCAL)) == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        abort();
    }
    return dlsym(library, name);
}

static void inject(void) {
    static int done;
    const char *path = getenv("CUDA_INJECTION64_PATH");
    if (done++ || !path || !*path)
        return;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int (*start)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
    if (!start || !start())
        printf("no injection\n");
}

/* More words than any function has: those that the caller did not give are only passed on. */
#define FUNCTION(symbol)                                                                                               \
    int symbol(WORDS);                                                                                                 \
    int symbol(WORDS) {                                                                                                \
        static int (*real)(WORDS);                                                                                     \
        if (strcmp(#symbol, "cuInit") == 0)                                                                            \
            inject();                                                                                                  \
        if (!real)                                                                                                     \
            real = (int (*)(WORDS))inner(#symbol);                                                                     \
        return real(GIVEN);                                                                                            \
    }
#include FUNCTIONS

#ifdef EARLY
__attribute__((constructor)) static void start(void) {
    inner("cuInit");
}
#endif
