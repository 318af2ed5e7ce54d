/* What CUDA's programs hand over as code: cubin (elf.c), fat binary, or PTX text, of which names, parameters and written bounds are
 * read. Registers are guessed (32): ptxas knows, we do not. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"

static const uint32_t FATBIN_MAGIC = 0xba55ed50, WRAPPER_MAGIC = 0x466243b1;

enum { FATBIN_PTX = 1, FATBIN_ELF = 2, FATBIN_COMPRESSED = 0x2000 | 0x8000 };

bool sim_runs_on(const struct gpu *gpu, int architecture) {
    return architecture / 10 == gpu->major && architecture % 10 <= gpu->minor;
}

/* ---- PTX ---- */

enum { GUESSED_REGISTERS = 32 };

static uint32_t type_bytes(const char *type, size_t length) {
    if (length < 2 || !isdigit((unsigned char)type[1]))
        return 0;
    return (uint32_t)strtoul(type + 1, NULL, 10) / 8;
}

static uint32_t round_up(uint32_t value, uint32_t granule) {
    return granule == 0 ? value : (value + granule - 1) / granule * granule;
}

/* One `.param .align 8 .b8 name[24]` or `.param .u64 .ptr .global .align 1 name`. */
static bool read_parameter(const char *text, const char *end, struct parameter *parameter, uint32_t *offset) {
    uint32_t bytes = 0, align = 0, count = 1;
    bool pointer = false;
    for (const char *at = text; at < end; at++) {
        if (*at == '[')
            count = (uint32_t)strtoul(at + 1, NULL, 10);
        if (*at != '.' || at + 1 >= end)
            continue;
        const char *const word = at + 1;
        size_t length = 0;
        while (word + length < end && isalnum((unsigned char)word[length]))
            length++;
        if (length == 5 && strncmp(word, "align", 5) == 0)
            align = pointer ? align : (uint32_t)strtoul(word + 5, NULL, 10);
        else if (length == 3 && strncmp(word, "ptr", 3) == 0)
            pointer = true;
        else if (bytes == 0 && strchr("bsuf", *word) != NULL)
            bytes = type_bytes(word, length);
    }
    if (bytes == 0 || count == 0 || count > 1 << 16 || align > 256)
        return false;
    *offset = round_up(*offset, align != 0 ? align : bytes);
    *parameter = (struct parameter){*offset, bytes * count};
    *offset += bytes * count;
    return true;
}

static bool read_parameters(struct kernel_image *kernel, const char *text, const char *end) {
    uint32_t offset = 0;
    while (text < end) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *const stop = comma != NULL ? comma : end;
        struct parameter *const grown = sim_grow(kernel->parameter, kernel->parameters + 1u, sizeof *grown);
        kernel->parameter = grown;
        if (strspn(text, " \t\r\n") >= (size_t)(stop - text))
            return kernel->parameters == 0;
        if (!read_parameter(text, stop, &grown[kernel->parameters], &offset))
            return false;
        kernel->parameters++;
        text = stop + 1;
    }
    return true;
}

/* .maxntid 128, 1, 1 between the parameters and the body */
static void read_bounds(struct kernel_image *kernel, const char *text, const char *body) {
    static const char *const words[] = {".maxntid", ".reqntid"};
    for (size_t i = 0; i < 2; i++) {
        const char *const at = strstr(text, words[i]);
        if (at == NULL || at > body)
            continue;
        unsigned int x = 1, y = 1, z = 1;
        if (sscanf(at + 8, " %u , %u , %u", &x, &y, &z) < 1)
            continue;
        const unsigned long long threads = (unsigned long long)x * (y & 0xffff) * (z & 0xffff);
        kernel->max_threads = threads > MAX_BLOCK_THREADS ? MAX_BLOCK_THREADS : (int)threads;
        kernel->bound_written = true;
    }
}

/* .maxnreg 16, in the same place: the most registers of a thread */
static void read_registers(struct kernel_image *kernel, const char *text, const char *body) {
    const char *const at = strstr(text, ".maxnreg");
    unsigned int most;
    if (at != NULL && at < body && sscanf(at + 8, " %u", &most) == 1 && most > 0 && most < GUESSED_REGISTERS)
        kernel->registers = (int)most;
}

static CUresult read_ptx(const char *text, struct image *image) {
    if (strstr(text, ".version") == NULL)
        return CUDA_ERROR_INVALID_IMAGE;
    for (const char *at = text; (at = strstr(at, ".entry")) != NULL;) {
        at += 6;
        at += strspn(at, " \t\r\n");
        const size_t length = strcspn(at, " \t\r\n({");
        char name[4096];
        if (length == 0 || length >= sizeof name)
            return CUDA_ERROR_INVALID_PTX;
        memcpy(name, at, length);
        name[length] = '\0';
        const char *const body = strchr(at, '{');
        if (body == NULL)
            return CUDA_ERROR_INVALID_PTX;
        struct kernel_image *const kernel = sim_image_add_kernel(image, name);
        kernel->registers = GUESSED_REGISTERS;
        kernel->layout_known = true;
        const char *const open = strchr(at, '(');
        const char *close = at;
        if (open != NULL && open < body) {
            close = strchr(open, ')');
            if (close == NULL || close > body || !read_parameters(kernel, open + 1, close))
                return CUDA_ERROR_INVALID_PTX;
        }
        read_bounds(kernel, close, body);
        read_registers(kernel, close, body);
        at = body;
    }
    return CUDA_SUCCESS;
}

static CUresult load_ptx(const struct source *source, size_t at, size_t limit, struct image *image) {
    size_t length = 0, room = 4096;
    char *text = NULL;
    for (;;) { /* up to the end of each page, so that no page beyond the text is asked for */
        const size_t page = 4096 - ((uintptr_t)(source->data + at + length) & 4095);
        const size_t wanted = limit - length < page ? limit - length : page;
        if (length + wanted + 1 > room || text == NULL) {
            room = 2 * (length + wanted + 1);
            text = sim_grow(text, room, 1);
        }
        if (length > LARGEST_IMAGE || (wanted > 0 && !sim_fetch(source, at + length, text + length, wanted)))
            break;
        const bool ends = wanted == 0 || memchr(text + length, '\0', wanted) != NULL;
        length += wanted;
        text[length] = '\0';
        if (!ends)
            continue;
        const CUresult result = read_ptx(text, image);
        free(text);
        return result;
    }
    free(text);
    return CUDA_ERROR_INVALID_IMAGE;
}

/* ---- fat binaries ---- */

struct candidate {
    size_t at, bytes;
    int kind, architecture;
};

static bool is_better(const struct gpu *gpu, const struct candidate *entry, const struct candidate *best) {
    const int device = gpu->major * 10 + gpu->minor;
    const bool fits = entry->kind == FATBIN_ELF ? sim_runs_on(gpu, entry->architecture) : entry->architecture <= device;
    if (!fits)
        return false;
    return entry->kind > best->kind || (entry->kind == best->kind && entry->architecture > best->architecture);
}

static CUresult load_fatbin(const struct source *source, struct image *image) {
    enum { HEADER = 16, ENTRY = 48 };
    uint8_t header[HEADER], entry[ENTRY];
    if (!sim_fetch(source, 0, header, sizeof header))
        return CUDA_ERROR_INVALID_IMAGE;
    size_t at = sim_read16(header + 6);
    const uint64_t total = sim_read64(header + 8);
    if (total > LARGEST_IMAGE || at < HEADER)
        return CUDA_ERROR_INVALID_IMAGE;
    const size_t end = at + (size_t)total;
    struct candidate best = {0};
    bool compressed = false;
    while (at < end) {
        if (end - at < ENTRY || !sim_fetch(source, at, entry, sizeof entry))
            return CUDA_ERROR_INVALID_IMAGE;
        const uint32_t head = sim_read32(entry + 4);
        const uint64_t size = sim_read64(entry + 8);
        if (head < ENTRY || head > end - at || size > end - at - head)
            return CUDA_ERROR_INVALID_IMAGE;
        const struct candidate found = {at + head, (size_t)size, sim_read16(entry), (int)sim_read32(entry + 28)};
        const bool known = found.kind == FATBIN_PTX || found.kind == FATBIN_ELF;
        if (known && is_better(source->gpu, &found, &best)) {
            if ((sim_read64(entry + 40) & FATBIN_COMPRESSED) != 0)
                compressed = true;
            else
                best = found;
        }
        at += head + (size_t)size;
    }
    if (best.kind == 0) {
        if (compressed)
            sim_say("this fat binary is compressed, which the simulated GPU does not unpack; "
                    "build with nvcc -no-compress or load the cubin");
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    return best.kind == FATBIN_ELF ? sim_load_elf(source, best.at, best.bytes, image)
                                   : load_ptx(source, best.at, best.bytes, image);
}

CUresult sim_load(const struct source *source, struct image *image) {
    uint8_t start[16];
    if (!sim_fetch(source, 0, start, 4))
        return CUDA_ERROR_INVALID_IMAGE;
    const uint32_t magic = sim_read32(start);
    if (magic == FATBIN_MAGIC)
        return load_fatbin(source, image);
    if (magic == ELF_MAGIC)
        return sim_load_elf(source, 0, source->size_known ? source->bytes : sim_elf_extent(source, 0), image);
    if (magic == WRAPPER_MAGIC) {
        if (!sim_fetch(source, 0, start, sizeof start) || sim_read64(start + 8) == 0)
            return CUDA_ERROR_INVALID_IMAGE;
        const struct source inner = {(const uint8_t *)(uintptr_t)sim_read64(start + 8), 0, false, source->gpu};
        if (!sim_fetch(&inner, 0, start, 4) || sim_read32(start) != FATBIN_MAGIC)
            return CUDA_ERROR_INVALID_IMAGE;
        return load_fatbin(&inner, image);
    }
    return load_ptx(source, 0, source->size_known ? source->bytes : LARGEST_IMAGE, image);
}
