/* What CUDA's programs hand over as code: cubin, fat binary or PTX text. */
#include <stdlib.h>
#include <string.h>

#include "image.h"

static const uint32_t FATBIN_MAGIC = 0xba55ed50, WRAPPER_MAGIC = 0x466243b1;

enum { FATBIN_PTX = 1, FATBIN_ELF = 2, FATBIN_COMPRESSED = 0x2000 | 0x8000 };

bool sim_runs_on(const struct gpu *gpu, int architecture) {
    return architecture / 10 == gpu->major && architecture % 10 <= gpu->minor;
}

static CUresult load_ptx(const struct source *source, size_t at, size_t limit, struct image *image) {
    size_t length = 0, room = 4096;
    char *text = NULL;
    for (;;) { /* up to the end of each page, so that no page beyond the text is asked for */
        const size_t page = 4096 - ((uintptr_t)(source->data + at + length) & 4095);
        const size_t wanted = limit - length < page ? limit - length : page;
        if (length + wanted + 1 > room || text == NULL) {
            room = 2 * (length + wanted + 1);
            char *const grown = realloc(text, room);
            if (grown == NULL)
                break;
            text = grown;
        }
        if (length > LARGEST_IMAGE || (wanted > 0 && !sim_fetch(source, at + length, text + length, wanted)))
            break;
        const bool ends = wanted == 0 || memchr(text + length, '\0', wanted) != NULL;
        length += wanted;
        text[length] = '\0';
        if (!ends)
            continue;
        const CUresult result = sim_ptx_read(text, image);
        free(text);
        return result;
    }
    free(text);
    return CUDA_ERROR_INVALID_IMAGE;
}

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
