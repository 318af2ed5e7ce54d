/* Kernels of an AMD code object (LLVM's AMDGPUUsage.rst, code object version 3 and newer), with every
 * bound checked.
 *
 * What a kernel is called and what it takes is a MessagePack map in an ELF note. Registers stand there, too, and that
 * is what the runtime answers; the hardware obeys the kernel descriptor (NAME.kd), which in kernels written by hand is
 * the only one of the two that counts the accumulation registers.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "../sim.h"

/* ---- the part of MessagePack in which they describe their kernels: maps, arrays, strings, integers ---- */

struct packed {
    const uint8_t *at, *end;
    int depth;
};

enum packed_kind { PACKED_OTHER, PACKED_NUMBER, PACKED_TEXT, PACKED_ARRAY, PACKED_MAP };

struct packed_value {
    enum packed_kind kind;
    uint64_t number;  /* or bytes, items, pairs */
    const char *text; /* not ended by a zero */
};

enum { DEEPEST = 32 };

static bool big_endian(struct packed *packed, size_t bytes, uint64_t *number) {
    if ((size_t)(packed->end - packed->at) < bytes)
        return false;
    *number = 0;
    while (bytes-- > 0)
        *number = *number << 8 | *packed->at++;
    return true;
}

static bool text(struct packed *packed, struct packed_value *value, enum packed_kind kind) {
    if (value->number > (size_t)(packed->end - packed->at))
        return false;
    value->kind = kind;
    value->text = (const char *)packed->at;
    packed->at += value->number;
    return true;
}

static bool packed_next(struct packed *packed, struct packed_value *value) {
    uint64_t first;
    *value = (struct packed_value){.kind = PACKED_OTHER};
    if (!big_endian(packed, 1, &first))
        return false;
    const uint8_t code = (uint8_t)first;
    const size_t wide = (size_t)1 << (code & 3);
    if (code < 0x80 || code >= 0xe0) {
        value->kind = PACKED_NUMBER;
        value->number = code < 0x80 ? code : (uint64_t)(int64_t)(int8_t)code;
        return true;
    }
    if (code < 0xa0) {
        value->kind = code < 0x90 ? PACKED_MAP : PACKED_ARRAY;
        value->number = code & 15;
        return true;
    }
    if (code < 0xc0) {
        value->number = code & 31;
        return text(packed, value, PACKED_TEXT);
    }
    switch (code) {
    case 0xc0: /* nothing, false, true */
    case 0xc2:
    case 0xc3:
        value->number = code == 0xc3;
        return true;
    case 0xc4: /* bytes */
    case 0xc5:
    case 0xc6:
        return big_endian(packed, wide, &value->number) && text(packed, value, PACKED_OTHER);
    case 0xca: /* floating point */
        return big_endian(packed, 4, &value->number);
    case 0xcb:
        return big_endian(packed, 8, &value->number);
    case 0xcc: /* integers; those with a sign are never negative here */
    case 0xcd:
    case 0xce:
    case 0xcf:
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
        value->kind = PACKED_NUMBER;
        return big_endian(packed, wide, &value->number);
    case 0xd9:
    case 0xda:
    case 0xdb:
        return big_endian(packed, (size_t)1 << (code - 0xd9), &value->number) && text(packed, value, PACKED_TEXT);
    case 0xdc:
    case 0xdd:
        value->kind = PACKED_ARRAY;
        return big_endian(packed, code == 0xdc ? 2 : 4, &value->number);
    case 0xde:
    case 0xdf:
        value->kind = PACKED_MAP;
        return big_endian(packed, code == 0xde ? 2 : 4, &value->number);
    default:
        return false;
    }
}

static bool packed_skip(struct packed *packed) {
    struct packed_value value;
    if (!packed_next(packed, &value) || packed->depth == DEEPEST)
        return false;
    packed->depth++;
    bool good = true;
    if (value.kind == PACKED_ARRAY || value.kind == PACKED_MAP)
        for (uint64_t i = 0; good && i < value.number; i++)
            good = packed_skip(packed) && (value.kind == PACKED_ARRAY || packed_skip(packed));
    packed->depth--;
    return good;
}

static bool packed_is(const struct packed_value *value, const char *expected) {
    return value->kind == PACKED_TEXT && value->number == strlen(expected) &&
           memcmp(value->text, expected, (size_t)value->number) == 0;
}

/* ---- the file ---- */

enum { MACHINE_AMDGPU = 224, NOTE_METADATA = 32, MOST_PARAMETERS = 4096, MOST_KERNELS = 65536 };
enum { DESCRIPTOR = 64, DESCRIPTOR_RSRC1 = 48 };
enum { NAME = 256 };

struct object {
    const uint8_t *data;
    size_t bytes;
    Elf64_Ehdr header;
};

static bool section_at(const struct object *object, uint32_t index, Elf64_Shdr *out) {
    if (index >= object->header.e_shnum)
        return false;
    memcpy(out, object->data + object->header.e_shoff + (uint64_t)index * sizeof *out, sizeof *out);
    return out->sh_type == SHT_NOBITS ||
           (out->sh_offset <= object->bytes && out->sh_size <= object->bytes - out->sh_offset);
}

static bool read_header(struct object *object) {
    if (object->bytes < sizeof object->header)
        return false;
    memcpy(&object->header, object->data, sizeof object->header);
    const Elf64_Ehdr *const header = &object->header;
    const uint64_t table = (uint64_t)header->e_shnum * sizeof(Elf64_Shdr);
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64 &&
           header->e_machine == MACHINE_AMDGPU && header->e_shentsize == sizeof(Elf64_Shdr) &&
           header->e_shoff <= object->bytes && table <= object->bytes - header->e_shoff;
}

/* ---- metadata ---- */

static char *copy_of(const struct packed_value *value) {
    return value->kind == PACKED_TEXT && value->number < 65536 ? strndup(value->text, (size_t)value->number) : NULL;
}

/* An argument that the program gives; the runtime adds hidden ones. */
static bool read_argument(struct packed *packed, struct kernel_image *kernel) {
    struct packed_value map, key, value;
    uint64_t offset = 0, size = 0;
    bool hidden = false;
    if (!packed_next(packed, &map) || map.kind != PACKED_MAP)
        return false;
    for (uint64_t i = 0; i < map.number; i++) {
        if (!packed_next(packed, &key))
            return false;
        const struct packed before = *packed;
        if (!packed_next(packed, &value))
            return false;
        if (packed_is(&key, ".offset"))
            offset = value.number;
        else if (packed_is(&key, ".size"))
            size = value.number;
        else if (packed_is(&key, ".value_kind"))
            hidden = value.kind == PACKED_TEXT && value.number > 7 && memcmp(value.text, "hidden_", 7) == 0;
        *packed = before;
        if (!packed_skip(packed))
            return false;
    }
    if (hidden)
        return true;
    if (offset > 65536 || size > 65536 || kernel->parameters == MOST_PARAMETERS)
        return false;
    struct parameter *const grown = sim_grow(kernel->parameter, kernel->parameters + 1u, sizeof *grown);
    kernel->parameter = grown;
    grown[kernel->parameters++] = (struct parameter){(uint32_t)offset, (uint32_t)size};
    return true;
}

static bool read_arguments(struct packed *packed, struct kernel_image *kernel) {
    struct packed_value list;
    if (!packed_next(packed, &list) || list.kind != PACKED_ARRAY)
        return false;
    kernel->layout_known = true;
    for (uint64_t i = 0; i < list.number; i++)
        if (!read_argument(packed, kernel))
            return false;
    return true;
}

static int bounded(uint64_t number, int most) {
    return number > (uint64_t)most ? most : (int)number;
}

static void read_number(struct kernel_image *kernel, const struct packed_value *key, uint64_t number) {
    if (packed_is(key, ".vgpr_count"))
        kernel->said_registers = bounded(number, 1024);
    else if (packed_is(key, ".sgpr_count"))
        kernel->scalars = bounded(number, SCALAR_FILE);
    else if (packed_is(key, ".group_segment_fixed_size"))
        kernel->static_shared = bounded(number, 1 << 24);
    else if (packed_is(key, ".private_segment_fixed_size"))
        kernel->local = bounded(number, 1 << 24);
    else if (packed_is(key, ".uniform_work_group_size"))
        kernel->uniform = number != 0;
    else if (packed_is(key, ".max_flat_workgroup_size")) {
        kernel->max_threads = bounded(number, MAX_BLOCK_THREADS);
        kernel->bound_written = true;
    }
}

/* One kernel; *symbol is that of its descriptor, for free(). */
static bool read_kernel(struct packed *packed, struct kernel_image *kernel, char **symbol) {
    struct packed_value map, key, value;
    if (!packed_next(packed, &map) || map.kind != PACKED_MAP)
        return false;
    for (uint64_t i = 0; i < map.number; i++) {
        if (!packed_next(packed, &key))
            return false;
        if (packed_is(&key, ".args")) {
            if (!read_arguments(packed, kernel))
                return false;
            continue;
        }
        const struct packed before = *packed;
        if (!packed_next(packed, &value))
            return false;
        if (packed_is(&key, ".name") && kernel->name == NULL)
            kernel->name = copy_of(&value);
        else if (packed_is(&key, ".symbol") && *symbol == NULL)
            *symbol = copy_of(&value);
        else if (value.kind == PACKED_NUMBER)
            read_number(kernel, &key, value.number);
        *packed = before;
        if (!packed_skip(packed))
            return false;
    }
    return kernel->name != NULL && *symbol != NULL;
}

/* ---- symbols ---- */

struct visit {
    bool (*symbol)(const struct object *object, const Elf64_Sym *symbol, const char *name, void *data);
    void *data;
};

/* Every symbol with a place in the file or in memory. False: broken, or the visitor says so. */
static bool each_symbol(const struct object *object, const struct visit *visit) {
    for (uint32_t i = 0; i < object->header.e_shnum; i++) {
        Elf64_Shdr table, strings;
        if (!section_at(object, i, &table))
            return false;
        if (table.sh_type != SHT_DYNSYM && table.sh_type != SHT_SYMTAB) /* either may be missing */
            continue;
        if (!section_at(object, table.sh_link, &strings) || strings.sh_type != SHT_STRTAB)
            return false;
        for (uint64_t k = 0; k < table.sh_size / sizeof(Elf64_Sym); k++) {
            Elf64_Sym symbol;
            memcpy(&symbol, object->data + table.sh_offset + k * sizeof symbol, sizeof symbol);
            if (symbol.st_name >= strings.sh_size)
                return false;
            const char *const name = (const char *)object->data + strings.sh_offset + symbol.st_name;
            if (memchr(name, '\0', strings.sh_size - symbol.st_name) == NULL)
                return false;
            if (symbol.st_shndx != SHN_UNDEF && !visit->symbol(object, &symbol, name, visit->data))
                return false;
        }
    }
    return true;
}

/* The bytes of a symbol, or NULL: it has none in the file. */
static const uint8_t *bytes_of(const struct object *object, const Elf64_Sym *symbol, uint64_t bytes) {
    Elf64_Shdr home;
    if (!section_at(object, symbol->st_shndx, &home) || home.sh_type == SHT_NOBITS || symbol->st_value < home.sh_addr)
        return NULL;
    const uint64_t at = symbol->st_value - home.sh_addr;
    return at <= home.sh_size && bytes <= home.sh_size - at ? object->data + home.sh_offset + at : NULL;
}

struct wanted {
    const char *symbol;
    struct kernel_image *kernel;
    bool found;
};

static bool take_descriptor(const struct object *object, const Elf64_Sym *symbol, const char *name, void *data) {
    struct wanted *const wanted = data;
    if (wanted->found || strcmp(name, wanted->symbol) != 0)
        return true;
    const uint8_t *const descriptor = bytes_of(object, symbol, DESCRIPTOR);
    if (descriptor == NULL)
        return false;
    uint32_t first;
    memcpy(&first, descriptor + DESCRIPTOR_RSRC1, sizeof first);
    wanted->kernel->registers = (int)((first & 0x3f) * 8 + 8);
    wanted->found = true;
    return true;
}

static bool add_kernel(const struct object *object, struct packed *packed, struct image *image) {
    struct kernel_image kernel = {.name = NULL};
    char *symbol = NULL;
    bool good = read_kernel(packed, &kernel, &symbol);
    struct wanted wanted = {symbol, &kernel, false};
    if (good)
        good = each_symbol(object, &(struct visit){take_descriptor, &wanted}) && wanted.found;
    struct kernel_image *const added = good ? sim_image_add_kernel(image, kernel.name) : NULL;
    if (added != NULL) {
        char *const name = added->name;
        free(kernel.name);
        *added = kernel;
        added->name = name;
    } else {
        free(kernel.name);
        free(kernel.parameter);
    }
    free(symbol);
    return added != NULL;
}

static bool read_metadata(const struct object *object, struct packed *packed, struct image *image) {
    struct packed_value map, key, list;
    if (!packed_next(packed, &map) || map.kind != PACKED_MAP)
        return false;
    for (uint64_t i = 0; i < map.number; i++) {
        if (!packed_next(packed, &key))
            return false;
        if (!packed_is(&key, "amdhsa.kernels")) {
            if (!packed_skip(packed))
                return false;
            continue;
        }
        if (!packed_next(packed, &list) || list.kind != PACKED_ARRAY || list.number > MOST_KERNELS)
            return false;
        for (uint64_t k = 0; k < list.number; k++)
            if (!add_kernel(object, packed, image))
                return false;
    }
    return true;
}

/* Adds the kernels of the notes of one section; false when one of them is damaged. *found counts them. */
static bool read_notes(const struct object *object, const Elf64_Shdr *section, struct image *image, uint32_t *found) {
    for (uint64_t at = 0; section->sh_size - at >= sizeof(Elf64_Nhdr);) {
        Elf64_Nhdr note;
        memcpy(&note, object->data + section->sh_offset + at, sizeof note);
        const uint64_t start = at + sizeof note + ((uint64_t)note.n_namesz + 3) / 4 * 4;
        if (start > section->sh_size || note.n_descsz > section->sh_size - start)
            break;
        const uint8_t *const data = object->data + section->sh_offset + start;
        if (note.n_type == NOTE_METADATA) {
            if (!read_metadata(object, &(struct packed){data, data + note.n_descsz, 0}, image))
                return false;
            ++*found;
        }
        at = start + ((uint64_t)note.n_descsz + 3) / 4 * 4;
        if (at > section->sh_size)
            break;
    }
    return true;
}

/* Objects that were linked of several, as rocBLAS' are, have a note for each. */
static bool read_kernels(const struct object *object, struct image *image) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < object->header.e_shnum; i++) {
        Elf64_Shdr section;
        if (section_at(object, i, &section) && section.sh_type == SHT_NOTE &&
            !read_notes(object, &section, image, &found))
            return false;
    }
    return found != 0;
}

CUresult sim_elf_read(const uint8_t *data, size_t bytes, struct image *image) {
    struct object object = {.data = data, .bytes = bytes};
    if (!read_header(&object))
        return CUDA_ERROR_INVALID_IMAGE;
    image->architecture = (int)(object.header.e_flags & 0xff);
    return read_kernels(&object, image) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}
