/* Replace what cuGetProcAddress returns. The driver is asked first and the hook is found by the address it returned,
 * which is right for every version and kind of default stream. */
#include <string.h>

#include "../core/core.h"
#include "../text.h"
#include "cuda.h"

/* Names for which cuGetProcAddress returns another function from some version on (cudaTypedefs.h 13.5). */
static const struct {
    char name[40];
    int since;
    enum hook hook;
} newer[] = {
    {"cuCtxCreate", 3020, HOOK_cuCtxCreate_v2},
    {"cuCtxCreate", 11040, HOOK_cuCtxCreate_v3},
    {"cuCtxCreate", 12050, HOOK_cuCtxCreate_v4},
    {"cuCtxDestroy", 4000, HOOK_cuCtxDestroy_v2},
    {"cuCtxPopCurrent", 4000, HOOK_cuCtxPopCurrent_v2},
    {"cuCtxPushCurrent", 4000, HOOK_cuCtxPushCurrent_v2},
    {"cuCtxSynchronize", 13000, HOOK_cuCtxSynchronize_v2},
    {"cuDevicePrimaryCtxRelease", 11000, HOOK_cuDevicePrimaryCtxRelease_v2},
    {"cuDevicePrimaryCtxReset", 11000, HOOK_cuDevicePrimaryCtxReset_v2},
    {"cuEventDestroy", 4000, HOOK_cuEventDestroy_v2},
    {"cuGetProcAddress", 12000, HOOK_cuGetProcAddress_v2},
    {"cuGraphInstantiate", 11000, HOOK_cuGraphInstantiate_v2},
    {"cuStreamBeginCapture", 10010, HOOK_cuStreamBeginCapture_v2},
    {"cuStreamDestroy", 4000, HOOK_cuStreamDestroy_v2},
};

enum { LONGEST = 64 }; /* function names, bytes */

static const char *with_ending(char whole[LONGEST], const char *name, const char *ending) {
    struct overlap_text text = overlap_text_in(whole, LONGEST);
    overlap_text_add(&text, name);
    overlap_text_add(&text, ending);
    return whole;
}

/* The row of a name with a suffix, -1: none. */
static int hook_with(const char *name, const char *ending) {
    char whole[LONGEST];
    return hook_named(VENDOR_CUDA, with_ending(whole, name, ending));
}

enum { SINCE_64_BIT = 3020, SINCE_PER_THREAD = 7000 }; /* a request for an older version means another function */

enum { KNOWN = 13050 }; /* the newest version whose functions the rows tell (cudaTypedefs.h 13.5) */

/* Does a request for a version newer than the rows mean a function that they do not tell? */
static bool is_newer(const char *symbol, int version, uint64_t flags, const void *address) {
    type_cuGetProcAddress_v2 *const get = real_export(HOOK_cuGetProcAddress_v2);
    void *known = NULL;
    int status;
    return version > KNOWN && get && (get(symbol, &known, KNOWN, flags, &status) != CUDA_SUCCESS || known != address);
}

/* A driver may return an internal function that it does not export. Then the hook is derived from the request. */
static int hook_requested(const char *symbol, int version, uint64_t flags) {
    char second[LONGEST];
    const char *name = symbol;
    if (strncmp(symbol, "cu", 2) != 0 || strlen(symbol) > LONGEST - sizeof "_v2_ptsz")
        return -1;
    int newest = version;
    /* An older driver returns what it has, whatever version is requested. */
    if (driver.cuDriverGetVersion && driver.cuDriverGetVersion(&newest) == CUDA_SUCCESS && newest < version)
        version = newest;
    for (size_t i = 0; i < sizeof newer / sizeof *newer; i++)
        if (version >= newer[i].since && strcmp(newer[i].name, symbol) == 0)
            name = hook_name(newer[i].hook);
    if (version >= SINCE_64_BIT &&
        hook_named(VENDOR_CUDA, name) < 0) /* of copies only the forms that 64-bit programs call have rows */
        name = with_ending(second, name, "_v2");
    if (version >= SINCE_PER_THREAD && flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) {
        const int stream = hook_with(name, "_ptsz"), own = stream < 0 ? hook_with(name, "_ptds") : stream;
        if (own >= 0)
            return own;
    }
    return hook_named(VENDOR_CUDA, name);
}

static void *replace(const char *symbol, int version, uint64_t flags, void *address) {
    if (!symbol || !address || !overlap_armed() ||
        (!adopt_driver_of(VENDOR_CUDA, address) && !in_other_driver(VENDOR_CUDA, address)))
        return address;
    int hook = real_by_address(VENDOR_CUDA, address);
    if (hook < 0) {
        hook = hook_requested(symbol, version, flags);
        if (hook >= 0 && is_newer(symbol, version, flags, address)) /* asks the driver again: for names of ours alone */
            hook = -1;
    }
    if (hook < 0 || !real_remember(ROUTE_LOOKED_UP, (enum hook)hook, address))
        return address;
    return cuda_thunk(ROUTE_LOOKED_UP, (enum hook)hook);
}

CUresult proc_address_body(ENTRY, const char *symbol, void **pfn, int version, uint64_t flags) {
    REAL_OR_RETURN(cuGetProcAddress);
    CUresult result = real(symbol, pfn, version, flags);
    if (result == CUDA_SUCCESS && pfn)
        *pfn = replace(symbol, version, flags, *pfn);
    return result;
}

CUresult proc_address_v2_body(ENTRY, const char *symbol, void **pfn, int version, uint64_t flags, int *status) {
    REAL_OR_RETURN(cuGetProcAddress_v2);
    CUresult result = real(symbol, pfn, version, flags, status);
    if (result == CUDA_SUCCESS && pfn)
        *pfn = replace(symbol, version, flags, *pfn);
    return result;
}
