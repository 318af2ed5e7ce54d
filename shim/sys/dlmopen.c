/* What dlopen and dlmopen are asked that hides a library from us, told by their assembler entries.
 *
 * RTLD_DEEPBIND binds a library to itself and what it needs before everything preloaded, and what dlmopen puts into another
 * namespace gets a C library of its own (dlopen(3)). Only the flags can be changed; everything else is up to the real
 * function, which is jumped to: it has to see the caller. Whether it succeeds is not known here.
 */
#include <dlfcn.h>
#include <string.h>

#include "private.h"

static struct overlap_opened opened[OVERLAP_OPENED_APART + 1];
static uint32_t busy; /* somebody reads or writes the above */

/* False: somebody takes too long over it: in a thread that this signal handler has interrupted. */
static bool enter(void) {
    for (uint32_t nobody = 0;
         !__atomic_compare_exchange_n(&busy, &nobody, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED); nobody = 0)
        if (!overlap_wait(&busy, 0))
            return false;
    return true;
}

static void leave(void) {
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

void overlap_opened_forked(void) {
    leave(); /* whoever was at it is another process */
}

void overlap_opened_write(struct overlap_page *page) {
    if (!enter())
        return;
    memcpy(page->opened, opened, sizeof opened);
    leave();
}

static void note(enum overlap_opening kind, const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    enum { SIZE = sizeof opened->names[0], MOST = sizeof opened->names / SIZE };
    if (!enter())
        return;
    opened[kind].times++;
    for (int i = 0; i < MOST; i++) {
        char *known = (char *)opened[kind].names[i];
        if (!known[0])
            strncpy(known, name, SIZE - 1);
        if (strncmp(known, name, SIZE - 1) == 0)
            break;
    }
    leave();
    overlap_page_refresh();
}

/* A mode that loads something new under a name. */
static bool loads(const char *path, int mode) {
    return path && *path && !(mode & RTLD_NOLOAD);
}

/* They answer with the mode to go on with. */
int overlap_dlopen_hook(const char *path, int mode);
int overlap_dlopen_hook(const char *path, int mode) {
    const struct overlap_settings *settings = overlap_settings();
    if (!settings || !loads(path, mode))
        return mode;
    const bool strip = overlap_strips_deep_binding(settings->table);
    note(strip ? OVERLAP_OPENED_STRIPPED : OVERLAP_OPENED_DEEP, path);
    return strip ? mode & ~RTLD_DEEPBIND : mode;
}

int overlap_dlmopen_hook(Lmid_t space, const char *path, int mode);
int overlap_dlmopen_hook(Lmid_t space, const char *path, int mode) {
    if (space == LM_ID_BASE)
        return overlap_dlopen_hook(path, mode);
    if (overlap_settings() && loads(path, mode))
        note(OVERLAP_OPENED_APART, path);
    return mode;
}
