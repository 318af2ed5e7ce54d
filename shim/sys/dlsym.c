/* What the assembler entries of dlsym and dlvsym ask about names that may be ours. */
#include "sys.h"

#define RTLD_NEXT_HANDLE ((void *)-1L)

/* NULL: the real function shall answer, with the caller's own return address. RTLD_NEXT never gets another answer: who
 * asks for what comes after him wants exactly that. */
void *overlap_dlsym_hook(void *handle, const char *name);
void *overlap_dlsym_hook(void *handle, const char *name) {
    if (handle == RTLD_NEXT_HANDLE)
        return NULL;
    return overlap_vendor_symbol(handle, name);
}
