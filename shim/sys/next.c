/* Finds the libc functions that this library hooks or calls, without calling libc, and the next definition of a symbol in the
 * global scope. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "private.h"

#pragma weak _r_debug
extern struct r_debug *_dl_debug_addr __attribute__((weak)); /* _r_debug on musl */
#pragma GCC visibility push(hidden)
extern ElfW(Dyn) _DYNAMIC[]; /* our own dynamic section */
#pragma GCC visibility pop

void *(*overlap_real_dlsym)(void *handle, const char *name);
void *(*overlap_real_dlvsym)(void *handle, const char *name, const char *version);
void *(*overlap_real_dlmopen)(long space, const char *path, int mode);

/* Returns the head of the loader's list of objects: the program. Objects loaded at program start come first and are never
 * removed, so that part of the list may be read without a lock, and before libc is ready. */
const struct link_map *overlap_first_object(void) {
    const struct r_debug *debug = !overlap_bound()  ? overlap_unbound_list()
                                  : &_r_debug       ? &_r_debug
                                  : &_dl_debug_addr ? _dl_debug_addr
                                                    : NULL;
    return debug ? debug->r_map : NULL;
}

/* Returns the first definition after ours, in load order. */
static void *first_after_us(const char *name) {
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

void *overlap_behind_us(const char *name) {
    return first_after_us(name);
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
    void *found = first_after_us("dlsym");
    __atomic_store(&overlap_real_dlsym, (void *(**)(void *, const char *)) & found, __ATOMIC_RELEASE);
    return found;
}

void *overlap_find_dlvsym(void) {
    void *found = first_after_us("dlvsym");
    __atomic_store(&overlap_real_dlvsym, (void *(**)(void *, const char *, const char *)) & found, __ATOMIC_RELEASE);
    return found;
}

void *overlap_find_dlmopen(void) {
    void *found = first_after_us("dlmopen");
    __atomic_store(&overlap_real_dlmopen, (void *(**)(long, const char *, int)) & found, __ATOMIC_RELEASE);
    return found;
}

void *overlap_find_dlclose(void) {
    return first_after_us("dlclose");
}

/* ---- Functions that take the loader's lock: called only when the program itself has called dlsym or dlclose ---- */

void *overlap_dlsym(void *handle, const char *name) {
    void *(*find)(void *, const char *) = __atomic_load_n(&overlap_real_dlsym, __ATOMIC_ACQUIRE);
    if (!find)
        find = (void *(*)(void *, const char *))overlap_find_dlsym();
    return find ? find(handle, name) : NULL;
}

/* Clears the dlerror() of a search that the program did not make. */
static void forget_error(void) {
    char *(*error)(void) = (char *(*)(void))overlap_dlsym(RTLD_NEXT, "dlerror");
    if (error)
        error();
}

void *overlap_next_symbol(const char *name, const char *prefix) {
    void *address = overlap_dlsym(RTLD_NEXT, name);
    if (address)
        return address;
    address = overlap_object_defining(prefix, name);
    if (address)
        forget_error(); /* the first search has left an error */
    return address;
}

/* The search for the path under which the loader knows the object at an address. */
struct path_search {
    uintptr_t address;
    char path[4096];
};

static int visit_path(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    struct path_search *search = data;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD && search->address >= start && search->address < start + header->p_memsz)
            return strlen(strncpy(search->path, info->dlpi_name, sizeof search->path - 1)) ? 1 : 2;
    }
    return 0;
}

static void pin(uintptr_t address) {
    struct path_search search = {.address = address};
    void *(*open)(const char *, int) = (void *(*)(const char *, int))overlap_dlsym(RTLD_NEXT, "dlopen");
    if (open && overlap_iterate(visit_path, &search) == 1 &&
        !open(search.path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE))
        forget_error(); /* the program's own call has succeeded */
}

/* Objects to be pinned: done when the program next calls a function that takes the loader's lock in any case. */
static uintptr_t due[8];

void overlap_object_pin(uintptr_t address) {
    struct overlap_object object;
    if (overlap_object_at(address, &object)) /* one request for all functions of the object */
        address = object.start;
    for (size_t i = 0; i < sizeof due / sizeof *due; i++) {
        uintptr_t none = 0;
        if (__atomic_compare_exchange_n(&due[i], &none, address, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
            none == address)
            return;
    }
}

void overlap_pin_due(void) {
    if (!overlap_start.constructed) /* dlopen before libc is ready makes libc forget the environment */
        return;
    const int saved = errno;
    for (size_t i = 0; i < sizeof due / sizeof *due; i++) {
        const uintptr_t address = __atomic_load_n(&due[i], __ATOMIC_RELAXED);
        if (address && __atomic_exchange_n(&due[i], 0, __ATOMIC_RELAXED) == address)
            pin(address);
    }
    errno = saved;
}

bool overlap_open(const char *name) {
    void *(*open)(const char *, int) = (void *(*)(const char *, int))overlap_dlsym(RTLD_NEXT, "dlopen");
    const bool opened = open && open(name, RTLD_LAZY | RTLD_GLOBAL);
    if (!opened)
        forget_error();
    return opened;
}
