/* The names of NVIDIA's runtime: each notes who called, calls the real function and forgets it again. What happens in
 * between, in the driver's wrappers, counts for that caller.
 *
 * Several runtimes may be loaded at once (libcudart.so.12 and .13, one of them for a plugin only), and each knows only
 * the kernels that were registered with it. So the real function is the one that the caller would have been bound to
 * without us; where that is nothing (code that no library holds), any runtime's.
 */
#include <errno.h>

#include "cuda.h"

#define RUNTIME_PREFIX "libcudart.so"
enum { ERROR_INITIALIZATION = 3, CALLERS = 64 }; /* cudaErrorInitializationError: no runtime is there */

typedef struct {
    uint32_t x, y, z;
} dim3;

enum runtime_hook {
#define RUNTIME(name, ...) RUNTIME_##name,
#include "runtime.def"
#undef RUNTIME
    RUNTIME_COUNT
};

/* Libraries that have called, and what they are bound to, as long as no library is closed: then it is found anew, because
 * another library may be where the caller was, and the runtime may be gone. */
static struct caller {
    uintptr_t start, end; /* end: 0 while free; stored last */
    uint32_t closed;      /* overlap_closed when it was found */
    void *real[RUNTIME_COUNT];
} callers[CALLERS];
static uint32_t callers_used;

static struct caller *caller_of(uintptr_t site) {
    uint32_t used = __atomic_load_n(&callers_used, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < used && i < CALLERS; i++)
        if (site < __atomic_load_n(&callers[i].end, __ATOMIC_ACQUIRE) &&
            site >= __atomic_load_n(&callers[i].start, __ATOMIC_RELAXED))
            return &callers[i];
    return NULL;
}

/* A place for a library, or NULL: then it is looked for at every call. */
static struct caller *caller_new(const struct overlap_object *object) {
    uint32_t index = __atomic_load_n(&callers_used, __ATOMIC_RELAXED);
    do
        if (index >= CALLERS)
            return NULL;
    while (!__atomic_compare_exchange_n(&callers_used, &index, index + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    __atomic_store_n(&callers[index].start, object->start, __ATOMIC_RELAXED);
    __atomic_store_n(&callers[index].end, object->end, __ATOMIC_RELEASE);
    return &callers[index];
}

static void keep(enum runtime_hook hook, const struct overlap_object *object, uint32_t closed, void *real) {
    struct caller *caller = caller_of(object->start);
    if (caller && (caller->start != object->start || caller->end != object->end)) {
        __atomic_store_n(&caller->end, 0, __ATOMIC_RELEASE); /* of a library that is gone */
        caller = NULL;
    }
    if (!caller && !(caller = caller_new(object)))
        return;
    if (__atomic_load_n(&caller->closed, __ATOMIC_RELAXED) != closed) {
        for (int i = 0; i < RUNTIME_COUNT; i++)
            __atomic_store_n(&caller->real[i], NULL, __ATOMIC_RELAXED);
        __atomic_store_n(&caller->closed, closed, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&caller->real[hook], real, __ATOMIC_RELEASE);
}

__attribute__((cold, noinline)) static void *find(enum runtime_hook hook, uintptr_t site) {
    const int saved = errno;
    const uint32_t closed = __atomic_load_n(&overlap_closed, __ATOMIC_ACQUIRE);
    struct overlap_object object;
    void *real = overlap_scope_symbol(site, runtime_names[hook]);
    if (!real)
        real = overlap_next_symbol(runtime_names[hook], RUNTIME_PREFIX);
    if (real && overlap_object_at(site, &object) && !overlap_is_ours(site))
        keep(hook, &object, closed, real);
    errno = saved;
    return real;
}

static inline void *real_runtime(enum runtime_hook hook, uintptr_t site) {
    struct caller *caller = caller_of(site);
    if (__builtin_expect(caller && __atomic_load_n(&caller->closed, __ATOMIC_ACQUIRE) ==
                                       __atomic_load_n(&overlap_closed, __ATOMIC_ACQUIRE),
                         1)) {
        void *real = __atomic_load_n(&caller->real[hook], __ATOMIC_ACQUIRE);
        if (__builtin_expect(real != NULL, 1))
            return real;
    }
    return find(hook, site);
}

/* A launch in a process whose driver we have not met: it is said at least that there was one. */
static void count_unmet(enum runtime_hook hook, int result) {
    if (result == 0 && hook < RUNTIME_cudaStreamCreate && overlap_armed() && !real_ready(VENDOR_CUDA) &&
        overlap_page_prepare()) {
        overlap_page_opened();
        launch_count_reason(OVERLAP_WAY_runtime, OVERLAP_REASON_unknown_footprint);
    }
}

/* The runtime calls itself now and then: the outermost call counts. */
#define RUNTIME(...) RUNTIME_(__VA_ARGS__)
#define RUNTIME_(name, parameters, ...)                                                                                \
    OVERLAP_EXPORT int name parameters;                                                                                \
    OVERLAP_EXPORT int name parameters {                                                                               \
        const uintptr_t site = (uintptr_t)__builtin_return_address(0), before = this_thread.outer;                     \
        int(*real) parameters = (int(*) parameters)real_runtime(RUNTIME_##name, site);                                 \
        if (!real)                                                                                                     \
            return ERROR_INITIALIZATION;                                                                               \
        this_thread.outer = before ? before : site;                                                                    \
        const int result = real(__VA_ARGS__);                                                                          \
        this_thread.outer = before;                                                                                    \
        if (__builtin_expect(!real_ready(VENDOR_CUDA), 0) && !before)                                                  \
            count_unmet(RUNTIME_##name, result);                                                                       \
        return result;                                                                                                 \
    }
#include "runtime.def"
#undef RUNTIME

void *runtime_behind(int hook) {
    return overlap_next_symbol(runtime_names[hook], RUNTIME_PREFIX);
}
