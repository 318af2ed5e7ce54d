/* Hooks of NVIDIA's runtime. Each records its caller, calls the real function and clears the record. Launches in
 * between, in the driver's hooks, are attributed to that caller.
 *
 * Several runtimes may be loaded at once (libcudart.so.12 and .13, one of them for a plugin only), and each has only
 * the kernels that were registered with it. So the real function is the one that the caller would be bound to without
 * us (sys/bind.c). For a caller without a binding (code outside any library) it is any runtime's.
 */
#include "../core/core.h"
#include "../sys/sys.h"
#include "../gpu/thread.h"
#include "cuda.h"

#define RUNTIME_PREFIX "libcudart.so"
enum { ERROR_INITIALIZATION = 3 }; /* cudaErrorInitializationError: there is no runtime */

typedef struct {
    uint32_t x, y, z;
} dim3;

enum runtime_hook {
#define RUNTIME(name, ...) RUNTIME_##name,
#include "runtime.def"
#undef RUNTIME
    RUNTIME_COUNT
};

static inline void *real_runtime(enum runtime_hook hook, const char *name, uintptr_t site) {
    void *const known = overlap_behind_cached(site, HOOK_COUNT + (uint32_t)hook);
    return known ? known : overlap_behind(site, HOOK_COUNT + (uint32_t)hook, name, RUNTIME_PREFIX, false);
}

/* A launch in a process whose driver was not found: report at least that there was one. */
static void count_unmet(enum runtime_hook hook, int result) {
    if (result == 0 && hook < RUNTIME_cudaStreamCreate && overlap_armed() && !driver_ready(VENDOR_CUDA) &&
        overlap_page_prepare()) {
        overlap_page_opened();
        count_launch(OVERLAP_REASON_unknown_footprint);
    }
}

/* The runtime sometimes calls itself: the outermost call counts. */
#define RUNTIME(...) RUNTIME_(__VA_ARGS__)
#define RUNTIME_(name, parameters, ...)                                                                                \
    OVERLAP_EXPORT int name parameters;                                                                                \
    OVERLAP_EXPORT int name parameters {                                                                               \
        const uintptr_t site = (uintptr_t)__builtin_return_address(0);                                                 \
        const uintptr_t before = outer_is_set() ? this_thread.outer : 0;                                               \
        int(*real) parameters = (int(*) parameters)real_runtime(RUNTIME_##name, #name, site);                          \
        if (!real)                                                                                                     \
            return ERROR_INITIALIZATION;                                                                               \
        if (!before) {                                                                                                 \
            this_thread.outer_frame = (uintptr_t)__builtin_frame_address(0);                                           \
            this_thread.outer = site;                                                                                  \
        }                                                                                                              \
        const int result = real(__VA_ARGS__);                                                                          \
        this_thread.outer = before;                                                                                    \
        if (__builtin_expect(!driver_ready(VENDOR_CUDA), 0) && !before)                                                \
            count_unmet(RUNTIME_##name, result);                                                                       \
        return result;                                                                                                 \
    }
#include "runtime.def"
#undef RUNTIME
