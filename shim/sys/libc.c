/* The libc functions that this library hooks or calls, found through the loader's list of objects, without calling
 * libc. */
#include <link.h>

#include "system.h"

#pragma weak _r_debug
extern struct r_debug *_dl_debug_addr __attribute__((weak)); /* _r_debug on musl */
#pragma GCC visibility push(hidden)
extern ElfW(Dyn) _DYNAMIC[]; /* our own dynamic section */
#pragma GCC visibility pop

void *(*overlap_real_dlsym)(void *handle, const char *name);
void *(*overlap_real_dlvsym)(void *handle, const char *name, const char *version);

/* Returns the head of the loader's list of objects: the program. Objects loaded at program start come first and are
 * never removed, so that part of the list may be read without a lock, and before libc is ready. */
const struct link_map *overlap_first_object(void) {
    const struct r_debug *debug = !overlap_bound()  ? overlap_unbound_list()
                                  : &_r_debug       ? &_r_debug
                                  : &_dl_debug_addr ? _dl_debug_addr
                                                    : NULL;
    return debug ? debug->r_map : NULL;
}

void *overlap_behind_us(const char *name) {
    bool after = false;
    for (const struct link_map *map = overlap_first_object(); map; map = map->l_next) {
        if (map->l_ld == _DYNAMIC) {
            after = true;
            continue;
        }
        void *address = after ? overlap_lookup(map->l_addr, map->l_ld, name, NULL) : NULL;
        if (address)
            return address;
    }
    return NULL;
}

/* glibc: libc.so.6. musl: one file is both libc and the loader. */
OVERLAP_STARTUP static bool is_libc(const char *path) {
    const char *name = path;
    for (const char *p = path; *p; p++)
        if (*p == '/')
            name = p + 1;
    return (name[0] == 'l' && name[1] == 'i' && name[2] == 'b' && name[3] == 'c' &&
            (name[4] == '.' || name[4] == '-')) ||
           (name[0] == 'l' && name[1] == 'd' && name[2] == '-' && name[3] == 'm');
}

OVERLAP_STARTUP void *overlap_libc(const char *name) {
    for (const struct link_map *map = overlap_first_object(); map; map = map->l_next) {
        void *address = is_libc(map->l_name) ? overlap_lookup(map->l_addr, map->l_ld, name, NULL) : NULL;
        if (address)
            return address;
    }
    return NULL;
}

OVERLAP_STARTUP uint32_t overlap_object_count(void) {
    uint32_t count = 0;
    for (const struct link_map *map = overlap_first_object(); map; map = map->l_next)
        count++;
    return count;
}

/* Called by the assembler entries while their pointer is NULL. Idempotent, so racing threads do no harm. */
void *overlap_find_dlsym(void) {
    void *found = overlap_behind_us("dlsym");
    __atomic_store(&overlap_real_dlsym, (void *(**)(void *, const char *)) & found, __ATOMIC_RELEASE);
    return found;
}

void *overlap_find_dlvsym(void) {
    void *found = overlap_behind_us("dlvsym");
    __atomic_store(&overlap_real_dlvsym, (void *(**)(void *, const char *, const char *)) & found, __ATOMIC_RELEASE);
    return found;
}
