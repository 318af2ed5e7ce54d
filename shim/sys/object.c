/* Objects mapped in this process.
 *
 * Nothing here takes the lock that the loader holds while constructors and destructors run (dlsym and dlopen do).
 * dl_iterate_phdr has its own lock; the only program code that runs under it is a callback.
 */
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include "system.h"

#pragma weak _r_debug
extern struct r_debug *_dl_debug_addr __attribute__((weak)); /* _r_debug on musl */
extern unsigned long __getauxval(unsigned long type) __attribute__((weak));
/* program_invocation_name(3), by a name that no program may define. */
extern char *__progname_full __attribute__((weak));
#pragma GCC visibility push(hidden)
extern ElfW(Dyn) _DYNAMIC[]; /* our own dynamic section */
#pragma GCC visibility pop

uint64_t overlap_closes = UINT64_C(1) << 32;

/* ---- The list of the loader, read without its lock and without libc ---- */

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
static bool is_libc(const char *path) {
    const char *name = path;
    for (const char *p = path; *p; p++)
        if (*p == '/')
            name = p + 1;
    return (name[0] == 'l' && name[1] == 'i' && name[2] == 'b' && name[3] == 'c' &&
            (name[4] == '.' || name[4] == '-')) ||
           (name[0] == 'l' && name[1] == 'd' && name[2] == '-' && name[3] == 'm');
}

void *overlap_libc(const char *name) {
    for (const struct link_map *map = overlap_first_object(); map; map = map->l_next) {
        void *address = is_libc(map->l_name) ? overlap_lookup(map->l_addr, map->l_ld, name, NULL) : NULL;
        if (address)
            return address;
    }
    return NULL;
}

uint32_t overlap_object_count(void) {
    uint32_t count = 0;
    for (const struct link_map *map = overlap_first_object(); map; map = map->l_next)
        count++;
    return count;
}

/* ---- Objects ---- */

/* dl_iterate_phdr(3) of libc itself: some programs define one that walks a list of their own (ScyllaDB does). */
typedef int iterate(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data);

/* As dl_iterate_phdr(3), but without its lock. */
static int walk(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data) {
    int result = 0;
    uint32_t position = 0;
    const struct link_map *const program = overlap_first_object();
    for (const struct link_map *map = program; map && !result && position++ < overlap_start.objects;
         map = map->l_next) {
        struct dl_phdr_info info = {.dlpi_addr = map->l_addr, .dlpi_name = map->l_name};
        const ElfW(Ehdr) *header = map == program ? NULL : overlap_elf_header(map);
        if (header) {
            info.dlpi_phdr = (const ElfW(Phdr) *)(map->l_addr + header->e_phoff);
            info.dlpi_phnum = header->e_phnum;
        } else if (map == program && __getauxval) {
            info.dlpi_phdr = (const ElfW(Phdr) *)__getauxval(AT_PHDR);
            info.dlpi_phnum = (ElfW(Half))__getauxval(AT_PHNUM);
        }
        result = visit(&info, offsetof(struct dl_phdr_info, dlpi_adds), data);
    }
    return result;
}

/* In a forked child glibc does not release the lock of dl_iterate_phdr, which another thread of the parent may have
 * held. The list is read without it there until the child has loaded an object, which takes the same lock. While the child
 * is in dlclose, which takes it, too, dl_iterate_phdr is used. */
int overlap_iterate(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data) {
    static iterate *known;
    if (__builtin_expect(__atomic_load_n(&overlap_start.forked, __ATOMIC_RELAXED), 0) &&
        !(uint32_t)__atomic_load_n(&overlap_closes, __ATOMIC_ACQUIRE)) {
        if (overlap_object_count() <= overlap_start.objects)
            return walk(visit, data);
        __atomic_store_n(&overlap_start.forked, false, __ATOMIC_RELAXED);
    }
    iterate *own = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!own) {
        own = (iterate *)overlap_libc("dl_iterate_phdr");
        __atomic_store_n(&known, own, __ATOMIC_RELAXED);
    }
    return own ? own(visit, data) : 0;
}

const char *overlap_basename(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

struct overlap_object overlap_object_of(const struct dl_phdr_info *info) {
    struct overlap_object object = {.base = info->dlpi_addr,
                                    .start = UINTPTR_MAX,
                                    .name = overlap_basename(info->dlpi_name ? info->dlpi_name : "")};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        const uintptr_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_DYNAMIC)
            object.dynamic = (const void *)start;
        if (header->p_type != PT_LOAD)
            continue;
        if (start < object.start)
            object.start = start;
        if (start + header->p_memsz > object.end)
            object.end = start + header->p_memsz;
    }
    return object;
}

struct search {
    uintptr_t address;  /* 0: search by prefix */
    const char *prefix; /* NULL: search by address */
    const char *symbol; /* if not NULL: the object must define it */
    struct overlap_object *object;
};

static int visit(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    const struct search *search = data;
    const struct overlap_object object = overlap_object_of(info);
    if (search->prefix ? strncmp(object.name, search->prefix, strlen(search->prefix)) != 0
                       : search->address < object.start || search->address >= object.end)
        return 0;
    if (search->symbol && !overlap_object_symbol(&object, search->symbol))
        return 0;
    *search->object = object;
    return 1;
}

bool overlap_object_at(uintptr_t address, struct overlap_object *object) {
    struct search search = {.address = address, .object = object};
    if (overlap_iterate(visit, &search) != 1)
        return false;
    if (!object->name[0] && &__progname_full && __progname_full) /* the program: the loader has no name for it */
        object->name = overlap_basename(__progname_full);
    return true;
}

bool overlap_object_named(const char *prefix, struct overlap_object *object) {
    struct search search = {.prefix = prefix, .object = object};
    return overlap_iterate(visit, &search) == 1;
}

void *overlap_object_defining(const char *prefix, const char *name) {
    struct overlap_object object;
    struct search search = {.prefix = prefix, .symbol = name, .object = &object};
    return overlap_iterate(visit, &search) == 1 ? overlap_object_symbol(&object, name) : NULL;
}

void *overlap_object_symbol(const struct overlap_object *object, const char *name) {
    return overlap_lookup(object->base, object->dynamic, name, NULL);
}

bool overlap_is_ours(uintptr_t address) {
    /* Racing threads compute equal values; `end` is published last. */
    static uintptr_t start, end;
    if (!__atomic_load_n(&end, __ATOMIC_ACQUIRE)) {
        struct overlap_object ours;
        if (!overlap_object_at((uintptr_t)_DYNAMIC, &ours))
            return false;
        __atomic_store_n(&start, ours.start, __ATOMIC_RELAXED);
        __atomic_store_n(&end, ours.end, __ATOMIC_RELEASE);
    }
    return address >= __atomic_load_n(&start, __ATOMIC_RELAXED) && address < __atomic_load_n(&end, __ATOMIC_RELAXED);
}
