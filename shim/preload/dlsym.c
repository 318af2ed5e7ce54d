/* Called by the assembler entries of dlsym and dlvsym (dlsym_*.S) for names that may be hooks. */
#include <dlfcn.h>

#include "../core/core.h"
#include "../sys/sys.h"
#include "../sys/system.h"
#include "../vendor/common/hook.h"
#include "../vendor/common/page.h"
#include "../vendor/common/resolve.h"
#include "../vendor/common/vendor_ops.h"

#define OVERLAP_NO_SYMBOL ((void *)1) /* dlsym returns NULL, although `real` exists; dlsym_*.S knows the value */

/* Returns the definition that the name would have without this library, or NULL. */
static void *next_definition(int hook) {
    if (hook >= TABLE_NAMES)
        return table_behind(hook);
    if (hook >= HOOK_COUNT)
        return runtime_behind(hook - HOOK_COUNT);
    return overlap_next_symbol(hook_name((enum hook)hook), driver_prefix(hook_vendor((enum hook)hook)));
}

/* Returns what dlsym gives the code at `caller` for one of our names instead of `real`, which is not NULL. NULL:
 * `real`. */
static void *symbol_for(int hook, void *real, uintptr_t caller) {
    struct overlap_object object;
    const bool ours = overlap_is_ours((uintptr_t)real);
    const bool off = hook >= TABLE_NAMES ? !overlap_armed() : overlap_is_off();
    if (ours && off && hook < HOOK_COUNT) { /* switched off: search again without us, which also sets dlerror */
        real = overlap_dlsym(RTLD_NEXT, hook_name((enum hook)hook));
        return real ? real : OVERLAP_NO_SYMBOL;
    }
    if (ours && (off || hook < TABLE_NAMES)) {
        /* The search found our wrapper. Without a driver behind it the answer is "no such symbol". */
        real = next_definition(hook);
        if (!real)
            return OVERLAP_NO_SYMBOL;
    }
    if (off)
        return ours ? real : NULL;
    /* A runtime's own handle gives its own function, which reaches our hooks of the driver anyway. */
    if (hook >= HOOK_COUNT)
        return NULL;
    const enum vendor vendor = hook_vendor((enum hook)hook);
    if (!overlap_armed())
        return NULL;
    if (in_any_driver(vendor, caller, &object))
        return real; /* a driver looks up its own functions: our hook would call back into it */
    if (!adopt_driver_of(vendor, real) || !real_remember(ROUTE_LOOKED_UP, (enum hook)hook, real))
        return NULL;
    return OPERATION_OF(vendor, thunk)(ROUTE_LOOKED_UP, (enum hook)hook);
}

/* RTLD_NEXT: the caller gets the real function's answer, unless that could only be our wrapper without a driver behind
 * it. */
static void *after_caller(int ours) {
    const bool exists = ours < 0 || (ours >= TABLE_NAMES && overlap_armed()) || next_definition(ours);
    return exists ? NULL : OVERLAP_NO_SYMBOL;
}

/* A driver that is adopted here is pinned at once: in dlsym the program takes the lock of the loader itself, so we may,
 * too. */
static void *answer(int ours, void *real, uintptr_t caller) {
    void *found = symbol_for(ours, real, caller);
    overlap_pin_due();
    return found;
}

/* Returns the answer, or NULL if the real function must answer, which needs the caller's own return address. A name
 * without a definition is searched twice, so that dlerror reports the program's own call. caller: the return address.
 * none: in the register of dlvsym's third argument. */
void *overlap_dlsym_hook(void *handle, const char *name, const char *none, uintptr_t caller);
void *overlap_dlsym_hook(void *handle, const char *name, const char *none, uintptr_t caller) {
    (void)none;
    if (!overlap_bound())
        return NULL;
    const int ours = hook_number(name);
    if (handle == RTLD_NEXT)
        return after_caller(ours);
    void *real = ours < 0 ? NULL : overlap_dlsym(handle, name);
    return real ? answer(ours, real, caller) : NULL;
}

void *overlap_dlvsym_hook(void *handle, const char *name, const char *version, uintptr_t caller);
void *overlap_dlvsym_hook(void *handle, const char *name, const char *version, uintptr_t caller) {
    if (!overlap_bound())
        return NULL;
    const int ours = hook_number(name);
    if (handle == RTLD_NEXT)
        return after_caller(ours);
    void *real = ours < 0 ? NULL : overlap_real_dlvsym(handle, name, version);
    return real ? answer(ours, real, caller) : NULL;
}
