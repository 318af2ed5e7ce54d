/* The driver's own functions, and who gets ours instead.
 *
 * dlsym: the real function is asked first; its answer is replaced only if it is the driver's function of that very
 * name. cuGetProcAddress: likewise, by the address that the driver returned, which is right for every version and every
 * kind of default stream.
 */
#include <errno.h>
#include <string.h>

#include "cuda.h"

#define DRIVER_PREFIX "libcuda.so"

void *real_functions[HOOK_COUNT][DRIVER_WAYS + 1];
struct driver_calls driver;

/* In rows and not by pointers, which the loader would have to fill in at the start of every process. */
static const char hook_names[HOOK_COUNT][56] = {
#define DRIVER(name, body, parameters, ...) #name,
#include "driver.def"
#undef DRIVER
};

const bool hook_per_thread[HOOK_COUNT] = {
#define DRIVER(name, body, parameters, ...)                                                                            \
    sizeof #name > 6 && #name[sizeof #name - 6] == '_' && #name[sizeof #name - 5] == 'p' &&                            \
        #name[sizeof #name - 4] == 't', /* _ptsz, _ptds */
#include "driver.def"
#undef DRIVER
};

/* The driver of this process: the first that anybody used through us. Written once, by whoever comes first, then read
 * only. */
static struct {
    uint32_t state; /* 0: none yet, 1: being written, 2: ready */
    struct overlap_object object;
} known;
void *driver_exports[HOOK_COUNT];

static bool adopt(const struct overlap_object *object) {
    uint32_t none = 0;
    if (!__atomic_compare_exchange_n(&known.state, &none, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
        return overlap_wait(&known.state, 2) && known.object.base == object->base;
    known.object = *object;
    for (int hook = 0; hook < HOOK_COUNT; hook++)
        __atomic_store_n(&driver_exports[hook], overlap_object_symbol(object, hook_names[hook]), __ATOMIC_RELEASE);
#define CALL(name, parameters) driver.name = (CUresult(*) parameters)overlap_object_symbol(object, #name);
#include "api.def"
#undef CALL
    __atomic_store_n(&known.state, 2, __ATOMIC_RELEASE);
    return true;
}

bool driver_ready(void) {
    return __atomic_load_n(&known.state, __ATOMIC_ACQUIRE) == 2;
}

/* Does the address belong to the driver of this process? */
static bool is_driver(const void *address) {
    uintptr_t at = (uintptr_t)address;
    if (driver_ready() && at >= known.object.start && at < known.object.end)
        return true;
    struct overlap_object object;
    return overlap_object_at(at, &object) && strncmp(object.name, DRIVER_PREFIX, strlen(DRIVER_PREFIX)) == 0 &&
           adopt(&object);
}

/* Remembers what is behind a way in; false if it is another function than the one we know. */
static bool remember(enum overlap_way way, enum hook hook, void *address) {
    void *before = NULL;
    return __atomic_compare_exchange_n(&real_functions[hook][way], &before, address, false, __ATOMIC_RELEASE,
                                       __ATOMIC_ACQUIRE) ||
           before == address;
}

void *real_find(enum hook hook, uintptr_t site) {
    const int saved = errno;
    struct overlap_object object;
    void *address = overlap_scope_symbol(site, hook_names[hook]);
    if (!address) /* a driver that was opened for others only */
        address = overlap_next_symbol(hook_names[hook], DRIVER_PREFIX);
    errno = saved; /* of the loader's own search */
    if (!address)
        return NULL;
    is_driver(address); /* somebody else's wrapper is as good to call, but then we know no driver by it */
    if (!driver_ready() && overlap_object_named(DRIVER_PREFIX, &object))
        adopt(&object);
    remember(OVERLAP_WAY_symbol, hook, address);
    overlap_object_pin((uintptr_t)address);
    errno = saved; /* of the loader's own search */
    return address;
}

/* Most names that are asked for are not ours: their third and fourth letters tell, before any comparison of strings. */
static int hook_named(const char *name) {
    for (int hook = 0; name[2] >= 'A' && name[2] <= 'Z' && hook < HOOK_COUNT; hook++)
        if (hook_names[hook][2] == name[2] && hook_names[hook][3] == name[3] && strcmp(hook_names[hook], name) == 0)
            return hook;
    return -1;
}

/* The runtime's names come behind the driver's. */
int overlap_vendor_name(const char *name) {
    if (name[0] == 'c' && name[2] != 'd')
        return hook_named(name);
    int hook = runtime_named(name);
    return hook < 0 ? hook : HOOK_COUNT + hook;
}

void *overlap_vendor_symbol(int hook, void *real) {
    if (hook >= HOOK_COUNT) /* whoever asks a runtime itself gets its own function; it calls the driver all the same */
        return overlap_is_ours((uintptr_t)real) && !runtime_is_behind(hook - HOOK_COUNT) ? OVERLAP_NO_SYMBOL : NULL;
    if (overlap_is_ours((uintptr_t)real)) {
        /* The global scope holds our wrapper; it counts only if a driver is behind it. */
        real = overlap_next_symbol(hook_names[hook], DRIVER_PREFIX);
        if (!real)
            return OVERLAP_NO_SYMBOL; /* a machine without a driver must not look equipped */
    }
    if (!overlap_armed() || !is_driver(real) || !remember(OVERLAP_WAY_dlsym, (enum hook)hook, real))
        return NULL;
    return entry_thunk(OVERLAP_WAY_dlsym, (enum hook)hook);
}

bool overlap_vendor_present(void) {
    struct overlap_object object;
    return overlap_object_named(DRIVER_PREFIX, &object);
}

/* Names of which cuGetProcAddress gives out another function from some version on (cudaTypedefs.h 13.0). */
static const struct {
    char name[40];
    int since;
    enum hook hook;
} newer[] = {
    {"cuCtxDestroy", 4000, HOOK_cuCtxDestroy_v2},
    {"cuCtxSynchronize", 13000, HOOK_cuCtxSynchronize_v2},
    {"cuDevicePrimaryCtxRelease", 11000, HOOK_cuDevicePrimaryCtxRelease_v2},
    {"cuDevicePrimaryCtxReset", 11000, HOOK_cuDevicePrimaryCtxReset_v2},
    {"cuEventDestroy", 4000, HOOK_cuEventDestroy_v2},
    {"cuEventElapsedTime", 12080, HOOK_cuEventElapsedTime_v2},
    {"cuGetProcAddress", 12000, HOOK_cuGetProcAddress_v2},
    {"cuGraphAddDependencies", 12030, HOOK_cuGraphAddDependencies_v2},
    {"cuGraphAddKernelNode", 12000, HOOK_cuGraphAddKernelNode_v2},
    {"cuGraphAddNode", 12030, HOOK_cuGraphAddNode_v2},
    {"cuGraphExecKernelNodeSetParams", 12000, HOOK_cuGraphExecKernelNodeSetParams_v2},
    {"cuGraphInstantiate", 11000, HOOK_cuGraphInstantiate_v2},
    {"cuGraphKernelNodeGetParams", 12000, HOOK_cuGraphKernelNodeGetParams_v2},
    {"cuGraphKernelNodeSetParams", 12000, HOOK_cuGraphKernelNodeSetParams_v2},
    {"cuMemPrefetchAsync", 12020, HOOK_cuMemPrefetchAsync_v2},
    {"cuMemcpy3DBatchAsync", 13000, HOOK_cuMemcpy3DBatchAsync_v2},
    {"cuMemcpyBatchAsync", 13000, HOOK_cuMemcpyBatchAsync_v2},
    {"cuStreamBatchMemOp", 11070, HOOK_cuStreamBatchMemOp_v2},
    {"cuStreamBeginCapture", 10010, HOOK_cuStreamBeginCapture_v2},
    {"cuStreamDestroy", 4000, HOOK_cuStreamDestroy_v2},
    {"cuStreamUpdateCaptureDependencies", 12030, HOOK_cuStreamUpdateCaptureDependencies_v2},
    {"cuStreamWaitValue32", 11070, HOOK_cuStreamWaitValue32_v2},
    {"cuStreamWaitValue64", 11070, HOOK_cuStreamWaitValue64_v2},
    {"cuStreamWriteValue32", 11070, HOOK_cuStreamWriteValue32_v2},
    {"cuStreamWriteValue64", 11070, HOOK_cuStreamWriteValue64_v2},
};

/* The row of a name with an ending, -1: none. */
static int hook_with(const char *name, const char *ending) {
    char whole[72];
    strcpy(whole, name);
    strcat(whole, ending);
    return hook_named(whole);
}

enum { SINCE_64_BIT = 3020, SINCE_PER_THREAD = 7000 }; /* where a request for less is for another function */

/* A driver may return an inner function that it does not export; then the request says which one it is. */
static int hook_requested(const char *symbol, int version, uint64_t flags) {
    char name[64];
    if (strncmp(symbol, "cu", 2) != 0 || strlen(symbol) > sizeof name - 8)
        return -1;
    strcpy(name, symbol);
    int newest = version;
    /* An older driver gives out what it has, whatever is asked for. */
    if (driver_ready() && driver.cuDriverGetVersion && driver.cuDriverGetVersion(&newest) == CUDA_SUCCESS &&
        newest < version)
        version = newest;
    for (size_t i = 0; i < sizeof newer / sizeof *newer; i++)
        if (version >= newer[i].since && strcmp(newer[i].name, symbol) == 0)
            strcpy(name, hook_names[newer[i].hook]);
    if (version >= SINCE_64_BIT && hook_named(name) < 0) /* of copies only those are here that 64-bit programs call */
        strcat(name, "_v2");
    if (version >= SINCE_PER_THREAD && flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) {
        const int stream = hook_with(name, "_ptsz"), own = stream < 0 ? hook_with(name, "_ptds") : stream;
        if (own >= 0)
            return own;
    }
    return hook_named(name);
}

void *real_replace(const char *symbol, int version, uint64_t flags, void *address) {
    if (!symbol || !address || !overlap_armed() || !is_driver(address))
        return address;
    int hook = -1;
    for (int i = 0; i < HOOK_COUNT && hook < 0; i++)
        if (driver_exports[i] == address)
            hook = i;
    if (hook < 0)
        hook = hook_requested(symbol, version, flags);
    if (hook < 0 || !remember(OVERLAP_WAY_proc_address, (enum hook)hook, address))
        return address;
    return entry_thunk(OVERLAP_WAY_proc_address, (enum hook)hook);
}
