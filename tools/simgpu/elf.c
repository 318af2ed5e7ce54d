/* Kernels of a cubin, read from its ELF sections with every bound checked.
 *
 * Kernels are function symbols with the entry bit. Registers: EIATTR_REGCOUNT, or in older cubins the top byte of
 * sh_info of the kernel's text. Static shared memory: .nv.shared.KERNEL, which includes the 1 KiB that the system
 * reserves on sm_90 and newer, and wherever a .nv.shared.reserved section exists.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"

enum { MACHINE_CUDA = 190, SYMBOL_ENTRY = 0x10, MOST_PARAMETERS = 4096 };
enum { FORMAT_SIZED = 4 };
enum {
    ATTRIBUTE_MAX_THREADS = 0x05,
    ATTRIBUTE_REQUIRED = 0x10,
    ATTRIBUTE_PARAMETER = 0x17,
    ATTRIBUTE_REGISTERS = 0x2f,
    ATTRIBUTE_CLUSTER = 0x3d
};

struct elf {
    const uint8_t *data;
    size_t bytes;
    Elf64_Ehdr header;
    bool reserved;
    Elf64_Shdr symbols, strings, names;
};

static bool inside(const struct elf *elf, uint64_t at, uint64_t bytes) {
    return at <= elf->bytes && bytes <= elf->bytes - at;
}

static bool section_at(const struct elf *elf, uint32_t index, Elf64_Shdr *out) {
    if (index >= elf->header.e_shnum)
        return false;
    memcpy(out, elf->data + elf->header.e_shoff + (uint64_t)index * sizeof *out, sizeof *out);
    return out->sh_type == SHT_NOBITS || inside(elf, out->sh_offset, out->sh_size);
}

/* A string of a table, only if it ends inside the table. */
static const char *string_at(const struct elf *elf, const Elf64_Shdr *table, uint32_t at) {
    if (table->sh_type != SHT_STRTAB || at >= table->sh_size)
        return NULL;
    const char *const text = (const char *)elf->data + table->sh_offset + at;
    return memchr(text, '\0', table->sh_size - at) != NULL ? text : NULL;
}

static bool find_section(const struct elf *elf, const char *prefix, const char *name, Elf64_Shdr *out) {
    const size_t length = strlen(prefix);
    for (uint32_t i = 0; i < elf->header.e_shnum; i++) {
        if (!section_at(elf, i, out))
            continue;
        const char *const found = string_at(elf, &elf->names, out->sh_name);
        if (found != NULL && strncmp(found, prefix, length) == 0 && strcmp(found + length, name) == 0)
            return true;
    }
    return false;
}

static bool symbol_at(const struct elf *elf, uint64_t index, Elf64_Sym *out) {
    if (index >= elf->symbols.sh_size / sizeof *out)
        return false;
    memcpy(out, elf->data + elf->symbols.sh_offset + index * sizeof *out, sizeof *out);
    return true;
}

static bool read_headers(struct elf *elf) {
    if (elf->bytes < sizeof elf->header)
        return false;
    memcpy(&elf->header, elf->data, sizeof elf->header);
    const Elf64_Ehdr *const header = &elf->header;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_machine != MACHINE_CUDA || header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shnum == 0)
        return false;
    if (!inside(elf, header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr)))
        return false;
    bool symbols = false;
    for (uint32_t i = 0; i < header->e_shnum; i++) {
        Elf64_Shdr section;
        if (!section_at(elf, i, &section))
            return false;
        if (section.sh_type == SHT_SYMTAB) {
            elf->symbols = section;
            symbols = true;
        }
    }
    return symbols && section_at(elf, header->e_shstrndx, &elf->names) && elf->names.sh_type == SHT_STRTAB &&
           section_at(elf, elf->symbols.sh_link, &elf->strings) && elf->strings.sh_type == SHT_STRTAB;
}

static int architecture_of(const Elf64_Ehdr *header) {
    const bool recent = header->e_ident[EI_ABIVERSION] >= 8; /* since CUDA 13 */
    return (int)(recent ? header->e_flags >> 8 & 0xff : header->e_flags & 0xff);
}

struct note {
    uint8_t format, attribute;
    uint16_t value;
    const uint8_t *data; /* value bytes */
};

/* The next attribute of a .nv.info section. False at the end; *broken if it does not end where it should. */
static bool next_note(const uint8_t *data, size_t bytes, size_t *at, struct note *note, bool *broken) {
    if (*at == bytes)
        return false;
    *broken = true;
    if (bytes - *at < 4)
        return false;
    note->format = data[*at];
    note->attribute = data[*at + 1];
    memcpy(&note->value, data + *at + 2, sizeof note->value);
    note->data = data + *at + 4;
    const size_t size = note->format == FORMAT_SIZED ? note->value : 0;
    if (size > bytes - *at - 4)
        return false;
    *at += 4 + size;
    *broken = false;
    return true;
}

static uint32_t word(const struct note *note, size_t index) {
    uint32_t value;
    memcpy(&value, note->data + 4 * index, sizeof value);
    return value;
}

static bool add_parameter(struct kernel_image *kernel, const struct note *note) {
    const uint32_t ordinal = word(note, 1) & 0xffff, offset = word(note, 1) >> 16, size = word(note, 2) >> 18;
    if (ordinal >= MOST_PARAMETERS)
        return false;
    if (ordinal >= kernel->parameter_room) {
        struct parameter *const grown = sim_grow(kernel->parameter, ordinal + 1u, sizeof *grown);
        memset(grown + kernel->parameter_room, 0, (ordinal + 1 - kernel->parameter_room) * sizeof *grown);
        kernel->parameter = grown;
        kernel->parameter_room = ordinal + 1;
    }
    kernel->parameter[ordinal] = (struct parameter){offset, size};
    if (kernel->parameters <= ordinal)
        kernel->parameters = ordinal + 1;
    return true;
}

static int product(const struct note *note) {
    const uint64_t threads = (uint64_t)word(note, 0) * (word(note, 1) & 0xffff) * (word(note, 2) & 0xffff);
    return threads > MAX_BLOCK_THREADS ? MAX_BLOCK_THREADS : (int)threads;
}

static bool read_kernel_info(const struct elf *elf, struct kernel_image *kernel) {
    Elf64_Shdr section;
    if (!find_section(elf, ".nv.info.", kernel->name, &section))
        return true;
    if (section.sh_type == SHT_NOBITS)
        return false;
    kernel->layout_known = true;
    const uint8_t *const data = elf->data + section.sh_offset;
    struct note note;
    bool broken = false;
    for (size_t at = 0; next_note(data, section.sh_size, &at, &note, &broken);) {
        const bool triple = note.format == FORMAT_SIZED && note.value >= 12;
        if (triple && note.attribute == ATTRIBUTE_PARAMETER && !add_parameter(kernel, &note))
            return false;
        if (triple && (note.attribute == ATTRIBUTE_MAX_THREADS || note.attribute == ATTRIBUTE_REQUIRED)) {
            kernel->max_threads = product(&note);
            kernel->bound_written = true;
        }
        if (triple && note.attribute == ATTRIBUTE_CLUSTER)
            for (size_t i = 0; i < 3; i++)
                kernel->cluster[i] = (int)(word(&note, i) & 0xff);
    }
    return !broken;
}

/* Registers of every kernel: attributes of .nv.info, by symbol. */
static bool read_global_info(const struct elf *elf, struct image *image) {
    Elf64_Shdr section;
    if (!find_section(elf, ".nv.info", "", &section))
        return true;
    if (section.sh_type == SHT_NOBITS)
        return false;
    struct note note;
    bool broken = false;
    for (size_t at = 0; next_note(elf->data + section.sh_offset, section.sh_size, &at, &note, &broken);) {
        Elf64_Sym symbol;
        if (note.format != FORMAT_SIZED || note.value < 8 || !symbol_at(elf, word(&note, 0), &symbol))
            continue;
        const char *const name = string_at(elf, &elf->strings, symbol.st_name);
        for (uint32_t i = 0; name != NULL && i < image->kernels; i++) {
            if (strcmp(image->kernel[i].name, name) != 0)
                continue;
            if (note.attribute == ATTRIBUTE_REGISTERS)
                image->kernel[i].registers = (int)(word(&note, 1) & 0xff);
        }
    }
    return !broken;
}

static bool read_kernel(const struct elf *elf, struct kernel_image *kernel, const Elf64_Sym *symbol) {
    Elf64_Shdr section;
    if (!section_at(elf, symbol->st_shndx, &section))
        return false;
    kernel->registers = (int)(section.sh_info >> 24);
    if (find_section(elf, ".nv.shared.", kernel->name, &section)) {
        const uint64_t reserved = elf->reserved && section.sh_size >= RESERVED_SHARED ? RESERVED_SHARED : 0;
        if (section.sh_size > 1 << 20)
            return false;
        kernel->static_shared = (int)(section.sh_size - reserved);
    }
    return read_kernel_info(elf, kernel);
}

static bool has_reserved(const struct elf *elf) {
    static const char prefix[] = ".nv.shared.reserved.";
    for (uint32_t i = 0; i < elf->header.e_shnum; i++) {
        Elf64_Shdr section;
        const char *const name = section_at(elf, i, &section) ? string_at(elf, &elf->names, section.sh_name) : NULL;
        if (name != NULL && strncmp(name, prefix, sizeof prefix - 1) == 0)
            return true;
    }
    return false;
}

CUresult sim_elf_read(const uint8_t *data, size_t bytes, struct image *image) {
    struct elf elf = {.data = data, .bytes = bytes};
    if (!read_headers(&elf))
        return CUDA_ERROR_INVALID_IMAGE;
    elf.reserved = has_reserved(&elf) || architecture_of(&elf.header) >= 90; /* CUDA 12 has no such section */
    image->architecture = architecture_of(&elf.header);
    Elf64_Sym symbol;
    for (uint64_t i = 0; symbol_at(&elf, i, &symbol); i++) {
        const char *const name = string_at(&elf, &elf.strings, symbol.st_name);
        if (name == NULL)
            return CUDA_ERROR_INVALID_IMAGE;
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && (symbol.st_other & SYMBOL_ENTRY) != 0) {
            struct kernel_image *const kernel = sim_image_add_kernel(image, name);
            if (!read_kernel(&elf, kernel, &symbol))
                return CUDA_ERROR_INVALID_IMAGE;
        }
    }
    return read_global_info(&elf, image) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

/* How long an ELF file is, by its own headers. 0: broken. */
size_t sim_elf_extent(const struct source *source, size_t at) {
    enum { HEADER = 64, SECTION = 64, NOBITS = 8 };
    uint8_t header[HEADER], section[SECTION];
    if (!sim_fetch(source, at, header, sizeof header))
        return 0;
    const uint64_t table = sim_read64(header + 40);
    const uint16_t entry = sim_read16(header + 58), count = sim_read16(header + 60);
    if (entry != SECTION || table > LARGEST_IMAGE)
        return 0;
    size_t extent = (size_t)table + (size_t)count * SECTION;
    for (uint16_t i = 0; i < count; i++) {
        if (!sim_fetch(source, at + (size_t)table + (size_t)i * SECTION, section, sizeof section))
            return 0;
        const uint64_t offset = sim_read64(section + 24), size = sim_read64(section + 32);
        if (sim_read32(section + 4) == NOBITS)
            continue;
        if (offset > LARGEST_IMAGE || size > LARGEST_IMAGE)
            return 0;
        if (offset + size > extent)
            extent = (size_t)(offset + size);
    }
    return extent;
}

CUresult sim_load_elf(const struct source *source, size_t at, size_t bytes, struct image *image) {
    if (bytes == 0 || bytes > LARGEST_IMAGE)
        return CUDA_ERROR_INVALID_IMAGE;
    uint8_t *const copy = sim_new(bytes, 1);
    CUresult result = CUDA_ERROR_INVALID_IMAGE;
    if (sim_fetch(source, at, copy, bytes))
        result = sim_elf_read(copy, bytes, image);
    free(copy);
    if (result == CUDA_SUCCESS && !sim_runs_on(source->gpu, image->architecture))
        result = CUDA_ERROR_NO_BINARY_FOR_GPU;
    return result;
}
