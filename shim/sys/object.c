/* Objects mapped in this process, and the symbols they define, read from their ELF tables.
 *
 * Nothing here takes the lock that the loader holds while constructors and destructors run (dlsym and dlopen do). dl_iterate_phdr
 * has its own lock; the only program code that runs under it is a callback.
 */
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include "private.h"

extern unsigned long __getauxval(unsigned long type) __attribute__((weak));
extern char *__progname_full
    __attribute__((weak)); /* program_invocation_name(3), under a name that programs may not define */
#pragma GCC visibility push(hidden)
extern ElfW(Dyn) _DYNAMIC[];      /* our own dynamic section */
extern const char __ehdr_start[]; /* ...and our first address; the linker defines both */
#pragma GCC visibility pop

static bool same(const char *a, const char *b) {
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

/* The tables that a lookup needs. glibc relocates the addresses in the dynamic section, musl does not. */
struct tables {
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash;
    const uint32_t *hash;
    const uint16_t *versions; /* per symbol; NULL: the object has no versions */
    uintptr_t defines;        /* DT_VERDEF; 0: none */
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
        else if (dynamic->d_tag == DT_VERSYM)
            tables->versions = (const uint16_t *)address;
        else if (dynamic->d_tag == DT_VERDEF)
            tables->defines = address;
    }
    return tables->symbols && tables->strings && (tables->gnu_hash || tables->hash);
}

/* Does the symbol's version satisfy a request for `version`? As in the loader: an unversioned definition (of a profiler, for
 * example) satisfies every request, and a request without a version accepts any. */
static bool serves(const struct tables *tables, uint32_t index, const char *version) {
    const uint16_t its = tables->versions && tables->defines && version ? tables->versions[index] & 0x7fff : 0;
    if (its <= 1) /* VER_NDX_GLOBAL */
        return true;
    for (const ElfW(Verdef) *entry = (const ElfW(Verdef) *)tables->defines;;
         entry = (const ElfW(Verdef) *)((uintptr_t)entry + entry->vd_next)) {
        const ElfW(Verdaux) *name = (const ElfW(Verdaux) *)((uintptr_t)entry + entry->vd_aux);
        if (entry->vd_ndx == its)
            return same(tables->strings + name->vda_name, version);
        if (entry->vd_next == 0)
            return false;
    }
}

static void *defined(const struct tables *tables, uint32_t index, uintptr_t base, const char *name,
                     const char *version) {
    const ElfW(Sym) *symbol = &tables->symbols[index];
    unsigned type = symbol->st_info & 15;
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_value == 0 || (type != STT_FUNC && type != STT_NOTYPE) ||
        !same(tables->strings + symbol->st_name, name) || !serves(tables, index, version))
        return NULL;
    return (void *)(base + symbol->st_value);
}

/* Uses the object's GNU or System V hash table. */
void *overlap_lookup(uintptr_t base, const void *dynamic, const char *name, const char *version) {
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
            void *address = (entry | 1) == (hash | 1) ? defined(&tables, index, base, name, version) : NULL;
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
        void *address = defined(&tables, index, base, name, version);
        if (address)
            return address;
    }
    return NULL;
}

void *overlap_own_symbol(const char *name) {
    return overlap_lookup((uintptr_t)__ehdr_start, _DYNAMIC, name, NULL);
}

const char *overlap_own_name(uintptr_t address) {
    struct tables tables;
    tables_of((uintptr_t)__ehdr_start, _DYNAMIC, &tables);
    const ElfW(Sym) *symbol = tables.symbols + tables.gnu_hash[1]; /* the first symbol defined here */
    const uintptr_t end = (uintptr_t)tables.strings;               /* linkers place strings after symbols */
    while ((uintptr_t)symbol < end && (uintptr_t)__ehdr_start + symbol->st_value != address)
        symbol++;
    return (uintptr_t)symbol < end ? tables.strings + symbol->st_name : "";
}

/* ---- Symbol versions: which one does an object request? ---- */

struct wants {
    struct tables tables;
    const uint16_t *versions;
    uintptr_t needs;
    uintptr_t relocations[2]; /* of the PLT, of data */
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

/* Returns the name of the version with this index. */
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

const char *overlap_version_wanted(const struct overlap_object *object, const char *name) {
    struct wants wants;
    if (!object->dynamic || !wants_of(object->base, object->dynamic, &wants))
        return NULL;
    /* A symbol that is used has a relocation. The hash tables need not contain undefined symbols. */
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

/* ---- Objects ---- */

/* libc's own: some programs define one that answers from a list of their own (ScyllaDB does). */
typedef int iterate(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data);

/* Returns where the ELF header is mapped, if the object is linked to address 0, as all but the program are. Its tables are
 * then near that address. */
static const ElfW(Ehdr) * header_of(const struct link_map *map) {
    enum { NEAR = 1 << 20 };
    struct tables tables;
    if (!map->l_addr || !tables_of(map->l_addr, map->l_ld, &tables))
        return NULL;
    const uintptr_t hash = (uintptr_t)(tables.gnu_hash ? tables.gnu_hash : tables.hash);
    if ((uintptr_t)tables.symbols - map->l_addr > NEAR && hash - map->l_addr > NEAR)
        return NULL;
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)map->l_addr;
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 ? header : NULL;
}

/* As dl_iterate_phdr(3), but without its lock. */
static int walk(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data) {
    int result = 0;
    const struct link_map *const program = overlap_first_object();
    for (const struct link_map *map = program; map && !result; map = map->l_next) {
        struct dl_phdr_info info = {.dlpi_addr = map->l_addr, .dlpi_name = map->l_name};
        const ElfW(Ehdr) *header = map == program ? NULL : header_of(map);
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

/* In a forked child glibc does not release the lock of dl_iterate_phdr, which another thread of the parent may have held. The
 * list is read without it there: the child begins with one thread, so only its own calls change the list. While the child is
 * in dlclose, which takes the same lock, dl_iterate_phdr is used. */
OVERLAP_STARTUP int overlap_iterate(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data) {
    OVERLAP_STARTUP_DATA static iterate *known;
    if (__builtin_expect(overlap_start.forked, 0) && !overlap_is_closing())
        return walk(visit, data);
    iterate *own = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!own) {
        own = (iterate *)overlap_libc("dl_iterate_phdr");
        __atomic_store_n(&known, own, __ATOMIC_RELAXED);
    }
    return own ? own(visit, data) : 0;
}

OVERLAP_STARTUP const char *overlap_basename(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

OVERLAP_STARTUP struct overlap_object overlap_object_of(const struct dl_phdr_info *info) {
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

OVERLAP_STARTUP static int visit(struct dl_phdr_info *info, size_t size, void *data) {
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

OVERLAP_STARTUP bool overlap_object_named(const char *prefix, struct overlap_object *object) {
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
