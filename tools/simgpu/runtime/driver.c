/* The way to the driver, the same as the real runtime's: one dlopen, one dlsym, everything else by cuGetProcAddress. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "runtime.h"

enum { PER_THREAD_DEFAULT_STREAM = 2 };

struct rt_calls rt_calls[2];

static CUresult (*proc_address)(const char *symbol, void **function, int version, uint64_t flags, int *status);
static pthread_once_t once = PTHREAD_ONCE_INIT;
static cudaError_t state;

/* Behind names that an older driver does not have. */
static CUresult absent(void) {
    return cudaErrorNotSupported;
}

static void find(void *field, const char *base, int version, uint64_t flags) {
    CUresult (*const nothing)(void) = absent;
    void *found = NULL;
    int status;
    if (proc_address(base, &found, version, flags, &status) == CUDA_SUCCESS && found != NULL)
        memcpy(field, &found, sizeof found);
    else
        memcpy(field, &nothing, sizeof nothing);
}

static cudaError_t open_driver(void) {
    int version = 0;
    void *const library = dlopen("libcuda.so.1", RTLD_NOW);
    void *const found = library != NULL ? dlsym(library, "cuGetProcAddress_v2") : NULL;
    if (found == NULL)
        return cudaErrorInsufficientDriver;
    memcpy(&proc_address, &found, sizeof found);
    /* As the real runtime begins, and whoever stands between must bear it: a name that is none, no room for the status,
     * and the question for the function itself in both its forms. What is answered last is what it asks from then on. */
    static const struct {
        const char *name;
        int version;
    } first[] = {{"", 0}, {"cuInit", 2000}, {"cuGetProcAddress", 11030}, {"cuGetProcAddress", 12000}};
    void *answer = NULL;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (proc_address(first[i].name, &answer, first[i].version, 0, NULL) != CUDA_SUCCESS)
            answer = NULL;
    if (answer == NULL)
        return cudaErrorInsufficientDriver;
    memcpy(&proc_address, &answer, sizeof answer);
#define CALL(field, base, version, parameters)                                                                         \
    find(&rt_calls[0].field, #base, version, 0);                                                                       \
    rt_calls[1].field = rt_calls[0].field;
#define CALL_STREAM(field, base, version, per_thread, parameters)                                                      \
    find(&rt_calls[0].field, #base, version, 0);                                                                       \
    find(&rt_calls[1].field, #base, per_thread, PER_THREAD_DEFAULT_STREAM);
#include "driver.def"
#undef CALL
#undef CALL_STREAM
    if (rt_calls[0].cuDriverGetVersion(&version) != CUDA_SUCCESS || version / 1000 < RUNTIME)
        return cudaErrorInsufficientDriver;
    return rt_calls[0].cuInit(0);
}

static void start(void) {
    state = open_driver();
}

cudaError_t rt_start(void) {
    pthread_once(&once, start);
    return state;
}

cudaError_t rt_cudaRuntimeGetVersion(int *version) {
    if (version == NULL)
        return cudaErrorInvalidValue;
    *version = RUNTIME_VERSION;
    return cudaSuccess;
}
