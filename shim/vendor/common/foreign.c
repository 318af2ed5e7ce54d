/* Callers of HIP by symbol: to which runtime is their library bound? Almost always there is one runtime, but a package may
 * bring its own beside the system's, opened for itself only. Our exported names stand in front of both, and what one of them has
 * made means nothing to the other, or worse. The runtime that was met first is the one that decisions are made for; calls of
 * libraries that are bound to another are passed on to that.
 */
#include <string.h>

#include "vendor.h"

#define RUNTIME_PREFIX "libamdhip64.so"

/* The last function of this thread that the known runtime does not hold: it may be a profiler's, which leads there. */
static __thread struct {
    uintptr_t bound;
    uint32_t generation;
    bool foreign;
} last __attribute__((tls_model("initial-exec")));

__attribute__((cold, noinline)) static bool is_of_another(uintptr_t bound) {
    static uint32_t said;
    struct overlap_object object;
    const uint32_t now = overlap_generation();
    if (now && last.generation == now && last.bound == bound)
        return last.foreign;
    const bool foreign =
        overlap_object_at(bound, &object) && strncmp(object.name, RUNTIME_PREFIX, strlen(RUNTIME_PREFIX)) == 0;
    if (foreign && overlap_armed() && !__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        overlap_say("there are several HIP runtimes in this process: launches on all but the first are not seen", NULL,
                    NULL);
    last.generation = 0; /* a signal handler may come here, too */
    last.bound = bound;
    last.foreign = foreign;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    last.generation = now;
    return foreign;
}

bool real_is_foreign(uintptr_t site) {
    if (!real_ready(VENDOR_HIP))
        return false;
    /* Any name tells: all of a library's are bound alike. */
    const uintptr_t bound = (uintptr_t)real_foreign(HOOK_hipMalloc, site);
    return bound && !real_holds(VENDOR_HIP, bound) && is_of_another(bound);
}

void *real_foreign(enum hook hook, uintptr_t site) {
    void *const known = overlap_behind_known(site, (uint32_t)hook);
    return known ? known : overlap_behind(site, (uint32_t)hook, hook_name(hook), RUNTIME_PREFIX);
}
