/* The symbols that an object defines, and those that it wants, read from its ELF tables. */
#include <elf.h>
#include <link.h>
#include <string.h>

#include "system.h"

#pragma GCC visibility push(hidden)
extern ElfW(Dyn) _DYNAMIC[];      /* our own dynamic section */
extern const char __ehdr_start[]; /* ...and our ELF header; the linker defines both */
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
    uintptr_t defines, needs; /* DT_VERDEF, DT_VERNEED; 0: none */
    uintptr_t relocations[2]; /* of the PLT, of data */
    size_t sizes[2];
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
        else if (dynamic->d_tag == DT_VERNEED)
            tables->needs = address;
        else if (dynamic->d_tag == DT_JMPREL)
            tables->relocations[0] = address;
        else if (dynamic->d_tag == DT_PLTRELSZ)
            tables->sizes[0] = dynamic->d_un.d_val;
        else if (dynamic->d_tag == DT_RELA)
            tables->relocations[1] = address;
        else if (dynamic->d_tag == DT_RELASZ)
            tables->sizes[1] = dynamic->d_un.d_val;
    }
    return tables->symbols && tables->strings && (tables->gnu_hash || tables->hash);
}

/* Does the symbol's version satisfy a request for `version`? As in the loader: an unversioned definition (of a
 * profiler, for example) satisfies every request, and a request without a version accepts any. */
static bool serves(const struct tables *tables, uint32_t index, const char *version) {
    const uint16_t own = tables->versions && tables->defines && version ? tables->versions[index] & 0x7fff : 0;
    if (own <= 1) /* VER_NDX_GLOBAL */
        return true;
    for (const ElfW(Verdef) *entry = (const ElfW(Verdef) *)tables->defines;;
         entry = (const ElfW(Verdef) *)((uintptr_t)entry + entry->vd_next)) {
        const ElfW(Verdaux) *name = (const ElfW(Verdaux) *)((uintptr_t)entry + entry->vd_aux);
        if (entry->vd_ndx == own)
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

/* Returns the name of the version with this index. */
static const char *version_of(const struct tables *tables, uint16_t version) {
    for (const ElfW(Verneed) *need = (const ElfW(Verneed) *)tables->needs;;
         need = (const ElfW(Verneed) *)((uintptr_t)need + need->vn_next)) {
        const ElfW(Vernaux) *entry = (const ElfW(Vernaux) *)((uintptr_t)need + need->vn_aux);
        for (uint16_t i = 0; i < need->vn_cnt; i++) {
            if (entry->vna_other == version)
                return tables->strings + entry->vna_name;
            entry = (const ElfW(Vernaux) *)((uintptr_t)entry + entry->vna_next);
        }
        if (need->vn_next == 0)
            return NULL;
    }
}

const char *overlap_version_wanted(const struct overlap_object *object, const char *name) {
    struct tables tables;
    if (!tables_of(object->base, object->dynamic, &tables) || !tables.versions || !tables.needs)
        return NULL;
    /* A symbol that is used has a relocation. The hash tables need not contain undefined symbols. */
    for (int table = 0; table < 2; table++) {
        const ElfW(Rela) *entry = (const ElfW(Rela) *)tables.relocations[table];
        for (size_t i = 0; entry && i < tables.sizes[table] / sizeof *entry; i++) {
            const uint32_t index = (uint32_t)(entry[i].r_info >> 32);
            const ElfW(Sym) *symbol = &tables.symbols[index];
            if (index && symbol->st_shndx == SHN_UNDEF && same(tables.strings + symbol->st_name, name))
                return version_of(&tables, tables.versions[index] & 0x7fff);
        }
    }
    return NULL;
}

/* ---- Where an object is ---- */

const void *overlap_elf_header(const struct link_map *map) {
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
