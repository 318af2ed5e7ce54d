/* Errors: names, and the last one of a thread; functions by name. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hip.h"

static const struct {
    int number;
    const char *name;
} errors[] = {
#define ERROR(number, cuda, runtime, hip, text) {number, #hip},
#include "../error.def"
#undef ERROR
};

static _Thread_local hipError_t last;

/* By the library's name, in which tests change the number (tests/hip_runtimes.py). */
static bool is_before_7(void) {
    static const char name[] = "libamdhip64.so.7";
    return ((const volatile char *)name)[sizeof name - 2] < '7';
}

/* Since 7 the last error is that of the last call that failed, before that of the last call. */
hipError_t hip_done(hipError_t result) {
    if (is_before_7() || (result != hipSuccess && result != hipErrorNotReady))
        last = result;
    return result;
}

hipError_t hip_hipGetLastError(void) {
    const hipError_t result = last;
    last = hipSuccess;
    return result;
}

hipError_t hip_hipPeekAtLastError(void) {
    return last;
}

const char *hip_hipGetErrorName(hipError_t error) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].number == error && strcmp(errors[i].name, "none") != 0)
            return errors[i].name;
    return "hipErrorUnknown";
}

hipError_t hip_hipDrvGetErrorName(hipError_t error, const char **text) {
    if (text == NULL)
        return hipErrorInvalidValue;
    *text = hip_hipGetErrorName(error);
    return hipSuccess;
}

hipError_t hip_hipRuntimeGetVersion(int *version) {
    if (version == NULL)
        return hipErrorInvalidValue;
    *version = 70253211;
    return hipSuccess;
}

/* ---- functions by name: a plain dlsym on this very library, as in the real one, so that whoever stands in front of dlsym
 * stands in front of this, too ---- */

enum { FOUND = 0, NOT_FOUND = 1 };
enum { PER_THREAD_DEFAULT_STREAM = 2 };

static void *self;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_self(void) {
    static const char here;
    Dl_info info;
    if (dladdr(&here, &info) != 0)
        self = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

static hipError_t find(const char *symbol, void **function, int *status) {
    pthread_once(&once, open_self);
    *function = self != NULL ? dlsym(self, symbol) : NULL;
    if (status != NULL)
        *status = *function != NULL ? FOUND : NOT_FOUND;
    return *function != NULL ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hip_hipGetProcAddress(const char *symbol, void **function, int version, uint64_t flags, int *status) {
    (void)flags;
    if (symbol == NULL || function == NULL)
        return hipErrorInvalidValue;
    if (version >= 600 && strcmp(symbol, "hipGetDeviceProperties") == 0)
        symbol = "hipGetDevicePropertiesR0600";
    return find(symbol, function, status);
}

hipError_t hip_hipGetDriverEntryPoint(bool per_thread, const char *symbol, void **function, unsigned long long flags,
                                      int *status) {
    char name[256];
    if (symbol == NULL || function == NULL || *symbol == '\0')
        return hipErrorInvalidValue;
    if (per_thread || flags == PER_THREAD_DEFAULT_STREAM) {
        snprintf(name, sizeof name, "%s_spt", symbol);
        if (find(name, function, status) == hipSuccess)
            return hipSuccess;
    }
    return hip_hipGetProcAddress(symbol, function, 700, 0, status);
}
