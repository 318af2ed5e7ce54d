/* Objects mapped in this process.
 *
 * Nothing here takes the lock that the loader holds while constructors and destructors run (dlsym and dlopen do).
 * dl_iterate_phdr has its own lock. A signal handler that interrupts a thread while that takes the lock, and walks the
 * objects itself, as handlers of profilers do, would wait for its own thread. So the lock is taken with all signals blocked,
 * and only for objects that were loaded after the program's start; what does not take it comes first: the list of the
 * objects of the start, which never changes, and _dl_find_object (glibc 2.35).
 */
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include "kernel.h"

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

/* As dl_iterate_phdr(3), but without its lock: the first `most` objects. */
static int walk(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data, uint32_t most) {
    int result = 0;
    uint32_t position = 0;
    const struct link_map *const program = overlap_first_object();
    for (const struct link_map *map = program; map && !result && position++ < most; map = map->l_next) {
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

static uint32_t first_objects = UINT32_MAX; /* of the list: the objects of the start */

void overlap_objects_start(void) {
    first_objects = overlap_object_count();
}

int overlap_iterate_first(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data) {
    return walk(visit, data, first_objects);
}

/* In a forked child glibc does not release the lock of dl_iterate_phdr, which another thread of the parent may have
 * held. The list is read without it there until the child has loaded an object, which takes the same lock. While the child
 * is in dlclose, which takes it, too, dl_iterate_phdr is used. */
int overlap_iterate(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data) {
    static iterate *known;
    if (__builtin_expect(__atomic_load_n(&overlap_start.forked, __ATOMIC_RELAXED), 0) &&
        !(uint32_t)__atomic_load_n(&overlap_closes, __ATOMIC_ACQUIRE)) {
        if (overlap_object_count() <= overlap_start.objects)
            return walk(visit, data, overlap_start.objects);
        __atomic_store_n(&overlap_start.forked, false, __ATOMIC_RELAXED);
    }
    iterate *own = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!own) {
        own = (iterate *)overlap_libc("dl_iterate_phdr");
        __atomic_store_n(&known, own, __ATOMIC_RELAXED);
    }
    const uint64_t mask = kernel_block();
    const int result = own ? own(visit, data) : 0;
    kernel_unblock(mask);
    return result;
}

/* Has nothing been loaded since the start? Reads no object that may go. */
static bool first_are_all(void) {
    const struct link_map *map = overlap_first_object();
    for (uint32_t i = 1; map && i < first_objects; i++)
        map = map->l_next;
    return map && !__atomic_load_n(&map->l_next, __ATOMIC_RELAXED);
}

static int search_all(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data) {
    const int result = overlap_iterate_first(visit, data);
    return result ? result : overlap_iterate(visit, data);
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

/* <dlfcn.h> of glibc 2.35: the result of _dl_find_object, which takes no lock and may be called in signal handlers. */
struct found_object {
    unsigned long long flags;
    void *start, *end;
    struct link_map *map;
    void *more[12]; /* exception tables, and what later versions add */
};
typedef int find_object(void *address, struct found_object *found);

/* NULL: this C library has none. */
static find_object *object_finder(void) {
    static find_object *known;
    static bool looked;
    if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&known, (find_object *)overlap_behind_us("_dl_find_object"), __ATOMIC_RELAXED);
        __atomic_store_n(&looked, overlap_start.constructed, __ATOMIC_RELEASE);
    }
    return __atomic_load_n(&known, __ATOMIC_RELAXED);
}

bool overlap_object_at(uintptr_t address, struct overlap_object *object) {
    find_object *const find = object_finder();
    struct found_object found;
    struct search search = {.address = address, .object = object};
    if (find && find((void *)address, &found) != 0) /* NOLINT(performance-no-int-to-ptr) */
        return false;
    if (find)
        *object = (struct overlap_object){.base = found.map->l_addr,
                                          .start = (uintptr_t)found.start,
                                          .end = (uintptr_t)found.end,
                                          .dynamic = found.map->l_ld,
                                          .name = overlap_basename(found.map->l_name)};
    else if (search_all(visit, &search) != 1)
        return false;
    if (!object->name[0] && &__progname_full && __progname_full) /* the program: the loader has no name for it */
        object->name = overlap_basename(__progname_full);
    return true;
}

bool overlap_object_named(const char *prefix, struct overlap_object *object) {
    struct search search = {.prefix = prefix, .object = object};
    return overlap_iterate_first(visit, &search) == 1 || (!first_are_all() && overlap_iterate(visit, &search) == 1);
}

void *overlap_object_defining(const char *prefix, const char *name) {
    struct overlap_object object;
    struct search search = {.prefix = prefix, .symbol = name, .object = &object};
    return search_all(visit, &search) == 1 ? overlap_object_symbol(&object, name) : NULL;
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
