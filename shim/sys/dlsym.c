/* What the assembler entries of dlsym and dlvsym ask about names that may be ours. */
#include "private.h"

#define RTLD_NEXT_HANDLE ((void *)-1L)

/* Who asks for what comes after him gets exactly that; but what he finds must not be our wrapper with nothing behind it. */
static void *after_caller(int ours) {
    return ours < 0 || overlap_vendor_behind(ours) ? NULL : OVERLAP_NO_SYMBOL;
}

/* A driver that was met by this is pinned at once: the program has taken the loader's lock for its own search, too. */
static void *answer(int ours, void *real, uintptr_t caller) {
    void *found = overlap_vendor_symbol(ours, real, caller);
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
    const int ours = overlap_vendor_name(name);
    if (handle == RTLD_NEXT_HANDLE)
        return after_caller(ours);
    void *real = ours < 0 ? NULL : overlap_dlsym(handle, name);
    return real ? answer(ours, real, caller) : NULL;
}

void *overlap_dlvsym_hook(void *handle, const char *name, const char *version, uintptr_t caller);
void *overlap_dlvsym_hook(void *handle, const char *name, const char *version, uintptr_t caller) {
    if (!overlap_bound())
        return NULL;
    const int ours = overlap_vendor_name(name);
    if (handle == RTLD_NEXT_HANDLE)
        return after_caller(ours);
    void *real = ours < 0 ? NULL : overlap_real_dlvsym(handle, name, version);
    return real ? answer(ours, real, caller) : NULL;
}
