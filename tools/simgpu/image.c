/* What a program hands over as code: cubin, fat binary or PTX text, from a file or from memory.
 *
 * Memory images come without their size, so their bytes are fetched with process_vm_readv, which stops where the
 * program's memory stops: a broken header is an error, never a crash.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sim.h"

static const uint32_t FATBIN_MAGIC = 0xba55ed50, WRAPPER_MAGIC = 0x466243b1, ELF_MAGIC = 0x464c457f;
static const size_t LARGEST_IMAGE = (size_t)1 << 31;

enum { FATBIN_PTX = 1, FATBIN_ELF = 2, FATBIN_COMPRESSED = 0x2000 | 0x8000 };

struct source {
    const uint8_t *data;
    size_t bytes;
    bool size_known;
    const struct gpu *gpu; /* for which code is wanted */
};

/* Copies bytes that may not be there. */
static bool fetch(const struct source *source, size_t at, void *to, size_t bytes) {
    if (source->size_known) {
        if (at > source->bytes || bytes > source->bytes - at)
            return false;
        memcpy(to, source->data + at, bytes);
        return true;
    }
    for (size_t done = 0; done < bytes;) {
        const struct iovec local = {(uint8_t *)to + done, bytes - done};
        const struct iovec remote = {(void *)(uintptr_t)(source->data + at + done), bytes - done};
        const ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
        if (got < 0 && (errno == ENOSYS || errno == EPERM)) { /* a sandbox: trust the header */
            memcpy((uint8_t *)to + done, source->data + at + done, bytes - done);
            return true;
        }
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static uint32_t read32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint64_t read64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint16_t read16(const uint8_t *at) {
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* How long an ELF file is, by its own headers. 0: broken. */
static size_t elf_extent(const struct source *source, size_t at) {
    enum { HEADER = 64, SECTION = 64, NOBITS = 8 };
    uint8_t header[HEADER], section[SECTION];
    if (!fetch(source, at, header, sizeof header))
        return 0;
    const uint64_t table = read64(header + 40);
    const uint16_t entry = read16(header + 58), count = read16(header + 60);
    if (entry != SECTION || table > LARGEST_IMAGE)
        return 0;
    size_t extent = (size_t)table + (size_t)count * SECTION;
    for (uint16_t i = 0; i < count; i++) {
        if (!fetch(source, at + (size_t)table + (size_t)i * SECTION, section, sizeof section))
            return 0;
        const uint64_t offset = read64(section + 24), size = read64(section + 32);
        if (read32(section + 4) == NOBITS)
            continue;
        if (offset > LARGEST_IMAGE || size > LARGEST_IMAGE)
            return 0;
        if (offset + size > extent)
            extent = (size_t)(offset + size);
    }
    return extent;
}

static bool runs_on(const struct gpu *gpu, int architecture) {
    return architecture / 10 == gpu->major && architecture % 10 <= gpu->minor;
}

static CUresult load_elf(const struct source *source, size_t at, size_t bytes, struct image *image) {
    if (bytes == 0 || bytes > LARGEST_IMAGE)
        return CUDA_ERROR_INVALID_IMAGE;
    uint8_t *const copy = malloc(bytes);
    if (copy == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = CUDA_ERROR_INVALID_IMAGE;
    if (fetch(source, at, copy, bytes))
        result = sim_elf_read(copy, bytes, image);
    free(copy);
    if (result == CUDA_SUCCESS && !runs_on(source->gpu, image->architecture))
        result = CUDA_ERROR_NO_BINARY_FOR_GPU;
    return result;
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
        if (length > LARGEST_IMAGE || (wanted > 0 && !fetch(source, at + length, text + length, wanted)))
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
    const bool fits = entry->kind == FATBIN_ELF ? runs_on(gpu, entry->architecture) : entry->architecture <= device;
    if (!fits)
        return false;
    return entry->kind > best->kind || (entry->kind == best->kind && entry->architecture > best->architecture);
}

static CUresult load_fatbin(const struct source *source, struct image *image) {
    enum { HEADER = 16, ENTRY = 48 };
    uint8_t header[HEADER], entry[ENTRY];
    if (!fetch(source, 0, header, sizeof header))
        return CUDA_ERROR_INVALID_IMAGE;
    size_t at = read16(header + 6);
    const uint64_t total = read64(header + 8);
    if (total > LARGEST_IMAGE || at < HEADER)
        return CUDA_ERROR_INVALID_IMAGE;
    const size_t end = at + (size_t)total;
    struct candidate best = {0};
    bool compressed = false;
    while (at < end) {
        if (end - at < ENTRY || !fetch(source, at, entry, sizeof entry))
            return CUDA_ERROR_INVALID_IMAGE;
        const uint32_t head = read32(entry + 4);
        const uint64_t size = read64(entry + 8);
        if (head < ENTRY || head > end - at || size > end - at - head)
            return CUDA_ERROR_INVALID_IMAGE;
        const struct candidate found = {at + head, (size_t)size, read16(entry), (int)read32(entry + 28)};
        const bool known = found.kind == FATBIN_PTX || found.kind == FATBIN_ELF;
        if (known && is_better(source->gpu, &found, &best)) {
            if ((read64(entry + 40) & FATBIN_COMPRESSED) != 0)
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
    return best.kind == FATBIN_ELF ? load_elf(source, best.at, best.bytes, image)
                                   : load_ptx(source, best.at, best.bytes, image);
}

static CUresult load(const struct source *source, struct image *image) {
    uint8_t start[16];
    if (!fetch(source, 0, start, 4))
        return CUDA_ERROR_INVALID_IMAGE;
    const uint32_t magic = read32(start);
    if (magic == FATBIN_MAGIC)
        return load_fatbin(source, image);
    if (magic == ELF_MAGIC)
        return load_elf(source, 0, source->size_known ? source->bytes : elf_extent(source, 0), image);
    if (magic == WRAPPER_MAGIC) {
        if (!fetch(source, 0, start, sizeof start) || read64(start + 8) == 0)
            return CUDA_ERROR_INVALID_IMAGE;
        const struct source inner = {(const uint8_t *)(uintptr_t)read64(start + 8), 0, false, source->gpu};
        if (!fetch(&inner, 0, start, 4) || read32(start) != FATBIN_MAGIC)
            return CUDA_ERROR_INVALID_IMAGE;
        return load_fatbin(&inner, image);
    }
    return load_ptx(source, 0, source->size_known ? source->bytes : LARGEST_IMAGE, image);
}

CUresult sim_image_load(const void *data, size_t bytes, bool size_known, const struct gpu *gpu, struct image **out) {
    struct image *const image = calloc(1, sizeof *image);
    if (image == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    image->references = 1;
    const struct source source = {data, bytes, size_known, gpu};
    const CUresult result = load(&source, image);
    if (result != CUDA_SUCCESS) {
        sim_image_release(image);
        return result;
    }
    *out = image;
    return CUDA_SUCCESS;
}

CUresult sim_read_file(const char *path, uint8_t **data, size_t *bytes) {
    FILE *const file = fopen(path, "rbe");
    struct stat status;
    if (file == NULL)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult result = CUDA_ERROR_INVALID_IMAGE;
    if (fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
        *bytes = (size_t)status.st_size;
        *data = malloc(*bytes);
        if (*data != NULL && fread(*data, 1, *bytes, file) == *bytes)
            result = CUDA_SUCCESS;
        else
            free(*data);
    }
    fclose(file);
    return result;
}

struct kernel_image *sim_image_add_kernel(struct image *image, const char *name) {
    struct kernel_image *const grown = realloc(image->kernel, (image->kernels + 1) * sizeof *grown);
    if (grown == NULL)
        return NULL;
    image->kernel = grown;
    struct kernel_image *const kernel = &grown[image->kernels];
    *kernel = (struct kernel_image){.name = strdup(name)};
    if (kernel->name == NULL)
        return NULL;
    image->kernels++;
    return kernel;
}

void sim_image_release(struct image *image) {
    if (--image->references > 0)
        return;
    for (uint32_t i = 0; i < image->kernels; i++) {
        free(image->kernel[i].name);
        free(image->kernel[i].parameter);
    }
    for (uint32_t i = 0; i < image->globals; i++) {
        free(image->global[i].name);
        free(image->global[i].initial);
    }
    free(image->kernel);
    free(image->global);
    free(image);
}

uint32_t sim_parameter_bytes(const struct kernel_image *image) {
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < image->parameters; i++) {
        const uint32_t end = image->parameter[i].offset + image->parameter[i].size;
        bytes = end > bytes ? end : bytes;
    }
    return bytes;
}
