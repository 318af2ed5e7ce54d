/* What the assembler entries of dlsym, dlvsym and dlmopen ask: dlsym about names that may be ours. */
#include <dlfcn.h>

#include "../core/core.h"
#include "../sys/sys.h"
#include "../sys/system.h"
#include "../vendor/common/hook.h"
#include "../vendor/common/page.h"
#include "../vendor/common/resolve.h"
#include "../vendor/common/vendor_ops.h"

#define OVERLAP_NO_SYMBOL ((void *)1) /* dlsym returns NULL, although `real` exists; dlsym_*.S knows the value */

/* What a name stands for where we are not; NULL: nothing. */
static void *behind(int hook) {
    if (hook >= TABLE_NAMES)
        return table_behind(hook);
    if (hook >= HOOK_COUNT)
        return runtime_behind(hook - HOOK_COUNT);
    return overlap_next_symbol(hook_name((enum hook)hook), driver_prefix(hook_vendor((enum hook)hook)));
}

/* Returns what dlsym gives the code at `caller` for one of our names instead of `real`, which is not NULL. NULL: `real`. */
static void *symbol_for(int hook, void *real, uintptr_t caller) {
    struct overlap_object object;
    const bool ours = overlap_is_ours((uintptr_t)real);
    const bool off = hook >= TABLE_NAMES ? !overlap_armed() : overlap_is_off();
    if (ours && off && hook < HOOK_COUNT) { /* as if we were not there, with the error that dlerror tells */
        real = overlap_dlsym(RTLD_NEXT, hook_name((enum hook)hook));
        return real ? real : OVERLAP_NO_SYMBOL;
    }
    if (ours && (off || hook < TABLE_NAMES)) {
        /* The global scope holds our wrapper; it counts only if something is behind it: a machine without a driver must not
         * look equipped. */
        real = behind(hook);
        if (!real)
            return OVERLAP_NO_SYMBOL;
    }
    if (off)
        return ours ? real : NULL;
    /* Whoever asks a runtime itself gets its own function; it calls the driver all the same. */
    if (hook >= HOOK_COUNT)
        return NULL;
    const enum vendor vendor = hook_vendor((enum hook)hook);
    if (!overlap_armed())
        return NULL;
    if (in_any_driver(vendor, caller, &object))
        return real; /* what a driver asks for is its own: ours would lead back to it */
    if (!adopt_driver_of(vendor, real) || !real_remember(OVERLAP_ROUTE_dlsym, (enum hook)hook, real))
        return NULL;
    return OPERATION_OF(vendor, thunk)(OVERLAP_ROUTE_dlsym, (enum hook)hook);
}

/* Does any object but this library define this name? */
static bool is_behind(int hook) {
    return (hook >= TABLE_NAMES && overlap_armed()) || behind(hook) != NULL;
}

/* Who asks for what comes after him gets exactly that; but what he finds must not be our wrapper with nothing behind it. */
static void *after_caller(int ours) {
    return ours < 0 || is_behind(ours) ? NULL : OVERLAP_NO_SYMBOL;
}

/* A driver that was met by this is pinned at once: the program has taken the loader's lock for its own search, too. */
static void *answer(int ours, void *real, uintptr_t caller) {
    void *found = symbol_for(ours, real, caller);
    overlap_pin_due();
    return found;
}

/* NULL: the real function shall answer, with the caller's own return address. A name that is not there is looked for twice,
 * so that dlerror says what the program expects. caller: the address to which the answer goes. */
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

/* Called for other namespaces only. Returns the mode for the real dlmopen: the program's, unchanged. */
int overlap_dlmopen_hook(Lmid_t space, const char *path, int mode);
int overlap_dlmopen_hook(Lmid_t space, const char *path, int mode) {
    (void)space;
    const bool loads = path && *path && !(mode & RTLD_NOLOAD);
    if (loads && overlap_settings()) {
        overlap_opened_note(path);
        overlap_page_refresh();
    }
    return mode;
}
