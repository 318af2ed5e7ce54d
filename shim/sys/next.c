/* dlsym behind us, and pinned objects. All of this takes the loader's lock, so it is called only when the program itself
 * has called dlsym or dlclose. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "system.h"

#pragma GCC visibility push(hidden)
extern ElfW(Dyn) _DYNAMIC[]; /* our own dynamic section */
#pragma GCC visibility pop

/* Racing threads find the same. Called before libc is ready, and before we are relocated. */
static void *behind_us(void **known, const char *name) {
    void *found = __atomic_load_n(known, __ATOMIC_RELAXED);
    if (!found) {
        found = overlap_behind_us(name);
        __atomic_store_n(known, found, __ATOMIC_RELAXED);
    }
    return found;
}

overlap_dlsym_type *overlap_real_dlsym(void) {
    static void *known;
    return (overlap_dlsym_type *)behind_us(&known, "dlsym");
}

overlap_dlvsym_type *overlap_real_dlvsym(void) {
    static void *known;
    return (overlap_dlvsym_type *)behind_us(&known, "dlvsym");
}

void *overlap_dlsym(void *handle, const char *name) {
    overlap_dlsym_type *find = overlap_real_dlsym();
    return find ? find(handle, name) : NULL;
}

bool overlap_next_is_ours(uintptr_t caller, const char *name) {
    struct overlap_object object = {.dynamic = NULL};
    bool behind = !caller;
    if (caller && !overlap_object_at(caller, &object))
        return false;
    for (const struct link_map *map = overlap_first_object(); map && map->l_ld != _DYNAMIC; map = map->l_next) {
        if (behind && overlap_lookup(map->l_addr, map->l_ld, name, NULL))
            return false;
        behind = behind || map->l_ld == object.dynamic;
    }
    return behind;
}

void overlap_forget_error(void) {
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
        overlap_forget_error(); /* the first search has left an error */
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
        overlap_forget_error(); /* the program's own call has succeeded */
}

/* Objects to be pinned: done when the program next calls a function that takes the loader's lock in any case. */
static uintptr_t due[4]; /* more than there are drivers */

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
        overlap_forget_error();
    return opened;
}
