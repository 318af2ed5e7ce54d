/* Objects mapped in this process, and the symbols they define, read from their ELF tables.
 *
 * Two readers with different rights: overlap_find_dlsym() runs before anything is ready, so it walks the loader's list
 * and calls no function of libc at all; everything later asks dl_iterate_phdr, which holds the loader's lock.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#include "private.h"

extern char *program_invocation_name __attribute__((weak));
#pragma weak _r_debug
extern struct r_debug *_dl_debug_addr __attribute__((weak)); /* musl's name for it */
#pragma GCC visibility push(hidden)
extern ElfW(Dyn) _DYNAMIC[]; /* our own dynamic section */
#pragma GCC visibility pop

uint32_t overlap_closed;
int (*overlap_real_dlclose)(void *handle);
void *(*overlap_real_dlsym)(void *handle, const char *name);
void *(*overlap_real_dlvsym)(void *handle, const char *name, const char *version);
void *(*overlap_real_dlopen)(const char *path, int mode);
void *(*overlap_real_dlmopen)(long space, const char *path, int mode);

static bool same(const char *a, const char *b) {
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

/* What a lookup needs of an object. glibc relocates the addresses in the dynamic section, musl does not. */
struct tables {
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash;
    const uint32_t *hash;
};

static bool tables_of(uintptr_t base, const ElfW(Dyn) * dynamic, struct tables *tables) {
    *tables = (struct tables){0};
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        uintptr_t address = dynamic->d_un.d_ptr;
        if (address < base)
            address += base;
        if (dynamic->d_tag == DT_SYMTAB)
            tables->symbols = (const ElfW(Sym) *)address;
        else if (dynamic->d_tag == DT_STRTAB)
            tables->strings = (const char *)address;
        else if (dynamic->d_tag == DT_GNU_HASH)
            tables->gnu_hash = (const uint32_t *)address;
        else if (dynamic->d_tag == DT_HASH)
            tables->hash = (const uint32_t *)address;
    }
    return tables->symbols && tables->strings && (tables->gnu_hash || tables->hash);
}

static void *defined(const struct tables *tables, uint32_t index, uintptr_t base, const char *name) {
    const ElfW(Sym) *symbol = &tables->symbols[index];
    unsigned type = symbol->st_info & 15;
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_value == 0 || (type != STT_FUNC && type != STT_NOTYPE) ||
        !same(tables->strings + symbol->st_name, name))
        return NULL;
    return (void *)(base + symbol->st_value);
}

/* The symbol in one object, by its GNU or System V hash table; versions are not looked at: the names asked for have one
 * meaning. */
static void *lookup(uintptr_t base, const ElfW(Dyn) * dynamic, const char *name) {
    struct tables tables;
    if (!tables_of(base, dynamic, &tables))
        return NULL;
    if (tables.gnu_hash) {
        uint32_t hash = 5381;
        for (const char *p = name; *p; p++)
            hash = hash * 33 + (unsigned char)*p;
        uint32_t buckets = tables.gnu_hash[0], first = tables.gnu_hash[1], words = tables.gnu_hash[2];
        const uint32_t *bucket = (const uint32_t *)((const ElfW(Addr) *)(tables.gnu_hash + 4) + words);
        const uint32_t *chain = bucket + buckets;
        uint32_t index = buckets ? bucket[hash % buckets] : 0;
        for (; index >= first && index; index++) {
            uint32_t entry = chain[index - first];
            void *address = (entry | 1) == (hash | 1) ? defined(&tables, index, base, name) : NULL;
            if (address)
                return address;
            if (entry & 1)
                break;
        }
        return NULL;
    }
    uint32_t hash = 0;
    for (const char *p = name; *p; p++) {
        hash = (hash << 4) + (unsigned char)*p;
        hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
    }
    uint32_t buckets = tables.hash[0];
    for (uint32_t index = buckets ? tables.hash[2 + hash % buckets] : 0; index;
         index = tables.hash[2 + buckets + index]) {
        void *address = defined(&tables, index, base, name);
        if (address)
            return address;
    }
    return NULL;
}

/* ---- Symbol versions: which one does an object want? ---- */

struct wants {
    struct tables tables;
    const uint16_t *versions;
    uintptr_t needs;
    uintptr_t relocations[2]; /* of the procedure linkage table, of data */
    size_t sizes[2];
};

static bool wants_of(uintptr_t base, const ElfW(Dyn) * dynamic, struct wants *wants) {
    *wants = (struct wants){0};
    if (!tables_of(base, dynamic, &wants->tables))
        return false;
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        const uintptr_t value = dynamic->d_un.d_ptr, address = value < base ? value + base : value;
        if (dynamic->d_tag == DT_VERSYM)
            wants->versions = (const uint16_t *)address;
        else if (dynamic->d_tag == DT_VERNEED)
            wants->needs = address;
        else if (dynamic->d_tag == DT_JMPREL)
            wants->relocations[0] = address;
        else if (dynamic->d_tag == DT_PLTRELSZ)
            wants->sizes[0] = value;
        else if (dynamic->d_tag == DT_RELA)
            wants->relocations[1] = address;
        else if (dynamic->d_tag == DT_RELASZ)
            wants->sizes[1] = value;
    }
    return wants->versions && wants->needs;
}

/* The version that an index stands for. */
static const char *version_of(const struct wants *wants, uint16_t version) {
    for (const ElfW(Verneed) *need = (const ElfW(Verneed) *)wants->needs;;
         need = (const ElfW(Verneed) *)((uintptr_t)need + need->vn_next)) {
        const ElfW(Vernaux) *entry = (const ElfW(Vernaux) *)((uintptr_t)need + need->vn_aux);
        for (uint16_t i = 0; i < need->vn_cnt; i++) {
            if (entry->vna_other == version)
                return wants->tables.strings + entry->vna_name;
            entry = (const ElfW(Vernaux) *)((uintptr_t)entry + entry->vna_next);
        }
        if (need->vn_next == 0)
            return NULL;
    }
}

/* NULL: any. */
static const char *version_wanted(const struct overlap_object *object, const char *name) {
    struct wants wants;
    if (!object->dynamic || !wants_of(object->base, object->dynamic, &wants))
        return NULL;
    /* A symbol that is used has a relocation; the tables for look-ups need not hold undefined ones. */
    for (int table = 0; table < 2; table++) {
        const ElfW(Rela) *entry = (const ElfW(Rela) *)wants.relocations[table];
        for (size_t i = 0; entry && i < wants.sizes[table] / sizeof *entry; i++) {
            const uint32_t index = (uint32_t)(entry[i].r_info >> 32);
            const ElfW(Sym) *symbol = &wants.tables.symbols[index];
            if (index && symbol->st_shndx == SHN_UNDEF && same(wants.tables.strings + symbol->st_name, name))
                return version_of(&wants, wants.versions[index] & 0x7fff);
        }
    }
    return NULL;
}

/* The first definition after ourselves, in the order in which objects were loaded. No libc call, no lock: see above. */
static void *first_after_us(const char *name) {
    const struct r_debug *debug = !overlap_bound()  ? overlap_unbound_list()
                                  : &_r_debug       ? &_r_debug
                                  : &_dl_debug_addr ? _dl_debug_addr
                                                    : NULL;
    bool after = false;
    for (const struct link_map *map = debug ? debug->r_map : NULL; map; map = map->l_next) {
        if (map->l_ld == _DYNAMIC) {
            after = true;
            continue;
        }
        void *address = after ? lookup(map->l_addr, map->l_ld, name) : NULL;
        if (address)
            return address;
    }
    return NULL;
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

void *overlap_find_dlopen(void) {
    void *found = first_after_us("dlopen");
    __atomic_store(&overlap_real_dlopen, (void *(**)(const char *, int)) & found, __ATOMIC_RELEASE);
    return found;
}

void *overlap_find_dlmopen(void) {
    void *found = first_after_us("dlmopen");
    __atomic_store(&overlap_real_dlmopen, (void *(**)(long, const char *, int)) & found, __ATOMIC_RELEASE);
    return found;
}

void *overlap_find_dlclose(void) {
    void *found = first_after_us("dlclose");
    __atomic_store(&overlap_real_dlclose, (int (**)(void *))&found, __ATOMIC_RELEASE);
    return found;
}

/* ---- Under the loader's lock ---- */

struct search {
    uintptr_t address;  /* 0: by prefix */
    const char *prefix; /* NULL: by address */
    const char *symbol; /* must be defined there, where not NULL */
    struct overlap_object *object;
};

OVERLAP_STARTUP static const char *basename_of(const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "";
}

OVERLAP_STARTUP static int visit(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    const struct search *search = data;
    struct overlap_object object = {
        .base = info->dlpi_addr, .start = UINTPTR_MAX, .name = basename_of(info->dlpi_name)};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_DYNAMIC)
            object.dynamic = (const void *)start;
        if (header->p_type != PT_LOAD)
            continue;
        if (start < object.start)
            object.start = start;
        if (start + header->p_memsz > object.end)
            object.end = start + header->p_memsz;
    }
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
    if (dl_iterate_phdr(visit, &search) != 1)
        return false;
    if (!object->name[0] && &program_invocation_name && program_invocation_name) /* the loader does not name it */
        object->name = basename_of(program_invocation_name);
    return true;
}

OVERLAP_STARTUP bool overlap_object_named(const char *prefix, struct overlap_object *object) {
    struct search search = {.prefix = prefix, .object = object};
    return dl_iterate_phdr(visit, &search) == 1;
}

void *overlap_object_symbol(const struct overlap_object *object, const char *name) {
    return lookup(object->base, object->dynamic, name);
}

bool overlap_is_ours(uintptr_t address) {
    /* Looked up by whoever comes first, with equal results; `end` is published last. */
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

void *overlap_dlsym(void *handle, const char *name) {
    void *(*find)(void *, const char *) = __atomic_load_n(&overlap_real_dlsym, __ATOMIC_ACQUIRE);
    if (!find)
        find = (void *(*)(void *, const char *))overlap_find_dlsym();
    return find ? find(handle, name) : NULL;
}

/* What dlerror would say about a search that the program has not made. */
static void forget_error(void) {
    char *(*error)(void) = (char *(*)(void))overlap_dlsym(RTLD_NEXT, "dlerror");
    if (error)
        error();
}

void *overlap_next_symbol(const char *name, const char *prefix) {
    void *address = overlap_dlsym(RTLD_NEXT, name);
    if (address)
        return address;
    struct overlap_object object;
    struct search search = {.prefix = prefix, .symbol = name, .object = &object};
    if (dl_iterate_phdr(visit, &search) != 1)
        return NULL;
    forget_error(); /* found after all */
    return overlap_object_symbol(&object, name);
}

/* The path under which the loader knows the object of an address. */
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

void overlap_object_pin(uintptr_t address) {
    if (!overlap_start.constructed) /* dlopen before libc is ready makes it forget the environment */
        return;
    struct path_search search = {.address = address};
    void *(*open)(const char *, int) = (void *(*)(const char *, int))overlap_dlsym(RTLD_NEXT, "dlopen");
    if (open && dl_iterate_phdr(visit_path, &search) == 1)
        open(search.path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

bool overlap_open(const char *name) {
    void *(*open)(const char *, int) = (void *(*)(const char *, int))overlap_dlsym(RTLD_NEXT, "dlopen");
    const bool opened = open && open(name, RTLD_LAZY | RTLD_GLOBAL);
    if (!opened)
        forget_error();
    return opened;
}

static bool defines_versions(const struct overlap_object *object) {
    const ElfW(Dyn) *dynamic = object->dynamic;
    while (dynamic && dynamic->d_tag != DT_NULL && dynamic->d_tag != DT_VERDEF)
        dynamic++;
    return dynamic && dynamic->d_tag == DT_VERDEF;
}

static void *ask(void *handle, const char *name, const char *version) {
    if (!version)
        return overlap_dlsym(handle, name);
    void *(*find)(void *, const char *, const char *) = __atomic_load_n(&overlap_real_dlvsym, __ATOMIC_ACQUIRE);
    if (!find)
        find = (void *(*)(void *, const char *, const char *))overlap_find_dlvsym();
    return find ? find(handle, name, version) : NULL;
}

/* The loader's own search is asked, through a handle of the object. */
static void *ask_locally(uintptr_t site, const char *name, const char *version) {
    struct path_search search = {.address = site};
    void *(*open)(const char *, int) = (void *(*)(const char *, int))overlap_dlsym(RTLD_NEXT, "dlopen");
    int (*close)(void *) = (int (*)(void *))overlap_dlsym(RTLD_NEXT, "dlclose");
    if (!overlap_start.constructed || !open || !close || dl_iterate_phdr(visit_path, &search) != 1)
        return NULL;
    void *handle = open(search.path, RTLD_LAZY | RTLD_NOLOAD);
    void *found = handle ? ask(handle, name, version) : NULL;
    if (handle)
        close(handle);
    return found;
}

void *overlap_scope_symbol(uintptr_t site, const char *name) {
    struct overlap_object object;
    const bool there = overlap_object_at(site, &object) && !overlap_is_ours(site);
    const char *version = there ? version_wanted(&object, name) : NULL;
    struct overlap_object next;
    void *found = ask(RTLD_NEXT, name, NULL);
    /* A definition without a version serves every version (that of a profiler, say). */
    if (found && version && overlap_object_at((uintptr_t)found, &next) && defines_versions(&next))
        found = ask(RTLD_NEXT, name, version);
    if (found)
        return found;
    found = there ? ask_locally(site, name, version) : NULL;
    forget_error();
    return found && !overlap_is_ours((uintptr_t)found) ? found : NULL;
}
