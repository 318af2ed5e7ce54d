/* Kernels in AMD's code objects, and the registers that their descriptors request from the hardware (LLVM:
 * AMDGPUUsage.rst, "Kernel Descriptor"; ClangOffloadBundler.rst). The metadata are not used, because those of
 * hand-written kernels leave accumulation registers out.
 *
 * The input is untrusted: the search ends at anything that is unknown or lies outside the bytes. If the caller does not
 * know the size, only the end of the address space bounds the search, and the runtime has already accepted that image.
 */
#include <string.h>

#include "core.h"

struct bytes {
    const char *at;
    uint64_t size;
};

/* Copies bytes out of an image, in which nothing need be aligned. False: they lie outside. */
static bool take(struct bytes from, uint64_t offset, void *to, size_t size) {
    if (size > from.size || offset > from.size - size)
        return false;
    memcpy(to, from.at + offset, size);
    return true;
}

static bool part(struct bytes of, uint64_t offset, uint64_t size, struct bytes *found) {
    if (size > of.size || offset > of.size - size)
        return false;
    *found = (struct bytes){of.at + offset, size};
    return true;
}

/* ---- ELF, as far as it is needed ---- */

struct elf {
    char identity[16];
    uint16_t type, machine;
    uint32_t version;
    uint64_t entry, program_headers, section_headers;
    uint32_t flags;
    uint16_t size, program_header_size, program_header_count, section_header_size, section_count, names;
};
_Static_assert(sizeof(struct elf) == 64, "Elf64_Ehdr");

struct section {
    uint32_t name, type;
    uint64_t flags, address, offset, size;
    uint32_t link, info;
    uint64_t alignment, entry_size;
};
_Static_assert(sizeof(struct section) == 64, "Elf64_Shdr");

struct symbol {
    uint32_t name;
    uint8_t info, other;
    uint16_t section;
    uint64_t value, size;
};
_Static_assert(sizeof(struct symbol) == 24, "Elf64_Sym");

enum { MACHINE_AMDGPU = 224, SECTION_SYMBOLS = 2, SECTION_NO_BITS = 8, SECTION_DYNAMIC_SYMBOLS = 11 };

static bool section_at(struct bytes image, const struct elf *elf, uint32_t index, struct section *section) {
    return index < elf->section_count && elf->section_header_size == sizeof *section &&
           elf->section_headers <= image.size &&
           take(image, elf->section_headers + (uint64_t)index * sizeof *section, section, sizeof *section);
}

/* ---- Kernel descriptors: 64 bytes each, found by symbols named KERNEL.kd ---- */

enum { DESCRIPTOR = 64, RESOURCES_1 = 48, STEPS_MASK = 63, STEP = 8, LONGEST = 4096 };

/* Architectures with a unified register file: vector and accumulation registers are allocated from it together, in
 * units of eight. The numbers are those of EF_AMDGPU_MACH. */
static const struct {
    char name[8];
    uint32_t machine;
} unified[] = {{"gfx90a", 0x3f}, {"gfx940", 0x40}, {"gfx941", 0x4b}, {"gfx942", 0x4c}, {"gfx950", 0x4f}};
enum { MACHINE_MASK = 0xff };

static bool machine_of(const char *architecture, uint32_t *machine) {
    for (size_t i = 0; i < sizeof unified / sizeof *unified; i++)
        if (strcmp(unified[i].name, architecture) == 0) {
            *machine = unified[i].machine;
            return true;
        }
    return false;
}

static bool registers_of(struct bytes image, const struct elf *elf, const struct symbol *symbol, uint32_t *registers) {
    struct section home;
    struct bytes body;
    uint32_t resources;
    char descriptor[DESCRIPTOR];
    if (symbol->section == 0 || !section_at(image, elf, symbol->section, &home) || home.type == SECTION_NO_BITS ||
        symbol->value < home.address || !part(image, home.offset, home.size, &body) ||
        !take(body, symbol->value - home.address, descriptor, sizeof descriptor))
        return false;
    memcpy(&resources, descriptor + RESOURCES_1, sizeof resources);
    *registers = ((resources & STEPS_MASK) + 1) * STEP;
    return true;
}

/* Returns the length of the kernel's name. 0: the symbol does not name a descriptor. */
static size_t kernel_length(struct bytes strings, uint32_t at, const char **name) {
    static const char suffix[] = {'.', 'k', 'd'};
    if (at >= strings.size)
        return 0;
    const uint64_t left = strings.size - at;
    const char *end = memchr(strings.at + at, 0, left < LONGEST ? (size_t)left : LONGEST);
    *name = strings.at + at;
    const size_t length = end ? (size_t)(end - *name) : 0;
    return length > sizeof suffix && memcmp(end - sizeof suffix, suffix, sizeof suffix) == 0 ? length - sizeof suffix
                                                                                             : 0;
}

static void kernels_of_table(struct bytes image, const struct elf *elf, const struct section *table,
                             overlap_kernel_found *found, void *context) {
    struct section named;
    struct bytes symbols, strings;
    struct symbol symbol;
    if (!section_at(image, elf, table->link, &named) || !part(image, named.offset, named.size, &strings) ||
        !part(image, table->offset, table->size, &symbols))
        return;
    for (uint64_t at = 0; take(symbols, at, &symbol, sizeof symbol); at += sizeof symbol) {
        const char *name;
        uint32_t registers;
        const size_t length = kernel_length(strings, symbol.name, &name);
        if (length && registers_of(image, elf, &symbol, &registers))
            found(context, name, length, registers);
    }
}

static void kernels_of_elf(struct bytes image, uint32_t machine, overlap_kernel_found *found, void *context) {
    static const char identity[] = {0x7f, 'E', 'L', 'F', 2 /* 64 bits */, 1 /* little-endian */};
    char start[sizeof identity]; /* checked first: other inputs may be shorter than an ELF header */
    struct elf elf;
    struct section section;
    uint32_t seen = 0;
    if (!take(image, 0, start, sizeof start) || memcmp(start, identity, sizeof identity) != 0 ||
        !take(image, 0, &elf, sizeof elf) || elf.machine != MACHINE_AMDGPU || (elf.flags & MACHINE_MASK) != machine)
        return;
    /* Reads one table of each kind. A file with more is no code object, and reading all of them would take too long. */
    for (uint32_t i = 1; section_at(image, &elf, i, &section); i++)
        if ((section.type == SECTION_SYMBOLS || section.type == SECTION_DYNAMIC_SYMBOLS) &&
            !(seen & UINT32_C(1) << section.type)) {
            seen |= UINT32_C(1) << section.type;
            kernels_of_table(image, &elf, &section, found, context);
        }
}

/* ---- Bundles: code objects for several architectures ---- */

static const char bundle_magic[] = "__CLANG_OFFLOAD_BUNDLE__";
enum { MAGIC = sizeof bundle_magic - 1, ENTRIES = 1000, LONGEST_TARGET = 256 };

struct entry {
    uint64_t offset, size, name_size;
};

/* How well the target of an entry, such as hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-, suits an architecture. 0:
 * not at all. 1: only as a last resort, because it needs page faults to be retried, which GPUs do only where HSA_XNACK
 * asks for it. 2: well. */
static int suits(const char *target, size_t size, const char *architecture) {
    static const char before[] = "amdgcn-amd-amdhsa--", retries[] = ":xnack+";
    char name[LONGEST_TARGET + 1];
    memcpy(name, target, size);
    name[size] = 0;
    const size_t length = strlen(architecture);
    const char *at = strstr(name, before);
    const char *modes =
        at && strncmp(at + sizeof before - 1, architecture, length) == 0 ? at + sizeof before - 1 + length : NULL;
    if (!modes || (*modes && *modes != ':'))
        return 0;
    return strstr(modes, retries) ? 1 : 2;
}

/* Finds the entry of a bundle that suits an architecture best. False: none does. */
static bool chosen(struct bytes bundle, const char *architecture, struct bytes *image) {
    uint64_t count = 0, at = MAGIC + sizeof count;
    int best = 0;
    if (!take(bundle, MAGIC, &count, sizeof count) || count > ENTRIES)
        return false;
    for (; count; count--) {
        struct entry entry;
        char target[LONGEST_TARGET];
        if (!take(bundle, at, &entry, sizeof entry) || entry.name_size > sizeof target ||
            !take(bundle, at + sizeof entry, target, (size_t)entry.name_size))
            break;
        at += sizeof entry + entry.name_size;
        const int suited = suits(target, (size_t)entry.name_size, architecture);
        if (suited > best && part(bundle, entry.offset, entry.size, image))
            best = suited;
    }
    return best;
}

static struct bytes reach(const void *image, uint64_t size) {
    const uint64_t most = UINTPTR_MAX - (uintptr_t)image;
    return (struct bytes){image, size < most ? size : most};
}

void overlap_code_kernels(const void *image, uint64_t size, const char *architecture, overlap_kernel_found *found,
                          void *context) {
    struct bytes bytes = reach(image, size);
    char magic[MAGIC];
    uint32_t machine;
    if (!machine_of(architecture, &machine))
        return;
    if (take(bytes, 0, magic, sizeof magic) && memcmp(magic, bundle_magic, sizeof magic) == 0 &&
        !chosen(bytes, architecture, &bytes))
        return;
    kernels_of_elf(bytes, machine, found, context);
}
