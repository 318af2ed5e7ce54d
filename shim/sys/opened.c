/* Libraries that a program opens by dlmopen in another namespace: nothing is preloaded there, so their launches are not
 * seen. Libraries opened with RTLD_DEEPBIND, which are hidden from us likewise, are not counted: dlopen is not hooked,
 * because Nsight Compute takes the library that contains that symbol for its own (docs/how-to/profile.md). */
#include <string.h>

#include "system.h"

static struct overlap_opened apart;
static uint32_t busy; /* the lock of `apart` */

/* False: the lock timed out, because this signal handler has interrupted its holder. */
static bool enter(void) {
    for (uint32_t unlocked = 0;
         !__atomic_compare_exchange_n(&busy, &unlocked, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED); unlocked = 0)
        if (!overlap_wait(&busy, 0))
            return false;
    return true;
}

static void leave(void) {
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

void overlap_opened_forked(void) {
    leave(); /* a thread that held the lock does not exist in the child */
}

void overlap_opened_write(struct overlap_page *page) {
    if (!enter())
        return;
    page->opened_apart = apart;
    leave();
}

void overlap_opened_note(const char *path) {
    const char *name = overlap_basename(path);
    enum { SIZE = sizeof apart.names[0], MOST = sizeof apart.names / SIZE };
    if (!enter())
        return;
    apart.times++;
    for (int i = 0; i < MOST; i++) {
        char *known = (char *)apart.names[i];
        if (!known[0])
            strncpy(known, name, SIZE - 1);
        if (strncmp(known, name, SIZE - 1) == 0)
            break;
    }
    leave();
}
