/* Names of hooks. These functions call nothing of libc, because sanitizers' runtimes call dlsym before they have
 * started. */
#include "../core/core.h"
#include "../sys/sys.h"
#include "resolve.h"
#include "vendor_ops.h"

/* Reads the name from our own symbol table, because a second copy of all names would be locked in every process. */
const char *hook_name(enum hook hook) {
    return overlap_own_name((uintptr_t)OPERATION_OF(hook_vendor(hook), thunk)(ROUTE_SYMBOL, hook));
}

int hook_named(enum vendor vendor, const char *name) {
    const void *const own = overlap_own_symbol(name);
    for (int hook = hook_first(vendor); own && hook < hook_end(vendor); hook++)
        if (OPERATION_OF(vendor, thunk)(ROUTE_SYMBOL, (enum hook)hook) == own)
            return hook;
    return NO_HOOK;
}

int hook_number(const char *name) {
    if (!overlap_own_symbol(name))
        return NO_HOOK;
    if (name[0] == 'r')
        return HOOK_OF_TABLE;
    const int hook = hook_named(VENDOR_CUDA, name), other = hook == NO_HOOK ? hook_named(VENDOR_HIP, name) : hook;
    return other == NO_HOOK ? HOOK_OF_RUNTIME : other;
}
