/* Resolves the driver's functions behind our hooks. On AMD the driver is the HIP runtime.
 *
 * dlsym calls the real dlsym first. Its result is replaced by our thunk only if it is the driver's function of that
 * name. The vendors' lookup functions (cuda/lookup.c, hip/entry.c) do the same.
 */
#include <errno.h>
#include <string.h>

#include "../core/core.h"
#include "../sys/sys.h"
#include "page.h"
#include "resolve.h"
#include "vendor_ops.h"

void *real_functions[HOOK_COUNT][ROUTES];
void *real_exports[HOOK_COUNT];

#define ENDS(name, from_end, letter) (sizeof name > 6 && name[sizeof name - 1 - (from_end)] == (letter))
const uint8_t hook_defaults[HOOK_COUNT] = {
/* _ptsz, _ptds */
#define DRIVER(name, ...)                                                                                              \
    ENDS(#name, 5, '_') && ENDS(#name, 4, 'p') && ENDS(#name, 3, 't') ? STREAM_OF_THREAD : STREAM_OF_CONTEXT,
#include "../cuda/driver.def"
#undef DRIVER
/* _spt */
#define DRIVER(name, ...)                                                                                              \
    ENDS(#name, 4, '_') && ENDS(#name, 3, 's') && ENDS(#name, 2, 'p') ? STREAM_OF_HIP_THREAD : STREAM_OF_HIP_DEVICE,
#include "../hip/driver.def"
#undef DRIVER
};

const char *driver_prefix(enum vendor vendor) {
    return vendor == VENDOR_HIP ? "libamdhip64.so" : "libcuda.so";
}

/* The adopted driver of each vendor: the first one that was used through us. Written once, by the first thread;
 * read-only after that. */
static struct {
    uint32_t state; /* 0: none yet, 1: being written, 2: ready, 3: given up */
    struct overlap_object object;
} adopted[VENDORS];

void driver_functions(const struct overlap_object *object, const char *names, void *functions) {
    char *at = functions;
    for (; *names; names += strlen(names) + 1, at += sizeof(void *)) {
        void *const function = overlap_object_symbol(object, names);
        memcpy(at, &function, sizeof function);
    }
}

static bool adopt(enum vendor vendor, const struct overlap_object *object) {
    uint32_t none = 0;
    if (!__atomic_compare_exchange_n(&adopted[vendor].state, &none, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
        return none != 3 && overlap_wait(&adopted[vendor].state, 2) && adopted[vendor].object.base == object->base;
    if (!overlap_page_prepare()) { /* as if there were no driver */
        __atomic_store_n(&adopted[vendor].state, 3, __ATOMIC_RELEASE);
        return false;
    }
    adopted[vendor].object = *object;
    for (int hook = hook_first(vendor); hook < hook_end(vendor); hook++)
        __atomic_store_n(&real_exports[hook], overlap_object_symbol(object, hook_name((enum hook)hook)),
                         __ATOMIC_RELEASE);
    OPERATION_OF(vendor, driver_adopted)(object);
    __atomic_store_n(&adopted[vendor].state, 2, __ATOMIC_RELEASE);
    /* Pin the driver: the program may close it while we still call it. */
    overlap_object_pin(object->start);
    return true;
}

bool driver_ready(enum vendor vendor) {
    return __atomic_load_n(&adopted[vendor].state, __ATOMIC_ACQUIRE) == 2;
}

bool in_driver(enum vendor vendor, uintptr_t address) {
    return driver_ready(vendor) && address >= adopted[vendor].object.start && address < adopted[vendor].object.end;
}

bool in_any_driver(enum vendor vendor, uintptr_t address, struct overlap_object *object) {
    return overlap_object_at(address, object) &&
           strncmp(object->name, driver_prefix(vendor), strlen(driver_prefix(vendor))) == 0;
}

bool adopt_driver_of(enum vendor vendor, const void *address) {
    struct overlap_object object;
    const uintptr_t at = (uintptr_t)address;
    return in_driver(vendor, at) || (in_any_driver(vendor, at, &object) && adopt(vendor, &object));
}

bool in_other_driver(enum vendor vendor, const void *address) {
    struct overlap_object object;
    return driver_ready(vendor) && in_any_driver(vendor, (uintptr_t)address, &object);
}

bool real_remember(enum route route, enum hook hook, void *address) {
    void *before = real_cached(hook, route);
    if (!before && __atomic_compare_exchange_n(&real_functions[hook][route], &before, address, false, __ATOMIC_RELEASE,
                                               __ATOMIC_ACQUIRE))
        return true;
    const enum vendor vendor = hook_vendor(hook);
    return before == address ||
           (route == ROUTE_LOOKED_UP && in_other_driver(vendor, before) && in_other_driver(vendor, address));
}

/* Names for which some caller is bound to neither the driver nor the global definition, so each caller is resolved by
 * itself. */
static uint8_t by_caller[(HOOK_COUNT + 7) / 8]; /* a bit each */

static bool is_by_caller(enum hook hook) {
    return OVERLAP_RELAXED(by_caller[hook / 8]) >> hook % 8 & 1;
}

void *real_find(enum hook hook, uintptr_t site) {
    const enum vendor vendor = hook_vendor(hook);
    struct overlap_object object;
    void *address = overlap_behind_cached(site, (uint32_t)hook); /* resolving a name takes microseconds */
    if (address && is_by_caller(hook))
        return address;
    const int saved = errno;
    if (!address)
        address = overlap_behind(site, (uint32_t)hook, hook_name(hook), driver_prefix(vendor), true);
    const bool global = address && overlap_is_global((uintptr_t)address);
    if (address && overlap_armed()) {
        adopt_driver_of(vendor, address);
        if (!driver_ready(vendor) && overlap_object_named(driver_prefix(vendor), &object))
            adopt(vendor, &object);
        /* A wrapper of one library applies to its callers only: others are bound to other functions of that name. */
        if (!in_driver(vendor, (uintptr_t)address) && !global)
            __atomic_fetch_or(&by_caller[hook / 8], (uint8_t)(1 << hook % 8), __ATOMIC_RELAXED);
    }
    /* What is switched off stores only what is never unmapped, and is the same for every caller. */
    if (address && !is_by_caller(hook) && (overlap_armed() || (global && overlap_is_off())))
        real_remember(ROUTE_SYMBOL, hook, address);
    errno = saved;
    return address;
}

int real_by_address(enum vendor vendor, const void *address) {
    for (int hook = hook_first(vendor); hook < hook_end(vendor); hook++)
        if (real_export((enum hook)hook) == address)
            return hook;
    return -1;
}

bool driver_is_mapped(void) {
    struct overlap_object object;
    return overlap_object_named(driver_prefix(VENDOR_CUDA), &object) ||
           overlap_object_named(driver_prefix(VENDOR_HIP), &object);
}
