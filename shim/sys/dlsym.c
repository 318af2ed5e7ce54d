/* What the assembler entries of dlsym and dlvsym ask about names that may be ours. */
#include "private.h"

#define RTLD_NEXT_HANDLE ((void *)-1L)

/* Who asks for what comes after him gets exactly that; but what he finds must not be our wrapper with nothing behind it. */
static void *after_caller(int ours) {
    return ours < 0 || overlap_vendor_behind(ours) ? NULL : OVERLAP_NO_SYMBOL;
}

/* NULL: the real function shall answer, with the caller's own return address. A name that is not there is looked for twice,
 * so that dlerror says what the program expects. */
void *overlap_dlsym_hook(void *handle, const char *name);
void *overlap_dlsym_hook(void *handle, const char *name) {
    if (!overlap_bound())
        return NULL;
    const int ours = overlap_vendor_name(name);
    if (handle == RTLD_NEXT_HANDLE)
        return after_caller(ours);
    void *real = ours < 0 ? NULL : overlap_dlsym(handle, name);
    return real ? overlap_vendor_symbol(ours, real) : NULL;
}

void *overlap_dlvsym_hook(void *handle, const char *name, const char *version);
void *overlap_dlvsym_hook(void *handle, const char *name, const char *version) {
    if (!overlap_bound())
        return NULL;
    const int ours = overlap_vendor_name(name);
    if (handle == RTLD_NEXT_HANDLE)
        return after_caller(ours);
    void *real = ours < 0 ? NULL : overlap_real_dlvsym(handle, name, version);
    return real ? overlap_vendor_symbol(ours, real) : NULL;
}
