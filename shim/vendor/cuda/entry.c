/* The doors. Every row of driver.def becomes three functions around one body: the exported symbol, the one that dlsym
 * gives out, and the one that cuGetProcAddress gives out. So launches can be counted by way, and each way calls what is
 * behind itself.
 */
#ifdef __x86_64__
#include "launch_x86_64.h"
#else
#include "launch_portable.h"
#endif

CUresult init_body(enum overlap_way way, enum hook hook, uintptr_t site, uint32_t flags) {
    REAL_OR_RETURN(cuInit);
    CUresult result = real(flags);
    if (result == CUDA_SUCCESS)
        overlap_page_opened();
    return result;
}

CUresult proc_address_body(enum overlap_way way, enum hook hook, uintptr_t site, const char *symbol, void **pfn,
                           int version, uint64_t flags) {
    REAL_OR_RETURN(cuGetProcAddress);
    CUresult result = real(symbol, pfn, version, flags);
    if (result == CUDA_SUCCESS && pfn)
        *pfn = real_replace(symbol, version, flags, *pfn);
    return result;
}

CUresult proc_address_v2_body(enum overlap_way way, enum hook hook, uintptr_t site, const char *symbol, void **pfn,
                              int version, uint64_t flags, int *status) {
    REAL_OR_RETURN(cuGetProcAddress_v2);
    CUresult result = real(symbol, pfn, version, flags, status);
    if (result == CUDA_SUCCESS && pfn)
        *pfn = real_replace(symbol, version, flags, *pfn);
    return result;
}

/* ---- The thunks ---- */

#define SITE ((uintptr_t)__builtin_return_address(0))

/* Exported, and two that others hand out. */
#define DRIVER(name, body, parameters, ...)                                                                            \
    OVERLAP_EXPORT CUresult name parameters;                                                                           \
    OVERLAP_EXPORT CUresult name parameters {                                                                          \
        return body(OVERLAP_WAY_symbol, HOOK_##name, SITE, __VA_ARGS__);                                               \
    }                                                                                                                  \
    static CUresult dlsym_##name parameters {                                                                          \
        return body(OVERLAP_WAY_dlsym, HOOK_##name, SITE, __VA_ARGS__);                                                \
    }                                                                                                                  \
    static CUresult proc_##name parameters {                                                                           \
        return body(OVERLAP_WAY_proc_address, HOOK_##name, SITE, __VA_ARGS__);                                         \
    }

#define DRIVER_VOID(name, body)                                                                                        \
    OVERLAP_EXPORT CUresult name(void);                                                                                \
    OVERLAP_EXPORT CUresult name(void) {                                                                               \
        return body(OVERLAP_WAY_symbol, HOOK_##name, SITE);                                                            \
    }                                                                                                                  \
    static CUresult dlsym_##name(void) {                                                                               \
        return body(OVERLAP_WAY_dlsym, HOOK_##name, SITE);                                                             \
    }                                                                                                                  \
    static CUresult proc_##name(void) {                                                                                \
        return body(OVERLAP_WAY_proc_address, HOOK_##name, SITE);                                                      \
    }

/* The slow functions behind the hot thunks: jumped to, so SITE is the program's return address there too. */
#define SLOW(way, name, body, parameters, ...)                                                                         \
    CUresult slow_##way##_##name parameters;                                                                           \
    __attribute__((cold, noinline)) CUresult slow_##way##_##name parameters {                                          \
        return body##_slow(OVERLAP_WAY_##way, HOOK_##name, SITE, __VA_ARGS__);                                         \
    }
#define HOT(linkage, prefix, way, name, body, parameters, ...)                                                         \
    linkage CUresult prefix##name parameters {                                                                         \
        return body(OVERLAP_WAY_##way, HOOK_##name, SITE, slow_##way##_##name, __VA_ARGS__);                           \
    }
#define DRIVER_LAUNCH(name, body, parameters, ...)                                                                     \
    SLOW_##body(symbol, name, parameters, __VA_ARGS__) SLOW_##body(dlsym, name, parameters, __VA_ARGS__)               \
        SLOW_##body(proc_address, name, parameters, __VA_ARGS__) HOT_##body(name, parameters)
#include "driver.def"
#undef DRIVER

void *entry_thunk(enum overlap_way way, enum hook hook) {
    static void *const thunks[][HOOK_COUNT] = {
#define DRIVER(name, body, parameters, ...) (void *)dlsym_##name,
        {
#include "driver.def"
        },
#undef DRIVER
#define DRIVER(name, body, parameters, ...) (void *)proc_##name,
        {
#include "driver.def"
        },
#undef DRIVER
    };
    return thunks[way - OVERLAP_WAY_dlsym][hook];
}
