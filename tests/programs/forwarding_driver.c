/* A libcuda.so.1 that is only a doorway, as on WSL 2: it opens another driver and looks for that one's functions by dlsym,
 * some of them under the very names that a preload stands in front of. FUNCTIONS: a file of lines FUNCTION(symbol).
 * INNER: the driver's path. EARLY: it opens it when it is loaded; else with the first call.
 *
 * TELLS: as a driver of NVIDIA it loads the library that CUDA_INJECTION64_PATH names, in cuInit, and calls its
 * InitializeInjection() (CUPTI's documentation); whoever subscribes by driver_tell() is told of each call, as CUPTI tells of
 * it, and cuGetProcAddress gives out the functions of this library.
 *
 * DRIVER_FAILS=NAME[,N]: calls of functions whose name begins so, or the Nth of each N calls, answer NOT_SUPPORTED; but an
 * event without a time can be made. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef INNER
#define INNER "libcuda.so.1.1"
#endif

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

typedef void Told(const char *name, const W *words);
static Told *told;
void driver_tell(Told *);
void driver_tell(Told *subscriber) {
    told = subscriber;
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

#ifdef TELLS
enum { TELLING = 1 };
#else
enum { TELLING };
#endif
static void own(void **function);

static int fails(const char *name, W flags) {
    static unsigned calls;
    const char *const failing = getenv("DRIVER_FAILS"), *const each = failing ? strchr(failing, ',') : NULL;
    return failing && strncmp(name, failing, each ? (size_t)(each - failing) : strlen(failing)) == 0 &&
           !(strcmp(name, "cuEventCreate") == 0 && flags) && (!each || ++calls % (unsigned)atoi(each + 1) == 0);
}

static void before(const char *name, const W *words) {
    if (TELLING && strcmp(name, "cuInit") == 0)
        inject();
    if (told)
        told(name, words);
}

/* More words than any function has: those that the caller did not give are only passed on. */
#define FUNCTION(symbol)                                                                                               \
    int symbol(WORDS);                                                                                                 \
    int symbol(WORDS) {                                                                                                \
        static int (*real)(WORDS);                                                                                     \
        before(#symbol, (W[]){GIVEN});                                                                                 \
        if (!real)                                                                                                     \
            real = (int (*)(WORDS))inner(#symbol);                                                                     \
        int result = fails(#symbol, b) ? 801 : real(GIVEN);                                                            \
        if (TELLING && strncmp(#symbol, "cuGetProcAddress", 16) == 0 && result == 0 && b)                              \
            own((void **)b);                                                                                           \
        return result;                                                                                                 \
    }
#ifdef FUNCTIONS
#include FUNCTIONS
#else
FUNCTION(cuInit)
#endif
#undef FUNCTION

static const struct {
    const char *name;
    void *function;
} functions[] = {
#define FUNCTION(symbol) {#symbol, (void *)symbol},
#ifdef FUNCTIONS
#include FUNCTIONS
#else
    FUNCTION(cuInit)
#endif
#undef FUNCTION
};

/* Ours instead of the inner driver's. */
static void own(void **function) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (*function && inner(functions[i].name) == *function) {
            *function = functions[i].function;
            return;
        }
}

#ifdef EARLY
__attribute__((constructor)) static void start(void) {
    inner("cuInit");
}
#endif
