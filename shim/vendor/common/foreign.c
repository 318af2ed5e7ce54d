/* Callers of HIP by symbol: to which runtime is their library bound? Almost always there is one runtime, but a package may
 * bring its own beside the system's, opened for itself only. Our exported names stand in front of both, and what one of them has
 * made means nothing to the other, or worse. The runtime that was met first is the one that decisions are made for; calls of
 * libraries that are bound to another are passed on to that.
 */
#include <errno.h>
#include <string.h>

#include "vendor.h"

enum { CALLERS = 64 };

/* Libraries that were looked at, as long as none is closed: another one may be where they were. */
static struct caller {
    uintptr_t start, end; /* end: 0 while free; stored last */
    uint32_t closed;      /* overlap_closed when it was looked at */
    uint32_t foreign;
} callers[CALLERS];
static uint32_t used;

/* The last one of this thread. */
static __thread struct {
    uintptr_t start, size;
    uint32_t closed;
} own __attribute__((tls_model("initial-exec")));

static const struct caller *find(uintptr_t site, uint32_t closed) {
    const uint32_t count = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count && i < CALLERS; i++)
        if (site < __atomic_load_n(&callers[i].end, __ATOMIC_ACQUIRE) &&
            site >= __atomic_load_n(&callers[i].start, __ATOMIC_RELAXED) &&
            __atomic_load_n(&callers[i].closed, __ATOMIC_RELAXED) == closed)
            return &callers[i];
    return NULL;
}

static void keep(const struct overlap_object *object, uint32_t closed, bool foreign) {
    uint32_t index = __atomic_load_n(&used, __ATOMIC_RELAXED);
    do
        if (index >= CALLERS) { /* begun anew: what is looked up meanwhile is looked at again */
            __atomic_compare_exchange_n(&used, &index, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
            return;
        }
    while (!__atomic_compare_exchange_n(&used, &index, index + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    __atomic_store_n(&callers[index].end, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&callers[index].start, object->start, __ATOMIC_RELAXED);
    __atomic_store_n(&callers[index].closed, closed, __ATOMIC_RELAXED);
    __atomic_store_n(&callers[index].foreign, foreign, __ATOMIC_RELAXED);
    __atomic_store_n(&callers[index].end, object->end, __ATOMIC_RELEASE);
}

/* Any name tells: all of a library's are bound alike. */
static bool is_bound_elsewhere(uintptr_t site) {
    struct overlap_object bound;
    void *found = overlap_scope_symbol(site, hook_names[HOOK_hipMalloc]);
    return found && !real_holds(VENDOR_HIP, (uintptr_t)found) && overlap_object_at((uintptr_t)found, &bound) &&
           strncmp(bound.name, "libamdhip64.so", strlen("libamdhip64.so")) == 0;
}

__attribute__((cold, noinline)) static bool look(uintptr_t site, uint32_t closed) {
    static uint32_t said;
    const int saved = errno;
    struct overlap_object object;
    bool foreign = false;
    const struct caller *known = find(site, closed);
    if (known) {
        foreign = __atomic_load_n(&known->foreign, __ATOMIC_RELAXED);
        object = (struct overlap_object){.start = known->start, .end = known->end};
    } else if (!overlap_object_at(site, &object) || overlap_is_ours(site)) {
        errno = saved;
        return false; /* code that no library holds is served by the runtime that we know */
    } else {
        foreign = is_bound_elsewhere(site);
        keep(&object, closed, foreign);
    }
    if (foreign && overlap_armed() && !__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        overlap_say("there are several HIP runtimes in this process: launches on all but the first are not seen", NULL,
                    NULL);
    if (!foreign) {
        own.start = object.start;
        own.size = object.end - object.start;
        own.closed = closed;
    }
    errno = saved;
    return foreign;
}

bool real_is_foreign(uintptr_t site) {
    const uint32_t closed = __atomic_load_n(&overlap_closed, __ATOMIC_ACQUIRE);
    if (__builtin_expect(site - own.start < own.size && own.closed == closed, 1) || !real_ready(VENDOR_HIP))
        return false;
    return look(site, closed);
}

void *real_foreign(enum hook hook, uintptr_t site) {
    const int saved = errno;
    void *found = overlap_scope_symbol(site, hook_names[hook]);
    errno = saved;
    return found;
}
