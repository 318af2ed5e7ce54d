/* dlsym and dlvsym: the entries in assembler (dlsym_*.S) call a function here, and then return its answer or jump to the
 * real function.
 *
 * The program finds one of our names where it would without us. An answer that is the driver's own function becomes our
 * thunk, or launches would not be seen. RTLD_NEXT finds ours from an object before us, and the driver itself from one
 * behind us: libraries that wrap the driver look their next function up so, and a call that has passed ours must not
 * pass it again.
 *
 * dlsym is called before libc is ready, by sanitizers too. Until a name may be ours nothing of libc is called.
 */
#include <dlfcn.h>

#include "../core/core.h"
#include "../sys/sys.h"
#include "../sys/system.h"
#include "../gpu/hook.h"
#include "../gpu/page.h"
#include "../gpu/resolve.h"
#include "../gpu/vendor_ops.h"

/* What the entry does: jump to `real`, or return `answer` if that is NULL. */
struct overlap_found {
    void *real, *answer;
};

static bool begins(const char *text, const char *beginning) {
    while (*beginning && *text == *beginning)
        text++, beginning++;
    return !*beginning;
}

static bool may_be_ours(const char *name) {
    return begins(name, "cu") || begins(name, "hip") || begins(name, "__c") || begins(name, "__h") ||
           begins(name, "_Z2") || begins(name, "rocp");
}

/* Returns our thunk for the function of a driver, which is adopted and pinned: in dlsym the program takes the lock of the
 * loader itself, so we may, too. NULL: the function is no driver's, or another one than the thunk calls. */
static void *thunk_for(enum hook hook, void *function) {
    const enum vendor vendor = hook_vendor(hook);
    void *const thunk = adopt_driver_of(vendor, function) && real_remember(ROUTE_LOOKED_UP, hook, function)
                            ? OPERATION_OF(vendor, thunk)(ROUTE_LOOKED_UP, hook)
                            : NULL;
    overlap_pin_due();
    return thunk;
}

/* version: NULL for dlsym. A name without a definition is searched twice, so that dlerror reports the program's call. */
static struct overlap_found look_up(void *real, void *handle, const char *name, const char *version, uintptr_t caller) {
    const struct overlap_found as_asked = {.real = real};
    const int hook = real && overlap_bound() && name && may_be_ours(name) ? hook_number(name) : NO_HOOK;
    if (hook == NO_HOOK)
        return as_asked;
    void *found;
    if (version)
        found = ((overlap_dlvsym_type *)real)(handle, name, version);
    else if (handle == RTLD_DEFAULT || handle == RTLD_NEXT) /* called by us, the real one would search from here */
        found = overlap_next_is_ours(handle == RTLD_NEXT ? caller : 0, name) ? overlap_own_symbol(name) : NULL;
    else
        found = ((overlap_dlsym_type *)real)(handle, name);
    if (!found)
        return as_asked;
    const bool off = hook == HOOK_OF_TABLE ? !overlap_armed() : overlap_is_off();
    if (overlap_is_ours((uintptr_t)found)) { /* is there one without us? */
        if (hook == HOOK_OF_TABLE && !off)
            return as_asked;
        found = overlap_dlsym(RTLD_NEXT, name);
        if (!found && handle == RTLD_DEFAULT && (found = overlap_local_symbol(caller, name)) != NULL)
            overlap_forget_error();
        if (!found || off)
            return (struct overlap_found){.answer = found};
    }
    /* A runtime's own handle gives its own function, which reaches our hooks of the driver anyway. */
    if (off || handle == RTLD_NEXT || hook >= HOOK_COUNT || !overlap_armed())
        return as_asked;
    struct overlap_object object;
    if (in_any_driver(hook_vendor((enum hook)hook), caller, &object))
        return (struct overlap_found){.answer =
                                          found}; /* a driver looks up its own: our hook would call back into it */
    void *const thunk = thunk_for((enum hook)hook, found);
    return thunk ? (struct overlap_found){.answer = thunk} : as_asked;
}

/* The arguments of dlsym and dlvsym, and the return address of the caller. */
struct overlap_found overlap_dlsym_hook(void *handle, const char *name, const char *none, uintptr_t caller);
struct overlap_found overlap_dlsym_hook(void *handle, const char *name, const char *none, uintptr_t caller) {
    (void)none; /* dlvsym has a third argument */
    return look_up((void *)overlap_real_dlsym(), handle, name, NULL, caller);
}

struct overlap_found overlap_dlvsym_hook(void *handle, const char *name, const char *version, uintptr_t caller);
struct overlap_found overlap_dlvsym_hook(void *handle, const char *name, const char *version, uintptr_t caller) {
    void *const real = (void *)overlap_real_dlvsym();
    if (!version || handle == RTLD_NEXT) /* none of our names has a version, so ours is not found by one */
        return (struct overlap_found){.real = real};
    return look_up(real, handle, name, version, caller);
}
