/* libcuda.so.1 that does nothing: what a launch costs here is the call itself, so the difference with the shim is the
 * shim.
 *
 * NULL_DEVICES: how many devices it claims (default 1). NULL_CAPTURING=1: every stream captures, so that no changed
 * launch is ever proven. NULL_NOT_READY=1: queries of streams and events answer that work is unfinished.
 * NULL_NO_CONTEXT=1: a thread has a current context only after it has set one. Kernels are called by number; those whose
 * name begins with "nccl" are communication to the shim. No call takes a lock or grows: signal handlers may call all of
 * them, and a loaded module gets the address of one that has been unloaded, as do its functions.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default"), noinline))

enum { KERNELS = 1 << 18, MODULES = 1 << 14, OF_MODULE = 4 };
static struct {
    char name[64];
    int limit;
} kernels[KERNELS + MODULES * OF_MODULE]; /* those of modules last */
static uint32_t used;

enum { NOT_READY = 600, NO_CONTEXT = 201 };
static int devices = 1, capturing, query_answer, no_context;

/* The current contexts of a thread: the last one is that at `depth`. There is one context, which is never made or ended. */
enum { DEPTH = 16 };
static __thread __attribute__((tls_model("initial-exec"))) struct {
    int depth;
    char differs[DEPTH]; /* from what a thread begins with */
} current;

__attribute__((constructor)) static void read_settings(void) {
    devices = getenv("NULL_DEVICES") ? atoi(getenv("NULL_DEVICES")) : 1;
    capturing = getenv("NULL_CAPTURING") ? atoi(getenv("NULL_CAPTURING")) : 0;
    query_answer = getenv("NULL_NOT_READY") ? NOT_READY : 0;
    no_context = getenv("NULL_NO_CONTEXT") ? atoi(getenv("NULL_NO_CONTEXT")) : 0;
}

API int cuInit(unsigned flags) {
    return (int)flags;
}
API int cuDriverGetVersion(int *version) {
    return *version = 13000, 0;
}
API int cuDeviceGetCount(int *count) {
    return *count = devices, 0;
}
API int cuDeviceGetName(char *name, int size, int device) {
    (void)device;
    strncpy(name, "NVIDIA H100 80GB HBM3", (size_t)size);
    return 0;
}
API int cuDeviceGetUuid_v2(void *uuid, int device) {
    return memset(uuid, device, 16), 0;
}
API int cuDeviceGetAttribute(int *value, int attribute, int device) {
    static const int values[][2] = {{1, 1024}, {8, 49152},   {10, 32},    {12, 65536},  {16, 132}, {39, 2048}, {75, 9},
                                    {76, 0},   {81, 233472}, {82, 65536}, {97, 232448}, {106, 32}, {111, 1024}};
    (void)device;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (values[i][0] == attribute)
            return *value = values[i][1], 0;
    return 1;
}
static int is_current(void) {
    return current.differs[current.depth] == !!no_context;
}
API int cuCtxGetDevice(int *device) {
    return *device = 0, is_current() ? 0 : NO_CONTEXT;
}
API int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    return *least = 0, *greatest = -5, 0;
}
API int cuStreamGetPriority(void *stream, int *priority) {
    (void)stream;
    return *priority = 0, 0;
}
API int cuStreamIsCapturing(void *stream, int *status) {
    (void)stream;
    return *status = capturing, 0;
}
API int cuStreamGetFlags(void *stream, unsigned *flags) {
    (void)stream;
    return *flags = 1, 0;
}
API int cuStreamGetCtx(void *stream, void **context) {
    (void)stream;
    return *context = kernels, 0;
}
API int cuCtxGetCurrent(void **context) {
    return *context = is_current() ? kernels : NULL, 0;
}
API int cuCtxSetCurrent(void *context) {
    return current.differs[current.depth] = !context == !no_context, 0;
}
API int cuCtxPushCurrent_v2(void *context) {
    current.depth = (current.depth + 1) % DEPTH;
    return cuCtxSetCurrent(context);
}
API int cuCtxPopCurrent_v2(void **context) {
    *context = is_current() ? kernels : NULL;
    current.depth = (current.depth + DEPTH - 1) % DEPTH;
    return 0;
}
static int retained; /* the primary context, so often */
API int cuDevicePrimaryCtxRetain(void **context, int device) {
    __atomic_add_fetch(&retained, 1, __ATOMIC_RELAXED);
    return *context = kernels, device;
}
API int cuDevicePrimaryCtxRelease_v2(int device) {
    __atomic_sub_fetch(&retained, 1, __ATOMIC_RELAXED);
    return device;
}
API int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    return *flags = 0, *active = __atomic_load_n(&retained, __ATOMIC_RELAXED) > 0, device;
}
static uintptr_t destroyed; /* a stream, whose handle is used again */
API int cuStreamCreate(void **stream, unsigned flags) {
    static uintptr_t made = 0x1000;
    const uintptr_t again = __atomic_exchange_n(&destroyed, 0, __ATOMIC_RELAXED);
    (void)flags;
    return *stream = (void *)(again ? again : __atomic_add_fetch(&made, 0x200, __ATOMIC_RELAXED)), 0;
}
API int cuStreamDestroy_v2(void *stream) {
    __atomic_store_n(&destroyed, (uintptr_t)stream, __ATOMIC_RELAXED);
    return 0;
}
API int cuEventCreate(void **event, unsigned flags) {
    (void)flags;
    return *event = (void *)0x2000000, 0;
}
#define NOTHING(name, ...)                                                                                             \
    API int name(__VA_ARGS__) {                                                                                        \
        return 0;                                                                                                      \
    }
#pragma GCC diagnostic ignored "-Wunused-parameter"
NOTHING(cuEventRecord, void *event, void *stream)
API int cuEventQuery(void *event) {
    return query_answer;
}
API int cuStreamQuery(void *stream) {
    return query_answer;
}
NOTHING(cuEventDestroy_v2, void *event)
NOTHING(cuStreamWaitEvent, void *stream, void *event, unsigned flags)
NOTHING(cuStreamSynchronize, void *stream)
NOTHING(cuCtxSynchronize, void)
NOTHING(cuStreamSetAttribute, void *stream, int attribute, const void *value)
NOTHING(cuMemcpyDtoH_v2, void *to, uint64_t from, size_t bytes)
NOTHING(cuMemAlloc_v2, uint64_t *address, size_t bytes)
NOTHING(cuMemFree_v2, uint64_t address)
NOTHING(cuCtxSetCacheConfig, int config)
API int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, void *function, int threads, size_t dynamic,
                                                             unsigned flags) {
    return *blocks = 8, 0;
}
/* A module has its own kernels; a function of any other handle is a new one. */
static struct {
    uint32_t is_loaded, used;
} modules[MODULES];
static uint32_t likely; /* to be free */
API int cuModuleLoadData(void **module, const void *image) {
    const uint32_t first = __atomic_load_n(&likely, __ATOMIC_RELAXED);
    (void)image;
    for (uint32_t i = 0; i < MODULES; i++) {
        const uint32_t number = (first + i) % MODULES;
        if (__atomic_exchange_n(&modules[number].is_loaded, 1, __ATOMIC_RELAXED))
            continue;
        __atomic_store_n(&modules[number].used, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&likely, number + 1, __ATOMIC_RELAXED);
        return *module = &modules[number], 0;
    }
    return 2;
}
static int is_module(const void *handle) {
    return (uintptr_t)handle >= (uintptr_t)modules && (uintptr_t)handle < (uintptr_t)(modules + MODULES);
}
API int cuModuleUnload(void *module) {
    if (!is_module(module))
        return 400;
    const uint32_t number = (uint32_t)((__typeof__(&modules[0]))module - modules);
    __atomic_store_n(&modules[number].is_loaded, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&likely, number, __ATOMIC_RELAXED);
    return 0;
}
API int cuModuleGetFunction(void **function, void *module, const char *name) {
    uint32_t index;
    if (is_module(module)) {
        const uint32_t number = (uint32_t)((__typeof__(&modules[0]))module - modules);
        index =
            KERNELS + number * OF_MODULE + __atomic_fetch_add(&modules[number].used, 1, __ATOMIC_RELAXED) % OF_MODULE;
    } else {
        index = __atomic_fetch_add(&used, 1, __ATOMIC_RELAXED) * 0x9e3779b1u % KERNELS; /* as in a heap: in no order */
        index = (index ^ index >> 7) % KERNELS;
    }
    strncpy(kernels[index].name, name, sizeof kernels[index].name - 1);
    kernels[index].limit = 49152;
    return *function = &kernels[index], 0;
}
API int cuLibraryGetKernel(void **kernel, void *library, const char *name) {
    return cuModuleGetFunction(kernel, library, name);
}
API int cuFuncGetAttribute(int *value, int attribute, void *function) {
    *value = attribute == 0   ? 1024
             : attribute == 4 ? 64
             : attribute == 8 ? ((__typeof__(&kernels[0]))function)->limit
             : attribute == 9 ? -1 /* the driver's choice: no carve-out was asked for */
                              : 0;
    return 0;
}
API int cuKernelGetAttribute(int *value, int attribute, void *kernel, int device) {
    (void)device;
    return cuFuncGetAttribute(value, attribute, kernel);
}
API int cuFuncSetAttribute(void *function, int attribute, int value) {
    if (attribute == 8)
        ((__typeof__(&kernels[0]))function)->limit = value;
    return 0;
}
API int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, void *stream, void **parameters, void **extra) {
    (void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)stream, (void)parameters,
        (void)extra;
    return 0;
}
API int cuLaunchKernelEx(const void *config, void *f, void **parameters, void **extra) {
    (void)config, (void)f, (void)parameters, (void)extra;
    return 0;
}
API int cuGetProcAddress_v2(const char *symbol, void **pfn, int version, uint64_t flags, int *status) {
    static const struct {
        const char *name;
        void *address;
    } own[] = {{"cuLaunchKernel", (void *)cuLaunchKernel},
               {"cuLaunchKernelEx", (void *)cuLaunchKernelEx},
               {"cuEventCreate", (void *)cuEventCreate},
               {"cuEventRecord", (void *)cuEventRecord},
               {"cuEventQuery", (void *)cuEventQuery},
               {"cuEventDestroy", (void *)cuEventDestroy_v2},
               {"cuStreamCreate", (void *)cuStreamCreate},
               {"cuStreamDestroy", (void *)cuStreamDestroy_v2},
               {"cuStreamGetPriority", (void *)cuStreamGetPriority},
               {"cuStreamWaitEvent", (void *)cuStreamWaitEvent},
               {"cuStreamSynchronize", (void *)cuStreamSynchronize},
               {"cuStreamQuery", (void *)cuStreamQuery},
               {"cuCtxSynchronize", (void *)cuCtxSynchronize},
               {"cuCtxSetCurrent", (void *)cuCtxSetCurrent},
               {"cuCtxPushCurrent", (void *)cuCtxPushCurrent_v2},
               {"cuCtxPopCurrent", (void *)cuCtxPopCurrent_v2},
               {"cuDevicePrimaryCtxRetain", (void *)cuDevicePrimaryCtxRetain},
               {"cuDevicePrimaryCtxRelease", (void *)cuDevicePrimaryCtxRelease_v2},
               {"cuModuleLoadData", (void *)cuModuleLoadData},
               {"cuModuleGetFunction", (void *)cuModuleGetFunction},
               {"cuModuleUnload", (void *)cuModuleUnload},
               {"cuMemcpyDtoH", (void *)cuMemcpyDtoH_v2},
               {"cuMemAlloc", (void *)cuMemAlloc_v2},
               {"cuMemFree", (void *)cuMemFree_v2},
               {"cuCtxSetCacheConfig", (void *)cuCtxSetCacheConfig},
               {"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
                (void *)cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags}};
    *pfn = NULL;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(symbol, own[i].name) == 0)
            *pfn = own[i].address;
    if (status)
        *status = *pfn ? 0 : 1;
    return *pfn ? 0 : 500;
}
