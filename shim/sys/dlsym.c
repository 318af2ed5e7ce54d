/* What the assembler entries of dlsym and dlvsym ask about names that may be ours. */
#include "private.h"

#define RTLD_NEXT_HANDLE ((void *)-1L)

/* NULL: the real function shall answer, with the caller's own return address. RTLD_NEXT never gets another answer: who
 * asks for what comes after him wants exactly that. A name that is not there is looked for twice, so that dlerror says
 * what the program expects. */
void *overlap_dlsym_hook(void *handle, const char *name);
void *overlap_dlsym_hook(void *handle, const char *name) {
    int ours = handle == RTLD_NEXT_HANDLE ? -1 : overlap_vendor_name(name);
    void *real = ours < 0 ? NULL : overlap_dlsym(handle, name);
    return real ? overlap_vendor_symbol(ours, real) : NULL;
}

void *overlap_dlvsym_hook(void *handle, const char *name, const char *version);
void *overlap_dlvsym_hook(void *handle, const char *name, const char *version) {
    int ours = handle == RTLD_NEXT_HANDLE ? -1 : overlap_vendor_name(name);
    void *real = ours < 0 ? NULL : overlap_real_dlvsym(handle, name, version);
    return real ? overlap_vendor_symbol(ours, real) : NULL;
}
