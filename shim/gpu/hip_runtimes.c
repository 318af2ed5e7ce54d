/* Several HIP runtimes in one process: find the runtime to which a caller by symbol is bound. Almost always there is
 * only one, but a package may bring its own, opened RTLD_LOCAL, beside the system's. Our exported names interpose both,
 * and a handle of one runtime is invalid in the other, or worse. Decisions are made for the runtime that was found
 * first; calls from libraries bound to another runtime are forwarded to that.
 */
#include "../sys/sys.h"
#include "page.h"
#include "resolve.h"

/* The last function seen by this thread that lies outside the known runtime. It may be a profiler's, which forwards
 * to the known runtime. */
static __thread struct {
    uint64_t generation;
    uintptr_t bound;
    bool foreign;
} last __attribute__((tls_model("initial-exec")));

__attribute__((cold, noinline)) static bool is_of_another(uintptr_t bound) {
    static uint32_t said;
    struct overlap_object object;
    const uint64_t now = overlap_generation();
    if (now && last.generation == now && last.bound == bound)
        return last.foreign;
    const bool foreign = in_any_driver(VENDOR_HIP, bound, &object);
    if (foreign && overlap_armed() && !__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        overlap_say("there are several HIP runtimes in this process: launches on all but the first are not seen", NULL,
                    NULL);
    last.generation = 0; /* invalid while written: a signal handler may run this, too */
    last.bound = bound;
    last.foreign = foreign;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    last.generation = now;
    return foreign;
}

bool calls_other_runtime(uintptr_t site) {
    if (!driver_ready(VENDOR_HIP))
        return false;
    /* Any name will do: all names of a library resolve alike. */
    const uintptr_t bound = (uintptr_t)other_runtime_function(HOOK_hipMalloc, site);
    return bound && !in_driver(VENDOR_HIP, bound) && is_of_another(bound);
}

void *other_runtime_function(enum hook hook, uintptr_t site) {
    void *const known = overlap_behind_cached(site, (uint32_t)hook);
    return known ? known : overlap_behind(site, (uint32_t)hook, hook_name(hook), driver_prefix(VENDOR_HIP), false);
}
